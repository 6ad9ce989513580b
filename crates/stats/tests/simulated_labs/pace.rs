//! Machines that change their speed from round to round, with other variants that reveal the speed. The tests
//! check how often an interval that is adjusted by them contains the mean of the true differences of its
//! usual rounds.

use std::f64::consts::PI;
use std::fmt::Write as _;

use stats::{covariate, paired, sample};

use crate::machine::Machine;

/// Latency of a request to the baseline at the machine's usual speed, in microseconds.
const BASELINE_US: f64 = 200.0;
/// Standard deviation of the effect of a start on all requests of a server, in microseconds.
const START_US: f64 = 8.0;
/// Standard deviation of the effect of a start on the variant's added cost, as a share of that cost.
const START_SHARE: f64 = 0.03;
/// The share of rounds that are spoiled, if any are.
const SPOILED: f64 = 0.12;

/// Kinds of unusual rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Odd {
    Never,
    /// A tenth of the rounds is five times as far from the usual speed.
    Far,
    /// Some rounds are slow, and the scatter of their starts is six times as large.
    SlowAndNoisy,
    /// The machine has two speeds, and is slower by a quarter in a fifth of the rounds.
    TwoSpeeds,
    /// One round of each run is slower by half, so that it decides the slope.
    OneFar,
}

/// Properties of the simulated runs.
#[derive(Clone, Copy, Debug)]
struct Runs {
    rounds: usize,
    confidence: f64,
    /// Cost that the variant adds at the usual speed, in microseconds.
    added_us: f64,
    /// Standard deviation of the logarithm of the machine's speed.
    mood: f64,
    odd: Odd,
    /// Standard deviation of the other variants' own scatter, as a share.
    others_luck: f64,
}

/// The rate of correct intervals, and their width.
#[derive(Clone, Copy, Debug)]
struct Score {
    inside: f64,
    claimed: f64,
    half_width_us: f64,
}

/// A seeded source of simulated machines.
struct World(Machine);

impl World {
    fn share(&mut self) -> f64 {
        // 0 is excluded, because the logarithm below needs a positive number.
        (self.0.random.below(1 << 30) as f64 + 1.0) / f64::from(1_u32 << 30)
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * self.share().ln()).sqrt() * (2.0 * PI * self.share()).cos()
    }

    /// Returns baseline, variant, the covariate from other variants, and the true mean difference of the
    /// rounds that are usual by that covariate.
    fn run(&mut self, runs: &Runs) -> (Vec<f64>, Vec<f64>, Vec<f64>, f64) {
        let (mut base, mut own, mut others, mut truths) = (vec![], vec![], vec![], vec![]);
        for round in 0..runs.rounds {
            let drawn = self.share();
            let (is_spoiled, is_fifth) = (drawn < SPOILED, drawn < 0.2);
            let mood = runs.mood * self.normal();
            let (slow, noise) = match runs.odd {
                Odd::Far if drawn < 0.1 => (5.0 * mood, 1.0),
                Odd::SlowAndNoisy if is_spoiled => (mood + 0.25, 6.0),
                Odd::TwoSpeeds if is_fifth => (mood + 0.25, 1.0),
                Odd::OneFar if round == 0 => (mood + 0.5, 1.0),
                _ => (mood, 1.0),
            };
            // Part of a request does not depend on the core's speed, so a baseline gets slower by less.
            let usual = BASELINE_US * (0.5 * slow).exp();
            let added = runs.added_us * slow.exp();
            let luck = noise * START_US.hypot(START_SHARE * runs.added_us);
            base.push(usual + noise * START_US * self.normal());
            own.push(usual + added + luck * self.normal());
            others.push(0.7 * slow + runs.others_luck * self.normal());
            truths.push(added);
        }
        let usual = covariate::usual(&others);
        let usual: Vec<f64> = usual.into_iter().map(|round| truths[round]).collect();
        let truth = sample::mean(&usual).expect("the median round is usual");
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

/// The base case. The cases below vary it.
const USUAL: Runs = Runs {
    rounds: 12,
    confidence: 0.95,
    added_us: 300.0,
    mood: 0.15,
    odd: Odd::Never,
    others_luck: 0.03,
};

/// The table in METHODOLOGY.md: machines with different changes of speed, without and with other variants.
pub(crate) fn table() -> String {
    const LABS: u64 = 1_000;
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    let mut text =
        "| the machine's speed differs from round to round by | equal systems: claimed | \
                    5 us more: in the interval | 300 us more: in the interval | \
                    interval of the 300 us, without and with others |\n|---|---|---|---|---|\n"
            .to_owned();
    let cases = [
        ("nothing", 0.0, Odd::Never, 0.03),
        ("5 %", 0.05, Odd::Never, 0.03),
        ("15 %", 0.15, Odd::Never, 0.03),
        (
            "15 %, and by five times that in a tenth of the rounds",
            0.15,
            Odd::Far,
            0.03,
        ),
        (
            "15 %, beside others that scatter by 30 % themselves",
            0.15,
            Odd::Never,
            0.3,
        ),
        ("30 %", 0.3, Odd::Never, 0.03),
        (
            "3 %, and an eighth of the rounds is slow and six times as noisy",
            0.03,
            Odd::SlowAndNoisy,
            0.03,
        ),
        (
            "3 %, and by a quarter in a fifth of the rounds (two speeds)",
            0.03,
            Odd::TwoSpeeds,
            0.03,
        ),
        (
            "3 %, and by half in one round of each run",
            0.03,
            Odd::OneFar,
            0.03,
        ),
    ];
    for (changes, mood, odd, others_luck) in cases {
        let [equal, five, many] = [0.0, 5.0, 300.0].map(|added_us| {
            let runs = Runs {
                added_us,
                mood,
                odd,
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

/// Tolerated shortfall of the coverage against the confidence: 93.5 % of 95 %.
const SHORT_BY: f64 = 0.015;

#[test]
fn adjusted_intervals_contain_the_difference_at_the_usual_speed() {
    let odd_ones = [
        Odd::Never,
        Odd::Far,
        Odd::SlowAndNoisy,
        Odd::TwoSpeeds,
        Odd::OneFar,
    ];
    for (rounds, confidence) in [(6, 0.95), (8, 0.95), (12, 0.95), (12, 0.99375), (20, 0.95)] {
        for (added_us, mood, others_luck) in [
            (0.0, 0.0, 0.03),
            (0.0, 0.15, 0.03),
            (5.0, 0.05, 0.03),
            (300.0, 0.03, 0.03),
            (300.0, 0.03, 0.01),
            (300.0, 0.15, 0.03),
            (300.0, 0.15, 0.3),
            (600.0, 0.3, 0.03),
        ] {
            for odd in odd_ones {
                let runs = Runs {
                    rounds,
                    confidence,
                    added_us,
                    mood,
                    odd,
                    others_luck,
                };
                let [_, adjusted] = scores(1_000, &runs);
                let own_error = 2.0 * (confidence * (1.0 - confidence) / 1_000.0).sqrt();
                let least = confidence - SHORT_BY.min(1.0 - confidence) - own_error;
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
    // On a machine with constant speed, the adjustment costs hardly any width.
    let [plain, adjusted] = scores(500, &Runs { mood: 0.0, ..USUAL });
    assert!(
        adjusted.half_width_us < 1.05 * plain.half_width_us,
        "{plain:?} {adjusted:?}"
    );
}

#[test]
fn the_baseline_as_covariate_would_break_the_promise() {
    // Equal systems on a steady machine differ only by the scatter of their starts.
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
