//! Labs with requests in their rounds: intervals from histograms, paired and pooled.

use stats::bootstrap::{self, pooled_shift};
use stats::{Histogram, Interval};

use crate::machine::Machine;
use crate::{CONFIDENCE, compare};

const QUANTILES: [f64; 3] = [0.5, 0.9, 0.99];
const ADDED_MS: f64 = 0.3;
const REQUESTS: f64 = 4_000.0;

/// For each quantile, the share of labs with an interval that contains the true difference.
fn coverage(
    labs: u64,
    rounds: usize,
    intervals: impl Fn(u64, &[Histogram], &[Histogram]) -> Vec<Interval>,
) -> [f64; 3] {
    let mut inside = [0_u64; 3];
    for seed in 0..labs {
        let (baseline, variant) = Machine::new(seed).histograms(rounds, REQUESTS, ADDED_MS);
        for (count, interval) in inside.iter_mut().zip(intervals(seed, &baseline, &variant)) {
            *count += u64::from(interval.contains(ADDED_MS * 1e6));
        }
    }
    inside.map(|count| count as f64 / labs as f64)
}

/// Intervals from differences round by round, as reports show them.
fn paired(_seed: u64, baseline: &[Histogram], variant: &[Histogram]) -> Vec<Interval> {
    let figures = |rounds: &[Histogram], quantile| -> Vec<f64> {
        let values = rounds
            .iter()
            .filter_map(|round| round.quantile_ns(quantile));
        values.map(|value| value as f64).collect()
    };
    let interval = |quantile: &f64| {
        let (base, own) = (figures(baseline, *quantile), figures(variant, *quantile));
        compare(&base, &own, CONFIDENCE)
            .difference
            .interval
            .expect("there are rounds enough")
    };
    QUANTILES.iter().map(interval).collect()
}

/// Intervals over the requests of all rounds together.
fn pooled(_seed: u64, baseline: &[Histogram], variant: &[Histogram]) -> Vec<Interval> {
    let shifts = pooled_shift(baseline, variant, &QUANTILES, CONFIDENCE)
        .expect("simulated rounds are pairs");
    shifts
        .iter()
        .map(|shift| {
            shift
                .difference_ns
                .interval
                .expect("there are rounds enough")
        })
        .collect()
}

/// Like `pooled`, but it also redraws the requests of each round, as the literature on nested resampling
/// often recommends.
fn pooled_with_requests_redrawn(
    seed: u64,
    baseline: &[Histogram],
    variant: &[Histogram],
) -> Vec<Interval> {
    let mut machine = Machine::new(seed + 1_000_000);
    let mut drawn = vec![Vec::new(); QUANTILES.len()];
    let rounds = baseline.len();
    for _ in 0..DRAWS {
        let (mut base, mut own) = (Histogram::new(), Histogram::new());
        for _ in 0..rounds {
            let round = machine.random.below(rounds);
            machine.redraw(&baseline[round], &mut base);
            machine.redraw(&variant[round], &mut own);
        }
        for (column, quantile) in drawn.iter_mut().zip(QUANTILES) {
            let at =
                |pool: &Histogram| pool.quantile_ns(quantile).expect("a pool has requests") as f64;
            column.push(at(&own) - at(&base));
        }
    }
    drawn.into_iter().map(middle).collect()
}

/// Draws of the slow bootstrap above.
const DRAWS: usize = 120;

/// The plain percentile interval of 95 %.
fn middle(mut drawn: Vec<f64>) -> Interval {
    drawn.sort_unstable_by(f64::total_cmp);
    let beyond = drawn.len() / 40;
    Interval {
        low: drawn[beyond],
        high: drawn[drawn.len() - 1 - beyond],
        confidence: CONFIDENCE,
    }
}

#[test]
fn paired_quantiles_of_requests_are_covered_as_often_as_promised() {
    for rounds in [6, 10, 20] {
        for coverage in coverage(300, rounds, paired) {
            assert!(
                (0.93..=0.98).contains(&coverage),
                "{rounds} rounds: {coverage}"
            );
        }
    }
}

#[test]
fn pooled_quantiles_of_requests_are_covered_as_often_as_promised() {
    for rounds in [bootstrap::ROUNDS_MIN, 20] {
        for coverage in coverage(150, rounds, pooled) {
            assert!(
                (0.93..=0.98).contains(&coverage),
                "{rounds} rounds: {coverage}"
            );
        }
    }
}

#[test]
fn redrawing_the_requests_too_would_make_intervals_of_tails_too_wide() {
    let (mut redrawn, mut kept) = (0.0, 0.0);
    for seed in 0..12 {
        let (baseline, variant) = Machine::new(seed).histograms(20, REQUESTS, ADDED_MS);
        redrawn += pooled_with_requests_redrawn(seed, &baseline, &variant)[2].half_width();
        kept += pooled(seed, &baseline, &variant)[2].half_width();
    }
    let factor = redrawn / kept;
    assert!(factor > 1.1, "{factor}");
}
