//! The report as a comment on a pull request: at most [`LINES`] lines of Markdown, the result first.

use std::cmp::Ordering;

use analysis::gate::{Judgement, Ruling};
use analysis::summary::{Summary, VariantSummary};
use model::Metric;
use recording::{Recording, describe};

use crate::answer;
use crate::bodies;
use crate::consequence::{self, GateState};
use crate::explain;
use crate::gates;
use crate::markdown::{escape, printed_short};
use crate::tables;
use crate::terminal::one_line;
use crate::words;

/// Maximum number of lines of a comment.
const LINES: usize = 30;
/// Maximum number of rows of the table, with the baselines.
const ROWS: usize = 8;
/// Maximum number of gates in a comment.
const GATES: usize = 4;

/// Renders a summary as a comment. The first line marks it, so that the next run of the same lab can find and
/// replace it.
///
/// # Panics
///
/// When the comment exceeds its maximum length, which is a defect.
#[must_use]
pub fn comment(recording: &Recording, summary: &Summary) -> String {
    let consequence = consequence::sentence(summary);
    let consequence =
        consequence.map_or_else(String::new, |it| format!(" In practice: {}.", escape(&it)));
    let first = format!(
        "{}\n{}**{}**: {}{consequence}",
        marker(&summary.title),
        passed(&summary.gates),
        escape(&summary.title),
        escape(&answer::sentence(recording, summary))
    );
    let rest: Vec<String> = gates(&summary.gates, GATES)
        .into_iter()
        .chain([folded(recording, summary)])
        .collect();
    // The table has the lines that are left, after its head and an empty line.
    let used: usize = rest.iter().map(|part| part.lines().count() + 1).sum();
    let rows = LINES.saturating_sub(first.lines().count() + used + 5);
    let mut parts = vec![first, table(summary, rows.min(ROWS))];
    parts.extend(rest);
    // Names and subjects come from the pull request. A name that begins with @ would notify a person or a
    // team.
    let out = parts.join("\n\n").replace('@', "@\u{200b}") + "\n";
    assert!(
        out.lines().count() <= LINES,
        "a comment has at most {LINES} lines"
    );
    out
}

/// The first line, which identifies the comment for the next run of this lab. Markdown readers do not show
/// it.
pub(crate) fn marker(title: &str) -> String {
    let mut title = one_line(title);
    // Two dashes would end the HTML comment. Three dashes need several passes, because one pass may leave two
    // of them.
    while title.contains("--") {
        title = title.replace("--", "-");
    }
    format!("<!-- weighbridge: {title} -->")
}

/// The result of the gates: `✅ **Passed.** `, `❌ **Failed: 1 of 2 gates.** `, `➖ **No gate.** `.
pub(crate) fn passed(gates: &[Judgement]) -> String {
    let all = gates.len() as u64;
    let failed = gates.iter().filter(|it| !it.is_passed).count();
    match GateState::of(gates) {
        GateState::NoGate => "\u{2796} **No gate.** ".to_owned(),
        GateState::Pass => "\u{2705} **Passed.** ".to_owned(),
        GateState::Fail if all == 1 => "\u{274c} **Failed.** ".to_owned(),
        GateState::Fail => {
            let gates = describe::plural(all, "gate");
            format!("\u{274c} **Failed: {failed} of {gates}.** ")
        }
    }
}

/// The rows in order of importance. Baselines come first, then rows with failed gates. The rest is sorted by
/// the size of the difference, and rows without one come last.
fn in_order(summary: &Summary) -> Vec<&VariantSummary> {
    let is_failed = |row: &VariantSummary| {
        let mut gates = summary.gates.iter().filter(|gate| !gate.is_passed);
        gates.any(|gate| gate.variant == row.name)
    };
    let size = |row: &VariantSummary| {
        let trusted = row.metric(summary.headline);
        let estimated = row.estimate.as_ref();
        let figure = trusted
            .filter(|figure| figure.overhead.is_some())
            .or_else(|| estimated?.metrics.get(&summary.headline));
        let overhead = figure.and_then(|figure| figure.overhead.as_ref());
        // If only few requests pay, the difference of the mean may be larger than the headline.
        let few = row.few_pay.as_ref().map(|few| few.latency_us_mean.abs());
        overhead.map(|it| it.difference.abs().max(few.unwrap_or(0.0)))
    };
    let mut rows: Vec<&VariantSummary> = summary.variants.iter().collect();
    rows.sort_by(|one, other| {
        let rank = |row: &VariantSummary| (!row.is_baseline, !is_failed(row));
        let by_size = size(other).partial_cmp(&size(one));
        rank(one)
            .cmp(&rank(other))
            .then(by_size.unwrap_or(Ordering::Equal))
    });
    rows
}

fn table(summary: &Summary, most: usize) -> String {
    let columns: Vec<Metric> = [
        Some(summary.headline),
        (summary.headline == Metric::Requests).then_some(Metric::P50),
        (summary.headline != Metric::Mean && summary.is_open_loop).then_some(Metric::Mean),
        Some(Metric::P99),
        Some(Metric::Cpu),
        Some(Metric::Memory),
    ]
    .into_iter()
    .flatten()
    .collect();
    let shown = summary.variants.len().min(most);
    let rows = in_order(summary).into_iter().take(shown);
    let more = match summary.variants.len() - shown {
        0 => String::new(),
        more => format!("\n\n{more} more in the report."),
    };
    let times = summary.unit(Metric::Mean);
    let table = printed_short(&tables::results::table(rows, &columns, times));
    table.trim_end().to_owned() + &more
}

/// A line for each of the first gates. Gates that do not pass come first. `None` without gates.
pub(crate) fn gates(judgements: &[Judgement], most: usize) -> Option<String> {
    let mut judged: Vec<&Judgement> = judgements.iter().collect();
    judged.sort_by_key(|judgement| judgement.is_passed);
    let line = |judgement: &&Judgement| {
        let subject = gates::subject(judgement);
        let ruling = match judgement.ruling {
            // The reason of an undecided gate begins with that word.
            Ruling::Undecided => String::new(),
            ruling => format!("**{ruling}**, "),
        };
        format!(
            "- gate {}: {ruling}{}",
            escape(&subject),
            escape(&words::gate_reason(judgement))
        )
    };
    let shown = judged.len().min(most);
    let mut lines: Vec<String> = judged[..shown].iter().map(line).collect();
    let more = judged.len() - shown;
    if more > 0 {
        lines.push(format!("- and {more} more of the gates"));
    }
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// The folded part with details, for a reader who wants to verify the result.
fn folded(recording: &Recording, summary: &Summary) -> String {
    let troubles = explain::troubles(summary);
    let checks = match troubles.len() {
        0 => explain::untroubled(summary).to_owned(),
        _ => troubles.join("; "),
    };
    let revisions = summary.revisions.clone();
    let lines: Vec<String> = revisions
        .into_iter()
        .chain([
            format!(
                "{}; {}",
                describe::load(recording),
                explain::rounds(summary)
            ),
            bodies::sentence(summary).unwrap_or_default(),
            bodies::status_sentences(summary).join("; "),
            bodies::notes(summary).join("; "),
            explain::left_out(summary).join("; "),
            format!("checks: {checks}"),
            format!("machine: {}", describe::facts(recording).join("; ")),
        ])
        .filter(|line| !line.is_empty())
        .map(|line| format!("- {}", escape(&line)))
        .collect();
    format!(
        "<details><summary>Revisions, load, checks, machine</summary>\n\n{}\n\n</details>",
        lines.join("\n")
    )
}

#[cfg(test)]
mod tests {
    use analysis::gate::Undecided;
    use recording::sample::SampleRun;

    use super::*;

    #[test]
    fn one_comparison_is_answered_in_its_first_sentence() {
        let recording = SampleRun::open()
            .variant("base", 680.0)
            .variant("head", 750.0)
            .build();
        let gates = ["mean overhead < 1us".parse().unwrap()];
        let summary = Summary::of(&recording).judged(&gates, Undecided::Fails);
        insta::assert_snapshot!(comment(&recording, &summary));
    }

    #[test]
    fn however_much_there_is_a_comment_is_short() {
        let mut sample = SampleRun::open().rounds(12).variant("baseline", 680.0);
        let names: Vec<String> = (0..20).map(|number| format!("variant {number}")).collect();
        for name in &names {
            sample = sample.variant(name, 900.0);
        }
        let recording = sample.build();
        let gates: Vec<_> = (1..30)
            .map(|us| format!("mean overhead < {us}us").parse().unwrap())
            .collect();
        let summary = Summary::of(&recording).judged(&gates, Undecided::Fails);
        let found = comment(&recording, &summary);
        assert!(found.contains("Compared with `baseline`"), "{found}");
        assert!(found.contains("more in the report."), "{found}");
        assert!(found.contains("more of the gates"), "{found}");
    }

    #[test]
    fn a_name_mentions_no_person_and_no_team() {
        let recording = SampleRun::open()
            .variant("@team/all", 680.0)
            .variant("head", 750.0)
            .build();
        let found = comment(&recording, &Summary::of(&recording));
        assert!(found.contains("@\u{200b}team/all"), "{found}");
        assert!(!found.contains("@team"), "{found}");
    }

    #[test]
    fn a_name_cannot_end_the_marker() {
        let mut recording = SampleRun::open().variant("base", 680.0).build();
        recording.lab.as_mut().unwrap().name = "a --> <b>".to_owned();
        let summary = Summary::of(&recording);
        let found = comment(&recording, &summary);
        assert!(
            found.starts_with("<!-- weighbridge: a -> <b> -->\n"),
            "{found}"
        );
    }

    #[test]
    fn rows_are_those_that_one_looks_for_and_the_top_says_passed_or_failed() {
        let mut sample = SampleRun::open().rounds(12).variant("baseline", 680.0);
        for index in 0..12 {
            sample = sample.variant(&format!("v{index}"), 700.0 + 10.0 * f64::from(index));
        }
        // The most expensive variant is the last in the file, and the failed gate is on a cheap one.
        let recording = sample.build();
        let gate = |text: &str| [text.parse().unwrap()];
        let broken = gate("v0 mean overhead < 1us");
        let summary = Summary::of(&recording).judged(&broken, Undecided::Fails);
        let found = comment(&recording, &summary);
        let rows: Vec<&str> = found
            .lines()
            .filter_map(|line| line.strip_prefix("| "))
            .filter_map(|line| line.split(' ').next())
            .collect();
        assert_eq!(rows[2..6], ["baseline", "v0", "v11", "v10"], "{found}");
        assert!(found.contains("5 more in the report."), "{found}");
        let top = found.lines().nth(1).unwrap();
        assert!(top.starts_with("\u{274c} **Failed.** "), "{found}");
        let kept = gate("v0 mean overhead < 1s");
        let summary = Summary::of(&recording).judged(&kept, Undecided::Fails);
        let found = comment(&recording, &summary);
        let top = found.lines().nth(1).unwrap();
        assert!(top.starts_with("\u{2705} **Passed.** "), "{found}");
    }
}
