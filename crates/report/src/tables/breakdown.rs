//! Table of the parts of each latency difference.

use analysis::summary::{
    Activity, BreakdownSummary, ClaimName, CostPart, CountChange, CountName, Summary,
};
use recording::digits;

use crate::table::{Cell, Column, Table};

/// Title of the table.
pub(crate) const TITLE: &str = "Where the difference went";

/// One row for each part of each variant's difference. No rows without a comparison.
pub(crate) fn table(summary: &Summary) -> Table {
    let mut rows = Vec::new();
    for row in &summary.variants {
        let lines = row.breakdown.iter().flat_map(lines);
        let cells =
            |[part, figure]: [String; 2]| Vec::from([row.title(), part, figure].map(Cell::from));
        rows.extend(lines.map(cells));
    }
    let columns = [
        Column::words("variant"),
        Column::words("part"),
        Column::figure("difference", "us/request").short("difference\nus/req"),
    ];
    Table::new("parts of the difference in mean latency", columns, rows).with_note(
        "The parts and the remainder add up to the difference in mean latency. The remainder contains timers, \
         wake-ups and the network. Work after a response is in a part and not in the latency, so the remainder \
         can be negative. Each interval holds alone with 95 %.",
    )
}

/// Title of the table of counts.
pub(crate) const COUNTS_TITLE: &str = "What changed per request";

/// One row for each count that differs. No rows without a comparison.
pub(crate) fn counts(summary: &Summary) -> Table {
    let mut rows = Vec::new();
    for row in &summary.variants {
        let counts = row.breakdown.iter().flat_map(|it| &it.counts);
        for change in counts.filter(|it| is_shown(it)) {
            let cells = [row.title(), count(change.count).to_owned(), amount(change)];
            rows.push(Vec::from(cells.map(Cell::from)));
        }
    }
    let columns = [
        Column::words("variant"),
        Column::words("count"),
        Column::figure("difference", "/request"),
    ];
    Table::new("counts per request", columns, rows).with_note(
        "Only counts with a shown difference are listed. Each interval holds alone with 95 %.",
    )
}

/// True if the interval of a change does not contain 0.
fn is_shown(change: &CountChange) -> bool {
    let claim = ClaimName::of_ends(change.low.zip(change.high));
    matches!(claim, ClaimName::Higher | ClaimName::Lower)
}

fn amount(change: &CountChange) -> String {
    let ends = change.low.zip(change.high);
    digits::estimate(change.difference, ends, change.difference.abs())
}

fn count(name: CountName) -> &'static str {
    match name {
        CountName::ContextSwitches => "context switches",
        CountName::ForcedSwitches => "forced context switches",
        CountName::BytesSent => "bytes sent",
        CountName::BytesReceived => "bytes received",
        CountName::Connections => "new connections",
    }
}

/// The parts, the remainder and the whole difference, each with its figure.
fn lines(breakdown: &BreakdownSummary) -> Vec<[String; 2]> {
    let scale = breakdown.latency_us;
    let mut lines: Vec<[String; 2]> = breakdown
        .parts
        .iter()
        .map(|part| [name(part), figure(part, scale)])
        .collect();
    let single = |value: f64| digits::estimate(value, None, scale);
    lines.push(["remainder".to_owned(), single(breakdown.remainder_us)]);
    lines.push(["mean latency".to_owned(), single(breakdown.latency_us)]);
    lines
}

/// The name of a part, such as `gateway, kernel`.
pub(crate) fn name(part: &CostPart) -> String {
    let activity = match part.activity {
        Activity::Program => "program",
        Activity::Kernel => "kernel",
        Activity::Processor => "processor",
        Activity::Waiting => "waiting for a core",
    };
    match &part.system {
        Some(system) => format!("{system}, {activity}"),
        None => activity.to_owned(),
    }
}

/// The figure of a part in microseconds. `scale` is the size of the whole difference.
pub(crate) fn figure(part: &CostPart, scale: f64) -> String {
    digits::estimate(part.difference_us, part.low_us.zip(part.high_us), scale)
}
