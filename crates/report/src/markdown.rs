//! The report in Markdown, to paste into a pull request.
//!
//! The first table has a row per variant, and the difference from the baseline is in brackets below each
//! figure. Side by side, the latency that decides comes first.

use analysis::summary::Summary;
use model::Metric;
use recording::{Profile, Recording, describe};

use crate::answer;
use crate::explain;
use crate::sent;
use crate::table::{Cell, Column, Look, Table};
use crate::tables;
use crate::terminal::one_line;

/// Renders a recording as GitHub-flavored Markdown.
pub fn markdown(recording: &Recording, summary: &Summary) -> String {
    let mut out = format!("# {}\n\n", escape(&summary.title));
    if let Some(question) = &summary.question {
        out += &format!("**{}**\n\n", escape(question));
    }
    let answer = escape(&answer::sentence(recording, summary));
    match summary.interrupted {
        true => out += &format!("> **{answer}**\n\n"),
        false => out += &format!("{answer}\n\n"),
    }
    let facts = [describe::load(recording), explain::rounds(summary)];
    out += &list(
        &facts
            .into_iter()
            .chain(summary.revisions.clone())
            .collect::<Vec<_>>(),
    );
    let mut add = |title: &str, body: &str| {
        if !body.is_empty() {
            out += &format!("\n## {title}\n\n{body}");
        }
    };
    add("Gates", &printed(&tables::gates::table(&summary.gates)));
    let metrics = tables::results::on_page(summary);
    let times = summary.unit(Metric::Mean);
    let results = tables::results::table(&summary.variants, &metrics, times);
    add("Results", &printed(&results));
    for (title, costs) in tables::costs(summary) {
        add(title, &printed(&costs));
    }
    let in_words = explain::in_words(summary);
    // A single sentence is already the result at the top.
    if in_words.len() > 1 {
        add("In words", &list(&in_words));
    }
    for (title, table) in tables::evidence(recording, summary) {
        add(title, &printed(&table));
    }
    add(tables::why::TITLE, &why(summary));
    add("Hottest functions", &hottest_tables(recording));
    add("Checks", &checks(summary));
    add("How to read it", &how_to_read(summary));
    add("How it was measured", &how_measured(recording));
    add("How to reproduce it", &how_to_reproduce(recording));
    out
}

/// The causes of the differences, the functions and the parts. Empty without `--why`.
fn why(summary: &Summary) -> String {
    let sentences: Vec<String> = tables::why::sentences(summary)
        .iter()
        .map(|sentence| escape(sentence))
        .collect();
    let bodies = [
        list(&sentences),
        printed(&tables::why::functions(summary)),
        printed(&tables::why::parts(summary)),
        printed(&tables::why::runtimes(summary)),
    ];
    let bodies = bodies.into_iter().filter(|body| !body.is_empty());
    bodies.collect::<Vec<String>>().join("\n")
}

/// The functions with the most processor time, for each system. Empty without profiles.
fn hottest_tables(recording: &Recording) -> String {
    let table = |profile: &Profile| {
        let table = printed(&tables::hottest::table(profile));
        format!("{}\n\n{table}\n", escape(&tables::hottest::title(profile)))
    };
    recording.profiles.iter().map(table).collect()
}

fn checks(summary: &Summary) -> String {
    let every = tables::checks::every(summary);
    // Without checks, "All in order" would be a false claim.
    if every.rows.is_empty() {
        return String::new();
    }
    let verdict = match explain::troubles(summary).len() {
        0 => "All in order.".to_owned(),
        bad => format!("{} not in order.", describe::plural(bad as u64, "check")),
    };
    let table = printed(&every);
    format!("{verdict}\n\n<details><summary>every check</summary>\n\n{table}\n</details>\n")
}

fn how_to_read(summary: &Summary) -> String {
    list(&explain::statistics(summary))
}

fn how_measured(recording: &Recording) -> String {
    let mut lines = sent::lines(recording);
    lines.extend(describe::systems(recording));
    lines.extend(describe::facts(recording));
    list(&lines)
}

fn how_to_reproduce(recording: &Recording) -> String {
    // The command is on one line, so that its text cannot start a line that ends the block.
    let command = one_line(&describe::command(recording));
    let mut out = format!("```console\n$ {command}\n```\n");
    if let Some(lab) = &recording.lab {
        out += &format!("\n{}", printed(&tables::files::table(&lab.files)));
    }
    out
}

/// Prints a table, and its notes as a list.
pub(crate) fn printed(table: &Table) -> String {
    let grid = grid(table, |cell| shown(cell, cell.whole(), "<br>"));
    let between = if table.notes.is_empty() { "" } else { "\n" };
    format!("{grid}{between}{}", list(&table.notes))
}

/// Prints a table with short verdicts, and with differences next to their figures.
pub(crate) fn printed_short(table: &Table) -> String {
    grid(table, |cell| shown(cell, &cell.brief, " "))
}

/// A cell with its difference, `0.90<br>(+0.22 ±0.03)`. `between` is the text between the two.
fn shown(cell: &Cell, text: &str, between: &str) -> String {
    let text = match cell.look {
        Look::Code => escape(&format!("`{text}`")),
        Look::State | Look::Ruling if cell.is_toned() => format!("**{}**", escape(text)),
        _ => escape(text),
    };
    match &cell.difference {
        Some(difference) => format!("{text}{between}({})", escape(difference)),
        None => text,
    }
}

/// A table with readable source. Empty without rows.
fn grid(table: &Table, shown: impl Fn(&Cell) -> String) -> String {
    if table.rows.is_empty() {
        return String::new();
    }
    let header: Vec<String> = table.columns.iter().map(Column::on_one_line).collect();
    let rows = table.rows.iter();
    let rows: Vec<Vec<String>> = rows.map(|row| row.iter().map(&shown).collect()).collect();
    // Three dashes are the shortest rule that every Markdown reader accepts.
    let width = |index: usize| {
        let cells = rows
            .iter()
            .filter_map(|row| row.get(index))
            .chain(header.get(index));
        cells
            .map(|cell| cell.chars().count())
            .max()
            .unwrap_or(0)
            .max(3)
    };
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    let line = |cells: &[String]| {
        let padded = cells
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!(" {cell:<width$} |"));
        format!("|{}\n", padded.collect::<String>())
    };
    let rule: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
    let body: String = rows.iter().map(|row| line(row)).collect();
    line(&header) + &line(&rule) + &body
}

pub(crate) fn list(lines: &[String]) -> String {
    lines
        .iter()
        .map(|line| format!("- {}\n", escape(line)))
        .collect()
}

/// Escapes a user's text, so that it is shown as text on one line and not as markup. Text in backticks stays
/// code.
pub(crate) fn escape(text: &str) -> String {
    let text = &one_line(text);
    // Markdown readers pair groups of several backticks by their number, which this function does not
    // support.
    if text.contains("``") {
        return escape_plain(&text.replace('`', "'"));
    }
    let parts: Vec<&str> = text.split('`').collect();
    // With an odd number, backticks do not mark code. A single one would open code that never ends.
    if parts.len().is_multiple_of(2) {
        return escape_plain(&text.replace('`', "'"));
    }
    let marked = |(index, part): (usize, &&str)| match index % 2 {
        0 => escape_plain(part),
        // Code spans have no escapes, but a table splits at `|` even inside of them.
        _ => format!("`{}`", part.replace('|', "\\|")),
    };
    parts.iter().enumerate().map(marked).collect()
}

fn escape_plain(text: &str) -> String {
    let mut out = String::new();
    for character in text.chars() {
        match character {
            // GitHub treats dollars as formulas and tildes as struck text.
            '|' | '*' | '_' | '[' | ']' | '\\' | '$' | '~' => out.extend(['\\', character]),
            '<' => out += "&lt;",
            '&' => out += "&amp;",
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use model::InvalidKind;
    use recording::VariantStatus;
    use recording::sample::SampleRun;

    use super::*;

    fn open() -> Recording {
        let mut recording = SampleRun::open()
            .variant("baseline", 680.0)
            .variant("same", 680.0)
            .variant("rhai", 750.0)
            .variant("csharp", 900.0)
            .build();
        recording.rounds.retain(|round| round.variant != "csharp");
        recording.variants[3].status = VariantStatus::Invalid {
            kind: InvalidKind::ProgramMissing,
            reason: "`dotnet` is not installed".to_owned(),
        };
        recording
    }

    #[test]
    fn a_lab_is_pasted_as_the_house_table() {
        let recording = open();
        insta::assert_snapshot!(markdown(&recording, &Summary::of(&recording)));
    }

    #[test]
    fn names_cannot_break_the_table() {
        assert_eq!(escape("a|b\n<script>*_"), r"a\|b &lt;script>\*\_");
        assert_eq!(escape("a_b `c_d|<e>` f"), r"a\_b `c_d\|<e>` f");
        assert_eq!(escape("a ` b_c"), r"a ' b\_c");
    }
}
