//! The variables of the environment.

use std::sync::Arc;

/// Looks up a variable of the environment.
pub(crate) type Environment = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;
