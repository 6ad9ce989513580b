//! The report in Markdown, to paste into a pull request.
//!
//! The first table has a row per variant. The columns show latency from min to max, and the difference from
//! the baseline is in brackets below each figure. Side by side, the latency that decides comes first.

use analysis::gate::Judgement;
use analysis::summary::{CheckState, Summary, VariantSummary};
use model::{Metric, Unit};
use recording::{Profile, Recording, describe, digits};

use crate::answer;
use crate::bodies;
use crate::cell;
use crate::explain;
use crate::gates;
use crate::sent;
use crate::step;
use crate::table::{Cell, Column, Table};
use crate::tables;
use crate::terminal::one_line;
use crate::text::latencies;

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
    add("Gates", &gates_table(&summary.gates));
    add("Latency", &house_table(summary));
    for (title, costs) in tables::costs(summary) {
        add(title, &printed(&costs));
    }
    let in_words = explain::in_words(summary);
    // A single sentence is already the result at the top.
    if in_words.len() > 1 {
        add("In words", &list(&in_words));
    }
    add("Rate and cost", &cost_table(summary));
    add(sent::TITLE, &printed(&tables::sent::table(summary)));
    add(
        "The highest rate sustained, by round",
        &printed(&tables::searches::table(summary)),
    );
    for (title, table) in tables::of_systems(summary) {
        add(title, &printed(&table));
    }
    add(bodies::TITLE, &printed(&tables::bodies::table(summary)));
    add(
        bodies::STATUS_TITLE,
        &printed(&tables::statuses::table(summary)),
    );
    add("Hottest functions", &hottest_tables(recording));
    add(
        "Latency over the requests of all rounds",
        &distribution_table(summary),
    );
    add(step::TITLE, &printed(&tables::steps::table(recording)));
    add("Outcomes", &outcomes_table(summary));
    add("Checks", &checks(summary));
    add("How to read it", &how_to_read(summary));
    add("How it was measured", &how_measured(recording));
    add("How to reproduce it", &how_to_reproduce(recording));
    out
}

fn house_table(summary: &Summary) -> String {
    let mut columns = vec![
        Metric::Min,
        Metric::Mean,
        Metric::P50,
        Metric::P90,
        Metric::P95,
        Metric::P99,
        Metric::Max,
    ];
    if summary.headline == Metric::Typical {
        columns.insert(0, Metric::Typical);
    }
    if summary.few_pay() {
        columns.insert(1, Metric::SlowQuarter);
    }
    let mut header = vec!["Variant".to_owned()];
    let title = |metric: &Metric| format!("{} (ms)", capital(metric.label()));
    header.extend(columns.iter().map(title));
    header.push("Verdict".to_owned());
    let row = |row: &VariantSummary| {
        let mut cells = vec![escape(&row.title())];
        cells.extend(
            columns
                .iter()
                .map(|metric| with_difference(row, *metric, "<br>")),
        );
        cells.push(escape(&row.verdict_text));
        cells
    };
    grid(
        &header,
        &summary.variants.iter().map(row).collect::<Vec<_>>(),
    )
}

/// The results of the gates. Empty without gates.
pub(crate) fn gates_table(gates: &[Judgement]) -> String {
    let row = |judgement: &Judgement| {
        let [gate, variant, ruling, reason] = gates::cells(judgement);
        vec![
            escape(&format!("`{gate}`")),
            escape(&variant),
            ruling,
            escape(&reason),
        ]
    };
    let rows: Vec<_> = gates.iter().map(row).collect();
    grid(&gates::HEADINGS.map(str::to_owned), &rows)
}

fn cost_table(summary: &Summary) -> String {
    let windows = explain::windows(summary).map_or_else(String::new, |text| format!(" ({text})"));
    let header = [
        "Variant",
        "Requests/s",
        &format!("Stdev{windows}"),
        &format!("Max{windows}"),
        "Throughput (MB/s)",
        "CPU (us/request)",
        "Generator CPU (us/request)",
        "Peak memory (MiB)",
    ];
    let row = |row: &VariantSummary| {
        let rates = row.rate_windows.as_ref();
        let stdev = rates.and_then(|rates| rates.requests_per_s_stdev);
        let max = rates.map(|rates| rates.requests_per_s_max);
        let requests = match cell::change(row, Metric::Requests) {
            Some(change) => format!("{}<br>({change})", cell::value(row, Metric::Requests)),
            None => cell::value(row, Metric::Requests),
        };
        vec![
            escape(&row.name),
            requests,
            cell::single(stdev, Unit::PerSecond),
            cell::single(max, Unit::PerSecond),
            cell::value(row, Metric::Throughput),
            with_difference(row, Metric::Cpu, "<br>"),
            cell::value(row, Metric::GeneratorCpu),
            with_difference(row, Metric::Memory, "<br>"),
        ]
    };
    let rows: Vec<_> = summary
        .variants
        .iter()
        .filter(|row| row.has_number() || row.estimate.is_some())
        .map(row)
        .collect();
    grid(&header.map(str::to_owned), &rows)
}

/// The functions with the most processor time, for each system. Empty without profiles.
fn hottest_tables(recording: &Recording) -> String {
    let table = |profile: &Profile| {
        let table = printed(&tables::hottest::table(profile));
        format!("{}\n\n{table}\n", escape(&tables::hottest::title(profile)))
    };
    recording.profiles.iter().map(table).collect()
}

fn distribution_table(summary: &Summary) -> String {
    let header = [
        "Variant",
        "Min (ms)",
        "Avg (ms)",
        "Stdev (ms)",
        "50 %",
        "75 %",
        "90 %",
        "95 %",
        "99 %",
        "99.9 %",
        "Max (ms)",
    ];
    let row = |row: &VariantSummary| {
        let distribution = row.distribution.as_ref()?;
        let mut cells = vec![escape(&row.name)];
        cells.extend(latencies(distribution).map(|us| cell::single(us, Unit::Milliseconds)));
        Some(cells)
    };
    let rows: Vec<_> = summary.variants.iter().filter_map(row).collect();
    grid(&header.map(str::to_owned), &rows)
}

fn outcomes_table(summary: &Summary) -> String {
    let header = [
        "Variant",
        "Passed",
        "Mismatched",
        "Failed",
        "Missed",
        "1xx",
        "2xx",
        "3xx",
        "4xx",
        "5xx",
        "Others",
    ];
    let row = |row: &VariantSummary| {
        let outcomes = &row.outcomes;
        let counts = [
            outcomes.passed,
            outcomes.mismatched.total(),
            outcomes.failed.total(),
            outcomes.missed,
        ];
        let classes = row.status_classes().map(|(_, count)| count);
        let mut cells = vec![escape(&row.name)];
        cells.extend(counts.into_iter().chain(classes).map(digits::count));
        cells
    };
    grid(
        &header.map(str::to_owned),
        &summary.variants.iter().map(row).collect::<Vec<_>>(),
    )
}

fn checks(summary: &Summary) -> String {
    let header = ["Variant", "Check", "State", "Figure"].map(str::to_owned);
    let of_row = |row: &VariantSummary| {
        let line = |check: &analysis::summary::Check| {
            let state = match check.state {
                CheckState::Ok => "ok".to_owned(),
                other => format!("**{other}**"),
            };
            vec![
                escape(&row.name),
                check.name.to_string(),
                state,
                escape(&check.text),
            ]
        };
        row.checks.iter().map(line).collect::<Vec<_>>()
    };
    let rows: Vec<_> = summary.variants.iter().flat_map(of_row).collect();
    let bad = explain::troubles(summary).len();
    let verdict = match bad {
        0 => "All in order.".to_owned(),
        _ => format!("{} not in order.", describe::plural(bad as u64, "check")),
    };
    // Without checks, "All in order" would be a false claim.
    if rows.is_empty() {
        return String::new();
    }
    let table = grid(&header, &rows);
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
    let Some(lab) = &recording.lab else {
        return out;
    };
    let rows: Vec<Vec<String>> = lab
        .files
        .iter()
        .map(|file| [&file.path, &file.sha256].map(|text| escape(&format!("`{text}`"))))
        .map(Vec::from)
        .collect();
    out += &format!(
        "\n{}",
        grid(&["File".to_owned(), "SHA-256".to_owned()], &rows)
    );
    out
}

/// A figure with its difference, `0.90<br>(+0.22 ±0.03)`. `between` is the text between the two.
pub(crate) fn with_difference(row: &VariantSummary, metric: Metric, between: &str) -> String {
    let value = cell::value(row, metric);
    let shown = match cell::difference(row, metric) {
        Some(difference) => format!("{value}{between}({difference})"),
        None => value,
    };
    // Two tildes would strike out the text between them.
    shown.replace('~', "\\~")
}

/// Prints a table, and its notes as a list.
fn printed(table: &Table) -> String {
    let row = |row: &Vec<_>| row.iter().map(|cell: &Cell| escape(cell.whole())).collect();
    let header: Vec<String> = table.columns.iter().map(Column::on_one_line).collect();
    let rows: Vec<Vec<String>> = table.rows.iter().map(row).collect();
    let between = if table.notes.is_empty() { "" } else { "\n" };
    format!("{}{between}{}", grid(&header, &rows), list(&table.notes))
}

/// A table with readable source. Empty without rows.
pub(crate) fn grid(header: &[String], rows: &[Vec<String>]) -> String {
    if rows.is_empty() {
        return String::new();
    }
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
    line(header) + &line(&rule) + &body
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

pub(crate) fn capital(label: &str) -> String {
    match label {
        "min" => "Min".to_owned(),
        "mean" => "Mean".to_owned(),
        "max" => "Max".to_owned(),
        "typical" => "Typical".to_owned(),
        other => other.to_owned(),
    }
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
