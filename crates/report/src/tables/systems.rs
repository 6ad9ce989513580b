//! Table of costs, with each system of each variant.

use analysis::summary::{MetricSummary, Summary, SystemSummary, VariantSummary};
use model::{Metric, Unit};
use recording::digits;

use crate::cell;
use crate::table::{Cell, Column, Table};

/// Title of the table.
pub(crate) const TITLE: &str = "Cost by system";

/// A row for each system of each variant that has a number. A variant with several systems also has a row for
/// their sum.
pub(crate) fn table(summary: &Summary) -> Table {
    let of_variant = |row: &VariantSummary| {
        let mut lines: Vec<Vec<Cell>> = row.systems.iter().map(line).collect();
        // A single system is its own sum.
        if lines.len() > 1 {
            lines.push(sum(row));
        }
        for line in &mut lines {
            line.insert(0, row.name.clone().into());
        }
        lines
    };
    Table::new(
        "cost by system",
        [
            Column::words("variant"),
            Column::words("system"),
            Column::figure("CPU", "us/request").short("CPU\nus/req"),
            Column::figure("peak memory", "MiB").short("memory\nMiB"),
            Column::figure("context switches", "/request").short("switches\n/req"),
            Column::figure("forced", "/request").short("forced\n/req"),
            Column::figure("waited for CPU", "us/request").short("waited\nus/req"),
            Column::words("limits"),
            Column::words("CPU read from")
                .short("CPU read\nfrom")
                .aside(),
        ],
        summary.variants.iter().flat_map(of_variant),
    )
}

/// A figure, with its error on pages.
fn figure(value: Option<&MetricSummary>, unit: Unit) -> Cell {
    value.map_or_else(
        || cell::NOTHING.into(),
        |value| Cell::long(cell::of(value, unit), cell::with_error(value, unit)),
    )
}

fn line(system: &SystemSummary) -> Vec<Cell> {
    let figure = |value: &Option<MetricSummary>, unit| figure(value.as_ref(), unit);
    let throttled = system
        .throttled_periods_share
        .filter(|share| *share > 0.0)
        .map(|share| format!(", stopped in {} of the periods", digits::percent(share)));
    vec![
        system.name.clone().into(),
        figure(&system.cpu_us_per_request, Unit::Microseconds),
        figure(&system.memory_peak_bytes, Unit::Mebibytes),
        figure(&system.context_switches_per_request, Unit::PerRequest),
        figure(
            &system.context_switches_involuntary_per_request,
            Unit::PerRequest,
        ),
        figure(&system.waited_for_cpu_us_per_request, Unit::Microseconds),
        format!("{}{}", system.limits, throttled.unwrap_or_default()).into(),
        system
            .source
            .clone()
            .unwrap_or_else(|| cell::NOTHING.to_owned())
            .into(),
    ]
}

/// The systems of a variant together. Intervals are computed from the sums by round and are not sums of
/// intervals.
fn sum(row: &VariantSummary) -> Vec<Cell> {
    let figure = |metric: Metric| figure(row.metric(metric), metric.unit());
    vec![
        "all".into(),
        figure(Metric::Cpu),
        figure(Metric::Memory),
        figure(Metric::ContextSwitches),
        figure(Metric::ContextSwitchesInvoluntary),
        figure(Metric::WaitedForCpu),
        // Limits and sources belong to single systems.
        "".into(),
        "".into(),
    ]
}
