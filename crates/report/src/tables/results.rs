//! Tables of results: the figures of each variant, the differences from the baseline, and the verdict.

use analysis::summary::{Summary, VariantSummary};
use model::{Metric, Unit};

use crate::cell;
use crate::table::{Cell, Column, Table};

/// The metrics of a page, which has space for all percentiles.
pub(crate) fn on_page(summary: &Summary) -> Vec<Metric> {
    let mut all = vec![first(summary)];
    all.extend(summary.few_pay().then_some(Metric::SlowQuarter));
    all.extend([
        Metric::Min,
        Metric::Mean,
        Metric::P50,
        Metric::P90,
        Metric::P95,
        Metric::P99,
        Metric::Max,
        Metric::Cpu,
        Metric::Memory,
    ]);
    all
}

/// The metrics of a terminal, which a reader needs first.
pub(crate) fn on_terminal(summary: &Summary) -> Vec<Metric> {
    let mut all = Vec::new();
    // In an open loop that searches for the highest rate, the rate is the result.
    all.extend(summary.is_capacity.then_some(Metric::Requests));
    all.extend((summary.headline == Metric::Typical).then_some(Metric::Typical));
    all.push(match summary.is_open_loop {
        true => Metric::Mean,
        false => Metric::Requests,
    });
    all.extend(summary.few_pay().then_some(Metric::SlowQuarter));
    all.extend([
        Metric::P50,
        Metric::P99,
        Metric::Max,
        Metric::Cpu,
        Metric::Memory,
    ]);
    all
}

/// The rate. If the plan gives it, the figure that decides is in its place.
fn first(summary: &Summary) -> Metric {
    match summary.headline {
        Metric::Typical => Metric::Typical,
        _ => Metric::Requests,
    }
}

/// A row for each of these variants, with its verdict.
pub(crate) fn table<'a>(
    variants: impl IntoIterator<Item = &'a VariantSummary>,
    metrics: &[Metric],
    times: Unit,
) -> Table {
    let columns = metrics.iter().map(|metric| Column::of(*metric, times));
    let cells = |row: &VariantSummary| {
        let figures = metrics.iter().map(|metric| cell::compared(row, *metric));
        enclosed(row.title().into(), figures, cell::verdict(row))
    };
    Table::new(
        "results",
        enclosed(Column::words("variant"), columns, Column::words("verdict")),
        variants.into_iter().map(cells),
    )
}

/// The figures that a decision needs: each cost of a variant, next to its difference from the baseline.
pub(crate) fn deciding(summary: &Summary) -> Table {
    let is_estimated = |row: &VariantSummary| cell::difference(row, summary.headline).is_some();
    let is_compared = summary.comparisons > 0 || summary.variants.iter().any(is_estimated);
    let is_beside = |metric: Metric| is_compared && !matches!(metric, Metric::P99 | Metric::Memory);
    let metrics = [summary.headline, Metric::P99, Metric::Cpu, Metric::Memory];
    let times = summary.unit(Metric::Mean);
    let columns = metrics
        .into_iter()
        .flat_map(|it| beside(it, is_beside(it), times));
    let cells = |row: &VariantSummary| {
        let figures = metrics.into_iter();
        let figures = figures.flat_map(|it| cells_beside(row, it, is_beside(it)));
        enclosed(row.title().into(), figures, cell::verdict_word(row))
    };
    Table::new(
        "deciding figures",
        enclosed(Column::words("variant"), columns, Column::words("verdict")),
        summary.variants.iter().map(cells),
    )
}

/// The column of a metric, with a column of its overhead.
pub(crate) fn beside(
    metric: Metric,
    has_overhead: bool,
    times: Unit,
) -> impl Iterator<Item = Column> {
    let overhead = has_overhead.then(|| Column::figure("overhead", ""));
    std::iter::once(Column::of(metric, times)).chain(overhead)
}

/// The cell of a metric, with a cell of its overhead.
pub(crate) fn cells_beside(
    row: &VariantSummary,
    metric: Metric,
    has_overhead: bool,
) -> impl Iterator<Item = Cell> {
    // The baseline has no overhead, so its cell is empty and has no dash.
    let nothing = if row.is_baseline { "" } else { cell::NOTHING };
    let overhead = || cell::overhead(row, metric).map_or_else(|| nothing.into(), Cell::from);
    let value = Cell::from(cell::value(row, metric));
    std::iter::once(value).chain(has_overhead.then(overhead))
}

/// The differences from the baseline. A page shows them below the figures.
pub(crate) fn overheads(summary: &Summary) -> Table {
    let mut metrics = vec![first(summary), Metric::Mean];
    metrics.extend(summary.few_pay().then_some(Metric::SlowQuarter));
    metrics.extend([Metric::P50, Metric::P99, Metric::Cpu]);
    let mut columns = vec![Column::words("variant")];
    let times = summary.unit(Metric::Mean);
    columns.extend(metrics.iter().map(|metric| Column::of(*metric, times)));
    let cells = |row: &VariantSummary| {
        let overhead = |metric| cell::overhead(row, metric).unwrap_or_else(cell::nothing);
        let mut cells = vec![Cell::from(row.title())];
        cells.extend(metrics.iter().map(|metric| overhead(*metric).into()));
        cells
    };
    let rows = summary.variants.iter();
    let compared = rows.filter(|row| cell::difference(row, summary.headline).is_some());
    Table::new("overheads", columns, compared.map(cells))
}

fn enclosed<T>(first: T, between: impl Iterator<Item = T>, last: T) -> Vec<T> {
    std::iter::once(first)
        .chain(between)
        .chain([last])
        .collect()
}
