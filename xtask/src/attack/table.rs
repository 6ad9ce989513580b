//! The table of one service, and the summary of all tables.

use std::fmt::Write as _;
use std::time::Duration;

use clap::ValueEnum as _;

use super::attacks::Attack;
use super::judge::{MIB, Row, Service};
use super::services;
use crate::page;
use crate::process::Holding;

/// The heading and a line for each attack.
pub(super) fn table(rows: &[Row]) -> String {
    let mut out =
        "| attack | p99 before | p99 during | others served | memory before, maximum, after \
                   | descriptors before, maximum, after | recovered | observed by attackers |\n\
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
        None => "no, the process has ended".to_owned(),
        Some(_) => word(row.has_recovered()).to_owned(),
    }
}

fn word(is_so: bool) -> &'static str {
    if is_so { "yes" } else { "**no**" }
}

/// A line for each service that has a table in this document.
pub(super) fn summary(document: &str) -> String {
    let mut out =
        "| | attacks | others served | recovered | slowest p99 of the neighbor | maximum memory |\n\
                   |---|--:|--:|--:|---|--:|\n"
            .to_owned();
    for service in services::Service::value_variants() {
        let Some((before, table)) = page::place(document, &service.word()) else {
            continue;
        };
        let heading = before.rsplit("\n## ").next().unwrap_or_default();
        let name = heading.lines().next().unwrap_or_default();
        if let Some(line) = summary_of(table) {
            let _ = writeln!(out, "| {name} | {line} |");
        }
    }
    out
}

/// The cells after the name of a service. `None` if its table has no attacks.
fn summary_of(table: &str) -> Option<String> {
    let rows: Vec<Vec<&str>> = table
        .lines()
        .map(|line| line.trim_matches('|').split(" | ").map(str::trim).collect())
        .filter(|cells: &Vec<&str>| cells.len() == COLUMNS && is_hostile(cells[0]))
        .collect();
    let slowest = rows
        .iter()
        .max_by(|a, b| told(a[2]).total_cmp(&told(b[2])))?;
    let held = rows.iter().flat_map(|cells| cells[4].split(", "));
    let memory = held.filter_map(number).fold(0.0, f64::max);
    let yes = |column: usize| rows.iter().filter(|cells| cells[column] == "yes").count();
    Some(format!(
        "{} | {} | {} | {}, before the attack {} (`{}`) | {memory} MiB",
        rows.len(),
        yes(3),
        yes(6),
        slowest[2],
        slowest[1],
        slowest[0]
    ))
}

/// Number of columns of a table.
const COLUMNS: usize = 8;

/// True if a row belongs to an attack, and not to a heading or to honest clients.
fn is_hostile(word: &str) -> bool {
    Attack::from_str(word, false).is_ok_and(|attack| !attack.is_honest())
}

/// A latency. Infinite if there were too few responses for a figure.
fn told(cell: &str) -> f64 {
    number(cell).unwrap_or(f64::INFINITY)
}

/// The number at the beginning of a cell.
fn number(cell: &str) -> Option<f64> {
    cell.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_counts_attacks_and_leaves_honest_clients_out() {
        let row = |attack: &str, beside: &str, served: &str, most: u32| {
            format!(
                "| {attack} | 1.0 ms | {beside} | {served} | 7, {most}, 8 MiB | 22, 26, 22 | yes | 200: 1 |\n"
            )
        };
        let heading = table(&[]);
        let table = |rows: &[String]| {
            let rows = rows.concat();
            format!(
                "# Attacks\n\n## The gateway\n\nWords.\n\n<!-- written by a chore: gateway -->\n\n\
                 {heading}{rows}\n<!-- end of gateway -->\n\n## Another\n\n\
                 <!-- written by a chore: apollo-router -->\n\nNot run yet.\n\n<!-- end of apollo-router -->\n"
            )
        };
        let lines = |rows: &[String]| {
            let text = summary(&table(rows));
            let lines = text.lines().skip(2).map(str::to_owned);
            lines.collect::<Vec<_>>()
        };
        let slow = row("silent", "12 ms", "yes", 20);
        let honest = row("crowd", "107 ms", "yes", 500);
        assert_eq!(
            lines(&[
                honest.clone(),
                row("depth", "9.5 ms", "yes", 30),
                slow.clone()
            ]),
            ["| The gateway | 2 | 2 | 2 | 12 ms, before the attack 1.0 ms (`silent`) | 30 MiB |"]
        );
        let worst = row("entities", "none, 98 of 100 failed", "**no**", 4847);
        assert_eq!(
            lines(&[slow, worst]),
            [
                "| The gateway | 2 | 1 | 2 | none, 98 of 100 failed, before the attack 1.0 ms (`entities`) | 4847 MiB |"
            ]
        );
        assert_eq!(lines(&[honest]), Vec::<String>::new());
    }

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
