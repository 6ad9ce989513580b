//! Limits on the data, subgraph requests and work of one client request.
//!
//! A query of fifty bytes can go back and forth between two types. The size of its response then grows
//! exponentially. Limits on depth and aliases do not prevent this. The limits here are checked during the
//! work, before memory is allocated.

use crate::error::GraphqlError;

/// Maximum number of errors in one response. An entity's error is repeated at every place of the entity, so a
/// small subgraph response can produce very many errors.
pub(crate) const ERRORS_MAX: usize = 5_000;

/// Limits on the execution of an operation. The comments contain the configuration keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExecutionLimits {
    /// Maximum bytes of a response's `data` (`limits.response_max_bytes`). It also limits the list of
    /// entities in a subgraph request. The default is 64 MiB, the default limit on one subgraph response. So
    /// a client can receive all the data of one subgraph response.
    pub response_bytes: usize,
    /// Maximum bytes of memory for all subgraph responses to one client request
    /// (`limits.subgraph_answers_max_bytes`). The default is 256 MiB.
    pub answers_bytes: usize,
    /// Maximum number of different entities in one request to a subgraph (`limits.entities_max_per_request`).
    /// The default is 10,000.
    pub fetch_entities: usize,
}

impl Default for ExecutionLimits {
    fn default() -> Self {
        ExecutionLimits {
            response_bytes: 64 << 20,
            answers_bytes: 256 << 20,
            fetch_entities: 10_000,
        }
    }
}

impl ExecutionLimits {
    /// The error for a response beyond [`response_bytes`](Self::response_bytes).
    #[must_use]
    pub fn response_too_large(&self) -> GraphqlError {
        Excess::Response(self.response_bytes).error()
    }

    /// The error for subgraph responses beyond [`answers_bytes`](Self::answers_bytes).
    #[must_use]
    pub fn answers_too_large(&self) -> GraphqlError {
        Excess::Answers(self.answers_bytes).error()
    }
}

/// The exceeded limit. Each number is the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Excess {
    Response(usize),
    Answers(usize),
    FetchEntities(usize),
    FetchBytes(usize),
    /// Steps along paths through the received data.
    Work,
}

impl Excess {
    /// The error for the client. It is not an error of a subgraph, so no policy hides it.
    pub(crate) fn error(self) -> GraphqlError {
        let (message, code) = match self {
            Excess::Response(most) => (
                format!(
                    "the response would be larger than {most} bytes; ask for fewer fields or fewer items"
                ),
                "RESPONSE_TOO_LARGE",
            ),
            Excess::Answers(most) => (
                format!(
                    "the answers of subgraphs to this request take more than {most} bytes of memory; ask for fewer fields or fewer items"
                ),
                "SUBGRAPH_ANSWERS_TOO_LARGE",
            ),
            Excess::FetchEntities(most) => (
                format!(
                    "more than {most} entities would be asked of a subgraph at once; ask for fewer items"
                ),
                "TOO_MANY_ENTITIES",
            ),
            Excess::FetchBytes(most) => (
                format!(
                    "the entities to ask a subgraph about take more than {most} bytes; ask for fewer items"
                ),
                "TOO_MANY_ENTITIES",
            ),
            Excess::Work => (
                "the answers of subgraphs refer to each other too often; ask for fewer levels or fewer items".to_owned(),
                "RESPONSE_TOO_LARGE",
            ),
        };
        GraphqlError::new(message, code)
    }
}
