//! The subgraph `reviews`: travelers' reviews of a location.
//!
//! It has only the keys of locations, and no query of its own. The router reaches it through `_entities`.

use async_graphql::{EmptyMutation, EmptySubscription, ID, Object, Schema};
use graphql_document::NESTING_MAX;

use crate::universe::{self, Opinion};

/// The schema of this subgraph.
pub(crate) type Reviews = Schema<Query, EmptyMutation, EmptySubscription>;

/// The root type of queries.
pub(crate) struct Query;

/// A place, identified by its id. Places without reviews are valid too.
pub(crate) struct Location(ID);

/// A traveler's review of one place.
pub(crate) struct Review {
    opinion: &'static Opinion,
    about: ID,
}

/// The schema. The key of `Location` adds `_service` and `_entities`.
pub(crate) fn schema() -> Reviews {
    Schema::build(Query, EmptyMutation, EmptySubscription)
        .enable_federation()
        // The library counts the selection set of the operation as 0.
        .limit_recursive_depth(NESTING_MAX - 1)
        .finish()
}

/// What can be asked at the start.
#[Object]
impl Query {
    #[graphql(entity)]
    async fn location_by_key(&self, id: ID) -> Location {
        Location(id)
    }
}

/// A place that one can travel to.
#[Object]
impl Location {
    async fn id(&self) -> &ID {
        &self.0
    }

    /// The mean of all ratings; null before the first review.
    async fn overall_rating(&self) -> Option<f64> {
        universe::place(&self.0)?.overall_rating()
    }

    /// All reviews of this place, the oldest first.
    async fn reviews_for_location(&self) -> Vec<Option<Review>> {
        let opinions = universe::place(&self.0).map_or(&[][..], |place| place.reviews);
        opinions
            .iter()
            .map(|opinion| {
                let about = self.0.clone();
                Some(Review { opinion, about })
            })
            .collect()
    }
}

/// What one traveler wrote about one place.
#[Object]
impl Review {
    async fn id(&self) -> ID {
        self.opinion.id.into()
    }

    /// The text.
    async fn comment(&self) -> Option<&str> {
        Some(self.opinion.comment)
    }

    /// From 1, the worst, to 5.
    async fn rating(&self) -> Option<u8> {
        Some(self.opinion.rating)
    }

    /// The place it is about.
    async fn location(&self) -> Option<Location> {
        Some(Location(self.about.clone()))
    }
}
