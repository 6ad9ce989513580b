//! Cells of report tables: figures in the unit of their column.

use analysis::summary::{ClaimName, MetricSummary, VariantSummary, Verdict};
use model::{Metric, Unit};
use recording::digits;

use crate::table::{Cell, Look};
use crate::terminal::Tone;
use crate::words;

pub(crate) use recording::digits::NOTHING;

/// The text of a missing figure.
pub(crate) fn nothing() -> String {
    NOTHING.to_owned()
}

/// The value of a metric: `0.90`
pub(crate) fn value(row: &VariantSummary, metric: Metric) -> String {
    let Some(summary) = row.metric(metric) else {
        let estimate =
            estimated(row, metric).map(|it| of(&adding_up(row, metric, it), row.unit(metric)));
        return estimate.map_or_else(|| NOTHING.to_owned(), doubtful);
    };
    let shown = match row.is_pooled(metric) {
        true => single(row.level(metric), row.unit(metric)),
        false => of(&adding_up(row, metric, summary), row.unit(metric)),
    };
    not_below_the_one_before(row, metric, shown)
}

/// The figure with the sum of the baseline's level and the difference as its value. A table shows all three,
/// and a reader adds them.
fn adding_up(row: &VariantSummary, metric: Metric, summary: &MetricSummary) -> MetricSummary {
    MetricSummary {
        value: row.level(metric).unwrap_or(summary.value),
        ..summary.clone()
    }
}

/// Returns a figure that is not trusted. `None` for a tail percentile with too few requests per round.
fn estimated(row: &VariantSummary, metric: Metric) -> Option<&MetricSummary> {
    let figure = row.estimate.as_ref()?.metrics.get(&metric)?;
    (!figure.is_sparse).then_some(figure)
}

/// The text with a mark for a figure that is not trusted.
#[expect(clippy::needless_pass_by_value, reason = "for `map`")]
fn doubtful(shown: String) -> String {
    format!("~{shown}")
}

/// The text of a percentile, at least as large as the previous one. Rising figures may seem to fall if the
/// second is rounded more. Then it is shown as the first, which is equally close to it.
fn not_below_the_one_before(row: &VariantSummary, metric: Metric, shown: String) -> String {
    const RISING: [Metric; 8] = [
        Metric::Min,
        Metric::P50,
        Metric::P75,
        Metric::P90,
        Metric::P95,
        Metric::P99,
        Metric::P999,
        Metric::Max,
    ];
    let Some(index) = RISING.iter().position(|rising| *rising == metric) else {
        return shown;
    };
    let number = |text: &str| text.replace(',', "").parse::<f64>().ok();
    let before = RISING[..index].iter().rev().find_map(|metric| {
        row.metric(*metric)?;
        let shown = value(row, *metric);
        Some((number(&shown)?, shown))
    });
    match (before, number(&shown)) {
        (Some((before, text)), Some(own)) if own < before => text,
        _ => shown,
    }
}

/// The text of a figure that is not in the row's metrics.
pub(crate) fn of(summary: &MetricSummary, unit: Unit) -> String {
    let half = summary.half_width().map(|half| unit.shown(half));
    digits::value(unit.shown(summary.value), half)
}

/// A value with its error: `0.90 ±0.03`
pub(crate) fn with_error(summary: &MetricSummary, unit: Unit) -> String {
    let half = summary.half_width().map(|half| unit.shown(half));
    digits::value_with_error(unit.shown(summary.value), half)
}

/// The level that adds up, with the error of the figure.
pub(crate) fn level_with_error(
    row: &VariantSummary,
    metric: Metric,
    figure: &MetricSummary,
) -> String {
    with_error(&adding_up(row, metric, figure), row.unit(metric))
}

/// The overhead: `+0.22 ±0.03`. `None` for the baseline, and without a comparison.
pub(crate) fn difference(row: &VariantSummary, metric: Metric) -> Option<String> {
    let trusted = row.metric(metric).filter(|it| it.overhead.is_some());
    let Some(summary) = trusted else {
        let figure = estimated(row, metric)?;
        return difference_of(figure, row.unit(metric), figure.value).map(doubtful);
    };
    if row.is_pooled(metric) {
        return pooled_difference(row, metric);
    }
    difference_of(summary, row.unit(metric), summary.value)
}

/// The overhead over the requests of all rounds together. `None` without an interval.
fn pooled_difference(row: &VariantSummary, metric: Metric) -> Option<String> {
    let value = row.pooled_level(metric)?;
    let (difference, ends) = pooled(row, metric)?;
    let scale = row.unit(metric).shown(value);
    Some(digits::estimate(difference, Some(ends), scale))
}

/// The difference of a tail over the requests of all rounds together, and the ends of its interval, in the
/// shown unit. `None` without an interval.
pub(crate) fn pooled(row: &VariantSummary, metric: Metric) -> Option<(f64, (f64, f64))> {
    let pooled = row.pooled_difference(metric)?;
    let (low, high) = pooled.latency_us_low.zip(pooled.latency_us_high)?;
    let shown = |us: f64| row.unit(metric).shown(us);
    Some((shown(pooled.latency_us), (shown(low), shown(high))))
}

/// The overhead of a figure that is not in the row's metrics. `scale` is the size of the compared values.
pub(crate) fn difference_of(summary: &MetricSummary, unit: Unit, scale: f64) -> Option<String> {
    let overhead = summary.overhead.as_ref()?;
    let ends = overhead.difference_low.zip(overhead.difference_high);
    Some(digits::estimate(
        unit.shown(overhead.difference),
        ends.map(|(low, high)| (unit.shown(low), unit.shown(high))),
        unit.shown(scale),
    ))
}

/// The ratio to the baseline as a change: `+12.3 ±0.8 %`.
pub(crate) fn change(row: &VariantSummary, metric: Metric) -> Option<String> {
    let trusted = row.metric(metric).filter(|it| it.overhead.is_some());
    trusted.map_or_else(
        || estimated(row, metric)?.change().map(doubtful),
        MetricSummary::change,
    )
}

/// The overhead as it decides: the change of a rate, and the difference of any other metric.
pub(crate) fn overhead(row: &VariantSummary, metric: Metric) -> Option<String> {
    match metric {
        Metric::Requests => change(row, metric),
        _ => difference(row, metric),
    }
}

/// The value of a metric with its overhead.
pub(crate) fn compared(row: &VariantSummary, metric: Metric) -> Cell {
    let value = value(row, metric);
    if value == NOTHING {
        return value.into();
    }
    let found = row.metric(metric);
    let remark = match found {
        None => "an estimate that is not trusted".to_owned(),
        Some(_) if row.is_pooled(metric) => "over the requests of all rounds together".to_owned(),
        Some(summary) => level_with_error(row, metric, summary),
    };
    let claimed = found.and_then(|it| match it.is_sparse {
        // A sparse figure is not from rounds, so its claim follows from the interval over all requests.
        true => Some(ClaimName::of_ends(Some(pooled(row, metric)?.1))),
        false => Some(it.overhead.as_ref()?.claim),
    });
    Cell {
        tone: claimed.and_then(|claim| tone_of_claim(metric, claim)),
        difference: overhead(row, metric),
        remark: Some(remark),
        metric: Some(metric),
        ..Cell::from(value)
    }
}

/// The tone of a difference. `None` if no difference is shown.
pub(crate) fn tone_of_claim(metric: Metric, claim: ClaimName) -> Option<Tone> {
    match claim {
        ClaimName::Higher if metric.is_better_low() => Some(Tone::Worse),
        ClaimName::Lower if !metric.is_better_low() => Some(Tone::Worse),
        ClaimName::Higher | ClaimName::Lower => Some(Tone::Better),
        ClaimName::NoDifferenceShown | ClaimName::TooFewRounds => None,
    }
}

pub(crate) fn tone_of_verdict(verdict: &Verdict) -> Option<Tone> {
    match verdict {
        Verdict::Slower { .. } => Some(Tone::Worse),
        Verdict::Faster { .. } => Some(Tone::Better),
        Verdict::Invalid { .. } | Verdict::Withheld { .. } => Some(Tone::Refused),
        _ => None,
    }
}

/// The verdict, in few words for a terminal.
pub(crate) fn verdict(row: &VariantSummary) -> Cell {
    let look = Look::Verdict {
        is_invalid: row.verdict.is_invalid(),
    };
    let tone = tone_of_verdict(&row.verdict);
    Cell::long(words::verdict_short(row), words::verdict_text(row)).looks(look, tone)
}

/// The verdict in one word for a terminal. The table next to it shows the size.
pub(crate) fn verdict_word(row: &VariantSummary) -> Cell {
    let cell = verdict(row);
    let word = match &row.verdict {
        Verdict::Slower { .. } => "slower",
        Verdict::Faster { .. } => "faster",
        Verdict::Withheld { .. } | Verdict::NotCompared => {
            let brief = words::short(&row.verdict);
            return Cell { brief, ..cell };
        }
        _ if row.few_pay.is_some() => "no difference shown",
        _ => return cell,
    };
    // The share of the requests that pay the cost is in the sentence at the top.
    let mean = row
        .few_pay
        .as_ref()
        .map(|few| words::mean(few, row.unit(Metric::Mean)));
    let remark = mean.or_else(|| words::remark(row));
    Cell {
        brief: remark.map_or_else(|| word.to_owned(), |remark| format!("{word}; {remark}")),
        tone: cell.tone.or(Some(Tone::Heading)),
        ..cell
    }
}

/// A latency with its unit: `736 us`. A sign if there is none.
pub(crate) fn latency(us: Option<f64>, times: Unit) -> String {
    us.map_or_else(nothing, |_| {
        format!("{} {}", single(us, times), times.sign())
    })
}

/// A single number in the metric's unit, without an interval.
pub(crate) fn single(value: Option<f64>, unit: Unit) -> String {
    value.map_or_else(
        || NOTHING.to_owned(),
        |value| digits::value(unit.shown(value), None),
    )
}

#[cfg(test)]
mod tests {
    use analysis::summary::Summary;
    use recording::sample::SampleRun;

    use super::*;

    fn row() -> VariantSummary {
        let recording = SampleRun::open().variant("plain", 700.0).build();
        Summary::of(&recording).variants.remove(0)
    }

    fn set(row: &mut VariantSummary, metric: Metric, us: f64, half_us: f64) {
        let figure = row.metrics.get_mut(&metric).unwrap();
        figure.value = us;
        (figure.low, figure.high) = (Some(us - half_us), Some(us + half_us));
    }

    #[test]
    fn a_wide_interval_does_not_make_a_figure_of_nothing() {
        let mut row = row();
        set(&mut row, Metric::P50, 300.0, 20_000.0);
        assert_eq!(value(&row, Metric::P50), "300");
        let figure = row.metric(Metric::P50).unwrap();
        assert_eq!(with_error(figure, Unit::Milliseconds), "0.3 ±20");
    }

    #[test]
    fn a_level_is_the_sum_of_its_baseline_and_its_difference() {
        let recording = SampleRun::side_by_side()
            .rounds(12)
            .variant("a", 190.0)
            .variant("b", 250.0)
            .build();
        let mut row = Summary::of(&recording).variants.remove(1);
        let of_baseline = row.meaning.as_ref().unwrap().of_baseline;
        let difference = row.metrics[&Metric::Typical]
            .overhead
            .as_ref()
            .unwrap()
            .difference;
        // Another estimate of the level does not matter.
        let figure = row.metrics.get_mut(&Metric::Typical).unwrap();
        figure.value += 30.0;
        let shown: f64 = value(&row, Metric::Typical).parse().unwrap();
        assert!((shown - of_baseline - difference).abs() < 1.0, "{shown}");
    }

    #[test]
    fn percentiles_never_fall() {
        let mut row = row();
        for lower in [Metric::Min, Metric::P50, Metric::P75] {
            set(&mut row, lower, 500.0, 10.0);
        }
        set(&mut row, Metric::P90, 634.0, 10.0);
        set(&mut row, Metric::P95, 640.0, 500.0);
        assert_eq!(value(&row, Metric::P90), "634");
        assert_eq!(value(&row, Metric::P95), "634", "600 would be less");
        // Next to a tail over all requests, the maximum is over all requests, too.
        for metric in [Metric::P99, Metric::P999] {
            row.metrics.get_mut(&metric).unwrap().is_sparse = true;
        }
        let pooled = row.distribution.as_mut().unwrap();
        (pooled.latency_us_p99, pooled.latency_us_max) = (98_600.0, 120_000.0);
        set(&mut row, Metric::Max, 98_200.0, 100.0);
        assert_eq!(value(&row, Metric::P99), "98,600");
        assert_eq!(value(&row, Metric::Max), "120,000");
    }
}
