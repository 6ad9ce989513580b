//! Tables of a report, each built once for all formats.

pub(crate) mod bodies;
pub(crate) mod hottest;
pub(crate) mod instances;
pub(crate) mod ladder;
pub(crate) mod searches;
pub(crate) mod sent;
pub(crate) mod statuses;
pub(crate) mod steps;
pub(crate) mod systems;
