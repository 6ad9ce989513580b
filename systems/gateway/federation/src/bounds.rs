//! What one request may make the gateway hold, send and do.
//!
//! A query of fifty bytes that goes to and fro between two types means a power of what
//! subgraphs answer. Depth and aliases say little about it; what counts is looked at here while
//! it comes to be, before memory is spent on it.

use crate::error::GraphqlError;

/// Largest number of errors in one response. An error of an entity stands at every place of the
/// entity, so a small answer could mean very many.
pub(crate) const ERRORS_MAX: usize = 5_000;

/// Bounds on the execution of an operation, named as in the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Largest `data` of a response, and largest list of entities in one request to a subgraph
    /// (`limits.response_max_bytes`); 64 MiB by default, which is as much as one subgraph may
    /// answer, so that whatever one subgraph knows can be asked for.
    pub response_bytes: usize,
    /// Memory for all the answers of subgraphs to one request
    /// (`limits.subgraph_answers_max_bytes`); 256 MiB by default.
    pub answers_bytes: usize,
    /// Most different entities in one request to a subgraph
    /// (`limits.entities_max_per_request`); 10,000 by default.
    pub fetch_entities: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Bounds {
            response_bytes: 64 << 20,
            answers_bytes: 256 << 20,
            fetch_entities: 10_000,
        }
    }
}

impl Bounds {
    /// What a client is told of a response beyond [`response_bytes`](Self::response_bytes).
    #[must_use]
    pub fn response_too_large(&self) -> GraphqlError {
        Excess::Response(self.response_bytes).error()
    }

    /// What a client is told of answers beyond [`answers_bytes`](Self::answers_bytes).
    #[must_use]
    pub fn answers_too_large(&self) -> GraphqlError {
        Excess::Answers(self.answers_bytes).error()
    }
}

/// Which bound was met. Numbers are the bound's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Excess {
    Response(usize),
    Answers(usize),
    FetchEntities(usize),
    FetchBytes(usize),
    /// Following paths through what was received.
    Work,
}

impl Excess {
    /// What the client is told. It is no subgraph's error, so that no policy hides it.
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
