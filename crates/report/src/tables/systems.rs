//! Table of costs, with each system of each variant.

use crate::cell;
use crate::cost;
use crate::summary::Summary;
use crate::table::{Cell, Column, Table};

/// A row for each system of each variant that has a number. A variant with several systems also has a row for
/// their sum.
pub(crate) fn table(summary: &Summary) -> Table {
    let values = cost::rows(summary, cell::of).into_iter();
    let with_errors = cost::rows(summary, cell::with_error).into_iter();
    let rows = values
        .zip(with_errors)
        .map(|((variant, brief), (_, whole))| {
            let pairs = brief.into_iter().zip(whole);
            let cells = pairs.map(|(value, with_error)| Cell::Measured { value, with_error });
            [Cell::from(variant)].into_iter().chain(cells).collect()
        });
    Table {
        label: "cost by system",
        columns: vec![
            Column::words("variant"),
            Column::words("system"),
            Column::figure("CPU", "us/request").short("CPU\nus/req"),
            Column::figure("peak memory", "MiB").short("memory\nMiB"),
            Column::figure("context switches", "/request").short("switches\n/req"),
            Column::figure("forced", "/request").short("forced\n/req"),
            Column::figure("waited for CPU", "us/request").short("waited\nus/req"),
            Column::words("limits"),
            Column::words("CPU read from")
                .short("CPU read\nfrom")
                .aside(),
        ],
        rows: rows.collect(),
        notes: Vec::new(),
    }
}
