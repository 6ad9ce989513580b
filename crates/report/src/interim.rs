//! Interim results of a lab, for users who watch its terminal.

use analysis::summary::{CheckState, Summary, VariantSummary};

use crate::cell;
use crate::table::{Cell, Column, Table};
use crate::text::{aligned, at};

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
        summary.unit(metric).sign(),
    );
    let rows = summary.variants.iter().map(|row| {
        let name: String = row.name.chars().take(longest).collect();
        let mut cells = vec![Cell::from(name)];
        cells.extend(figures(summary, row));
        cells
    });
    let columns = [
        Column::words(""),
        Column::figure("", ""),
        Column::words(""),
        Column::words(""),
    ];
    let table = Table::new("so far", columns, rows);
    let places = [at(2, longest), at(2, 9), at(2, 22), at(2, 0)];
    let printed = aligned(&table, &places);
    let lines = std::iter::once(title.as_str()).chain(printed.lines());
    lines
        .map(|line| line.chars().take(width).collect())
        .collect()
}

/// The figure of a variant, its difference and its checks.
fn figures(summary: &Summary, row: &VariantSummary) -> [Cell; 3] {
    let metric = summary.headline;
    let Some(found) = row.metric(metric) else {
        return ["no number", "", ""].map(Cell::from);
    };
    let unit = summary.unit(metric);
    let difference = found.overhead.as_ref().map(|overhead| {
        let shown = cell::difference_of(found, unit, found.value).unwrap_or_default();
        match overhead.difference_low.zip(overhead.difference_high) {
            Some(_) => shown,
            None => format!(
                "{shown:<22} (interval from {} rounds on)",
                overhead.rounds_needed
            ),
        }
    });
    let odd = row.checks.iter().filter(|it| it.state != CheckState::Ok);
    let odd: Vec<String> = odd.map(|it| it.name.to_string()).collect();
    let checks = match odd.as_slice() {
        [] => "checks in order".to_owned(),
        names => format!("not in order: {}", names.join(", ")),
    };
    [
        cell::of(found, unit),
        difference.unwrap_or_else(|| "baseline".to_owned()),
        checks,
    ]
    .map(Cell::from)
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
    fn a_check_that_is_not_in_order_is_named() {
        let mut recording = SampleRun::graphql_server();
        for round in &mut recording.rounds {
            round.generator.waited_for_cpu =
                Some(std::time::Duration::from_micros(round.elapsed_us / 5));
        }
        let lines = interim(&Summary::of(&recording), 200);
        assert!(lines[1].contains("not in order: "), "{lines:?}");
        assert!(lines[1].contains("generator starved"), "{lines:?}");
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
