//! Figures as cells of a table, in the unit of their column.

use crate::digits;
use crate::metric::{Metric, Unit};
use crate::summary::{MetricSummary, PooledDifference, VariantSummary, tail};

/// What stands where there is no number.
pub(crate) const NOTHING: &str = "–";

/// `0.90`
pub(crate) fn value(row: &VariantSummary, metric: Metric) -> String {
    let Some(summary) = row.metric(metric) else {
        return NOTHING.to_owned();
    };
    if summary.is_sparse {
        let pooled = row.distribution.as_ref();
        return single(
            pooled.and_then(|of| of.percentile_us(metric)),
            metric.unit(),
        );
    }
    of(summary, metric.unit())
}

/// The same for a figure that is not in the row's metrics.
pub(crate) fn of(summary: &MetricSummary, unit: Unit) -> String {
    let half = summary.half_width().map(|half| unit.shown(half));
    digits::value(unit.shown(summary.value), half)
}

/// `0.90 ±0.03`
pub(crate) fn with_error(summary: &MetricSummary, unit: Unit) -> String {
    let half = summary.half_width().map(|half| unit.shown(half));
    digits::value_with_error(unit.shown(summary.value), half)
}

/// `+0.22 ±0.03`; none for the baseline and where nothing was compared.
pub(crate) fn difference(row: &VariantSummary, metric: Metric) -> Option<String> {
    let summary = row.metric(metric)?;
    if summary.is_sparse {
        return pooled_difference(row, metric);
    }
    difference_of(summary, metric.unit(), summary.value)
}

/// The same over the requests of all rounds together; none without an interval.
fn pooled_difference(row: &VariantSummary, metric: Metric) -> Option<String> {
    let value = row.distribution.as_ref()?.percentile_us(metric)?;
    let (difference, ends) = pooled(row, metric)?;
    let scale = metric.unit().shown(value);
    Some(digits::estimate(difference, Some(ends), scale))
}

/// The difference of a tail over the requests of all rounds together and the ends of its interval, in
/// the unit shown; none without an interval.
pub(crate) fn pooled(row: &VariantSummary, metric: Metric) -> Option<(f64, (f64, f64))> {
    let share = tail::share_of(metric)?;
    // No tolerance is needed, because both sides are the same literals.
    let of_share = |it: &&PooledDifference| it.quantile.to_bits() == share.to_bits();
    let pooled = row.pooled_differences.iter().find(of_share)?;
    let (low, high) = pooled.latency_us_low.zip(pooled.latency_us_high)?;
    let shown = |us: f64| metric.unit().shown(us);
    Some((shown(pooled.latency_us), (shown(low), shown(high))))
}

/// The same for a figure that is not in the row's metrics; `scale` is the size of the values that
/// differ.
pub(crate) fn difference_of(summary: &MetricSummary, unit: Unit, scale: f64) -> Option<String> {
    let overhead = summary.overhead.as_ref()?;
    let ends = overhead.difference_low.zip(overhead.difference_high);
    Some(digits::estimate(
        unit.shown(overhead.difference),
        ends.map(|(low, high)| (unit.shown(low), unit.shown(high))),
        unit.shown(scale),
    ))
}

/// `+12.3 ±0.8 %`: the ratio to the baseline as a change.
pub(crate) fn change(row: &VariantSummary, metric: Metric) -> Option<String> {
    change_of(row.metric(metric)?)
}

/// The same for a figure that is not in the row's metrics.
pub(crate) fn change_of(summary: &MetricSummary) -> Option<String> {
    let overhead = summary.overhead.as_ref()?;
    let percent = |ratio: f64| (ratio - 1.0) * 100.0;
    let ends = overhead.ratio_low.zip(overhead.ratio_high);
    let ends = ends.map(|(low, high)| (percent(low), percent(high)));
    // A change in percent has the size of 100, whatever the values are.
    let change = digits::estimate(percent(overhead.ratio?), ends, 100.0);
    Some(format!("{change} %"))
}

/// A single number in the metric's unit, without an interval.
pub(crate) fn single(value: Option<f64>, unit: Unit) -> String {
    value.map_or_else(
        || NOTHING.to_owned(),
        |value| digits::value(unit.shown(value), None),
    )
}
