//! How narrow an interval becomes with more rounds: what a pilot can promise.
//!
//! The width of an interval shrinks with the square root of the number of rounds, and a little
//! faster at the beginning, where few rounds also mean little knowledge of their spread. The half
//! width of a Wilcoxon interval is taken as that of Student's, at the confidence which so many
//! rounds really achieve; simulations hold this against the truth (`tests/simulated_labs`).
//!
//! Absent on purpose: a look at *where* the interval lies. A run that stops when the
//! interval excludes zero finds, sooner or later, a difference that does not exist; a run that stops
//! when the interval is narrow does not.

use crate::paired::Interval;
use crate::{signed_rank, student};

/// More rounds than this are never predicted.
pub const ROUNDS_MAX: usize = 100_000;

/// The half width to expect after `rounds` rounds, when `pilot` is the interval found after
/// `pilot_rounds`. None when so few rounds cannot have an interval of this confidence.
#[must_use]
// The ratio of the two factors is what more rounds buy; the spread found by the pilot stays.
pub fn half_width_expected(pilot: &Interval, pilot_rounds: usize, rounds: usize) -> Option<f64> {
    let spread = pilot.half_width() / in_deviations(pilot_rounds, pilot.confidence)?;
    Some(spread * in_deviations(rounds, pilot.confidence)?)
}

/// The fewest rounds after which a half width of at most `wanted` is to be expected; not fewer than
/// those of the pilot. None when that takes more than [`ROUNDS_MAX`].
#[must_use]
pub fn rounds_expected(pilot: &Interval, pilot_rounds: usize, wanted: f64) -> Option<usize> {
    if pilot.half_width() <= wanted {
        return Some(pilot_rounds);
    }
    let is_enough = |rounds: usize| {
        half_width_expected(pilot, pilot_rounds, rounds).is_some_and(|width| width <= wanted)
    };
    // Bisection, because the width falls with every round; the pilot's own width is already too
    // wide.
    let (mut too_few, mut enough) = (pilot_rounds, ROUNDS_MAX);
    if !is_enough(enough) {
        return None;
    }
    while enough - too_few > 1 {
        let middle = usize::midpoint(too_few, enough);
        if is_enough(middle) {
            enough = middle;
        } else {
            too_few = middle;
        }
    }
    Some(enough)
}

/// Half width of the interval of so many rounds, in standard deviations of a single round.
fn in_deviations(rounds: usize, confidence: f64) -> Option<f64> {
    let achieved = signed_rank::cut(rounds, confidence)?.achieved;
    let t = student::quantile(
        achieved,
        rounds.checked_sub(1).filter(|freedom| *freedom > 0)?,
    );
    Some(t / (rounds as f64).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pilot(half_width: f64) -> Interval {
        Interval {
            low: 5.0 - half_width,
            high: 5.0 + half_width,
            confidence: 0.95,
            achieved: 0.951,
        }
    }

    #[test]
    fn a_quarter_of_the_width_takes_about_sixteen_times_the_rounds() {
        let rounds = rounds_expected(&pilot(4.0), 50, 1.0).unwrap();
        assert!((700..=800).contains(&rounds), "{rounds}");
        let few = rounds_expected(&pilot(4.0), 10, 1.0).unwrap();
        assert!((110..=150).contains(&few), "{few}");
    }

    #[test]
    fn the_rounds_expected_are_the_fewest_with_the_width_wanted() {
        let rounds = rounds_expected(&pilot(2.0), 10, 0.9).unwrap();
        let at = |rounds| half_width_expected(&pilot(2.0), 10, rounds).unwrap();
        assert!(at(rounds) <= 0.9 && at(rounds - 1) > 0.9);
        assert!((at(10) - 2.0).abs() < 1e-12);
    }

    #[test]
    fn a_pilot_that_is_narrow_enough_is_enough() {
        assert_eq!(rounds_expected(&pilot(0.5), 10, 0.5), Some(10));
        assert_eq!(rounds_expected(&pilot(0.0), 10, 0.0), Some(10));
    }

    #[test]
    fn what_no_number_of_rounds_can_reach_is_not_promised() {
        assert_eq!(rounds_expected(&pilot(2.0), 10, 0.0), None);
        assert_eq!(rounds_expected(&pilot(2.0), 10, 1e-6), None);
        assert_eq!(half_width_expected(&pilot(2.0), 4, 10), None);
    }
}
