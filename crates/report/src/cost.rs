//! Rows of the table of costs, with each system of each variant, for every report format.

use crate::cell;
use crate::digits;
use crate::metric::{Metric, Unit};
use crate::summary::{MetricSummary, Summary, SystemSummary, VariantSummary};

/// The cells of a row, one for each of the [`HEADINGS`].
pub(crate) type Cells = [String; HEADINGS.len()];

/// The headings of the table, each with its unit.
pub(crate) const HEADINGS: [&str; 8] = [
    "System",
    "CPU (us/request)",
    "Peak memory (MiB)",
    "Context switches (/request)",
    "Forced (/request)",
    "Waited for CPU (us/request)",
    "Limits",
    "CPU read from",
];

/// Text form of a figure: [`cell::of`] or [`cell::with_error`].
type Shown = fn(&MetricSummary, Unit) -> String;

/// One row for each system of each variant that has a number, with intervals. A variant with several systems
/// also has a row for their sum.
pub(crate) fn rows(summary: &Summary, shown: Shown) -> Vec<(String, Cells)> {
    let of_row = |row: &VariantSummary| {
        let mut lines: Vec<Cells> = row
            .systems
            .iter()
            .map(|system| line(system, shown))
            .collect();
        // A single system is its own sum.
        if lines.len() > 1 {
            lines.push(sum(row, shown));
        }
        let named = |line| (row.name.clone(), line);
        lines.into_iter().map(named).collect::<Vec<_>>()
    };
    summary.variants.iter().flat_map(of_row).collect()
}

fn line(system: &SystemSummary, shown: Shown) -> Cells {
    let figure = |figure: &Option<MetricSummary>, unit: Unit| match figure {
        Some(figure) => shown(figure, unit),
        None => cell::NOTHING.to_owned(),
    };
    let throttled = system
        .throttled_periods_share
        .filter(|share| *share > 0.0)
        .map(|share| format!(", stopped in {} of the periods", digits::percent(share)));
    [
        system.name.clone(),
        figure(&system.cpu_us_per_request, Unit::Microseconds),
        figure(&system.memory_peak_bytes, Unit::Mebibytes),
        figure(&system.context_switches_per_request, Unit::PerRequest),
        figure(
            &system.context_switches_involuntary_per_request,
            Unit::PerRequest,
        ),
        figure(&system.waited_for_cpu_us_per_request, Unit::Microseconds),
        format!("{}{}", system.limits, throttled.unwrap_or_default()),
        system
            .source
            .clone()
            .unwrap_or_else(|| cell::NOTHING.to_owned()),
    ]
}

/// The systems of a variant together. Intervals are computed from the sums by round and are not sums of
/// intervals.
fn sum(row: &VariantSummary, shown: Shown) -> Cells {
    let figure = |metric: Metric| {
        let known = row.metric(metric);
        known.map_or_else(
            || cell::NOTHING.to_owned(),
            |figure| shown(figure, metric.unit()),
        )
    };
    [
        "all".to_owned(),
        figure(Metric::Cpu),
        figure(Metric::Memory),
        figure(Metric::ContextSwitches),
        figure(Metric::ContextSwitchesInvoluntary),
        figure(Metric::WaitedForCpu),
        // Limits and sources belong to single systems.
        String::new(),
        String::new(),
    ]
}
