//! Tables of a comparison of two results.

use analysis::compare::{Compared, Comparison, Pairing, Replies, Row};
use model::{Metric, Unit};
use recording::digits;

use crate::cell;
use crate::table::{Cell, Column, Table, row};

/// Title of the table of overheads.
pub(crate) fn title_of_overheads(comparison: &Comparison) -> String {
    let times = comparison.unit(Metric::Mean).sign();
    format!("Overhead against each one's own baseline ({times}, CPU us/request)")
}

/// A row for each figure of both sides.
pub(crate) fn figures(sides: &Row, pairing: Pairing) -> Table {
    let cells = |metric: Metric| {
        let compared = sides.metrics.get(&metric)?;
        let unit = sides.unit(metric);
        // A round has too few requests for this percentile, so its rounds have no useful values.
        let is_sparse = compared.a.is_sparse || compared.b.is_sparse;
        let value = |summary| match pairing {
            _ if is_sparse => cell::nothing(),
            Pairing::Single => cell::of(summary, unit),
            _ => cell::with_error(summary, unit),
        };
        let or_nothing = |cell: Option<String>| {
            let shown = cell.filter(|_| !is_sparse);
            shown.unwrap_or_else(cell::nothing)
        };
        Some(row([
            match metric.unit() {
                Unit::Milliseconds => format!("{} ({})", metric.label(), unit.sign()),
                _ => metric.label().to_owned(),
            },
            value(&compared.a),
            value(&compared.b),
            or_nothing(difference(compared, unit)),
            or_nothing(compared.b.change()),
        ]))
    };
    let mut columns = vec![Column::words("figure")];
    columns.extend(["A", "B", "B - A", "change"].map(|name| Column::figure(name, "")));
    let rows = Metric::ALL.into_iter().filter_map(cells);
    Table::new("figures", columns, rows.chain(failures(sides)))
}

/// The row of failures, if a side is a file of another tool.
fn failures(compared: &Row) -> Option<Vec<Cell>> {
    let both = compared.failures?;
    let shown = |replies: Option<Replies>| match replies {
        Some(replies) => format!(
            "{} of {}",
            digits::count(replies.failed),
            digits::count(replies.succeeded + replies.failed)
        ),
        None => "unknown".to_owned(),
    };
    Some(row([
        "failures".to_owned(),
        shown(both.a),
        shown(both.b),
        cell::nothing(),
        cell::nothing(),
    ]))
}

/// A row for each overhead of both results. No rows without overheads.
pub(crate) fn overheads(comparison: &Comparison) -> Table {
    let mut rows = Vec::new();
    for compared in &comparison.rows {
        for (metric, both) in &compared.overheads {
            if both.a.is_sparse || both.b.is_sparse {
                continue;
            }
            let unit = compared.unit(*metric);
            rows.push(row([
                compared.name.clone(),
                metric.label().to_owned(),
                cell::with_error(&both.a, unit),
                cell::with_error(&both.b, unit),
                difference(both, unit).unwrap_or_else(cell::nothing),
            ]));
        }
    }
    let mut columns = Vec::from(["variant", "figure"].map(Column::words));
    let figures = ["overhead in A", "overhead in B", "B - A"];
    columns.extend(figures.map(|name| Column::figure(name, "")));
    Table::new("overheads", columns, rows)
}

fn difference(compared: &Compared, unit: Unit) -> Option<String> {
    // The larger value decides the digits, so that a difference has as many as its values support.
    let scale = compared.a.value.abs().max(compared.b.value.abs());
    cell::difference_of(&compared.b, unit, scale)
}
