//! Text report for a terminal, readable at 100 columns and without color.

pub(crate) mod plots;
mod short;
mod table;

use analysis::summary::{Distribution, FewPay, Summary, VariantSummary, Verdict, named_outcomes};
use model::{Metric, Unit};
use recording::{Profile, Recording, describe, digits};

use crate::bodies;
use crate::cell;
use crate::explain;
use crate::gates;
use crate::sent;
use crate::step;
use crate::tables;
use crate::terminal::{Terminal, Tone, columns, finished, toned};

pub use short::text;
pub(crate) use table::{printed, table};

/// Renders a lab's recording for a terminal, with every table.
pub fn full_text(recording: &Recording, summary: &Summary, terminal: Terminal) -> String {
    let width = terminal.width;
    let mut out = heading(recording, summary, width);
    let mut add = |title: &str, body: &str| {
        if !body.is_empty() {
            let title = if title.is_empty() {
                String::new()
            } else {
                wrapped("", &toned(Tone::Heading, title), width)
            };
            out += &format!("\n{title}{body}");
        }
    };
    add("", &results(summary, width));
    for (title, costs) in tables::costs(summary) {
        add(title, &printed(&costs, width));
    }
    add("Gates", &list(&gates::lines(&summary.gates), width));
    add("Invalid", &list(&invalid(summary), width));
    add("In words", &list(&explain::in_words(summary), width));
    add(&overhead_title(summary), &overheads(summary, width));
    add(&intervals_title(summary), &plots::intervals(summary, width));
    add(
        "Latency over the requests of all rounds (ms)",
        &distributions(summary, width),
    );
    add(
        "The highest rate sustained, by round",
        &printed(&tables::searches::table(summary), width),
    );
    add(
        step::TITLE,
        &printed(&tables::steps::table(recording), width),
    );
    add(
        "Rates within rounds, throughput, outcomes",
        &traffic(summary, width),
    );
    for (title, table) in tables::of_systems(summary) {
        add(title, &printed(&table, width));
    }
    add(
        bodies::TITLE,
        &printed(&tables::bodies::table(summary), width),
    );
    add(
        bodies::STATUS_TITLE,
        &printed(&tables::statuses::table(summary), width),
    );
    add(sent::TITLE, &printed(&tables::sent::table(summary), width));
    add("Hottest functions", &hottest(recording, width));
    let troubles = explain::troubles(summary);
    // The report states explicitly that the checks were made.
    let checks = if troubles.is_empty() {
        vec![explain::untroubled(summary).to_owned()]
    } else {
        troubles
    };
    add("Checks", &list(&checks, width));
    add("Systems", &list(&describe::systems(recording), width));
    let machine = describe::facts(recording).join("; ");
    add("Machine", &wrapped("", &machine, width));
    add(
        "How to read it",
        &list(&explain::statistics(summary), width),
    );
    finished(&out, terminal)
}

fn heading(recording: &Recording, summary: &Summary, width: usize) -> String {
    let title = match &summary.question {
        Some(question) => format!("{}: {question}", summary.title),
        None => summary.title.clone(),
    };
    let mut lines = vec![toned(Tone::Heading, &title)];
    lines.push(describe::load(recording));
    lines.push(explain::rounds(summary));
    lines.extend(summary.revisions.clone());
    let interruption = explain::interruption(summary);
    lines.extend(interruption.map(|line| toned(Tone::Refused, &line)));
    lines.iter().map(|line| wrapped("", line, width)).collect()
}

/// The main table, with the figures that users read first.
fn results(summary: &Summary, width: usize) -> String {
    let mut shown = vec![Metric::Requests];
    if summary.is_open_loop {
        shown = vec![Metric::Mean];
    }
    if summary.headline == Metric::Typical {
        shown.insert(0, Metric::Typical);
    }
    if summary.few_pay() {
        shown.push(Metric::SlowQuarter);
    }
    // In an open loop that searches for the highest rate, the rate is the result.
    if summary.is_capacity {
        shown.insert(0, Metric::Requests);
    }
    shown.extend([
        Metric::P50,
        Metric::P99,
        Metric::Max,
        Metric::Cpu,
        Metric::Memory,
    ]);
    let mut header = vec!["variant".to_owned()];
    header.extend(shown.iter().map(|metric| heading_of(*metric)));
    header.push("verdict".to_owned());
    let row = |row: &VariantSummary| {
        let mut cells = vec![row.title()];
        cells.extend(shown.iter().map(|metric| cell::value(row, *metric)));
        cells.push(verdict(row));
        cells
    };
    table(
        width,
        header,
        summary.variants.iter().map(row),
        &[0, shown.len() + 1],
    )
}

/// The verdict in one word with its color. The table next to it shows the size.
pub(crate) fn verdict_word(row: &VariantSummary) -> String {
    let (tone, word) = match &row.verdict {
        Verdict::Slower { .. } => (Tone::Worse, "slower"),
        Verdict::Faster { .. } => (Tone::Better, "faster"),
        Verdict::Withheld { .. } => return toned(Tone::Refused, &row.verdict.short()),
        Verdict::NotCompared => return row.verdict.short(),
        _ if row.few_pay.is_some() => (Tone::Heading, "no difference shown"),
        _ => return verdict(row),
    };
    // The share of the requests that pay the cost is in the sentence at the top.
    let mean = row.few_pay.as_ref().map(FewPay::mean);
    match mean.as_ref().or(row.remark.as_ref()) {
        Some(remark) => toned(tone, &format!("{word}; {remark}")),
        None => toned(tone, word),
    }
}

/// The verdict in few words with its color.
fn verdict(row: &VariantSummary) -> String {
    let text = row.verdict_short();
    match &row.verdict {
        Verdict::Slower { .. } => toned(Tone::Worse, &text),
        Verdict::Faster { .. } => toned(Tone::Better, &text),
        Verdict::Invalid { .. } | Verdict::Withheld { .. } => toned(Tone::Refused, &text),
        _ => text,
    }
}

pub(crate) fn heading_of(metric: Metric) -> String {
    match metric.unit() {
        Unit::Milliseconds => format!("{}\nms", metric.label()),
        Unit::Microseconds => "CPU\nus/req".to_owned(),
        Unit::Mebibytes => "memory\nMiB".to_owned(),
        _ => metric.label().to_owned(),
    }
}

fn overhead_title(summary: &Summary) -> String {
    let kind = explain::difference(summary);
    format!("Overhead against {} ({kind})", summary.against())
}

/// The title of the picture of intervals.
fn intervals_title(summary: &Summary) -> String {
    match summary.headline {
        Metric::Requests => "Change in requests/s, with its interval".to_owned(),
        metric => format!(
            "Difference in {} latency, with its interval",
            metric.label()
        ),
    }
}

fn overheads(summary: &Summary, width: usize) -> String {
    let compared: Vec<&VariantSummary> = summary
        .variants
        .iter()
        .filter(|row| cell::difference(row, summary.headline).is_some())
        .collect();
    if compared.is_empty() {
        return String::new();
    }
    // If the plan gives the rate, its column shows the figure that decides.
    let first = match summary.headline {
        Metric::Typical => Metric::Typical,
        _ => Metric::Requests,
    };
    let mut columns = vec![first, Metric::Mean, Metric::P50, Metric::P99, Metric::Cpu];
    if summary.few_pay() {
        columns.insert(2, Metric::SlowQuarter);
    }
    let mut header = vec!["variant".to_owned()];
    header.extend(columns.iter().map(|metric| heading_of(*metric)));
    let row = |row: &&VariantSummary| {
        let difference = |metric: &Metric| match metric {
            Metric::Requests => cell::change(row, *metric),
            _ => cell::difference(row, *metric),
        };
        let shown = |metric| difference(metric).unwrap_or_else(|| cell::NOTHING.to_owned());
        let mut cells = vec![row.title()];
        cells.extend(columns.iter().map(shown));
        cells
    };
    table(
        width,
        header,
        compared.iter().map(row),
        &[0, columns.len() + 1],
    )
}

/// Variants without any figure, each with the reason. Causes of withheld verdicts are at the top and among
/// the checks.
fn invalid(summary: &Summary) -> Vec<String> {
    let rows = summary
        .variants
        .iter()
        .filter(|row| matches!(row.verdict, Verdict::Invalid { .. }));
    rows.map(|row| format!("{}: {}", row.name, row.verdict_text))
        .collect()
}

fn distributions(summary: &Summary, width: usize) -> String {
    let header = [
        "variant", "min", "mean", "stdev", "p50", "p75", "p90", "p95", "p99", "p99.9", "max",
    ];
    let row = |row: &VariantSummary| {
        let distribution = row.distribution.as_ref()?;
        let mut cells = vec![row.name.clone()];
        cells.extend(latencies(distribution).map(|us| cell::single(us, Unit::Milliseconds)));
        Some(cells)
    };
    let header = header.map(str::to_owned).to_vec();
    table(width, header, summary.variants.iter().filter_map(row), &[0])
}

/// The columns of the distribution, in microseconds. A percentile is `None` if too few requests lie beyond
/// it.
pub(crate) fn latencies(distribution: &Distribution) -> [Option<f64>; 10] {
    [
        Some(distribution.latency_us_min),
        Some(distribution.latency_us_mean),
        Some(distribution.latency_us_stdev),
        distribution.percentile_us(Metric::P50),
        distribution.percentile_us(Metric::P75),
        distribution.percentile_us(Metric::P90),
        distribution.percentile_us(Metric::P95),
        distribution.percentile_us(Metric::P99),
        distribution.percentile_us(Metric::P999),
        Some(distribution.latency_us_max),
    ]
}

fn traffic(summary: &Summary, width: usize) -> String {
    let windows = explain::windows(summary).unwrap_or_else(|| "no whole window".to_owned());
    let header = vec![
        "variant".to_owned(),
        "requests/s\navg".to_owned(),
        format!("stdev\n{}", windows.replace(" windows", "")),
        "max".to_owned(),
        "by round".to_owned(),
        "MB/s".to_owned(),
        "outcomes and statuses".to_owned(),
    ];
    let row = |row: &VariantSummary| {
        let rates = row.rate_windows.as_ref();
        let stdev = rates.and_then(|rates| rates.requests_per_s_stdev);
        let course = row.metric(Metric::Requests).and_then(plots::rounds);
        vec![
            row.name.clone(),
            cell::value(row, Metric::Requests),
            cell::single(stdev, Unit::PerSecond),
            cell::single(rates.map(|rates| rates.requests_per_s_max), Unit::PerSecond),
            course.unwrap_or_else(|| cell::NOTHING.to_owned()),
            cell::value(row, Metric::Throughput),
            counts(row),
        ]
    };
    table(width, header, summary.variants.iter().map(row), &[0, 6])
}

/// The functions with the most processor time, for each sampled system.
fn hottest(recording: &Recording, width: usize) -> String {
    let profiles = recording.profiles.iter();
    let tables: Vec<String> = profiles
        .map(|profile| hot_functions(profile, width))
        .collect();
    tables.join("\n")
}

fn hot_functions(profile: &Profile, width: usize) -> String {
    let title = wrapped("", &tables::hottest::title(profile), width);
    title + &printed(&tables::hottest::table(profile), width)
}

/// The counts in words: `passed 16,000; 2xx 16,000`.
pub(crate) fn counts(row: &VariantSummary) -> String {
    let classes = row.status_classes();
    let seen = classes.iter().filter(|(_, count)| *count > 0);
    let classes: Vec<String> = seen
        .map(|(name, count)| format!("{name} {}", digits::count(*count)))
        .collect();
    let outcomes = named_outcomes(&row.outcomes);
    if classes.is_empty() {
        outcomes
    } else {
        format!("{outcomes}; {}", classes.join(", "))
    }
}

/// Sentences as a list with bullets.
pub(crate) fn list(sentences: &[String], width: usize) -> String {
    sentences
        .iter()
        .map(|sentence| wrapped("- ", sentence, width))
        .collect()
}

/// A sentence wrapped at words. Further lines are indented to the width of the bullet.
pub(crate) fn wrapped(bullet: &str, sentence: &str, width: usize) -> String {
    let indent = " ".repeat(bullet.len());
    let mut out = String::new();
    let mut line = bullet.to_owned();
    let mut is_fresh = true;
    for word in sentence.split_whitespace() {
        if !is_fresh && columns(&line) + 1 + columns(word) > width.max(40) {
            out += &format!("{line}\n");
            line.clone_from(&indent);
            is_fresh = true;
        }
        if !is_fresh {
            line.push(' ');
        }
        line += word;
        is_fresh = false;
    }
    out + &line + "\n"
}

#[cfg(test)]
mod tests {
    use recording::sample::SampleRun;

    use super::*;

    #[test]
    fn a_lab_reads_well_at_100_columns() {
        let recording = SampleRun::graphql_server();
        insta::assert_snapshot!(full_text(
            &recording,
            &Summary::of(&recording),
            Terminal::plain(100)
        ));
    }

    /// No line is wider than the terminal, and no word or number of a cell is broken.
    #[test]
    fn tables_fit_into_narrow_terminals_and_break_no_word() {
        let closed = SampleRun::graphql_server();
        let open = SampleRun::side_by_side()
            .rounds(12)
            .variant("baseline", 190.0)
            .variant("router-request with body", 250.0)
            .build();
        for recording in [closed, open] {
            let summary = Summary::of(&recording);
            for width in [60, 72, 80, 100] {
                let terminal = Terminal::plain(width);
                for text in [
                    text(&recording, &summary, terminal),
                    full_text(&recording, &summary, terminal),
                ] {
                    for line in text.lines() {
                        assert!(line.chars().count() <= width, "{width}: {line}\n{text}");
                    }
                    let words: Vec<&str> = text.split_whitespace().collect();
                    for word in ["variant", "verdict", "baseline"] {
                        assert!(words.contains(&word), "{width}: no {word} in\n{text}");
                    }
                    let headline = summary.variants[1].metric(summary.headline);
                    assert!(headline.is_some());
                    let shown = cell::value(&summary.variants[1], summary.headline);
                    assert!(words.contains(&shown.as_str()), "{width}: {text}");
                }
            }
        }
    }
}
