//! `rhai.limits`: limits for one callback of a script.

use std::num::{NonZeroU64, NonZeroUsize};
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::written::{ByteSize, Written};

/// Limits of one call of a script. They prevent a script from delaying other requests of its worker.
///
/// The three sizes apply to all contents of one value. The gateway checks them when a value is changed or
/// returned. 0 removes a limit. If all three are 0, the gateway does not count.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RhaiLimits {
    /// Maximum time. The gateway checks it every 64 operations.
    pub timeout: Written<Duration>,
    /// Maximum number of operations. An operation is roughly a statement or an expression.
    pub max_operations: NonZeroU64,
    /// Maximum depth of nested function calls.
    pub max_call_depth: NonZeroUsize,
    /// Maximum length of strings, in bytes.
    pub max_string_size: Written<ByteSize>,
    /// Maximum number of items of a list.
    pub max_array_size: usize,
    /// Maximum number of properties of a map.
    pub max_map_size: usize,
}

impl Default for RhaiLimits {
    fn default() -> Self {
        Self {
            // A useful callback takes microseconds. A callback that takes a second is a mistake.
            timeout: Written(Duration::from_secs(1)),
            max_operations: NonZeroU64::new(10_000_000).expect("not zero"),
            // Rhai's own default.
            max_call_depth: NonZeroUsize::new(64).expect("not zero"),
            // Request bodies have at most 2 MB, and response bodies are seldom larger.
            max_string_size: Written(ByteSize(16 << 20)),
            max_array_size: 1_000_000,
            max_map_size: 1_000_000,
        }
    }
}
