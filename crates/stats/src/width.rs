//! How narrow an interval becomes with more rounds: what a pilot can promise.
//!
//! The width of an interval shrinks with the square root of the number of rounds, and a little
//! faster at the beginning, where few rounds also mean little knowledge of their spread. The half
//! width of a Wilcoxon interval is taken as that of Student's, which simulations hold against the truth
//! (`tests/simulated_labs`).
//!
//! A run that stops on width stops a little too often where its rounds happen to lie close together,
//! so that its interval is too narrow; [`watched_confidence`] is what makes up for it.
//!
//! Absent on purpose: a look at *where* the interval lies. A run that stops when the
//! interval excludes zero finds, sooner or later, a difference that does not exist; a run that stops
//! when the interval is narrow does not.

use crate::paired::{self, Interval};
use crate::student;

/// The share of runs that would show a difference of [`detectable`].
pub const POWER: f64 = 0.8;

/// More rounds than this are never predicted.
pub const ROUNDS_MAX: usize = 100_000;

/// Of the chance of error, the share that the interval of a run is given which goes on until that
/// interval is narrow. The rest is for having looked.
const WATCHED_SHARE: f64 = 2.0 / 3.0;

/// The confidence that the intervals of a run must be made with which goes on until they are narrow,
/// so that they hold with `overall` confidence when it ends: `1 - (1 - overall) * 2 / 3`.
///
/// Made with 95 % and looked at after every round, they would be wrong in up to 7 of 100 such runs.
/// Two thirds is what simulations need: of normal differences, pilots of 6 to 12 rounds and ends after
/// 8 to 50, none was then wrong more often than promised by more than the simulation's own error
/// (`tests/simulated_labs/stopping.rs`). Six rounds still support 95 % with it.
#[must_use]
pub fn watched_confidence(overall: f64) -> f64 {
    1.0 - (1.0 - overall) * WATCHED_SHARE
}

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

/// The smallest difference that [`POWER`] of all runs like this one would show: so far from zero
/// lies an interval of this width in that share of them. In the unit of the interval. None when so
/// few rounds cannot have an interval of this confidence.
///
/// An interval excludes zero when the estimate is further from it than its half width, `t` standard
/// errors; four of five estimates lie above the true difference minus 0.84 of them (a little more
/// with few rounds, by Student's t). So the difference is `t + 0.84` standard errors (Cohen,
/// "Statistical Power Analysis for the Behavioral Sciences", 1988, chapter 2). In simulations of 8 to
/// 20 rounds, 72 to 86 % of the runs show it.
#[must_use]
pub fn detectable(found: &Interval, rounds: usize) -> Option<f64> {
    let deviation = found.half_width() / in_deviations(rounds, found.confidence)?;
    detectable_at(deviation, rounds, found.confidence)
}

/// The smallest difference that [`POWER`] of all runs would show, where the difference of a round has
/// this standard deviation. In its unit. None when so few rounds cannot have an interval of this
/// confidence. See [`detectable`] for the formula.
#[must_use]
pub fn detectable_at(deviation: f64, rounds: usize, confidence: f64) -> Option<f64> {
    let root = (rounds as f64).sqrt();
    let in_errors = in_deviations(rounds, confidence)? * root;
    let power = student::quantile(2.0 * POWER - 1.0, rounds - 1);
    Some(deviation / root * (in_errors + power))
}

/// The standard error of an estimate with this interval over so many rounds, in the unit of the interval:
/// its half width divided by the quantile of Student's t. None where so few rounds cannot have an interval of
/// this confidence.
#[must_use]
pub fn standard_error(found: &Interval, rounds: usize) -> Option<f64> {
    let root = (rounds as f64).sqrt();
    Some(found.half_width() / (in_deviations(rounds, found.confidence)? * root))
}

/// Half width of the interval of so many rounds, in standard deviations of a single round.
fn in_deviations(rounds: usize, confidence: f64) -> Option<f64> {
    if rounds < paired::rounds_needed(confidence) {
        return None;
    }
    // Also where one round would do, for a confidence that nobody wants: it has no spread.
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
            // What an equal pair promises, in the typical run.
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
