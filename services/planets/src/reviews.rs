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

/// Root fields of queries.
#[Object]
impl Query {
    #[graphql(entity)]
    async fn location_by_key(&self, id: ID) -> Location {
        Location(id)
    }
}

/// Place to travel to.
#[Object]
impl Location {
    async fn id(&self) -> &ID {
        &self.0
    }

    /// Mean of all ratings, or null without reviews.
    async fn overall_rating(&self) -> Option<f64> {
        universe::place(&self.0)?.overall_rating()
    }

    /// All reviews of this place, oldest first.
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

/// Review of one place by one traveler.
#[Object]
impl Review {
    async fn id(&self) -> ID {
        self.opinion.id.into()
    }

    /// Text of the review.
    async fn comment(&self) -> Option<&str> {
        Some(self.opinion.comment)
    }

    /// Rating from 1 (worst) to 5 (best).
    async fn rating(&self) -> Option<u8> {
        Some(self.opinion.rating)
    }

    /// Reviewed place.
    async fn location(&self) -> Option<Location> {
        Some(Location(self.about.clone()))
    }
}
