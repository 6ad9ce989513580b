//! Null servers of each protocol with planted times: a later head, longer gaps, a later delivery, a later answer,
//! and no difference.

use std::fmt::Write as _;
use std::fs;

use anyhow::Context as _;

use super::figures::Difference;
use super::labs::Bench;
use super::truth::{self, Row};
use crate::bench;

/// The name of the server that the others are compared with.
const FIRST: &str = "plain";

/// Number of events of a stream.
const EVENTS: u32 = 20;

/// Delay of the first server. A shorter delay is at the mercy of the timer.
const DELAY_US: u32 = 200;
/// Time between two events.
const GAP_US: u32 = 5_000;

/// A server with its own times.
struct Planted {
    name: &'static str,
    /// Added delay of the head, of the delivery or of the answer, in microseconds.
    later_us: u32,
    /// Added time between two events, in microseconds.
    longer_us: u32,
}

const EQUAL: Planted = Planted {
    name: "equal",
    later_us: 0,
    longer_us: 0,
};

/// Null servers of one protocol, with planted times.
pub(super) struct Protocol {
    /// The name of the lab.
    name: &'static str,
    /// The text above the table, before the number of runs.
    about: &'static str,
    servers: &'static [Planted],
    /// Figures: the name and the key in a summary.
    figures: &'static [[&'static str; 2]],
    /// Keys of the load, next to its rate and its duration.
    load: &'static str,
    /// Flags of the null server. `{delay}` and `{gap}` are its times.
    flags: &'static str,
}

/// Server-sent events over HTTP.
pub(super) const EVENTS_OVER_HTTP: Protocol = Protocol {
    name: "streams",
    about: "Null servers that answer with 20 server-sent events. One has a head that is 200 us later, one has \
            gaps that are 50 us longer, and one is equal. `event` is the mean time to an event over all events.",
    servers: &[
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
        EQUAL,
    ],
    figures: &[
        ["first byte", "first_byte_us_typical"],
        ["first event", "first_event_us_typical"],
        ["gap", "event_gap_us_mean"],
        ["event", "event_us_mean"],
    ],
    load: "path: /, stream: {framing: sse, events: 20}",
    flags: "--delay {delay}us --events 20 --first 2000us --gap {gap}us",
};

/// Events over WebSocket with the time stamp of their publisher.
pub(super) const DELIVERY: Protocol = Protocol {
    name: "delivery",
    about: "Null servers that publish 20 events to each client over WebSocket. One sends each event 300 us later \
            after its time stamp, and one is equal.",
    servers: &[
        Planted {
            name: "later delivery",
            later_us: 300,
            longer_us: 0,
        },
        EQUAL,
    ],
    figures: &[["delivery", "delivery_us_mean"]],
    load: "stream: {events: 20, sent-at: /at}, requests: [{path: /, websocket: {}}]",
    flags: "--websocket --events 20 --gap {gap}us --deliver-after {delay}us",
};

/// Unary calls of gRPC.
pub(super) const CALLS: Protocol = Protocol {
    name: "calls",
    about: "Null servers of gRPC that answer unary calls. One answers 20 us later, and one is equal.",
    servers: &[
        Planted {
            name: "later answer",
            later_us: 20,
            longer_us: 0,
        },
        EQUAL,
    ],
    figures: &[
        ["typical", "latency_us_typical"],
        ["mean", "latency_us_mean"],
    ],
    load: "http2: on, requests: [{grpc: {method: null.Null/Answer, proto: null.proto, message: {text: hello}}}]",
    flags: "--grpc --delay {delay}us",
};

/// The schema of the calls.
const PROTO: &str = "syntax = \"proto3\";\npackage null;\nmessage Text { string text = 1; }\n\
                     service Null { rpc Answer(Text) returns (Text); }\n";

/// The true difference of a figure in microseconds, if the head is later and gaps are longer by these amounts.
fn truth_us(figure: &str, later_us: u32, longer_us: u32) -> f64 {
    let (later, longer) = (f64::from(later_us), f64::from(longer_us));
    match figure {
        "gap" => longer,
        // Event k is k gaps later than the first, so the mean over all events has half of all gaps.
        "event" => later + longer * f64::from(EVENTS - 1) / 2.0,
        _ => later,
    }
}

pub(super) fn section(bench: &Bench, protocol: &Protocol, repeat: u64) -> anyhow::Result<String> {
    let schema = bench.folder.join("null.proto");
    fs::write(&schema, PROTO).with_context(|| format!("`{}` can be written", schema.display()))?;
    let lab = lab(bench, protocol);
    let mut rows: Vec<Row> = protocol
        .servers
        .iter()
        .flat_map(|server| rows_of(protocol, server))
        .collect();
    for seed in 1..=repeat {
        let run = bench.lab(protocol.name, &lab, seed)?;
        let mut line = format!("{seed}/{repeat}:");
        let mut all = rows.iter_mut();
        for Planted { name, .. } in protocol.servers {
            for [figure, key] in protocol.figures {
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
        "{} There are {repeat} runs of {}:\n\n{}",
        protocol.about,
        bench.setting(protocol.servers.len()),
        truth::table("server and figure", &rows),
    ))
}

/// A row for each figure of a server.
fn rows_of(protocol: &Protocol, server: &'static Planted) -> impl Iterator<Item = Row> {
    protocol.figures.iter().map(|[figure, _]| Row {
        planted_us: truth_us(figure, server.later_us, server.longer_us),
        subject: format!("{}, {figure}", server.name),
        found: Vec::new(),
        added_us: Vec::new(),
    })
}

fn lab(bench: &Bench, protocol: &Protocol) -> String {
    let mut variants = String::new();
    for server in protocol.servers {
        let _ = writeln!(
            variants,
            "  - {{name: {}, with: {{server.delay: {}, server.gap: {}}}}}",
            server.name,
            DELAY_US + server.later_us,
            GAP_US + server.longer_us
        );
    }
    let flags = protocol
        .flags
        .replace("{delay}", "{{delay}}")
        .replace("{gap}", "{{gap}}");
    format!(
        "question: Are planted times found?\n\
         load: {{rate: {}/s, duration: {}s, {}}}\n\
         order: side-by-side\nwarmup: 300ms\nrounds: {}\ntarget: server\nsystems:\n  server:\n    \
         settings: {{delay: {DELAY_US}, gap: {GAP_US}}}\n    \
         run: \"'{}' null-server --listen {{{{addr}}}} {flags}\"\n    limits: {{cpus: 1}}\n\
         baseline: {{name: {FIRST}}}\nvariants:\n{variants}",
        bench.rate.get(),
        bench.seconds,
        protocol.load,
        bench.rounds(protocol.servers.len()),
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
