//! Text report for a terminal, readable at 100 columns and without color.

mod aligned;
mod folded;
mod plots;
mod short;
mod table;

use analysis::summary::{Summary, Verdict};
use model::Metric;
use recording::{Profile, Recording, describe};

use crate::explain;
use crate::gates;
use crate::tables;
use crate::terminal::{Terminal, Tone, columns, finished, toned};
use crate::words;

pub(crate) use aligned::{Place, aligned, at};
pub(crate) use folded::{all_folded, glued, unglued};
pub use short::text;
pub(crate) use table::printed;

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
    let metrics = tables::results::on_terminal(summary);
    let times = summary.unit(Metric::Mean);
    let results = tables::results::table(&summary.variants, &metrics, times);
    add("", &printed(&results, width));
    for (title, costs) in tables::costs(summary) {
        add(title, &printed(&costs, width));
    }
    add("Gates", &list(&gates::lines(&summary.gates), width));
    add("Invalid", &list(&invalid(summary, &[]), width));
    add("In words", &list(&explain::in_words(summary), width));
    let overheads = tables::results::overheads(summary);
    add(&overhead_title(summary), &printed(&overheads, width));
    add(&intervals_title(summary), &plots::intervals(summary, width));
    for (title, table) in tables::evidence(recording, summary) {
        add(title, &printed(&table, width));
    }
    add(tables::why::TITLE, &why(summary, width));
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
    let mut lines = vec![toned(Tone::Heading, &explain::title(summary))];
    lines.push(describe::load(recording));
    lines.push(explain::rounds(summary));
    lines.extend(summary.revisions.clone());
    let interruption = explain::interruption(summary);
    lines.extend(interruption.map(|line| toned(Tone::Refused, &line)));
    lines.iter().map(|line| wrapped("", line, width)).collect()
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

/// Variants without any figure, with the reason. Variants that share a reason are one line. Variants in `told`
/// are left out. Causes of withheld verdicts are at the top and among the checks.
fn invalid(summary: &Summary, told: &[&str]) -> Vec<String> {
    let rows = summary
        .variants
        .iter()
        .filter(|row| matches!(row.verdict, Verdict::Invalid { .. }));
    let mut shared: Vec<(Vec<String>, String)> = Vec::new();
    for row in rows.filter(|row| !told.contains(&row.name.as_str())) {
        let text = words::verdict_text(row);
        // The title of the list already contains this word.
        let reason = text.strip_prefix("invalid: ").unwrap_or(&text).to_owned();
        let name = format!("`{}`", row.name);
        match shared.iter_mut().find(|(_, known)| *known == reason) {
            Some((names, _)) => names.push(name),
            None => shared.push((vec![name], reason)),
        }
    }
    let line = |(names, reason): (Vec<String>, String)| format!("{}: {reason}", names.join(", "));
    shared.into_iter().map(line).collect()
}

/// The causes of the differences, the parts and the functions. Empty without `--why`.
fn why(summary: &Summary, width: usize) -> String {
    let bodies = [
        list(&tables::why::sentences(summary), width),
        printed(&tables::why::functions(summary), width),
        printed(&tables::why::parts(summary), width),
        printed(&tables::why::runtimes(summary), width),
    ];
    let bodies = bodies.into_iter().filter(|body| !body.is_empty());
    bodies.collect::<Vec<String>>().join("\n")
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

/// Sentences as a list with bullets.
pub(crate) fn list(sentences: &[String], width: usize) -> String {
    sentences
        .iter()
        .map(|sentence| wrapped("- ", sentence, width))
        .collect()
}

/// A sentence wrapped at words. Further lines are indented to the width of the bullet.
#[must_use]
pub fn wrapped(bullet: &str, sentence: &str, width: usize) -> String {
    let indent = " ".repeat(bullet.len());
    let sentence = glued(sentence);
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
    unglued(&(out + &line + "\n"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;

    use recording::sample::SampleRun;

    use super::*;
    use crate::cell;

    #[test]
    fn a_lab_reads_well_at_100_columns() {
        let recording = SampleRun::graphql_server();
        insta::assert_snapshot!(full_text(
            &recording,
            &Summary::of(&recording),
            Terminal::plain(100)
        ));
    }

    /// Reads a recording of the labs of this repository.
    fn recorded(lab: &str) -> Recording {
        let file = format!("{}/../../labs/{lab}.json", env!("CARGO_MANIFEST_DIR"));
        Recording::from_json(&fs::read_to_string(file).unwrap()).unwrap()
    }

    /// The words of a report that a narrow terminal must show whole. Rules and pictures have no words.
    fn words_of(text: &str) -> BTreeSet<String> {
        let words = text.split_whitespace();
        let is_drawn = |it: &&str| it.chars().all(|it| "─├┤┼│●".contains(it));
        words
            .filter(|it| !is_drawn(it))
            .map(str::to_owned)
            .collect()
    }

    #[test]
    fn recordings_of_labs_fit_into_every_terminal_and_no_word_is_split() {
        for lab in [
            "graphql-server/records/graphql-server",
            "router-extensibility/records/static-subgraph",
            "router-extensibility/records/layers",
            "layers/records/jwt",
        ] {
            let recording = recorded(lab);
            let summary = Summary::of(&recording);
            let short = |width| text(&recording, &summary, Terminal::plain(width));
            let full = |width| full_text(&recording, &summary, Terminal::plain(width));
            let whole = words_of(&(short(1_000) + &full(1_000)));
            for width in [60, 80, 120] {
                for text in [short(width), full(width)] {
                    for line in text.lines() {
                        assert!(
                            line.chars().count() <= width,
                            "{lab} {width}: {line}\n{text}"
                        );
                        let begun = line.trim_start_matches(['-', ' ']);
                        for unit in ["us", "ms", "%", "MiB"] {
                            let is_alone = begun.split(' ').next() == Some(unit);
                            // The second line of a heading is a unit.
                            let is_heading = line.starts_with("      ");
                            assert!(!is_alone || is_heading, "{lab} {width}: {line}\n{text}");
                        }
                    }
                    let (told, _) = text.split_once("(columns left out").unwrap_or((&text, ""));
                    let strange: Vec<String> = words_of(told)
                        .difference(&whole)
                        .filter(|word| !word.ends_with('…') && !word.starts_with('+'))
                        .cloned()
                        .collect();
                    assert!(strange.is_empty(), "{lab} {width}: {strange:?}\n{text}");
                }
            }
        }
    }

    #[test]
    fn a_number_stays_with_its_unit() {
        assert_eq!(
            wrapped(
                "- ",
                "it costs a typical request some 1.04 ms (0.97 to 1.10)",
                40
            ),
            "- it costs a typical request some\n  1.04 ms (0.97 to 1.10)\n"
        );
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
