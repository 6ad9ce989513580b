//! Table of the encoding and the bytes of response bodies.

use analysis::summary::{Summary, VariantSummary};

use crate::bodies;
use crate::table::{Column, Table, row};

/// A row for each variant with counted bodies, with the necessary remarks.
pub(crate) fn table(summary: &Summary) -> Table {
    let of_variant = |variant: &VariantSummary| {
        let own = &variant.bodies;
        row([
            variant.name.clone(),
            bodies::encoding(own),
            bodies::bytes(own.bytes_mean),
            bodies::bytes(own.decoded_bytes),
            bodies::checks(own),
        ])
    };
    Table::new(
        "bodies of responses",
        [
            Column::words("variant"),
            Column::words("encoding"),
            Column::figure("bytes/response", ""),
            Column::figure("decoded", ""),
            Column::words("checked under load"),
        ],
        bodies::counted(summary).map(of_variant),
    )
    .with_notes(bodies::notes(summary))
}
