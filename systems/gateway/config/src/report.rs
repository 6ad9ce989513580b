//! The report of keys that contradict each other.

/// Adds a message about the key that a path leads to.
pub(crate) type Report<'a> = dyn FnMut(&[&str], String) + 'a;
