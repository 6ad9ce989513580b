//! Table of latency over the requests of all rounds together.

use analysis::summary::{Summary, VariantSummary};
use model::Metric;

use crate::cell;
use crate::table::{Cell, Column, Table};

/// Title of the table.
pub(crate) const TITLE: &str = "Latency over the requests of all rounds";

/// A row for each variant with a distribution. A percentile has no figure if too few requests lie beyond it.
pub(crate) fn table(summary: &Summary) -> Table {
    const PERCENTILES: [Metric; 6] = [
        Metric::P50,
        Metric::P75,
        Metric::P90,
        Metric::P95,
        Metric::P99,
        Metric::P999,
    ];
    let metrics = [Metric::Min, Metric::Mean, Metric::Stdev].into_iter();
    let metrics = metrics.chain(PERCENTILES).chain([Metric::Max]);
    let mut columns = vec![Column::words("variant")];
    let unit = summary.unit(Metric::Mean);
    columns.extend(metrics.map(|metric| Column::figure(metric.label(), unit.sign())));
    let cells = |row: &VariantSummary| {
        let found = row.distribution.as_ref()?;
        let moments = [
            found.latency_us_min,
            found.latency_us_mean,
            found.latency_us_stdev,
        ];
        let percentiles = PERCENTILES.map(|metric| found.percentile_us(metric));
        let figures = moments.into_iter().map(Some).chain(percentiles);
        let figures = figures.chain([Some(found.latency_us_max)]);
        let mut cells = vec![Cell::from(&row.name)];
        cells.extend(figures.map(|us| cell::single(us, unit).into()));
        Some(cells)
    };
    Table::new(
        "latency distribution",
        columns,
        summary.variants.iter().filter_map(cells),
    )
}
