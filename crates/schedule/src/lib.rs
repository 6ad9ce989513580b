//! When each request should leave, and in which order variants are measured; no clock.
//!
//! A [`model::Load`] says what a person asked for. [`OpenPlan`] turns the open kind into slots, each with
//! the offset from the start at which it is due. Everything here is a function of its arguments:
//! the same load and seed give the same slots on every machine, so that a plan can be cut into
//! shards without a coordinator and a recording needs to keep no more than the seed.
//!
//! Absent on purpose: sleeping, sending, and any idea of what time it is.

mod capacity;
pub mod fit;
mod order;
mod plan;
mod random;
mod seats;
mod segment;
mod slices;

pub use capacity::Search;
pub use order::round_order;
pub use plan::{OpenPlan, PlanError, Slot, Slots};
pub use seats::{Seat, SeatedSlots};
pub use slices::{PlannedSlice, SliceLengths, SlicePlan};
