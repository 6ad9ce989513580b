//! Table of the results at each load of a curve.

use analysis::curve::Curve;
use analysis::summary::{VariantSummary, Verdict};
use model::Metric;

use super::results::{beside, cells_beside};
use crate::cell;
use crate::table::{Cell, Column, Table};
use crate::words;

/// A row for each variant at each level, baselines included.
pub(crate) fn table(curve: &Curve) -> Table {
    let second = curve.metric_of_events().unwrap_or(Metric::P99);
    let metrics = [curve.metric(), second, Metric::Cpu];
    let load = match curve.kind() {
        "requests/s" => Column::words("load")
            .in_unit("requests/s")
            .short("load\nreq/s"),
        other => Column::words(other),
    };
    let mut columns = vec![load, Column::words("variant")];
    columns.extend(
        metrics
            .into_iter()
            .flat_map(|metric| beside(metric, true, curve.unit(Metric::Mean))),
    );
    columns.push(Column::words("verdict"));
    let mut rows = Vec::new();
    for level in curve.levels() {
        for (index, row) in level.summary.variants.iter().enumerate() {
            // A terminal shows the load once for all variants of the level. Screen readers read row by row,
            // so on a page each row needs its load.
            let number = level.number();
            let shown = if index == 0 { number.as_str() } else { "" };
            let mut cells = vec![Cell::long(shown, &number), Cell::from(&row.name)];
            let figures = metrics.into_iter();
            cells.extend(figures.flat_map(|metric| cells_beside(row, metric, true)));
            cells.push(verdict(row));
            rows.push(cells);
        }
    }
    Table::new("figures by load", columns, rows)
}

/// The verdict in few words, because the lines below the table have room for the reason of an invalid level.
fn verdict(row: &VariantSummary) -> Cell {
    let cell = cell::verdict_word(row);
    let brief = match row.verdict {
        Verdict::Invalid { .. } => "invalid".to_owned(),
        Verdict::Withheld { .. } => "not trusted".to_owned(),
        _ => cell.brief,
    };
    Cell {
        brief,
        whole: Some(words::verdict_short(row)),
        ..cell
    }
}
