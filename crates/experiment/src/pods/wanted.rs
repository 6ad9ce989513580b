//! The systems that a round needs.

use lab::Setup;

/// A system that a round needs.
#[derive(Clone, Copy)]
pub struct Wanted<'a> {
    /// The position of its variant, or `None` for a system that all variants share.
    pub(crate) variant: Option<usize>,
    pub(crate) setup: &'a Setup,
}
