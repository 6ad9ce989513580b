//! Tables of the checks that were made while each variant was measured.

use analysis::summary::{Check, CheckState, Summary, VariantSummary};

use crate::table::{Cell, Column, Look, Table};
use crate::terminal::Tone;
use crate::words;

/// A row for each check of each variant, with its figure.
pub(crate) fn every(summary: &Summary) -> Table {
    let mut rows = Vec::new();
    for row in &summary.variants {
        for check in &row.checks {
            let name = check.name.to_string().into();
            rows.push(vec![
                (&row.name).into(),
                name,
                state(check),
                words::check_text(check).into(),
            ]);
        }
    }
    Table::new(
        "every check",
        ["variant", "check", "state", "figure"].map(Column::words),
        rows,
    )
}

/// A row for each variant, and a column for each check.
// Columns follow the first appearance of each check, because every row has this order.
pub(crate) fn states(summary: &Summary) -> Table {
    let mut names: Vec<String> = Vec::new();
    for check in summary.variants.iter().flat_map(|row| &row.checks) {
        let name = check.name.to_string();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let cells = |row: &VariantSummary| {
        let mut cells = vec![Cell::from(&row.name)];
        for name in &names {
            let mut checks = row.checks.iter();
            let check = checks.find(|check| check.name.to_string() == *name);
            cells.push(check.map_or_else(Cell::default, state));
        }
        cells
    };
    let rows: Vec<_> = summary.variants.iter().map(cells).collect();
    let names = std::iter::once("variant".to_owned()).chain(names);
    let columns: Vec<_> = names.map(Column::words).collect();
    Table::new("states of the checks", columns, rows)
}

fn state(check: &Check) -> Cell {
    let tone = (check.state != CheckState::Ok).then_some(Tone::Refused);
    Cell {
        remark: Some(words::check_text(check)),
        ..Cell::from(check.state.to_string()).looks(Look::State, tone)
    }
}
