//! Table of the packets of loads over HTTP/3.

use analysis::summary::Summary;
use model::Packets;
use recording::{digits, float};

use crate::cell;
use crate::table::{Column, Table, row};

pub(crate) const TITLE: &str = "Packets of the generator (HTTP/3)";

/// A row for each variant with counted packets.
pub(crate) fn table(summary: &Summary) -> Table {
    let counted = summary.variants.iter().filter_map(|variant| {
        let packets = variant.packets?;
        Some(row([
            variant.name.clone(),
            digits::count(packets.sent),
            digits::count(packets.lost),
            share(packets),
        ]))
    });
    Table::new(
        "packets of the generator",
        [
            Column::words("variant"),
            Column::figure("sent", ""),
            Column::figure("lost", ""),
            Column::figure("share", ""),
        ],
        counted,
    )
}

/// The packets in words: `12,345 sent, 12 lost (0.0972 %)`.
pub(super) fn sentence(packets: Packets) -> String {
    format!(
        "{} sent, {} lost ({})",
        digits::count(packets.sent),
        digits::count(packets.lost),
        share(packets)
    )
}

fn share(packets: Packets) -> String {
    match packets.sent {
        0 => cell::NOTHING.to_owned(),
        sent => {
            let percent = float(packets.lost) / float(sent) * 100.0;
            format!("{} %", digits::value(percent, None))
        }
    }
}
