//! Refusals of operations, with the time that the cache may store them.

use std::time::Duration;

use operation_cache::Keep;

use crate::error::{GraphqlError, errors_body};

/// Lifetime in the cache of a refusal that a busy machine may have caused.
const DOUBTFUL_KEPT: Duration = Duration::from_secs(60);

/// A reason not to execute an operation.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    /// One or more errors. Their extensions have codes.
    pub errors: Vec<GraphqlError>,
    /// True if the fault is the gateway's (status 500), not the client's (status 400).
    pub internal: bool,
    /// The planner's reason, for the log. It names parts of the plan that a client does not know.
    pub reason: Option<String>,
    cause: Cause,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    /// The text of the operation, which never changes.
    Text,
    /// The planner failed or ran out of time. It may succeed later.
    Doubtful,
    /// The operation needs more effort than this attempt allowed.
    Effort,
    /// No client waits for the operation any more.
    Stopped,
}

impl Refusal {
    pub(crate) fn from_errors(errors: Vec<GraphqlError>) -> Refusal {
        Refusal {
            errors,
            internal: false,
            reason: None,
            cause: Cause::Text,
        }
    }

    pub(crate) fn from_error(error: GraphqlError) -> Refusal {
        Refusal::from_errors(vec![error])
    }

    pub(crate) fn invalid(message: &str) -> Refusal {
        Refusal::from_error(GraphqlError::new(message, "GRAPHQL_VALIDATION_FAILED"))
    }

    pub(crate) fn internal(message: &str) -> Refusal {
        Refusal {
            errors: vec![GraphqlError::new(message, "QUERY_PLANNING_FAILED")],
            internal: true,
            reason: None,
            cause: Cause::Doubtful,
        }
    }

    /// A refusal because the planner has no plan that answers the operation.
    pub(crate) fn unplanned(reason: String) -> Refusal {
        Refusal {
            reason: Some(reason),
            ..Refusal::internal(
                "the operation could not be planned. The log of the gateway has the reason",
            )
        }
    }

    pub(crate) fn out_of_time(limit: Duration) -> Refusal {
        Refusal::internal(&format!(
            "the operation could not be planned within {limit:?}; ask for less at once"
        ))
    }

    /// Never reaches a client, because the operation is tried again with the full effort.
    pub(crate) fn more() -> Refusal {
        Refusal {
            cause: Cause::Effort,
            ..Refusal::internal("the operation takes more effort than was allowed")
        }
    }

    /// Never reaches a client, because no client waits any more.
    pub(crate) fn stopped() -> Refusal {
        Refusal {
            cause: Cause::Stopped,
            ..Refusal::internal("no client waits for the operation any more")
        }
    }

    /// True if the operation was only tried with [`Effort::quick`](crate::Effort::quick) and
    /// needs [`Effort::full`](crate::Effort::full).
    #[must_use]
    pub fn wants_more(&self) -> bool {
        self.cause == Cause::Effort
    }

    /// The refusal with other errors.
    #[must_use]
    pub fn with_errors(self, errors: Vec<GraphqlError>) -> Refusal {
        Refusal { errors, ..self }
    }

    /// Returns the lifetime of the refusal in the cache, for this text.
    #[must_use]
    pub fn keep(&self) -> Keep {
        let errors = self.errors.iter();
        let errors = errors.map(|it| it.weight() + size_of::<GraphqlError>() + 128);
        let reason = self.reason.as_ref().map_or(0, String::len);
        let bytes = size_of::<Self>() + reason + errors.sum::<usize>();
        match self.cause {
            Cause::Text => Keep::Yes { bytes },
            Cause::Doubtful => Keep::For {
                bytes,
                time: DOUBTFUL_KEPT,
            },
            Cause::Effort | Cause::Stopped => Keep::No,
        }
    }

    /// The response body: `{"errors":[…]}`.
    #[must_use]
    pub fn body(&self) -> Vec<u8> {
        errors_body(&self.errors)
    }
}
