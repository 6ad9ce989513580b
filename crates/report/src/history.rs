//! Text report of a history for a terminal.

use analysis::history::{Series, name_of};
use recording::describe::plural;

use crate::course::course;
use crate::terminal::printable;

/// Maximum number of runs in a line of bars. The latest runs are shown.
const BARS_MAX: usize = 60;

/// A paragraph for each series.
#[must_use]
pub fn text(series: &[Series]) -> String {
    if series.is_empty() {
        return "the history has no entries\n".to_owned();
    }
    let paragraphs: Vec<String> = series.iter().map(paragraph).collect();
    printable(&paragraphs.join("\n"))
}

fn paragraph(series: &Series) -> String {
    let last = series.last();
    let count = plural(series.entries.len() as u64, "run");
    let runs = format!("{count}  {}", bars(series));
    let mut lines = vec![
        format!("{}  ({})", series.title(), series.about()),
        format!("  {}", runs.trim_end()),
        format!(
            "  last: {}, {}, {}",
            series.shown(last.overhead),
            name_of(last),
            last.recording
        ),
    ];
    lines.extend(
        series
            .changes
            .iter()
            .map(|it| format!("  {}", series.sentence(it))),
    );
    lines.join("\n") + "\n"
}

fn bars(series: &Series) -> String {
    let first = series.entries.len().saturating_sub(BARS_MAX);
    let shown = series.entries[first..].iter();
    let values: Vec<f64> = shown.map(|entry| entry.overhead.value).collect();
    course(&values).unwrap_or_default()
}
