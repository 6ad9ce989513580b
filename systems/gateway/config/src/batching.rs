//! `batching`: several operations in one request.

use std::num::NonZeroUsize;

use schemars::JsonSchema;
use serde::Deserialize;

/// Several operations in one request: a list in place of an object, answered by a list.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Batching {
    /// Whether lists are taken.
    pub enabled: bool,
    /// How operations come together.
    pub mode: BatchingMode,
    /// Most operations of one request, 100 when left out; `null` for any. The original has no limit
    /// when it is left out.
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

/// How operations come together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BatchingMode {
    /// As Apollo Client's `BatchHttpLink` sends them: a JSON list in the body of a POST.
    BatchHttpLink,
}
