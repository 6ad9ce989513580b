//! Table of the requests that variants received.

use analysis::summary::{SentSummary, Summary, VariantSummary};
use model::Unit;
use recording::digits;

use crate::cell;
use crate::table::{Cell, Column, Table};

/// Bytes of a request and of a response. With batches, the table also has the cost of an operation. Latency
/// belongs to a whole request, so only processor time can be divided. No rows if all variants received equal
/// requests.
pub(crate) fn table(summary: &Summary) -> Table {
    let rows = || {
        let rows = summary.variants.iter();
        rows.filter_map(|row| Some((row, row.sent.as_ref()?)))
    };
    let has_batches = rows().any(|(_, sent)| sent.operations_per_request != 1.0);
    let mut columns = vec![
        Column::words("variant"),
        Column::figure("sent", "B/request"),
        Column::figure("received", "B/request"),
    ];
    if has_batches {
        columns.extend([
            Column::figure("operations a request", ""),
            Column::figure("CPU", "us/operation"),
            Column::figure("overhead", "us/operation"),
        ]);
    }
    let row = |(row, sent): (&VariantSummary, &SentSummary)| {
        let shown = |text: Option<String>| Cell::from(text.unwrap_or_else(cell::nothing));
        let bytes = |bytes: Option<f64>| shown(bytes.map(|bytes| digits::value(bytes, None)));
        let mut cells = vec![
            row.name.clone().into(),
            bytes(sent.bytes_sent_per_request),
            bytes(sent.bytes_received_per_request),
        ];
        if has_batches {
            let cpu = sent.cpu_us_per_operation.as_ref();
            let overhead = cpu.and_then(|it| cell::difference_of(it, Unit::Microseconds, 1.0));
            cells.push(digits::planned(sent.operations_per_request).into());
            cells.push(shown(
                cpu.map(|it| cell::with_error(it, Unit::Microseconds)),
            ));
            cells.push(shown(overhead));
        }
        cells
    };
    Table::new("requests sent", columns, rows().map(row))
}
