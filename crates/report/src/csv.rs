//! The report as CSV with one line per figure, for spreadsheets and scripts (RFC 4180).

use analysis::summary::Summary;
use recording::Recording;

use crate::table::{Kind, Table};
use crate::tables;
use crate::terminal::one_line;

/// Renders every figure as a line.
pub fn csv(_: &Recording, summary: &Summary) -> String {
    printed(&tables::figures::table(summary))
}

/// Prints a table.
fn printed(table: &Table) -> String {
    let names: Vec<&str> = table.columns.iter().map(|it| it.name.as_str()).collect();
    let mut out = format!("{}\r\n", names.join(","));
    for row in &table.rows {
        let fields = row.iter().zip(&table.columns);
        // A negative figure begins like a formula, but it is our own text.
        let fields = fields.map(|(cell, column)| match column.kind {
            Kind::Figure => cell.brief.clone(),
            Kind::Words | Kind::Aside => quoted(&cell.brief),
        });
        out += &format!("{}\r\n", fields.collect::<Vec<String>>().join(","));
    }
    out
}

/// A text as a field. Spreadsheets treat a field with some first characters as a formula, which may send
/// network requests. An apostrophe before it makes it text.
fn quoted(text: &str) -> String {
    let mut text = one_line(text);
    if text.starts_with([
        '=', '+', '-', '@', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}',
    ]) {
        text.insert(0, '\'');
    }
    if text.contains([',', '"']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use recording::sample::SampleRun;

    use super::*;

    #[test]
    fn every_line_has_as_many_fields_as_the_header() {
        let mut recording = SampleRun::closed()
            .variant("a", 700.0)
            .variant("b, with a comma", 800.0)
            .variant("c", 800.0)
            .build();
        recording.variants[2].proof = None;
        let summary = Summary::of(&recording);
        let out = csv(&recording, &summary);
        let fields = |line: &str| line.replace("\"b, with a comma\"", "b").split(',').count();
        assert!(out.lines().all(|line| fields(line) == 15), "{out}");
        // The two variants with a number have all metrics of the sample and the bytes of a body.
        let metrics = summary.variants[0].metrics.len();
        assert!(metrics > 20, "{metrics}");
        assert_eq!(out.lines().count(), 1 + 2 * (metrics + 1) + 1);
        insta::assert_snapshot!(out.lines().last().unwrap(), @"graphql-server,c,invalid: no proof before the load shows that it does its work,,,,,,,,,,,,");
    }
}
