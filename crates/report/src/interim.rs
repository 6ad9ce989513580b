//! Interim results of a lab, for users who watch its terminal.

use analysis::summary::{CheckState, Summary, VariantSummary};
use recording::digits;

/// Lines of a table with the figure and the difference of each variant. They are computed from the rounds so
/// far, like the report from all rounds. There is no verdict. A user who stops at the first favorable
/// interval is wrong more often than the confidence suggests. `width` is the width of the terminal, in
/// columns.
#[must_use]
pub fn interim(summary: &Summary, width: usize) -> Vec<String> {
    let metric = summary.headline;
    let names = summary.variants.iter().map(|row| row.name.chars().count());
    let longest = names.max().unwrap_or(0).min(width / 3);
    let rounds = summary.rounds_measured;
    let title = format!(
        "so far, {rounds} round{}: {} in {} (no verdict before the end)",
        if rounds == 1 { "" } else { "s" },
        metric.label(),
        metric.unit().sign(),
    );
    let rows = summary.variants.iter().map(|row| {
        let name: String = row.name.chars().take(longest).collect();
        format!("  {name:longest$}  {}", figures(summary, row))
    });
    let lines = std::iter::once(title).chain(rows);
    lines
        .map(|line| line.chars().take(width).collect())
        .collect()
}

fn figures(summary: &Summary, row: &VariantSummary) -> String {
    let metric = summary.headline;
    let Some(found) = row.metric(metric) else {
        return "no number".to_owned();
    };
    let unit = metric.unit();
    let value = unit.shown(found.value);
    let half = found
        .low
        .zip(found.high)
        .map(|(low, high)| (high - low) / 2.0);
    let mut line = format!(
        "{:>9}",
        digits::value(value, half.map(|half| unit.shown(half)))
    );
    match &found.overhead {
        None => line += "  baseline",
        Some(overhead) => {
            let ends = overhead.difference_low.zip(overhead.difference_high);
            let shown = ends.map(|(low, high)| (unit.shown(low), unit.shown(high)));
            let difference = digits::estimate(unit.shown(overhead.difference), shown, value);
            line += &format!("  {difference:<22}");
            if ends.is_none() {
                line += &format!(" (interval from {} rounds on)", overhead.rounds_needed);
            }
        }
    }
    let odd = row.checks.iter().filter(|it| it.state != CheckState::Ok);
    match odd.count() {
        0 => line += "  checks in order",
        1 => line += "  1 check not in order",
        more => line += &format!("  {more} checks not in order"),
    }
    line
}

#[cfg(test)]
mod tests {
    use recording::sample::SampleRun;

    use super::*;

    #[test]
    fn a_table_so_far_has_figures_and_no_verdict() {
        let summary = Summary::of(&SampleRun::graphql_server());
        let lines = interim(&summary, 100);
        assert_eq!(lines.len(), summary.variants.len() + 1);
        assert!(lines[0].contains("no verdict before the end"), "{lines:?}");
        let compared = summary.variants.iter().zip(&lines[1..]);
        for (row, line) in compared {
            assert!(line.contains(&row.name), "{line}");
            for verdict in ["slower", "faster", "no difference"] {
                assert!(!line.contains(verdict), "{line}");
            }
        }
    }

    #[test]
    fn fewer_rounds_have_no_interval_and_say_from_when() {
        let mut recording = SampleRun::graphql_server();
        recording.rounds.retain(|round| round.round < 2);
        let lines = interim(&Summary::of(&recording), 120);
        assert!(lines[0].starts_with("so far, 2 rounds: "), "{lines:?}");
        assert!(
            lines.iter().any(|line| line.contains("(interval from ")),
            "{lines:?}"
        );
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        let summary = Summary::of(&SampleRun::graphql_server());
        let lines = interim(&summary, 40);
        assert!(
            lines.iter().all(|line| line.chars().count() <= 40),
            "{lines:?}"
        );
    }
}
