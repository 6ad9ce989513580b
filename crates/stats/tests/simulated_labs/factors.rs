//! Labs with factors, on machines that drift: the rate of labs with all intervals right, and the rate at which
//! effects are found.

use std::fmt::Write as _;

use stats::factorial::{Contrast, Pace, by_round};
use stats::paired::{self, Differences};

use crate::CONFIDENCE;
use crate::random::Random;

/// Labs of each row of the table.
const LABS: u64 = 500;

/// Latency of the baseline at the machine's usual speed, in microseconds.
const BASELINE_US: f64 = 200.0;
/// Standard deviation of the effect of a start on a variant, in microseconds.
const START_US: f64 = 8.0;
/// Standard deviation of the effect of a start, as a share of the cost that the variant adds.
const START_SHARE: f64 = 0.03;
/// Standard deviation of the drift from round to round, as a share.
const DRIFT: f64 = 0.02;

/// Costs of the first three factors, in microseconds.
const COSTS_US: [f64; 3] = [5.0, 20.0, 100.0];
/// Additional cost if the first two factors are both on.
const BOTH_US: f64 = 20.0;

/// A design. Bit `i` of a run is the level of factor `i`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Design {
    Square,
    Cube,
    /// Half of the combinations of four factors. The fourth factor is the product of the others.
    Half,
    /// The first variants of a cube, as in a lab without factors. It has no effects.
    Plain(usize),
}

impl Design {
    fn runs(self) -> Vec<usize> {
        match self {
            Self::Square => (0..4).collect(),
            Self::Cube => (0..8).collect(),
            Self::Half => (0..8)
                .map(|run: usize| run | (run.count_ones() as usize % 2) << 3)
                .collect(),
            Self::Plain(variants) => (0..variants).collect(),
        }
    }

    /// The effects of the report, each as a set of bits.
    fn effects(self) -> Vec<usize> {
        match self {
            Self::Square => vec![0b01, 0b10, 0b11],
            Self::Cube => vec![0b001, 0b010, 0b100, 0b011, 0b101, 0b110, 0b111],
            Self::Half => vec![0b0001, 0b0010, 0b0100, 0b1000, 0b0011, 0b0101, 0b0110],
            Self::Plain(_) => Vec::new(),
        }
    }

    /// Pairs of runs that differ in a step of the design, one with a plus and one with a minus.
    fn contrast(self, effect: usize) -> Contrast {
        let runs = self.runs();
        let is_odd = |run: usize| (run & effect).count_ones() % 2 == 1;
        let steps = runs.iter().filter(|run| is_odd(**run));
        let step = steps.min_by_key(|run| run.count_ones()).expect("a step");
        let is_plus = |run: usize| is_odd(run) == (effect.count_ones() % 2 == 1);
        let place = |run: usize| runs.iter().position(|it| *it == run).expect("a run");
        let plus = runs.iter().filter(|run| is_plus(**run));
        Contrast {
            pairs: plus.map(|run| [place(*run), place(run ^ step)]).collect(),
            scale: f64::from(1 << (effect.count_ones() - 1)),
        }
    }

    /// All rows of the report: the effects, and the cost of each factor alone in a full design.
    fn contrasts(self) -> Vec<Contrast> {
        let mut all: Vec<Contrast> = self
            .effects()
            .into_iter()
            .map(|effect| self.contrast(effect))
            .collect();
        let alone = match self {
            Self::Square => &[1, 2][..],
            Self::Cube => &[1, 2, 4],
            Self::Half | Self::Plain(_) => &[],
        };
        all.extend(alone.iter().map(|run| Contrast {
            pairs: vec![[*run, 0]],
            scale: 1.0,
        }));
        all
    }
}

/// Properties of the simulated runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Runs {
    pub(crate) design: Design,
    pub(crate) rounds: usize,
    /// Standard deviation of the machine's speed from round to round, in addition to its drift.
    pub(crate) mood: f64,
    /// If the value is 8, one round in eight is six times as noisy.
    pub(crate) spoiled: Option<usize>,
    /// True if the factors cost nothing.
    pub(crate) is_free: bool,
}

/// The figures of all variants and their true costs, by variant and round.
struct Lab {
    figures: Vec<Vec<f64>>,
    truths: Vec<Vec<f64>>,
}

fn lab(seed: u64, runs: &Runs) -> Lab {
    let mut random = Random(seed.wrapping_mul(0x2545_f491_4f6c_dd1d));
    let variants = runs.design.runs();
    let mut figures = vec![Vec::new(); variants.len()];
    let mut truths = figures.clone();
    let mut drift = 0.0;
    for _ in 0..runs.rounds {
        drift += DRIFT * random.normal();
        let slow = drift + runs.mood * random.normal();
        let noise = match runs.spoiled {
            Some(one_in) if random.below(one_in) == 0 => 6.0,
            _ => 1.0,
        };
        for (index, run) in variants.iter().enumerate() {
            let is_on = |factor: usize| run >> factor & 1 == 1;
            let each = COSTS_US.iter().enumerate();
            let mut cost: f64 = each
                .filter(|(factor, _)| is_on(*factor))
                .map(|(_, us)| us)
                .sum();
            if is_on(0) && is_on(1) {
                cost += BOTH_US;
            }
            if runs.is_free {
                cost = 0.0;
            }
            // Part of a request does not depend on the core's speed, so the baseline gets slower by less.
            let usual = BASELINE_US * (0.5 * slow).exp();
            let added = cost * slow.exp();
            let luck = noise * START_US.hypot(START_SHARE * cost);
            figures[index].push(usual + added + luck * random.normal());
            truths[index].push(added);
        }
    }
    Lab { figures, truths }
}

/// Results of many labs.
#[derive(Debug)]
pub(crate) struct Score {
    /// Share of the labs with all true effects inside their intervals.
    pub(crate) together: f64,
    /// Share of the labs with a claim about any effect.
    pub(crate) claimed: f64,
    /// Share of the labs that find each effect to be a cost, in the order of the report.
    pub(crate) found: Vec<f64>,
    /// Mean half width of each interval.
    pub(crate) half_widths: Vec<f64>,
}

/// The adjustment of a difference by the other variants.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Adjusting {
    No,
    /// Without the degree of freedom of the slope, as in method 3.
    Uncounted,
    Counted,
}

impl Adjusting {
    fn by_round(self, contrast: &Contrast, figures: &[Vec<f64>]) -> Differences {
        let pace = match self {
            Self::No => None,
            Self::Uncounted | Self::Counted => Some(Pace::of(figures, &[])),
        };
        let found = by_round(contrast, figures, pace.as_ref(), CONFIDENCE);
        match self {
            Self::Uncounted => Differences { lost: 0, ..found },
            Self::No | Self::Counted => found,
        }
    }
}

/// The correction of several intervals that hold together.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Correction {
    Bonferroni,
    /// Flips of whole rounds ([`stats::simultaneous::confidence_each`]).
    Flips,
}

impl Correction {
    fn confidence(self, rows: &[Differences]) -> f64 {
        match self {
            Self::Bonferroni => stats::per_comparison_confidence(CONFIDENCE, rows.len()),
            Self::Flips => {
                let rows: Vec<_> = rows.iter().map(|row| row.by_round.clone()).collect();
                stats::simultaneous::confidence_each(&rows, CONFIDENCE)
            }
        }
    }
}

/// Results with the adjustment by the speed of the machine, or without it.
pub(crate) fn score(labs: u64, runs: &Runs, adjusting: Adjusting) -> Score {
    let contrasts = runs.design.contrasts();
    score_of(labs, runs, &contrasts, adjusting, Correction::Bonferroni)
}

/// Results for any contrasts between the variants of a design.
pub(crate) fn score_of(
    labs: u64,
    runs: &Runs,
    contrasts: &[Contrast],
    adjusting: Adjusting,
    correction: Correction,
) -> Score {
    let (mut together, mut claimed) = (0_u64, 0_u64);
    let mut found = vec![0.0; contrasts.len()];
    let mut half_widths = found.clone();
    for seed in 0..labs {
        let lab = lab(seed, runs);
        let rows: Vec<Differences> = contrasts
            .iter()
            .map(|contrast| adjusting.by_round(contrast, &lab.figures))
            .collect();
        let confidence = correction.confidence(&rows);
        let (mut are_inside, mut is_claimed) = (true, false);
        for (index, row) in rows.iter().enumerate() {
            let truths = by_round(&contrasts[index], &lab.truths, None, CONFIDENCE).by_round;
            // The truth about the rounds that were used.
            let used = row
                .by_round
                .iter()
                .zip(truths)
                .filter(|(value, _)| value.is_some());
            let used: Vec<f64> = used.filter_map(|(_, truth)| truth).collect();
            let truth = used.iter().sum::<f64>() / used.len() as f64;
            let interval = paired::location_of(&row.used(), confidence)
                .and_then(|it| it.interval)
                .expect("there are rounds enough");
            are_inside &= interval.contains(truth);
            is_claimed |= !interval.contains(0.0);
            found[index] += f64::from(u8::from(interval.low > 0.0));
            half_widths[index] += interval.half_width();
        }
        together += u64::from(are_inside);
        claimed += u64::from(is_claimed);
    }
    let labs = labs as f64;
    let mean = |sums: Vec<f64>| sums.into_iter().map(|sum| sum / labs).collect();
    Score {
        together: together as f64 / labs,
        claimed: claimed as f64 / labs,
        found: mean(found),
        half_widths: mean(half_widths),
    }
}

/// The table of factors in METHODOLOGY.md.
pub(crate) fn table() -> String {
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    let mut text = "| design, rounds, machine | all intervals hold | factors without cost: any effect claimed | \
                    found: the factors of 5, 20, 100 us, and the 20 us of both | \
                    interval of the factor of 5 us, over all variants and alone |\n|---|---|---|---|---|\n"
        .to_owned();
    for (design, name, interaction, alone) in [
        (Design::Square, "2 × 2", 2, Some(3)),
        (Design::Cube, "2 × 2 × 2", 3, Some(7)),
        (Design::Half, "half of four factors", 4, None),
    ] {
        for (rounds, mood, spoiled) in [
            (8, 0.03, None),
            (12, 0.03, None),
            (12, 0.15, None),
            (12, 0.03, Some(8)),
        ] {
            let runs = Runs {
                design,
                rounds,
                mood,
                spoiled,
                is_free: false,
            };
            let costly = score(LABS, &runs, Adjusting::Counted);
            let free = score(
                LABS,
                &Runs {
                    is_free: true,
                    ..runs
                },
                Adjusting::Counted,
            );
            let of_factors = &costly.found[..COSTS_US.len().min(interaction)];
            let each = of_factors.iter().chain([&costly.found[interaction]]);
            let found: Vec<String> = each.map(|share| percent(*share)).collect();
            let found = match design {
                Design::Square => format!("{}, {}, –, {}", found[0], found[1], found[2]),
                _ => found.join(", "),
            };
            let machine = match spoiled {
                Some(one_in) => format!(", one round in {one_in} six times as noisy"),
                None => String::new(),
            };
            let alone = alone.map_or_else(
                || "–".to_owned(),
                |index| format!("±{:.1} us", costly.half_widths[index]),
            );
            let _ = writeln!(
                text,
                "| {name}, {rounds}, speed differs by {}{machine} | {:.1} % | {:.1} % | {found} | ±{:.1} us, {alone} |",
                percent(mood),
                costly.together * 100.0,
                free.claimed * 100.0,
                costly.half_widths[0],
            );
        }
    }
    text
}

#[test]
fn intervals_of_effects_hold_together_as_often_as_promised() {
    for design in [Design::Square, Design::Cube, Design::Half] {
        for (rounds, mood, spoiled) in [
            (6, 0.03, None),
            (8, 0.0, None),
            (12, 0.15, None),
            (12, 0.03, Some(8)),
        ] {
            for is_free in [false, true] {
                let runs = Runs {
                    design,
                    rounds,
                    mood,
                    spoiled,
                    is_free,
                };
                let found = score(300, &runs, Adjusting::Counted);
                // 300 labs have a standard error of 1.3 %.
                assert!(found.together >= 0.92, "{runs:?}: {found:?}");
            }
        }
    }
}

#[test]
fn a_contrast_over_all_variants_is_more_certain_than_a_factor_alone() {
    let runs = Runs {
        design: Design::Cube,
        rounds: 12,
        mood: 0.03,
        spoiled: None,
        is_free: false,
    };
    let found = score(200, &runs, Adjusting::Counted);
    // Four pairs instead of one: half of the width.
    let (over_all, alone) = (found.half_widths[0], found.half_widths[7]);
    assert!(over_all < 0.6 * alone, "{found:?}");
    // The interaction of 20 us, and the factors of 20 us and 100 us.
    assert!(found.found[3] >= 0.84, "{found:?}");
    assert!(
        found.found[1] >= 0.99 && found.found[2] >= 0.99,
        "{found:?}"
    );
}

#[test]
fn on_a_machine_that_changes_its_speed_large_effects_are_more_certain_with_the_adjustment() {
    let runs = Runs {
        design: Design::Cube,
        rounds: 12,
        mood: 0.3,
        spoiled: None,
        is_free: false,
    };
    let [plain, adjusted] =
        [Adjusting::No, Adjusting::Counted].map(|adjusting| score(200, &runs, adjusting));
    assert!(
        adjusted.half_widths[2] < 0.6 * plain.half_widths[2],
        "{plain:?} {adjusted:?}"
    );
    assert!(adjusted.together >= 0.91, "{adjusted:?}");
}
