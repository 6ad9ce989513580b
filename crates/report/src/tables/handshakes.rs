//! Table of the handshakes of loads over TLS.

use analysis::summary::Summary;
use model::Handshakes;
use recording::digits;

use crate::table::{Column, Table, row};

pub(crate) const TITLE: &str = "Handshakes of TLS";

/// A row for each variant with counted handshakes.
pub(crate) fn table(summary: &Summary) -> Table {
    let counted = summary.variants.iter().filter_map(|variant| {
        let handshakes = variant.handshakes?;
        Some(row([
            variant.name.clone(),
            digits::count(handshakes.full),
            digits::count(handshakes.resumed),
            digits::count(handshakes.early_accepted),
            digits::count(handshakes.early_rejected),
        ]))
    });
    Table::new(
        "handshakes of TLS",
        [
            Column::words("variant"),
            Column::figure("full", ""),
            Column::figure("resumed", ""),
            Column::figure("0-RTT accepted", ""),
            Column::figure("0-RTT rejected", ""),
        ],
        counted,
    )
}

/// The handshakes in words: `12 full, 88 resumed, 0-RTT accepted in 80 and rejected in 8`.
pub(super) fn sentence(handshakes: Handshakes) -> String {
    let Handshakes {
        full,
        resumed,
        early_accepted,
        early_rejected,
    } = handshakes;
    let mut text = format!(
        "{} full, {} resumed",
        digits::count(full),
        digits::count(resumed)
    );
    if early_accepted + early_rejected > 0 {
        text += &format!(
            ", 0-RTT accepted in {} and rejected in {}",
            digits::count(early_accepted),
            digits::count(early_rejected)
        );
    }
    text
}
