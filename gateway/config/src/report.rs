//! Reports keys that contradict each other.

/// Adds a message about the key at a path.
pub(crate) type Report<'a> = dyn FnMut(&[&str], String) + 'a;
