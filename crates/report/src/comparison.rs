//! Text, Markdown and JUnit forms of a comparison.

use analysis::compare::{Comparison, Origin, Pairing, Row};
use recording::describe;

use crate::gates;
use crate::junit::{self, Case, Outcome};
use crate::markdown;
use crate::tables::comparison as tables;
use crate::terminal::printable;
use crate::text;
use crate::words;

/// The comparison as text for a terminal of this many columns, without color.
#[must_use]
pub fn comparison_text(comparison: &Comparison, width: usize) -> String {
    let mut out = String::new();
    for (name, origin) in [("A", &comparison.a), ("B", &comparison.b)] {
        let line = format!("{name}: {} ({})", origin.label, origin.text);
        out += &text::wrapped("", &line, width);
    }
    out += &text::wrapped("", &pairing(comparison), width);
    let mut add = |title: &str, body: &str| {
        if !body.is_empty() {
            out += &format!("\n{title}\n{body}");
        }
    };
    add("NOT COMPARABLE", &text::list(&comparison.obstacles, width));
    for row in &comparison.rows {
        let title = text::wrapped(
            "",
            &format!("{}: {}", title(row), words::comparison_verdict(row)),
            width,
        );
        let table = text::printed(&tables::figures(row, comparison.pairing), width);
        let words = words::comparison_in_words(row).into_iter();
        let words: String = words.map(|it| text::wrapped("", &it, width)).collect();
        let title = title + &words;
        let body = match table.as_str() {
            "" => "no figures\n",
            table => table,
        };
        add(title.trim_end(), body);
    }
    add(
        &tables::title_of_overheads(comparison),
        &text::printed(&tables::overheads(comparison), width),
    );
    add(
        "Gates",
        &text::list(&gates::lines(&comparison.gates), width),
    );
    add("Other differences", &text::list(&comparison.notes, width));
    for (title, notes) in notes(comparison) {
        add(&title, &text::list(notes, width));
    }
    add(
        "How to read it",
        &text::list(&how_to_read(comparison), width),
    );
    printable(&out)
}

/// The comparison as GitHub-flavored Markdown.
#[must_use]
pub fn comparison_markdown(comparison: &Comparison) -> String {
    let mut out = format!(
        "# {} against {}\n\n",
        markdown::escape(&comparison.b.label),
        markdown::escape(&comparison.a.label)
    );
    out += &markdown::list(&[
        format!("A: {} ({})", comparison.a.label, comparison.a.text),
        format!("B: {} ({})", comparison.b.label, comparison.b.text),
        pairing(comparison),
    ]);
    let mut add = |title: &str, body: &str| {
        if !body.is_empty() {
            out += &format!("\n## {title}\n\n{body}");
        }
    };
    add("Not comparable", &markdown::list(&comparison.obstacles));
    let gates = crate::tables::gates::table(&comparison.gates);
    add("Gates", &markdown::printed(&gates));
    for row in &comparison.rows {
        let table = markdown::printed(&tables::figures(row, comparison.pairing));
        let words = words::comparison_in_words(row).into_iter();
        let words: String = words
            .map(|it| format!("{}\n\n", markdown::escape(&it)))
            .collect();
        let body = format!(
            "**{}**\n\n{words}{table}",
            markdown::escape(&words::comparison_verdict(row))
        );
        add(&markdown::escape(&title(row)), body.trim_start());
    }
    add(
        &tables::title_of_overheads(comparison),
        &markdown::printed(&tables::overheads(comparison)),
    );
    add("Other differences", &markdown::list(&comparison.notes));
    for (title, notes) in notes(comparison) {
        add(&title, &markdown::list(notes));
    }
    add("How to read it", &markdown::list(&how_to_read(comparison)));
    out
}

/// The comparison as JUnit's XML: a test case for each row and for each gate.
#[must_use]
pub fn comparison_junit(comparison: &Comparison) -> String {
    let row = |row: &Row| Case {
        name: title(row),
        seconds: 0.0,
        outcome: match (&row.no_number, comparison.obstacles.is_empty()) {
            (Some(none), _) => Outcome::Error(words::no_number(none)),
            (None, false) => Outcome::Error(comparison.obstacles.join("; ")),
            (None, true) => {
                let words = words::comparison_in_words(row);
                Outcome::Passed(junit::verdict(words::comparison_verdict(row), words))
            }
        },
    };
    let name = format!("{} against {}", comparison.b.label, comparison.a.label);
    let cases: Vec<Case> = comparison.rows.iter().map(row).collect();
    junit::document(&name, &cases, &comparison.gates)
}

fn title(row: &Row) -> String {
    if row.name_a == row.name_b {
        row.name.clone()
    } else {
        format!("{} against {}", row.name_b, row.name_a)
    }
}

/// Notes on the figures of each side. One list if both sides have the same notes.
fn notes(comparison: &Comparison) -> Vec<(String, &[String])> {
    let (a, b) = (&comparison.a, &comparison.b);
    let title =
        |name: &str, origin: &Origin| format!("Notes on the figures of {name} ({})", origin.text);
    // Two files of one tool have equal notes, which need to be read only once.
    if a.notes == b.notes && a.text == b.text {
        return vec![(title("A and B", a), &a.notes)];
    }
    vec![(title("A", a), &a.notes), (title("B", b), &b.notes)]
}

fn pairing(comparison: &Comparison) -> String {
    match comparison.pairing {
        Pairing::Paired => "paired: two variants of one run, round by round".to_owned(),
        Pairing::Unpaired => "UNPAIRED: measured in different runs".to_owned(),
        Pairing::Single => {
            "UNPAIRED, and single runs: differences only, without an interval and without a verdict"
                .to_owned()
        }
    }
}

fn how_to_read(comparison: &Comparison) -> Vec<String> {
    let confidence = describe::percent(comparison.confidence_each);
    let mut sentences = Vec::new();
    match comparison.pairing {
        Pairing::Paired => sentences.push(format!(
            "A difference is the Hodges-Lehmann estimate of the differences of the rounds. ± is \
             half of its {confidence} Wilcoxon interval."
        )),
        Pairing::Unpaired => {
            sentences.push(format!(
                "A difference is the Hodges-Lehmann estimate of the shift between the rounds of \
                 both runs. ± is half of its {confidence} Mann-Whitney interval."
            ));
            sentences.push(
                "An unpaired interval covers only the spread within each run. Runs of one target at \
                 different times differ by more. To be sure, measure both as variants of one lab."
                    .to_owned(),
            );
        }
        Pairing::Single => sentences.push(
            "A run of another tool has many requests but one round, so it cannot show how much the \
             next run would differ. For an interval, put six runs of each into a folder or a file."
                .to_owned(),
        ),
    }
    let is_sparse = |row: &Row| {
        row.metrics
            .values()
            .any(|it| it.a.is_sparse || it.b.is_sparse)
    };
    if comparison.rows.iter().any(is_sparse) {
        sentences.push(
            "A percentile is compared only if at least ten requests of a round lie beyond it."
                .to_owned(),
        );
    }
    if comparison.rows.iter().any(|row| !row.overheads.is_empty()) {
        sentences.push(
            "The overhead against its own baseline was paired within each run, so a disturbance of \
             a whole run cancels. In the figures above it does not cancel."
                .to_owned(),
        );
    }
    sentences
}

#[cfg(test)]
mod tests;
