//! A history for a terminal.

use super::series::{Series, name_of};
use crate::terminal::printable;

/// Bars of eight heights.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// The most runs that a line of bars shows: the latest.
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
    let runs = match series.entries.len() {
        1 => "1 run".to_owned(),
        many => format!("{many} runs  {}", bars(series)),
    };
    let mut lines = vec![
        format!("{}  ({})", series.title(), series.about()),
        format!("  {runs}"),
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
    let values = series.entries[first..]
        .iter()
        .map(|entry| entry.overhead.value);
    let (low, high) = values
        .clone()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), it| {
            (low.min(it), high.max(it))
        });
    let bar = |value: f64| {
        let share = if high > low {
            (value - low) / (high - low)
        } else {
            0.5
        };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share of 0 to 1 of seven steps"
        )]
        let step = (share * 7.0).round() as usize;
        BARS[step.min(7)]
    };
    values.map(bar).collect()
}
