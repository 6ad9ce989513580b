//! Machines whose speed changes from round to round, and variants beside others that tell it: how often
//! an interval that is adjusted by the others contains the mean of the true differences of its rounds.

use std::f64::consts::PI;
use std::fmt::Write as _;

use stats::{covariate, paired, sample};

use crate::machine::Machine;

/// A request to the baseline at the machine's usual speed, in microseconds.
const BASELINE_US: f64 = 200.0;
/// How much a start moves all requests of a server, in microseconds.
const START_US: f64 = 8.0;
/// The same as a share of what the variant adds.
const START_SHARE: f64 = 0.03;
/// The share of rounds that are spoiled, if any are, and how much further from the usual speed they are.
const SPOILED: (f64, f64) = (0.1, 5.0);

/// What runs are like.
#[derive(Clone, Copy, Debug)]
struct Runs {
    rounds: usize,
    confidence: f64,
    /// What the variant adds at the usual speed, in microseconds.
    added_us: f64,
    /// Standard deviation of the logarithm of the machine's speed.
    mood: f64,
    /// Whether some rounds are far off the usual speed.
    are_some_spoiled: bool,
    /// Standard deviation of the others' own luck, as a share.
    others_luck: f64,
}

/// How often intervals are right, and how wide they are.
#[derive(Clone, Copy, Debug)]
struct Score {
    inside: f64,
    claimed: f64,
    half_width_us: f64,
}

/// A seeded source of made-up machines.
struct World(Machine);

impl World {
    fn share(&mut self) -> f64 {
        // 0 excluded, for the logarithm below.
        (self.0.random.below(1 << 30) as f64 + 1.0) / f64::from(1_u32 << 30)
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * self.share().ln()).sqrt() * (2.0 * PI * self.share()).cos()
    }

    /// Baseline, variant, the covariate by others, and the true mean difference of these rounds.
    fn run(&mut self, runs: &Runs) -> (Vec<f64>, Vec<f64>, Vec<f64>, f64) {
        let (mut base, mut own, mut others, mut truths) = (vec![], vec![], vec![], vec![]);
        for _ in 0..runs.rounds {
            let (share, times) = SPOILED;
            let is_spoiled = runs.are_some_spoiled && self.share() < share;
            let slow = runs.mood * self.normal() * if is_spoiled { times } else { 1.0 };
            // Part of a request does not depend on the core's speed, so a baseline gets slower by less.
            let usual = BASELINE_US * (0.5 * slow).exp();
            let added = runs.added_us * slow.exp();
            let luck = START_US.hypot(START_SHARE * runs.added_us);
            base.push(usual + START_US * self.normal());
            own.push(usual + added + luck * self.normal());
            others.push(0.7 * slow + runs.others_luck * self.normal());
            truths.push(added);
        }
        let truth = sample::mean(&truths).expect("there are rounds");
        (base, own, others, truth)
    }
}

/// Plain and adjusted intervals of the same runs.
fn scores(labs: u64, runs: &Runs) -> [Score; 2] {
    let mut counts = [(0_u64, 0_u64, 0.0); 2];
    for seed in 0..labs {
        let (base, own, others, truth) = World(Machine::new(seed)).run(runs);
        let plain = paired::overhead(&base, &own, runs.confidence);
        let adjusted = paired::overhead_adjusted(&base, &own, &others, runs.confidence);
        for (count, found) in counts.iter_mut().zip([plain, adjusted]) {
            let found = found.expect("simulated series are pairs").difference;
            let interval = found.interval.expect("there are rounds enough");
            count.0 += u64::from(interval.contains(truth));
            count.1 += u64::from(!interval.contains(0.0));
            count.2 += interval.half_width();
        }
    }
    let labs = labs as f64;
    counts.map(|(inside, claimed, width)| Score {
        inside: inside as f64 / labs,
        claimed: claimed as f64 / labs,
        half_width_us: width / labs,
    })
}

/// What the cases below vary.
const USUAL: Runs = Runs {
    rounds: 12,
    confidence: 0.95,
    added_us: 300.0,
    mood: 0.15,
    are_some_spoiled: false,
    others_luck: 0.03,
};

/// The table in METHODOLOGY.md: machines that change their speed by so much, without and with others.
pub(crate) fn table() -> String {
    const LABS: u64 = 1_000;
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    let mut text =
        "| the machine's speed differs from round to round by | equal systems: claimed | \
                    5 us more: in the interval | 300 us more: in the interval | \
                    interval of the 300 us, without and with others |\n|---|---|---|---|---|\n"
            .to_owned();
    let cases = [
        ("nothing", 0.0, false, 0.03),
        ("5 %", 0.05, false, 0.03),
        ("15 %", 0.15, false, 0.03),
        (
            "15 %, and by five times that in a tenth of the rounds",
            0.15,
            true,
            0.03,
        ),
        (
            "15 %, beside others that scatter by 30 % themselves",
            0.15,
            false,
            0.3,
        ),
        ("30 %", 0.3, false, 0.03),
    ];
    for (changes, mood, are_some_spoiled, others_luck) in cases {
        let [equal, five, many] = [0.0, 5.0, 300.0].map(|added_us| {
            let runs = Runs {
                added_us,
                mood,
                are_some_spoiled,
                others_luck,
                ..USUAL
            };
            scores(LABS, &runs)
        });
        let _ = writeln!(
            text,
            "| {changes} | {} | {} | {} | ±{:.0} us, ±{:.0} us |",
            percent(equal[1].claimed),
            percent(five[1].inside),
            percent(many[1].inside),
            many[0].half_width_us,
            many[1].half_width_us
        );
    }
    text
}

#[test]
fn adjusted_intervals_contain_the_mean_difference_of_their_rounds() {
    for (rounds, confidence) in [(6, 0.95), (8, 0.95), (12, 0.95), (12, 0.99375)] {
        for (added_us, mood) in [
            (0.0, 0.0),
            (0.0, 0.15),
            (5.0, 0.05),
            (300.0, 0.15),
            (600.0, 0.3),
        ] {
            for (are_some_spoiled, others_luck) in [(false, 0.03), (true, 0.03), (true, 0.3)] {
                let runs = Runs {
                    rounds,
                    confidence,
                    added_us,
                    mood,
                    are_some_spoiled,
                    others_luck,
                };
                let [_, adjusted] = scores(1_000, &runs);
                // Less the simulation's own error, of two standard deviations.
                let least = confidence - 2.0 * (confidence * (1.0 - confidence) / 1_000.0).sqrt();
                assert!(adjusted.inside >= least, "{runs:?}: {adjusted:?}");
            }
        }
    }
}

#[test]
fn equal_systems_are_claimed_to_differ_as_rarely_as_promised_and_not_never() {
    for mood in [0.0, 0.15, 0.3] {
        let runs = Runs {
            added_us: 0.0,
            mood,
            ..USUAL
        };
        let [_, adjusted] = scores(2_000, &runs);
        assert!(
            (0.03..=0.065).contains(&adjusted.claimed),
            "{mood}: {adjusted:?}"
        );
    }
}

#[test]
fn a_machine_that_changes_its_speed_makes_plain_intervals_more_than_twice_as_wide() {
    let [plain, adjusted] = scores(500, &USUAL);
    assert!(
        adjusted.half_width_us < 0.45 * plain.half_width_us,
        "{plain:?} {adjusted:?}"
    );
    // And where it does not, nothing is lost.
    let [plain, adjusted] = scores(500, &Runs { mood: 0.0, ..USUAL });
    assert!(
        adjusted.half_width_us < 1.05 * plain.half_width_us,
        "{plain:?} {adjusted:?}"
    );
}

#[test]
fn the_baseline_as_covariate_would_break_the_promise() {
    // Equal systems on a steady machine: all that differs is their luck at the start.
    let (labs, rounds) = (1_000, 12);
    let claimed = (0..labs).filter(|seed| {
        let mut world = World(Machine::new(*seed));
        let mut series = || -> Vec<f64> { (0..rounds).map(|_| 200.0 + world.normal()).collect() };
        let (base, own) = (series(), series());
        let found = paired::overhead_adjusted(&base, &own, &base, 0.95);
        let interval = found
            .expect("simulated series are pairs")
            .difference
            .interval;
        !interval.expect("there are rounds enough").contains(0.0)
    });
    let claimed = claimed.count() as f64 / labs as f64;
    assert!(claimed > 0.09, "{claimed}");
}

#[test]
fn adjusting_moves_no_mean() {
    let (base, own, others, _) = World(Machine::new(3)).run(&USUAL);
    let differences: Vec<f64> = base
        .iter()
        .zip(&own)
        .map(|(base, own)| own - base)
        .collect();
    let before = sample::mean(&differences).expect("there are rounds");
    let after = covariate::adjusted(&differences, &others);
    let after = sample::mean(&after).expect("there are rounds");
    assert!((before - after).abs() < 1e-9, "{before} {after}");
}
