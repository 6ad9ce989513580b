//! The width of an interval after more rounds, predicted from a pilot.
//!
//! The width of an interval shrinks with the square root of the number of rounds. It shrinks a little faster
//! at the beginning, because few rounds also give a poor estimate of their spread. The half width of a
//! Wilcoxon interval is approximated by the half width of Student's t. Simulations confirm it
//! (`tests/simulated_labs`).
//!
//! A run that stops at a width stops a little too often when its rounds happen to lie close together. Its
//! interval is then too narrow, and [`watched_confidence`] makes up for it.
//!
//! Absent on purpose: a rule that uses the *position* of the interval. A run that stops when the interval
//! excludes zero finds, sooner or later, a difference that does not exist. A run that stops when the interval
//! is narrow does not.

use crate::paired::{self, Interval};
use crate::student;

/// The share of runs that would show a difference of [`detectable`].
pub const POWER: f64 = 0.8;

/// Largest number of rounds that is predicted.
pub const ROUNDS_MAX: usize = 100_000;

/// The share of the chance of error that the interval receives, if the run continues until that interval is
/// narrow. The rest pays for the repeated looks.
const WATCHED_SHARE: f64 = 2.0 / 3.0;

/// The confidence for the intervals of a run that continues until they are narrow. They then hold with
/// `overall` confidence when it ends. The formula is `1 - (1 - overall) * 2 / 3`.
///
/// Intervals of 95 %, checked after every round, would be wrong in up to 7 of 100 such runs. The factor of
/// two thirds comes from simulations with normal differences, pilots of 6 to 12 rounds and ends after 8 to 50
/// rounds. With it, no case was wrong more often than promised by more than the simulation's own error
/// (`tests/simulated_labs/stopping.rs`). Six rounds still support 95 % with it.
#[must_use]
pub fn watched_confidence(overall: f64) -> f64 {
    1.0 - (1.0 - overall) * WATCHED_SHARE
}

/// The half width to expect after `rounds` rounds, if `pilot` is the interval after `pilot_rounds`. `None` if
/// the number of rounds does not allow an interval of this confidence.
#[must_use]
// More rounds improve the ratio of the two factors. The spread found by the pilot stays.
pub fn half_width_expected(pilot: &Interval, pilot_rounds: usize, rounds: usize) -> Option<f64> {
    let spread = pilot.half_width() / in_deviations(pilot_rounds, pilot.confidence)?;
    Some(spread * in_deviations(rounds, pilot.confidence)?)
}

/// The fewest rounds that give an expected half width of at most `wanted`, at least the rounds of the pilot.
/// `None` if that takes more than [`ROUNDS_MAX`].
#[must_use]
pub fn rounds_expected(pilot: &Interval, pilot_rounds: usize, wanted: f64) -> Option<usize> {
    if pilot.half_width() <= wanted {
        return Some(pilot_rounds);
    }
    let is_enough = |rounds: usize| {
        half_width_expected(pilot, pilot_rounds, rounds).is_some_and(|width| width <= wanted)
    };
    // Bisection, because the width falls with every round. The pilot's own width is already too wide.
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

/// The smallest true difference that [`POWER`] of all runs like this one would show, in the unit of the
/// interval. In that share of the runs, the interval excludes zero. `None` if the rounds are too few for an
/// interval of this confidence.
///
/// An interval excludes zero if the estimate is further from zero than its half width, `t` standard errors.
/// Four of five estimates lie above the true difference minus 0.84 standard errors (a little more with few
/// rounds, by Student's t). So the difference is `t + 0.84` standard errors (Cohen, "Statistical Power
/// Analysis for the Behavioral Sciences", 1988, chapter 2). In simulations of 8 to 20 rounds, 72 to 86 % of
/// the runs show it.
#[must_use]
pub fn detectable(found: &Interval, rounds: usize) -> Option<f64> {
    let deviation = found.half_width() / in_deviations(rounds, found.confidence)?;
    detectable_at(deviation, rounds, found.confidence)
}

/// The smallest difference that [`POWER`] of all runs would show, if the difference of a round has this
/// standard deviation. In its unit. `None` if the rounds are too few for an interval of this confidence. See
/// [`detectable`] for the formula.
#[must_use]
pub fn detectable_at(deviation: f64, rounds: usize, confidence: f64) -> Option<f64> {
    let root = (rounds as f64).sqrt();
    let in_errors = in_deviations(rounds, confidence)? * root;
    let power = student::quantile(2.0 * POWER - 1.0, rounds - 1);
    Some(deviation / root * (in_errors + power))
}

/// The standard error of an estimate with this interval over `rounds` rounds, in the unit of the interval. It
/// is the half width divided by the quantile of Student's t. `None` if the rounds are too few for an interval
/// of this confidence.
#[must_use]
pub fn standard_error(found: &Interval, rounds: usize) -> Option<f64> {
    let root = (rounds as f64).sqrt();
    Some(found.half_width() / (in_deviations(rounds, found.confidence)? * root))
}

/// Half width of the interval of `rounds` rounds, in standard deviations of a single round.
fn in_deviations(rounds: usize, confidence: f64) -> Option<f64> {
    if rounds < paired::rounds_needed(confidence) {
        return None;
    }
    // A very low confidence would allow a single round, but a single round has no spread.
    let freedom = rounds.checked_sub(1).filter(|freedom| *freedom > 0)?;
    let t = student::quantile(confidence, freedom);
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
    fn four_of_five_runs_show_a_difference_that_is_called_detectable() {
        let mut random = crate::random::Random::new(17);
        let mut normal = || {
            let uniform = (random.next() >> 11) as f64 / (1_u64 << 53) as f64;
            crate::normal::quantile(uniform.clamp(1e-12, 1.0 - 1e-12))
        };
        for rounds in [8, 12, 20] {
            let mut run = || -> Vec<f64> { (0..rounds).map(|_| normal()).collect() };
            let interval = |values: &[f64]| crate::wilcoxon_interval(values, 0.95).unwrap();
            // The detectable difference that an equal pair promises, in the typical run.
            let mut promised: Vec<f64> = (0..400)
                .map(|_| detectable(&interval(&run()), rounds).unwrap())
                .collect();
            promised.sort_unstable_by(f64::total_cmp);
            let planted = promised[200];
            let shown = (0..1_000)
                .filter(|_| {
                    let values: Vec<f64> = run().iter().map(|value| value + planted).collect();
                    interval(&values).low > 0.0
                })
                .count();
            assert!(
                (740..=860).contains(&shown),
                "{rounds} rounds: {shown} of 1000"
            );
        }
    }

    #[test]
    fn what_no_number_of_rounds_can_reach_is_not_promised() {
        assert_eq!(rounds_expected(&pilot(2.0), 10, 0.0), None);
        assert_eq!(rounds_expected(&pilot(2.0), 10, 1e-6), None);
        assert_eq!(half_width_expected(&pilot(2.0), 4, 10), None);
    }
}
