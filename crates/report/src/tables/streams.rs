//! Tables of streamed responses: first events, gaps, arrival by position, and first bytes.

use analysis::summary::{Summary, VariantSummary};
use model::Metric;
use recording::digits;

use super::results::{beside, cells_beside};
use crate::cell;
use crate::table::{Cell, Column, Table};

/// A mean first byte above this share of the mean latency adds no information to the latency.
pub(super) const EARLY_SHARE: f64 = 0.98;

/// A table of streamed responses.
pub(crate) struct StreamTable {
    /// The id of its section on a page.
    pub(crate) id: &'static str,
    pub(crate) title: &'static str,
    pub(crate) table: Table,
}

/// Figures of the arrival of events. True if the difference from the baseline is next to it.
const ARRIVAL: [(Metric, bool); 4] = [
    (Metric::FirstEvent, true),
    (Metric::FirstEventP99, false),
    (Metric::EventTime, true),
    (Metric::Events, false),
];

/// Figures of the times between events.
const GAPS: [(Metric, bool); 3] = [
    (Metric::EventGap, true),
    (Metric::EventGapP99, true),
    (Metric::EventGapP999, false),
];

/// Figures of single events and messages.
const SINGLE: [(Metric, bool); 4] = [
    (Metric::Delivery, true),
    (Metric::DeliveryP99, false),
    (Metric::RoundTrip, true),
    (Metric::RoundTripP99, false),
];

/// The tables of streamed responses, in the order of a report. A table without figures has no rows.
pub(crate) fn all(summary: &Summary) -> [StreamTable; 5] {
    [
        StreamTable {
            id: "events",
            title: "Arrival of events",
            table: arrival(summary),
        },
        StreamTable {
            id: "gaps",
            title: "Gaps between events",
            table: gaps(summary),
        },
        StreamTable {
            id: "delivery",
            title: "Delivery and round trips",
            table: single(summary),
        },
        StreamTable {
            id: "positions",
            title: "Arrival of events by position, since due",
            table: positions(summary),
        },
        StreamTable {
            id: "first-bytes",
            title: "First byte and body",
            table: first_bytes(summary),
        },
    ]
}

/// A row with the arrival of events, for each variant with streams.
fn arrival(summary: &Summary) -> Table {
    let table = figures(summary, "events", &ARRIVAL, false);
    table.with_note(
        "`event time` is the mean time from the due time of a stream to an event, over all events.",
    )
}

/// A row with the times between events, for each variant with streams of several events.
fn gaps(summary: &Summary) -> Table {
    let table = figures(summary, "gaps between events", &GAPS, true);
    match note(summary) {
        Some(note) => table.with_note(&note),
        None => table,
    }
}

/// A row with the times of single events and messages, for each variant that has them.
fn single(summary: &Summary) -> Table {
    figures(summary, "delivery and round trips", &SINGLE, false)
}

/// A table of metrics, and of stalls if it has them. A metric that no variant has gets no column. No rows
/// without any of the metrics.
fn figures(
    summary: &Summary,
    name: &'static str,
    metrics: &[(Metric, bool)],
    has_stalls: bool,
) -> Table {
    let is_compared = summary.comparisons > 0;
    let times = summary.unit(Metric::Mean);
    let has = |row: &VariantSummary| metrics.iter().any(|(it, _)| row.metric(*it).is_some());
    let rows: Vec<&VariantSummary> = summary.variants.iter().filter(|row| has(row)).collect();
    let known: Vec<(Metric, bool)> = metrics
        .iter()
        .filter(|(metric, _)| rows.iter().any(|row| row.metric(*metric).is_some()))
        .map(|(metric, has_overhead)| (*metric, *has_overhead && is_compared))
        .collect();
    let mut columns = vec![Column::words("variant")];
    columns.extend(
        known
            .iter()
            .flat_map(|(metric, over)| beside(*metric, *over, times)),
    );
    columns.extend(has_stalls.then(|| Column::figure("stalls", "")));
    let cells = |row: &&VariantSummary| {
        let mut cells = vec![Cell::from(row.title())];
        for (metric, over) in &known {
            cells.extend(cells_beside(row, *metric, *over));
        }
        cells.extend(has_stalls.then(|| Cell::from(stalls(row))));
        cells
    };
    Table::new(name, columns, rows.iter().map(cells).collect::<Vec<_>>())
}

/// The number of stalls, and the number that the baseline would have.
fn stalls(row: &VariantSummary) -> String {
    let stalls = row.events.as_ref().and_then(|events| events.stalls);
    stalls.map_or_else(cell::nothing, |it| {
        format!(
            "{} ({} expected)",
            digits::count(it.stalls),
            digits::value(it.expected, None)
        )
    })
}

fn note(summary: &Summary) -> Option<String> {
    let mut rows = summary.variants.iter();
    let stalls = rows.find_map(|row| row.events.as_ref()?.stalls)?;
    Some(format!(
        "A stall is a gap of more than {}, which 99.9 % of the baseline's gaps do not exceed. In brackets is the \
         number of stalls with the baseline's share.",
        digits::duration_ns(stalls.longer_than_us * 1e3)
    ))
}

/// A row for each variant with streams, and a column for each position that every variant has.
fn positions(summary: &Summary) -> Table {
    let rows = || {
        summary
            .variants
            .iter()
            .filter_map(|row| Some((row, row.events.as_ref()?)))
    };
    let has = |position: u64| {
        rows().all(|(_, events)| events.positions.iter().any(|it| it.position == position))
    };
    let known = rows().next().map_or_else(Vec::new, |(_, events)| {
        let positions = events.positions.iter().map(|it| it.position);
        positions
            .filter(|position| has(*position))
            .collect::<Vec<u64>>()
    });
    // One position is the first event, which has a column already.
    if known.len() < 2 {
        return Table::new(
            "arrival of events",
            [Column::words("variant")],
            Vec::<Vec<Cell>>::new(),
        );
    }
    let unit = summary.unit(Metric::FirstEvent).sign();
    let mut columns = vec![Column::words("variant")];
    columns.extend(
        known
            .iter()
            .map(|position| Column::figure(digits::count(*position), unit)),
    );
    let cells = |(row, events): (&VariantSummary, &analysis::summary::EventsSummary)| {
        let mut cells = vec![Cell::from(row.title())];
        cells.extend(known.iter().map(|position| {
            let found = events.positions.iter().find(|it| it.position == *position);
            cell::single(found.map(|it| it.us_mean), row.unit(Metric::FirstEvent)).into()
        }));
        cells
    };
    let rows: Vec<Vec<Cell>> = rows().map(cells).collect();
    Table::new("arrival of events", columns, rows)
}

/// A row for each variant, if bodies arrive notably later than their first byte.
fn first_bytes(summary: &Summary) -> Table {
    let is_compared = summary.comparisons > 0;
    let times = summary.unit(Metric::Mean);
    let is_early = |row: &VariantSummary| {
        let (first, whole) = (row.metric(Metric::FirstByteMean), row.metric(Metric::Mean));
        first
            .zip(whole)
            .is_some_and(|(first, whole)| first.value < EARLY_SHARE * whole.value)
    };
    let figures = [
        (Metric::FirstByte, is_compared),
        (Metric::FirstByteP99, false),
        (Metric::Typical, is_compared),
        (Metric::BodyBytes, false),
        (Metric::BodyRate, false),
    ];
    let mut columns = vec![Column::words("variant")];
    columns.extend(
        figures
            .into_iter()
            .flat_map(|(metric, over)| beside(metric, over, times)),
    );
    let rows: Vec<Vec<Cell>> = match summary.variants.iter().any(is_early) {
        false => Vec::new(),
        true => summary
            .variants
            .iter()
            .filter(|row| row.metric(Metric::FirstByte).is_some())
            .map(|row| {
                let mut cells = vec![Cell::from(row.title())];
                for (metric, over) in figures {
                    cells.extend(cells_beside(row, metric, over));
                }
                cells
            })
            .collect(),
    };
    Table::new("first bytes", columns, rows)
}
