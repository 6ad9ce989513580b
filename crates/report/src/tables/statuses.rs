//! Table of latency by status.

use analysis::summary::Summary;
use model::Metric;
use recording::digits;

use crate::cell;
use crate::table::{Column, Table, row};

/// A row for each status of each variant that has several right statuses.
pub(crate) fn table(summary: &Summary) -> Table {
    let times = summary.unit(Metric::Mean);
    let latency = |us: f64| cell::latency(Some(us), times);
    let mut rows = Vec::new();
    for variant in &summary.variants {
        for (status, seen) in &variant.by_status {
            rows.push(row([
                variant.name.clone(),
                status.to_string(),
                digits::count(seen.responses),
                latency(seen.latency_us_mean),
                latency(seen.latency_us_p50),
                latency(seen.latency_us_p99),
                latency(seen.latency_us_max),
            ]));
        }
    }
    let figures = ["responses", "mean", "50 %", "99 %", "max"];
    let mut columns = vec![Column::words("variant"), Column::words("status")];
    columns.extend(figures.map(|name| Column::figure(name, "")));
    Table::new("latency by status", columns, rows)
}
