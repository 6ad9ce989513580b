//! Tables with columns of given widths, as users of wrk and bombardier expect.

use crate::table::{Kind, Table};
use crate::terminal::columns;

/// Place of a column: its distance from the column before it, and its minimum width.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    gap: usize,
    width: usize,
}

/// A column of at least this width, at this distance from the column before it.
pub(crate) const fn at(gap: usize, width: usize) -> Place {
    Place { gap, width }
}

/// Prints a table with these places of its columns. There is a heading if a column has one.
pub(crate) fn aligned(table: &Table, places: &[Place]) -> String {
    let heading: Vec<&str> = table.columns.iter().map(|it| it.name.as_str()).collect();
    let has_heading = heading.iter().any(|name| !name.is_empty());
    let rows = table.rows.iter();
    let rows = rows.map(|row| row.iter().map(|cell| cell.brief.as_str()).collect());
    let lines = has_heading.then_some(heading).into_iter().chain(rows);
    lines
        .map(|cells: Vec<&str>| line(table, &cells, places))
        .collect()
}

fn line(table: &Table, cells: &[&str], places: &[Place]) -> String {
    let mut out = String::new();
    for ((cell, column), place) in cells.iter().zip(&table.columns).zip(places) {
        let gap = " ".repeat(place.gap);
        let padding = " ".repeat(place.width.saturating_sub(columns(cell)));
        out += &gap;
        match column.kind {
            Kind::Figure => out += &format!("{padding}{cell}"),
            Kind::Words | Kind::Aside => out += &format!("{cell}{padding}"),
        }
    }
    out.trim_end().to_owned() + "\n"
}
