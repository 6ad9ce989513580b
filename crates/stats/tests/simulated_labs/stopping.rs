//! Labs that continue until their interval is narrow. Does this rule spoil the interval, and does the pilot
//! predict the result?

use std::sync::LazyLock;

use stats::{Interval, width};

use crate::machine::{Machine, Order};
use crate::{CONFIDENCE, DIFFERENT, compare};

/// Largest number of rounds of a lab.
const ROUNDS_MAX: usize = 70;

/// Result of a lab that stops at a width.
struct Ended {
    interval: Interval,
    /// The half width that the pilot promised for the rounds that it predicted.
    promised: f64,
}

impl Ended {
    fn claims_a_difference(&self) -> bool {
        !self.interval.contains(0.0)
    }
}

/// A wish for a narrow interval, with the rule that watches it.
#[derive(Clone, Copy, Debug)]
struct Wish {
    /// Rounds before the first look.
    pilot: usize,
    /// The half width that ends the lab, as a share of the baseline's latency.
    half_width: f64,
    /// Confidence of the intervals at each look.
    confidence: f64,
}

impl Wish {
    /// The wish of a run with `--until`.
    fn watched(pilot: usize, half_width: f64) -> Wish {
        Wish {
            pilot,
            half_width,
            confidence: width::watched_confidence(CONFIDENCE),
        }
    }

    /// A wish without the correction for repeated looks.
    fn plain(pilot: usize, half_width: f64) -> Wish {
        Wish {
            pilot,
            half_width,
            confidence: CONFIDENCE,
        }
    }
}

/// Checks the width after every round from the pilot on, and stops at the first round that is narrow enough.
fn until(seed: u64, effect: f64, wish: Wish) -> Option<Ended> {
    let (baseline, variant) = Machine::new(seed).lab(ROUNDS_MAX, Order::Interleaved, effect);
    let mut promised = None;
    let (pilot, wanted) = (wish.pilot, wish.half_width);
    let pairs = baseline.iter().zip(&variant);
    let differences: Vec<f64> = pairs.map(|(base, own)| own - base).collect();
    for rounds in pilot..=ROUNDS_MAX {
        let interval = stats::location(&differences[..rounds], wish.confidence)?.interval?;
        let promised = *promised.get_or_insert_with(|| {
            let needed =
                width::rounds_expected(&interval, pilot, wanted).expect("the wish is within reach");
            width::half_width_expected(&interval, pilot, needed).expect("the pilot has an interval")
        });
        if interval.half_width() <= wanted {
            return Some(Ended { interval, promised });
        }
    }
    None
}

/// Share of the labs that end and satisfy `is_so`.
fn share(labs: u64, effect: f64, wish: Wish, is_so: impl Fn(&Ended) -> bool) -> f64 {
    let ended = (0..labs).filter_map(|seed| until(seed, effect, wish));
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

/// Wishes that end labs after some 10, 16, 25 and 40 rounds. The harm of repeated looks is greatest in the
/// middle.
const WISHES: [f64; 4] = [0.0115, 0.0085, 0.0065, 0.005];

/// Number of labs behind each share of false claims. The standard error of the share is then 1 %.
pub(crate) const LABS: u64 = 500;

/// Rate of claimed differences in labs of equal systems that end at a width.
pub(crate) struct Alarms {
    /// Rate over all pilots and wishes.
    pub(crate) all: f64,
    /// Rate of the worst pilot and wish.
    pub(crate) most: f64,
}

impl Alarms {
    fn of(wish: fn(usize, f64) -> Wish) -> Alarms {
        let shares: Vec<f64> = [8, 10]
            .into_iter()
            .flat_map(|pilot| WISHES.map(|half_width| wish(pilot, half_width)))
            .map(|wish| share(LABS, 0.0, wish, Ended::claims_a_difference))
            .collect();
        Alarms {
            all: shares.iter().sum::<f64>() / shares.len() as f64,
            most: shares.into_iter().fold(0.0, f64::max),
        }
    }
}

/// With the correction of `--until`. Computed once, for the test and for the table.
pub(crate) static WATCHED: LazyLock<Alarms> = LazyLock::new(|| Alarms::of(Wish::watched));
/// Without the correction for repeated looks.
pub(crate) static PLAIN: LazyLock<Alarms> = LazyLock::new(|| Alarms::of(Wish::plain));

#[test]
fn stopping_at_a_width_keeps_the_promise_because_its_intervals_are_made_for_it() {
    let (watched, plain) = (&*WATCHED, &*PLAIN);
    assert!((0.02..=0.05).contains(&watched.all), "{}", watched.all);
    // The largest of eight such shares, with their error.
    assert!(watched.most <= 0.07, "{}", watched.most);
    assert!(plain.all > 0.05, "{}: nothing to make up for", plain.all);
}

#[test]
fn stopping_when_zero_is_excluded_would_raise_many() {
    // The usual manual rule: one more round until it is significant, 30 at the most.
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
    let coverage = share(1_000, 0.02, Wish::watched(10, 0.008), is_covered);
    assert!((0.94..=0.98).contains(&coverage), "{coverage}");
}

#[test]
fn labs_stop_within_a_quarter_of_the_width_that_the_pilot_promised() {
    for (pilot, half_width) in [(6, 0.008), (10, 0.008), (10, 0.012)] {
        let wish = Wish::watched(pilot, half_width);
        let near =
            |ended: &Ended| (ended.interval.half_width() / ended.promised - 1.0).abs() <= 0.25;
        let share = share(20, 0.0, wish, near);
        assert!(share >= 0.8, "{wish:?}: {share} of 20 labs");
    }
}
