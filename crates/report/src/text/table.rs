//! Text tables without lines, as wide as the terminal.

use comfy_table::{
    CellAlignment, ColumnConstraint, ContentArrangement, LineStyle, Table, TableStyle, Width,
};

use super::{glued, list, unglued, wrapped};
use crate::table::{self, Kind};
use crate::terminal::{columns, toned};

const STYLE: TableStyle =
    TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

/// Minimum width of a column of words next to figures, if its text is long enough.
const WORDS: usize = 14;

/// Prints a table, and its notes as a list.
pub(crate) fn printed(model: &table::Table, width: usize) -> String {
    let columns = model.columns.iter().filter(|it| !it.is_for_pages);
    let header = columns.clone().map(table::Column::on_terminal).collect();
    let words = columns.enumerate().filter(|(_, it)| it.kind == Kind::Words);
    let left: Vec<usize> = words.map(|(index, _)| index).collect();
    let line = |row: &Vec<table::Cell>| {
        let cells = row.iter().zip(&model.columns);
        let cells = cells.filter(|(_, column)| !column.is_for_pages);
        cells.map(|(cell, _)| shown(cell)).collect::<Vec<String>>()
    };
    let rows = model.rows.iter().map(line);
    table(width, header, rows, &left) + &list(&model.notes, width)
}

/// The text of a cell. A terminal does not show the difference of a figure, so it needs no tone.
fn shown(cell: &table::Cell) -> String {
    match cell.tone.filter(|_| cell.is_toned()) {
        Some(tone) => toned(tone, &cell.brief),
        None => cell.brief.clone(),
    }
}

/// A table without lines. Columns that are not in `left` are aligned right.
///
/// If the table is wider than the terminal, it drops figures from the right, and a line below names them.
fn table(
    width: usize,
    mut header: Vec<String>,
    rows: impl Iterator<Item = Vec<String>>,
    left: &[usize],
) -> String {
    let rows = rows.map(|row| row.iter().map(|cell| glued(cell)).collect());
    let mut rows: Vec<Vec<String>> = rows.collect();
    if rows.is_empty() {
        return String::new();
    }
    let mut is_left: Vec<bool> = (0..header.len()).map(|it| left.contains(&it)).collect();
    let mut given_up = Vec::new();
    loop {
        let least = |words| least_width(width, words, &header, &rows, &is_left);
        let figures: Vec<usize> = (1..header.len()).filter(|it| !is_left[*it]).collect();
        match figures.as_slice() {
            // A figure and its difference stay together.
            [_, .., last]
                if least(WORDS) > width && (figures.len() > 2 || header[*last] != "overhead") =>
            {
                given_up.push(name_of(&header, *last));
                header.remove(*last);
                is_left.remove(*last);
                for row in &mut rows {
                    row.remove(*last);
                }
            }
            // The name of a row then has its own line, because no word may be broken.
            _ if least(0) > width && header.len() > 1 => {
                let drawn = on_two_lines(width, header, rows, is_left);
                return unglued(&drawn) + &without(&given_up, width);
            }
            _ => {
                let drawn = drawn(width, header, rows, &is_left);
                return unglued(&drawn) + &without(&given_up, width);
            }
        }
    }
}

/// Mark without width at the start of a row.
const ROW: char = '\u{200b}';

/// A table with the first cell of each row on a line of its own.
fn on_two_lines(
    width: usize,
    mut header: Vec<String>,
    mut rows: Vec<Vec<String>>,
    mut is_left: Vec<bool>,
) -> String {
    let first = header.remove(0);
    is_left.remove(0);
    let names: Vec<String> = rows.iter_mut().map(|row| row.remove(0)).collect();
    for row in &mut rows {
        row[0] = format!("{ROW}{}", row[0]);
    }
    // On a still narrower terminal, the terminal breaks the lines. That is better than a broken word.
    let least = least_width(width, 0, &header, &rows, &is_left);
    let drawn = drawn(width.max(least), header, rows, &is_left);
    let mut names = names.into_iter();
    let mut out = format!("{first}\n");
    for line in drawn.lines() {
        if line.contains(ROW) {
            let name = names.next().unwrap_or_default();
            out += &wrapped("", &name, width);
        }
        out += &format!("{}\n", line.replace(ROW, ""));
    }
    out
}

/// The line that names the columns that were dropped.
fn without(given_up: &[String], width: usize) -> String {
    if given_up.is_empty() {
        return String::new();
    }
    let names: Vec<&str> = given_up.iter().rev().map(String::as_str).collect();
    let line = format!(
        "(columns left out: {}. `--format markdown` has them)",
        names.join(", ")
    );
    wrapped("", &line, width)
}

/// A heading on one line. An overhead is named by the figure before it.
fn name_of(header: &[String], index: usize) -> String {
    let first = |index: usize| header[index].lines().next().unwrap_or_default();
    match first(index) {
        "overhead" => format!("overhead of {}", first(index - 1)),
        name => name.to_owned(),
    }
}

/// The minimum width of a terminal that breaks no word and no number. A column of text then has `words`
/// columns if its text is long enough.
fn least_width(
    width: usize,
    words: usize,
    header: &[String],
    rows: &[Vec<String>],
    is_left: &[bool],
) -> usize {
    let of_column = |index: usize| {
        let cells = || rows.iter().map(|row| row[index].as_str());
        let lines = || cells().chain([header[index].as_str()]).flat_map(str::lines);
        let whole = lines().map(columns).max().unwrap_or(0);
        let each = lines().flat_map(str::split_whitespace);
        let longest = each.map(columns).max().unwrap_or(0);
        let least = match (index, is_left[index]) {
            (0, _) if words > 0 => longest.max(whole.min(width / 5)),
            (0, _) => longest,
            (_, true) => longest.max(whole.min(words)),
            (_, false) => whole,
        };
        // Two spaces separate the columns of the table.
        least + 2
    };
    let all: usize = (0..header.len()).map(of_column).sum();
    all.saturating_sub(2)
}

fn drawn(width: usize, header: Vec<String>, rows: Vec<Vec<String>>, is_left: &[bool]) -> String {
    let mut table = Table::new();
    let longest = |index: usize| {
        let cells = rows.iter().map(|row| &row[index]).chain([&header[index]]);
        let words = cells.flat_map(|cell| cell.split_whitespace());
        words.map(columns).max().unwrap_or(0)
    };
    let least: Vec<usize> = (0..header.len()).map(longest).collect();
    table
        .load_style(STYLE)
        .set_content_arrangement(ContentArrangement::Dynamic)
        // The table is one column wider, because the last column's padding is cut off at the end. At the
        // maximum width no line is broken, so the exact width no longer matters.
        .set_width(u16::try_from(width + 1).unwrap_or(u16::MAX))
        .set_header(header);
    for row in rows {
        table.add_row(row);
    }
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 1));
        if is_left[index] || index == 0 {
            // Text may break between words, but not within one.
            let least = Width::Fixed(u16::try_from(least[index] + 1).unwrap_or(u16::MAX));
            column.set_constraint(ColumnConstraint::LowerBoundary(least));
        }
        if !is_left[index] {
            // A number that is broken over two lines looks like two numbers.
            column.set_constraint(ColumnConstraint::ContentWidth);
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    // The padding of the last column is removed, also from the line under the header.
    let trimmed = |line: String| match line.trim_end() {
        rule if rule.starts_with('─') => rule.chars().skip(1).collect(),
        content => content.to_owned(),
    };
    let lines: Vec<String> = table.lines().map(trimmed).collect();
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{Column, row};

    #[test]
    fn a_terminal_leaves_out_the_columns_of_pages() {
        let columns = [
            Column::words("variant"),
            Column::figure("extra", "us").for_pages(),
            Column::figure("mean", "ms"),
        ];
        let rows = [row(["plain", "1.5", "2.5"].map(str::to_owned))];
        let shown = printed(&table::Table::new("means", columns, rows), 80);
        let words: Vec<&str> = shown.split_whitespace().collect();
        assert_eq!(words[..3], ["variant", "mean", "ms"], "{shown}");
        assert_eq!(words[4..], ["plain", "2.5"], "{shown}");
    }

    #[test]
    fn columns_are_given_up_from_the_right_and_named() {
        let row = |name: &str| [name, "10", "+5", "20", "30", "slower by far"].map(str::to_owned);
        let header = [
            "variant",
            "mean",
            "overhead",
            "p99",
            "memory\nMiB",
            "verdict",
        ];
        let drawn = |width| {
            let header = header.map(str::to_owned).to_vec();
            let rows = ["one-long-name", "two"].map(|name| row(name).to_vec());
            table(width, header, rows.into_iter(), &[0, 5])
        };
        assert!(!drawn(80).contains("columns left out"), "{}", drawn(80));
        insta::assert_snapshot!(drawn(50), @"
        variant        mean  overhead  p99  verdict
        ─────────────────────────────────────────────────
        one-long-name    10        +5   20  slower by far
        two              10        +5   20  slower by far
        (columns left out: memory. `--format markdown` has
        them)
        ");
        // The column that decides stays at any width. A name that leaves no room has its own line.
        let narrow = drawn(20);
        let lines: Vec<&str> = narrow.lines().filter(|it| !it.starts_with('─')).collect();
        assert_eq!(
            lines,
            [
                "variant",
                "mean  overhead  verdict",
                "one-long-name",
                "  10        +5  slower",
                "                by far",
                "two",
                "  10        +5  slower",
                "                by far",
                "(columns left out: p99, memory.",
                "`--format markdown` has them)",
            ],
            "{narrow}"
        );
    }
}
