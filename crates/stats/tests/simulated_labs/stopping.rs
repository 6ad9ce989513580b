//! Labs that go on until their interval is narrow: does stopping so spoil what the interval says,
//! and does the pilot promise what then happens?

use stats::{Claim, Interval, width};

use crate::machine::{Machine, Order};
use crate::{CONFIDENCE, DIFFERENT, compare};

/// Rounds after which a lab is given up.
const ROUNDS_MAX: usize = 60;

/// How a lab with a wish for a narrow interval ended.
pub(crate) struct Ended {
    pub(crate) claim: Claim,
    interval: Interval,
    /// The half width that the pilot promised for the rounds that it predicted.
    promised: f64,
}

/// Looks after every round from the pilot on, and stops at the first that is narrow enough.
pub(crate) fn until(seed: u64, effect: f64, pilot: usize, wanted: f64) -> Option<Ended> {
    let (baseline, variant) = Machine::new(seed).lab(ROUNDS_MAX, Order::Interleaved, effect);
    let mut promised = None;
    for rounds in pilot..=ROUNDS_MAX {
        let compared = compare(&baseline[..rounds], &variant[..rounds], CONFIDENCE);
        let interval = compared.difference.interval?;
        let promised = *promised.get_or_insert_with(|| {
            let needed =
                width::rounds_expected(&interval, pilot, wanted).expect("the wish is within reach");
            width::half_width_expected(&interval, pilot, needed).expect("the pilot has an interval")
        });
        if interval.half_width() <= wanted {
            return Some(Ended {
                claim: compared.claim,
                interval,
                promised,
            });
        }
    }
    None
}

/// Share of the labs that end for which this is so.
pub(crate) fn share(
    labs: u64,
    effect: f64,
    (pilot, wanted): (usize, f64),
    is_so: impl Fn(&Ended) -> bool,
) -> f64 {
    let ended = (0..labs).filter_map(|seed| until(seed, effect, pilot, wanted));
    let (mut all, mut so) = (0_u32, 0_u32);
    for one in ended {
        all += 1;
        so += u32::from(is_so(&one));
    }
    assert!(
        u64::from(all) * 10 > labs * 9,
        "{all} of {labs} labs came to an end"
    );
    f64::from(so) / f64::from(all)
}

#[test]
fn stopping_at_a_width_raises_hardly_more_false_alarms_than_a_fixed_number_of_rounds() {
    for wish in [(6, 0.008), (10, 0.008), (10, 0.012)] {
        let alarms = share(400, 0.0, wish, |ended| DIFFERENT.contains(&ended.claim));
        assert!((0.02..=0.08).contains(&alarms), "{wish:?}: {alarms}");
    }
}

#[test]
fn stopping_when_zero_is_excluded_would_raise_many() {
    // The rule that people use by hand: one more round until it is significant, 30 at the most.
    let alarms = (0..200)
        .filter(|seed| {
            let (baseline, variant) = Machine::new(*seed).lab(30, Order::Interleaved, 0.0);
            (6..=30).any(|rounds| {
                let found = compare(&baseline[..rounds], &variant[..rounds], CONFIDENCE);
                DIFFERENT.contains(&found.claim)
            })
        })
        .count();
    assert!(alarms > 30, "{alarms} of 200");
}

#[test]
fn an_interval_that_was_waited_for_covers_the_true_difference() {
    let is_covered = |ended: &Ended| ended.interval.contains(0.02);
    let coverage = share(400, 0.02, (10, 0.008), is_covered);
    assert!((0.92..=0.97).contains(&coverage), "{coverage}");
}

#[test]
fn labs_stop_within_a_quarter_of_the_width_that_the_pilot_promised() {
    for wish in [(6, 0.008), (10, 0.008), (10, 0.012)] {
        let near =
            |ended: &Ended| (ended.interval.half_width() / ended.promised - 1.0).abs() <= 0.25;
        let share = share(20, 0.0, wish, near);
        assert!(share >= 0.8, "{wish:?}: {share} of 20 labs");
    }
}
