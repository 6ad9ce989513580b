//! `batching`: several operations in one request.

use std::num::NonZeroUsize;

use schemars::JsonSchema;
use serde::Deserialize;

/// Several operations in one request. The request is a list of operations, and the response is a list, too.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Batching {
    /// True if the gateway accepts lists.
    pub enabled: bool,
    /// The format of such requests.
    pub mode: BatchingMode,
    /// Maximum number of operations in one request. The default is 100, and `null` removes the limit. Apollo
    /// Router has no limit by default.
    pub maximum_size: Option<NonZeroUsize>,
}

impl Default for Batching {
    fn default() -> Self {
        Self {
            enabled: false,
            mode: BatchingMode::BatchHttpLink,
            maximum_size: NonZeroUsize::new(100),
        }
    }
}

/// The format of requests with several operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BatchingMode {
    /// The format of Apollo Client's `BatchHttpLink`, a JSON list in the body of a POST.
    BatchHttpLink,
}
