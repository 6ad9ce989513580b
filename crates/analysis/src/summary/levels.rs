//! Levels that pages print: the level of the baseline plus the difference.
//!
//! A page shows a level, the baseline's level and the difference, and a reader adds them. The estimate of a
//! level over the rounds of one variant does not contain the pairs of rounds. It also contains changes of the
//! machine's speed, so it differs a little from the sum.

use std::collections::BTreeMap;

use model::Metric;

use super::{MetricSummary, VariantSummary, tail};

/// Sets the levels of all compared variants.
pub(super) fn add_up(variants: &mut [VariantSummary]) {
    let levels: Vec<BTreeMap<Metric, f64>> =
        variants.iter().map(|row| sums(variants, row)).collect();
    for (row, levels) in variants.iter_mut().zip(levels) {
        row.levels = levels;
    }
    let of_baselines: Vec<Option<f64>> = variants
        .iter()
        .map(|row| {
            let headline = row.meaning.as_ref()?.headline;
            let baseline = variants.iter().find(|other| other.name == row.baseline)?;
            baseline.levels.get(&headline).copied()
        })
        .collect();
    for (row, of_baseline) in variants.iter_mut().zip(of_baselines) {
        // The sentence and the table show the same level of a baseline that is itself compared.
        if let (Some(meaning), Some(level)) = (&mut row.meaning, of_baseline) {
            meaning.of_baseline = level;
        }
    }
}

/// The levels of a compared variant. Empty for other variants.
fn sums(variants: &[VariantSummary], row: &VariantSummary) -> BTreeMap<Metric, f64> {
    let metrics = row.metrics.keys();
    let estimated = row.estimate.iter().flat_map(|it| it.metrics.keys());
    let sums = metrics.chain(estimated).filter_map(|metric| {
        let sum = sum(variants, row, *metric, variants.len())?;
        Some((*metric, sum))
    });
    sums.collect()
}

/// The baseline's level and the difference. `None` without a difference, and for a rate, because pages show
/// its ratio. Also `None` if the sum of two noisy figures is not above zero. `steps` limits the length of a
/// chain of baselines.
fn sum(
    variants: &[VariantSummary],
    row: &VariantSummary,
    metric: Metric,
    steps: usize,
) -> Option<f64> {
    let figure = shown(row, metric).filter(|_| metric != Metric::Requests)?;
    let difference = match row.is_pooled(metric) {
        true => row.pooled_difference(metric)?.latency_us,
        false => figure.overhead.as_ref()?.difference,
    };
    let baseline = variants.iter().find(|other| other.name == row.baseline)?;
    let steps = steps.checked_sub(1)?;
    let base = sum(variants, baseline, metric, steps).or_else(|| own_level(baseline, metric))?;
    Some(base + difference).filter(|sum| *sum > 0.0)
}

/// The figure that pages show: the trusted figure, or the estimate.
fn shown(row: &VariantSummary, metric: Metric) -> Option<&MetricSummary> {
    let estimated = || row.estimate.as_ref()?.metrics.get(&metric);
    row.metric(metric).or_else(estimated)
}

/// The level over the variant's own rounds or requests.
fn own_level(row: &VariantSummary, metric: Metric) -> Option<f64> {
    match row.is_pooled(metric) {
        true => row.pooled_level(metric),
        false => Some(shown(row, metric)?.value),
    }
}

impl VariantSummary {
    /// True if pages show the figure over the requests of all rounds together. This applies to a tail with too
    /// few requests per round. It then also applies to the maximum, because the maximum of a typical round may
    /// be below that tail.
    pub fn is_pooled(&self, metric: Metric) -> bool {
        let is_sparse = |metric| self.metric(metric).is_some_and(|figure| figure.is_sparse);
        is_sparse(metric) || metric == Metric::Max && is_sparse(Metric::P99)
    }

    /// The latency over the requests of all rounds, in microseconds. `None` for other metrics.
    pub fn pooled_level(&self, metric: Metric) -> Option<f64> {
        let pooled = self.distribution.as_ref()?;
        match metric {
            Metric::Max => Some(pooled.latency_us_max),
            tail => pooled.percentile_us(tail),
        }
    }

    /// The difference of a tail over the requests of all rounds. `None` without an interval.
    pub fn pooled_difference(&self, metric: Metric) -> Option<&super::PooledDifference> {
        let share = tail::share_of(metric)?;
        // No tolerance is needed, because both sides are the same literals.
        let mut pooled = self.pooled_differences.iter();
        pooled
            .find(|it| it.quantile.to_bits() == share.to_bits())
            .filter(|it| it.latency_us_low.is_some() && it.latency_us_high.is_some())
    }

    /// The level that pages show, in the metric's unit. `None` without a figure.
    pub fn level(&self, metric: Metric) -> Option<f64> {
        let sum = self.levels.get(&metric).copied();
        sum.or_else(|| own_level(self, metric))
    }
}

#[cfg(test)]
mod tests {
    use recording::sample::SampleRun;

    use super::*;
    use crate::summary::Summary;

    #[test]
    fn the_levels_of_a_chain_are_the_sums_of_its_differences() {
        let recording = SampleRun::side_by_side()
            .rounds(12)
            .variant("a", 190.0)
            .variant("b", 250.0)
            .variant("c", 400.0)
            .build();
        let mut variants = Summary::of(&recording).variants;
        variants[2].baseline = "b".to_owned();
        for (row, difference) in [(1, 50.0), (2, 170.0)] {
            let figure = variants[row].metrics.get_mut(&Metric::Cpu).unwrap();
            figure.overhead.as_mut().unwrap().difference = difference;
        }
        variants[0].metrics.get_mut(&Metric::Cpu).unwrap().value = 100.0;
        add_up(&mut variants);
        let levels = variants.iter().map(|row| row.level(Metric::Cpu));
        assert_eq!(
            levels.collect::<Vec<_>>(),
            [Some(100.0), Some(150.0), Some(320.0)]
        );
        // The baseline has no sum, and a rate has a ratio instead of a difference.
        assert!(variants[0].levels.is_empty());
        assert!(!variants[1].levels.contains_key(&Metric::Requests));
    }

    #[test]
    fn a_sum_below_zero_is_no_level() {
        let recording = SampleRun::side_by_side()
            .rounds(12)
            .variant("a", 190.0)
            .variant("b", 250.0)
            .build();
        let mut variants = Summary::of(&recording).variants;
        let figure = variants[1].metrics.get_mut(&Metric::Mean).unwrap();
        figure.overhead.as_mut().unwrap().difference = -1_000.0;
        let own = figure.value;
        add_up(&mut variants);
        assert_eq!(variants[1].level(Metric::Mean), Some(own));
    }
}
