//! Table of the encoding and the bytes of response bodies.

use analysis::summary::{Summary, VariantSummary};

use crate::bodies;
use crate::table::{Column, Table, row};

/// A row for each variant with counted bodies, with the necessary remarks.
pub(crate) fn table(summary: &Summary) -> Table {
    let of_variant = |variant: &VariantSummary| {
        let bodies = &variant.bodies;
        row([
            variant.name.clone(),
            bodies.encoding(),
            bodies.bytes(),
            bodies.decoded(),
            bodies.checks(),
        ])
    };
    Table {
        label: "bodies of responses",
        columns: vec![
            Column::words("variant"),
            Column::words("encoding"),
            Column::figure("bytes/response", ""),
            Column::figure("decoded", ""),
            Column::words("checked under load"),
        ],
        rows: bodies::counted(summary).map(of_variant).collect(),
        notes: bodies::notes(summary),
    }
}
