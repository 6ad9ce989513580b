//! Tables of the traffic: rates, throughput and outcomes.

use analysis::summary::{Summary, VariantSummary};
use model::{Metric, Unit};
use recording::digits;

use crate::cell;
use crate::course::course;
use crate::explain;
use crate::table::{Column, Table, row};

/// Title of the table.
pub(crate) const TITLE: &str = "Rates within rounds, throughput, outcomes";

/// A row for each variant.
pub(crate) fn table(summary: &Summary) -> Table {
    let windows = explain::windows(summary).unwrap_or_else(|| "no whole window".to_owned());
    let times = summary.unit(Metric::Mean);
    let short = format!("stdev\n{}", windows.replace(" windows", ""));
    let cells = |variant: &VariantSummary| {
        let rates = variant.rate_windows.as_ref();
        let stdev = rates.and_then(|rates| rates.requests_per_s_stdev);
        let by_round = variant.metric(Metric::Requests);
        let by_round = by_round.and_then(|figure| course(&figure.rounds));
        row([
            variant.name.clone(),
            cell::value(variant, Metric::Requests),
            cell::single(stdev, Unit::PerSecond),
            cell::single(rates.map(|rates| rates.requests_per_s_max), Unit::PerSecond),
            by_round.unwrap_or_else(cell::nothing),
            cell::value(variant, Metric::Throughput),
            cell::value(variant, Metric::GeneratorCpu),
            counts(variant),
        ])
    };
    Table::new(
        "rates, throughput and outcomes",
        [
            Column::words("variant"),
            Column::figure("requests/s", "").short("requests/s\navg"),
            Column::figure("stdev", &windows).short(short),
            Column::figure("max", windows).short("max"),
            Column::figure("by round", ""),
            Column::of(Metric::Throughput, times),
            Column::of(Metric::GeneratorCpu, times).for_pages(),
            Column::words("outcomes and statuses"),
        ],
        summary.variants.iter().map(cells),
    )
}

/// The counts in words: `passed 16,000; 2xx 16,000`.
pub(crate) fn counts(row: &VariantSummary) -> String {
    let classes = row.status_classes();
    let seen = classes.iter().filter(|(_, count)| *count > 0);
    let classes: Vec<String> = seen
        .map(|(name, count)| format!("{name} {}", digits::count(*count)))
        .collect();
    let outcomes = crate::words::named_outcomes(&row.outcomes);
    if classes.is_empty() {
        outcomes
    } else {
        format!("{outcomes}; {}", classes.join(", "))
    }
}
