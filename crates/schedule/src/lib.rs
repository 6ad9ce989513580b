//! Send times of requests, and the order of variants. There is no clock.
//!
//! A [`model::Load`] describes the requested load. [`OpenPlan`] turns an open load into slots, each with its
//! due time as an offset from the start. Everything here is a function of its arguments. Equal loads and
//! seeds give equal slots on every machine. So a plan can be divided into shards without a coordinator, and a
//! recording needs only the seed.
//!
//! Sleeping, sending, and reading the current time are absent on purpose.

#![warn(missing_docs)]

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
pub use seats::{Seat, SeatedSlots, Spread};
pub use slices::{PlannedSlice, SliceLengths, SlicePlan};
