//! The recording format and its renderings.
