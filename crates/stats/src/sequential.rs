//! Gates that are checked after every round: a group-sequential test.
//!
//! A gate is decided if the whole interval is on one side of its limit. Rounds that continue until then would
//! decide some gate wrongly sooner or later. So the interval of each look has more confidence, the same at
//! all looks (Pocock, "Group sequential methods in the design and analysis of clinical trials", Biometrika
//! 64, 1977). All looks together are then wrong as seldom as one interval would be.
//!
//! The share of the error that a look may have follows from simulations of 19 looks at normal differences
//! (`tests/simulated_labs/gates.rs`).

use std::ops::RangeInclusive;

/// Rounds after which gates are checked. The last one ends the run.
pub const LOOKS: RangeInclusive<usize> = 6..=24;

/// The share of the chance of error that each look may have.
const LOOK_SHARE: f64 = 0.198;

/// The confidence that the interval of each look must have, so that all looks together are right with
/// `overall` confidence: `1 - 0.198 (1 - overall)`. That is 99 % for 95 %.
#[must_use]
pub fn look_confidence(overall: f64) -> f64 {
    1.0 - (1.0 - overall) * LOOK_SHARE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_has_a_fifth_of_the_error() {
        assert!((look_confidence(0.95) - 0.9901).abs() < 1e-9);
        assert!(look_confidence(1.0) <= 1.0);
        assert_eq!(LOOKS.count(), 19);
    }
}
