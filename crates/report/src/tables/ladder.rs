//! Table of the steps between variants that build on each other.

use analysis::summary::{LadderStep, Summary};
use model::Metric;

use crate::cell;
use crate::table::{Cell, Column, Table};

/// Title of the table.
pub(crate) const TITLE: &str = "Ladder: the cost of each step";

/// The columns of a table of costs, and the metrics of those after the first.
pub(super) fn columns(summary: &Summary, first: &'static str) -> (Vec<Column>, Vec<Metric>) {
    let times = summary.unit(Metric::Mean).sign();
    let headline = match summary.headline {
        Metric::Requests => Column::figure("requests", "1/s"),
        Metric::Typical => Column::figure("typical", times),
        _ => Column::figure("latency", times),
    };
    let has_mean = !matches!(summary.headline, Metric::Requests | Metric::Mean);
    let mut columns = vec![Column::words(first), headline];
    let mut metrics = vec![summary.headline];
    if has_mean {
        columns.push(Column::figure("mean", times));
        metrics.push(Metric::Mean);
    }
    columns.push(Column::figure("CPU", "us/req"));
    columns.push(Column::figure("memory", "MiB"));
    metrics.extend([Metric::Cpu, Metric::Memory]);
    (columns, metrics)
}

/// One row for each step, and one for all steps together. No rows without a ladder.
pub(crate) fn table(summary: &Summary) -> Table {
    let (columns, metrics) = columns(summary, "step");
    let cells = |step: &LadderStep, name: String| {
        let difference = |metric: &Metric| {
            let figure = step.metrics.get(metric);
            let shown =
                figure.and_then(|it| cell::difference_of(it, summary.unit(*metric), it.value));
            shown.unwrap_or_else(cell::nothing)
        };
        let cells = std::iter::once(name).chain(metrics.iter().map(difference));
        cells.map(Cell::from).collect::<Vec<Cell>>()
    };
    let ladder = summary.ladder.as_ref();
    let steps = ladder.map(|it| it.steps.as_slice()).unwrap_or_default();
    let mut rows: Vec<_> = steps
        .iter()
        .map(|step| cells(step, format!("{} → {}", step.from, step.to)))
        .collect();
    let whole = ladder.and_then(|it| it.whole.as_ref());
    rows.extend(whole.map(|whole| cells(whole, "all steps".to_owned())));
    let table = Table::new("steps of the ladder", columns, rows);
    match whole {
        None => table,
        Some(_) => table.with_note(
            "In each column, all intervals hold together with 95 %. The last row compares the ends directly.",
        ),
    }
}
