//! `rhai.limits`: limits for one callback of a script.

use std::num::{NonZeroU64, NonZeroUsize};
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::written::{ByteSize, Written};

/// What one call of a script may take, so that none can hold up the requests of its worker.
///
/// The three sizes hold for everything within one value, and are counted whenever a value is
/// changed or returned; 0 lifts one, and without all three nothing is counted.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RhaiLimits {
    /// The longest time. Looked at every 64 operations.
    pub timeout: Written<Duration>,
    /// Most operations: roughly, statements and expressions.
    pub max_operations: NonZeroU64,
    /// Deepest calls of functions within functions.
    pub max_call_depth: NonZeroUsize,
    /// Longest strings, in bytes.
    pub max_string_size: Written<ByteSize>,
    /// Most items of lists.
    pub max_array_size: usize,
    /// Most properties of maps.
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
