//! The table of one service.

use std::fmt::Write as _;
use std::time::Duration;

use super::judge::{MIB, Row, Service};
use crate::process::Holding;

/// The heading and a line for each attack.
pub(super) fn table(rows: &[Row]) -> String {
    let mut out =
        "| attack | p99 before | p99 beside | others served | memory before, most, after \
                   | descriptors before, most, after | recovered | the attackers saw |\n\
                   |---|--:|--:|---|--:|--:|---|---|\n"
            .to_owned();
    for row in rows {
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} | {} | {} |",
            row.attack,
            latency(&row.before),
            latency(&row.beside),
            word(row.were_others_served()),
            held(row, |it| format!("{:.0}", mib(it.memory))) + " MiB",
            held(row, |it| it.descriptors.to_string()),
            recovery(row),
            row.seen
        );
    }
    out
}

fn latency(service: &Service) -> String {
    let mut text = match service.p99() {
        Some(p99) => milliseconds(p99),
        None => "none".to_owned(),
    };
    if service.failed > 0 {
        let all = service.failed + service.latencies.len() as u64;
        let _ = write!(text, ", {} of {all} failed", service.failed);
    }
    text
}

fn milliseconds(latency: Duration) -> String {
    let ms = latency.as_secs_f64() * 1e3;
    let digits = if ms < 10.0 { 1 } else { 0 };
    format!("{ms:.digits$} ms")
}

fn held(row: &Row, show: impl Fn(Holding) -> String) -> String {
    let after = row.held_after.map_or_else(|| "ended".to_owned(), &show);
    let (before, most) = (show(row.held_before), show(row.held_most));
    format!("{before}, {most}, {after}")
}

#[expect(clippy::cast_precision_loss, reason = "no process has 2^53 bytes")]
fn mib(bytes: u64) -> f64 {
    bytes as f64 / MIB as f64
}

fn recovery(row: &Row) -> String {
    match row.held_after {
        None => "no, it has ended".to_owned(),
        Some(_) => word(row.has_recovered()).to_owned(),
    }
}

fn word(is_so: bool) -> &'static str {
    if is_so { "yes" } else { "**no**" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_says_all_that_it_is_judged_by() {
        let good = Service {
            latencies: vec![Duration::from_micros(2_340); 50],
            failed: 0,
        };
        let bad = Service {
            failed: 50,
            ..good.clone()
        };
        let row = Row {
            attack: "silent".to_owned(),
            seen: "opened: 612".to_owned(),
            loaded: None,
            before: good.clone(),
            beside: bad,
            after: good,
            held_before: Holding {
                memory: 20 * MIB,
                descriptors: 12,
            },
            held_most: Holding {
                memory: 30 * MIB,
                descriptors: 512,
            },
            held_after: Some(Holding {
                memory: 25 * MIB,
                descriptors: 13,
            }),
        };
        let line = "| silent | 2.3 ms | none, 50 of 100 failed | **no** | 20, 30, 25 MiB \
                    | 12, 512, 13 | yes | opened: 612 |\n";
        assert!(table(&[row]).ends_with(line), "{}", table(&[]));
    }
}
