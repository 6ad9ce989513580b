//! Streams of null servers with planted times: a later head, later first events, longer gaps, and no difference.

use std::fmt::Write as _;

use super::figures::Difference;
use super::labs::Bench;
use super::truth::{self, Row};
use crate::bench;

/// The name of the server that the others are compared with.
const FIRST: &str = "plain";

/// Number of events of a stream.
const EVENTS: u32 = 20;

/// Delay of the first server's head. A shorter delay is at the mercy of the timer.
const DELAY_US: u32 = 200;
/// Time from the head to the first event.
const START_US: u32 = 2_000;
/// Time between two events.
const GAP_US: u32 = 5_000;

/// A server with its own times.
struct Planted {
    name: &'static str,
    /// Added delay of the head, in microseconds.
    later_us: u32,
    /// Added time between two events, in microseconds.
    longer_us: u32,
}

const SERVERS: [Planted; 3] = [
    Planted {
        name: "later head",
        later_us: 200,
        longer_us: 0,
    },
    Planted {
        name: "longer gaps",
        later_us: 0,
        longer_us: 50,
    },
    Planted {
        name: "equal",
        later_us: 0,
        longer_us: 0,
    },
];

/// A figure of a stream: its name and its key in a summary.
const FIGURES: [[&str; 2]; 4] = [
    ["first byte", "first_byte_us_typical"],
    ["first event", "first_event_us_typical"],
    ["gap", "event_gap_us_mean"],
    ["event", "event_us_mean"],
];

/// The true difference of a figure in microseconds, if the head is later and gaps are longer by these amounts.
fn truth_us(figure: &str, later_us: u32, longer_us: u32) -> f64 {
    let (later, longer) = (f64::from(later_us), f64::from(longer_us));
    match figure {
        "first byte" | "first event" => later,
        "gap" => longer,
        // Event k is k gaps later than the first, so the mean over all events has half of all gaps.
        _ => later + longer * f64::from(EVENTS - 1) / 2.0,
    }
}

pub(super) fn section(bench: &Bench, repeat: u64) -> anyhow::Result<String> {
    let lab = lab(bench);
    let mut rows: Vec<Row> = SERVERS.iter().flat_map(rows_of).collect();
    for seed in 1..=repeat {
        let run = bench.lab("streams", &lab, seed)?;
        let mut line = format!("{seed}/{repeat}:");
        let mut all = rows.iter_mut();
        for Planted { name, .. } in SERVERS {
            for [figure, key] in FIGURES {
                let found = Difference::of(run.row(name)?, key)?;
                let _ = write!(
                    line,
                    " {name} {figure} {:+.1} to {:+.1},",
                    found.low, found.high
                );
                if let Some(row) = all.next() {
                    row.found.push(found);
                }
            }
        }
        bench::say(line.trim_end_matches(','));
    }
    Ok(format!(
        "Null servers that answer with {EVENTS} server-sent events. One has a head that is 200 us later, one has \
         gaps that are 50 us longer, and one is equal. There are {repeat} runs of {}. `event` is the mean time to \
         an event over all events:\n\n{}",
        bench.setting(SERVERS.len()),
        truth::table("server and figure", &rows),
    ))
}

/// A row for each figure of a server.
fn rows_of(server: &Planted) -> impl Iterator<Item = Row> {
    FIGURES.into_iter().map(move |[figure, _]| Row {
        planted_us: truth_us(figure, server.later_us, server.longer_us),
        subject: format!("{}, {figure}", server.name),
        found: Vec::new(),
        added_us: Vec::new(),
    })
}

fn lab(bench: &Bench) -> String {
    let mut variants = String::new();
    for server in SERVERS {
        let _ = writeln!(
            variants,
            "  - {{name: {}, with: {{server.delay: {}us, server.gap: {}us}}}}",
            server.name,
            DELAY_US + server.later_us,
            GAP_US + server.longer_us
        );
    }
    format!(
        "question: Are planted times of streams found?\n\
         load: {{rate: {}/s, duration: {}s, path: /, stream: {{framing: sse, events: {EVENTS}}}}}\n\
         order: side-by-side\nwarmup: 300ms\nrounds: {}\ntarget: server\nsystems:\n  server:\n    \
         settings: {{delay: {DELAY_US}us, gap: {GAP_US}us}}\n    \
         run: \"'{}' null-server --listen {{{{addr}}}} --delay {{{{delay}}}} --events {EVENTS} \
         --first {START_US}us --gap {{{{gap}}}}\"\n    limits: {{cpus: 1}}\n\
         baseline: {{name: {FIRST}}}\nvariants:\n{variants}",
        bench.rate.get(),
        bench.seconds,
        bench.rounds(SERVERS.len()),
        bench.programs.weigh.display(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_longer_gap_delays_the_mean_event_by_half_of_all_gaps() {
        let close = |found: f64, expected: f64| (found - expected).abs() < 1e-9;
        assert!(close(truth_us("event", 0, 50), 475.0));
        assert!(close(truth_us("event", 200, 0), 200.0));
        assert!(close(truth_us("gap", 200, 50), 50.0));
        assert!(close(truth_us("first event", 200, 50), 200.0));
    }
}
