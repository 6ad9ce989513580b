//! Claims about paired.
