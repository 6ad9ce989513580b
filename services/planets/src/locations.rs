//! The subgraph `locations`: places to travel to.

use async_graphql::{EmptyMutation, EmptySubscription, ID, Object, Schema};
use graphql_document::NESTING_MAX;

use crate::universe::{self, PLACES, Place};

/// The schema of this subgraph.
pub(crate) type Locations = Schema<Query, EmptyMutation, EmptySubscription>;

/// The root type of queries.
pub(crate) struct Query;

/// A place to travel to.
pub(crate) struct Location(&'static Place);

/// The schema. The key of `Location` adds `_service` and `_entities`.
pub(crate) fn schema() -> Locations {
    Schema::build(Query, EmptyMutation, EmptySubscription)
        .enable_federation()
        // The library counts the selection set of the operation as 0.
        .limit_recursive_depth(NESTING_MAX - 1)
        .finish()
}

/// Root fields of queries.
#[Object]
impl Query {
    /// All places, in the order of the catalog.
    async fn locations(&self) -> Vec<Location> {
        PLACES.iter().map(Location).collect()
    }

    /// Place with this id, or null if there is no such place.
    async fn location(&self, id: ID) -> Option<Location> {
        universe::place(&id).map(Location)
    }

    #[graphql(entity)]
    async fn location_by_key(&self, id: ID) -> Option<Location> {
        universe::place(&id).map(Location)
    }
}

/// Place to travel to.
#[Object]
impl Location {
    async fn id(&self) -> ID {
        self.0.id.into()
    }

    /// Name of the place.
    async fn name(&self) -> &str {
        self.0.name
    }

    /// Description of the place, in one paragraph.
    async fn description(&self) -> &str {
        self.0.description
    }

    /// URL of a picture.
    async fn photo(&self) -> &str {
        self.0.photo
    }
}
