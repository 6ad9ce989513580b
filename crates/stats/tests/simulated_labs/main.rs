//! Simulated labs. They have a known truth, so the rate of correct claims can be checked.
//!
//! Each lab has a machine that drifts (a random walk from measurement to measurement) and systems that come
//! up a little faster or slower at every start. Seeds are fixed. The tests check rates, not single labs.

mod factors;
mod gates;
mod history;
#[expect(
    clippy::cast_possible_truncation,
    reason = "made-up latencies and counts are far below the limits"
)]
mod machine;
mod neighbors;
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "made-up times are positive and far below the limits"
)]
mod overlap;
mod pace;
mod random;
mod requests;
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "made-up times are positive and far below the limits"
)]
mod side_by_side;
mod stopping;
mod table;
mod together;

use machine::{Machine, Order, Quantile};
use stats::{Claim, Overhead};

const CONFIDENCE: f64 = 0.95;

const DIFFERENT: [Claim; 2] = [Claim::Higher, Claim::Lower];

fn compare(baseline: &[f64], variant: &[f64], confidence: f64) -> Overhead {
    stats::overhead(baseline, variant, confidence).expect("simulated series are pairs")
}

/// Share of labs that make one of these claims.
fn share(labs: u64, rounds: usize, order: Order, effect: f64, wanted: &[Claim]) -> f64 {
    let found = (0..labs)
        .filter(|seed| {
            let (baseline, variant) = Machine::new(*seed).lab(rounds, order, effect);
            let compared = compare(&baseline, &variant, CONFIDENCE);
            wanted.contains(&compared.claim)
        })
        .count();
    found as f64 / labs as f64
}

#[test]
fn equal_systems_are_claimed_to_differ_as_rarely_as_promised() {
    for (labs, rounds) in [(200, 8), (2_000, 8), (2_000, 10), (500, 20)] {
        let alarms = share(labs, rounds, Order::Interleaved, 0.0, &DIFFERENT);
        assert!(
            (0.02..=0.08).contains(&alarms),
            "{labs} labs of {rounds} rounds: {alarms}"
        );
    }
}

#[test]
fn measuring_in_blocks_would_break_the_promise() {
    // The same statistics on the same machine, but all rounds of the baseline first.
    let alarms = share(400, 10, Order::Blocks, 0.0, &DIFFERENT);
    assert!(alarms > 0.15, "{alarms}");
}

#[test]
fn two_percent_are_found_in_eight_rounds() {
    let found = share(500, 8, Order::Interleaved, 0.02, &[Claim::Higher]);
    assert!(found >= 0.80, "{found}");
}

#[test]
fn more_rounds_find_more() {
    let found = |rounds| share(300, rounds, Order::Interleaved, 0.01, &[Claim::Higher]);
    let (few, many) = (found(6), found(20));
    assert!(few < 0.3 && many > 0.5, "{few} {many}");
}

#[test]
fn fewer_than_six_rounds_claim_nothing_however_large_the_effect() {
    let needed = [Claim::TooFewRounds { needed: 6 }];
    for rounds in 1..6 {
        let withheld = share(50, rounds, Order::Interleaved, 5.0, &needed);
        assert!(withheld >= 1.0, "{rounds} rounds: {withheld}");
    }
}

/// Share of labs with an interval that contains the true difference of a quantile.
fn coverage(labs: u64, rounds: usize, quantile: Quantile) -> f64 {
    // The variant adds 0.3 ms to every request, so every quantile differs by exactly that.
    let added = 0.3;
    let inside = (0..labs)
        .filter(|seed| {
            let (baseline, variant) = Machine::new(*seed).quantiles(rounds, quantile, added);
            let compared = compare(&baseline, &variant, CONFIDENCE);
            let interval = compared.difference.interval;
            interval.expect("there are rounds enough").contains(added)
        })
        .count();
    inside as f64 / labs as f64
}

#[test]
fn intervals_contain_the_true_difference_of_quantiles_as_often_as_promised() {
    for rounds in [6, 10, 20] {
        for quantile in [Quantile::P50, Quantile::P90, Quantile::P99] {
            let coverage = coverage(2_000, rounds, quantile);
            assert!(
                (0.93..=0.97).contains(&coverage),
                "{rounds} rounds, {quantile:?}: {coverage}"
            );
        }
    }
}

#[test]
fn a_ratio_covers_the_true_factor_as_often_as_promised() {
    let labs = 1_000;
    let inside = (0..labs)
        .filter(|seed| {
            let (baseline, variant) = Machine::new(*seed).lab(10, Order::Interleaved, 0.05);
            let compared = compare(&baseline, &variant, CONFIDENCE);
            compared.ratio.unwrap().interval.unwrap().contains(1.05)
        })
        .count();
    let coverage = inside as f64 / labs as f64;
    assert!((0.93..=0.97).contains(&coverage), "{coverage}");
}

#[test]
fn corrected_comparisons_of_four_equal_variants_rarely_raise_any_alarm() {
    let variants = 4;
    let labs = 400;
    let alarmed = |confidence: f64| {
        let found = (0..labs)
            .filter(|seed| {
                let rows = Machine::new(*seed).equal_systems(variants + 1, 10);
                rows[1..].iter().any(|variant| {
                    let claim = compare(&rows[0], variant, confidence).claim;
                    DIFFERENT.contains(&claim)
                })
            })
            .count();
        found as f64 / labs as f64
    };
    let corrected = alarmed(stats::per_comparison_confidence(CONFIDENCE, variants));
    let plain = alarmed(CONFIDENCE);
    assert!(corrected <= 0.06, "{corrected}");
    assert!(plain > 0.08, "{plain}: the correction would not be needed");
}

#[test]
fn simultaneous_intervals_contain_all_true_differences_as_often_as_promised() {
    for (rounds, labs) in [(10, 400), (20, 60)] {
        let mut all_inside = 0;
        let mut all_inside_alone = 0;
        for seed in 0..labs {
            let figures = Machine::new(seed).shifts(rounds);
            let together = stats::simultaneous::locations(&figures, CONFIDENCE).unwrap();
            let is_inside =
                |estimate: &stats::Estimate| estimate.interval.is_some_and(|it| it.contains(0.0));
            all_inside += u32::from(together.iter().all(is_inside));
            all_inside_alone += u32::from(figures.iter().all(|values| {
                stats::location(values, CONFIDENCE).is_some_and(|alone| is_inside(&alone))
            }));
        }
        let coverage = f64::from(all_inside) / labs as f64;
        let alone = f64::from(all_inside_alone) / labs as f64;
        assert!(
            (0.92..=0.98).contains(&coverage),
            "{rounds} rounds: {coverage}"
        );
        assert!(
            alone < 0.92,
            "{rounds} rounds: {alone} without the correction"
        );
    }
}

#[test]
fn gates_that_are_looked_at_after_every_round_are_decided_rightly() {
    // Exactly at the limit, so that any decision is wrong on one of both sides.
    for (spoiled, most) in [(None, 0.055), (Some(10), 0.055)] {
        let mut wrong = 0;
        let runs = 4_000;
        for seed in 0..runs {
            let (ruling, _) = gates::judged(seed, 0.0, 0.0, spoiled);
            wrong += u64::from(ruling != gates::Ruling::Undecided);
        }
        let share = wrong as f64 / runs as f64;
        assert!(share <= most, "{spoiled:?}: {share}");
    }
}

#[test]
fn innocent_changes_hardly_ever_fail_and_clear_ones_are_decided_early() {
    // The limit is 1.5 standard deviations of a round away.
    let innocent = gates::tally(4_000, (0.0, 1.5), None);
    let alarms = innocent.broken + innocent.undecided;
    assert!(alarms <= 0.01, "{alarms}");
    assert!(innocent.rounds <= 8.5, "{}", innocent.rounds);
    let guilty = gates::tally(2_000, (3.0, 1.5), None);
    assert!(guilty.broken >= 0.99, "{}", guilty.broken);
}

#[test]
fn a_history_of_one_level_hardly_ever_has_a_change_at_any_look() {
    for (name, kind) in history::KINDS {
        let most = match kind {
            history::Kind::Correlated => 0.12,
            _ => 0.07,
        };
        let claimed = history::ever_claimed(kind, 200);
        assert!(claimed <= most, "{name}: {claimed}");
    }
}

#[test]
fn a_change_of_a_history_is_found_soon() {
    let found = |deviations: f64, runs: usize| {
        history::found_within(history::Kind::Normal, deviations, runs, 200)
    };
    for (deviations, runs, least) in [
        (2.0, 5, 0.45),
        (2.0, 8, 0.74),
        (3.0, 5, 0.9),
        (3.0, 8, 0.99),
    ] {
        let share = found(deviations, runs);
        assert!(share >= least, "{deviations} within {runs}: {share}");
    }
}

#[test]
fn intervals_of_several_variants_hold_together_and_are_narrower_than_by_bonferroni() {
    for (variants, rounds) in [(3, 6), (8, 6), (8, 8), (3, 12), (8, 12)] {
        for spoiled in [None, Some(8)] {
            let [own, _] = together::kept(400, variants, rounds, spoiled);
            let share = own.together;
            assert!(
                share >= 0.925,
                "{variants} variants, {rounds} rounds, {spoiled:?}: {share}"
            );
        }
    }
}
