//! Environment variables.

use std::sync::Arc;

/// Looks up an environment variable.
pub(crate) type Environment = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;
