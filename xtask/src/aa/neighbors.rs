//! An equal pair next to a bad neighbor. Does the pair stay equal, and does the neighbor itself get the
//! blame?
//!
//! One pair responds at once. The other calls a service that waits for 25 ms, so that its requests overlap.
//! Both need the same protection. A neighbor that only waits disturbs neither pair.

use std::fmt::Write as _;

use super::figures::{Figure, Tally, median};
use super::labs::Bench;
use super::planted;
use crate::bench;
use crate::repository::root;

/// A bad neighbor: a null server with its known cost.
struct Neighbor {
    name: &'static str,
    flags: &'static str,
    /// Minimum of its mean latency and of its processor time per request, in microseconds.
    mean_us: f64,
    cpu_us: f64,
}

const NEIGHBORS: [Neighbor; 4] = [
    Neighbor {
        name: "burns a third of a core",
        flags: "--burn=3ms",
        mean_us: 3_000.0,
        cpu_us: 3_000.0,
    },
    Neighbor {
        name: "writes to 4 MiB on each request",
        flags: "--thrash=4MiB",
        mean_us: 0.0,
        cpu_us: 0.0,
    },
    // Disturbs every program on its core, for six cycles in fifty. It does not use real-time priority. The
    // kernel refuses that priority to a process in a control group of its own if it schedules by group.
    Neighbor {
        name: "works for 60 ms on each 50th request",
        flags: "--burn=60ms --burn-every=50",
        mean_us: 1_200.0,
        cpu_us: 1_200.0,
    },
    // Several gaps long, and no core is busy in that time.
    Neighbor {
        name: "waits for 45 ms",
        flags: "--delay=45ms",
        mean_us: 45_000.0,
        cpu_us: 0.0,
    },
];

/// The equal pair: its name, and the wait of its gateways for each response, if any.
const PAIRS: [(&str, Option<&str>); 2] =
    [("answers at once", None), ("waits for 25 ms", Some("25ms"))];

/// Figures that are compared within the pair.
const COMPARED: [Figure; 3] = [Figure::Typical, Figure::Mean, Figure::Cpu];

pub(super) fn section(bench: &Bench, only: &[String], repeat: u64) -> anyhow::Result<String> {
    let mut rows = String::new();
    for (pair, wait) in PAIRS {
        let named =
            |neighbor: &&Neighbor| super::is_wanted(&format!("{pair} {}", neighbor.name), only);
        for neighbor in NEIGHBORS.iter().filter(named) {
            rows += &row(bench, pair, wait, neighbor, repeat)?;
        }
    }
    Ok(format!(
        "The same gateway twice and a null server that is a bad neighbor, {}, {repeat} runs each:\n\n\
         | the pair | the neighbor | runs that claim a difference of the pair: typical, mean, processor time | \
         median interval of its typical latency | cycles in which the neighbor was in the pair's way | the \
         neighbor's own mean | its processor time | at least |\n\
         |---|---|---|---|---|---|---|---|\n{rows}",
        bench.setting(2)
    ))
}

fn row(
    bench: &Bench,
    pair: &str,
    wait: Option<&str>,
    neighbor: &Neighbor,
    repeat: u64,
) -> anyhow::Result<String> {
    let lab = lab(bench, wait, neighbor)?;
    let mut tallies = Tally::each(&COMPARED);
    let mut left_out = Vec::new();
    let (mut means, mut times) = (Vec::new(), Vec::new());
    for seed in 1..=repeat {
        let run = bench.lab("neighbors", &lab, seed)?;
        for tally in &mut tallies {
            tally.add(&run, &["again"])?;
        }
        left_out.push(run.neighbor_share("again"));
        means.push(run.value("neighbor", Figure::Mean)?);
        times.push(run.value("neighbor", Figure::Cpu)?);
        let name = neighbor.name;
        let claims: Vec<usize> = tallies.iter().map(Tally::claims).collect();
        bench::say(&format!(
            "pair {pair}, {name}, {seed}/{repeat}: claims so far {claims:?}"
        ));
    }
    let [typical, mean, cpu] = &tallies[..] else {
        unreachable!("one for each figure that is compared")
    };
    let mut row = String::new();
    let _ = writeln!(
        row,
        "| {pair} | {} | {}, {}, {} of {repeat} | ±{:.1} us | {:.1} % | {:.0} us | {:.0} us | \
         {:.0} us, {:.0} us |",
        neighbor.name,
        typical.claims(),
        mean.claims(),
        cpu.claims(),
        typical.half_width(),
        median(&left_out) * 100.0,
        median(&means),
        median(&times),
        neighbor.mean_us,
        neighbor.cpu_us
    );
    Ok(row)
}

fn lab(bench: &Bench, wait: Option<&str>, neighbor: &Neighbor) -> anyhow::Result<String> {
    let (configuration, coprocessor, place) = match wait {
        None => (
            root().join("labs/router-extensibility/baseline/baseline.yaml"),
            String::new(),
            "",
        ),
        Some(wait) => (
            planted::configuration(bench)?,
            planted::coprocessor(bench, &format!("--delay={wait}"), ""),
            planted::COPROCESSOR,
        ),
    };
    let gateway = bench.gateway_command(&configuration);
    let null = format!(
        "'{}' null-server --listen $LISTEN {}",
        bench.programs.weigh.display(),
        neighbor.flags
    );
    let environment = format!("      COMMAND: \"{{{{command}}}}\"\n{place}");
    Ok(bench.side_by_side(2)
        + &coprocessor
        // A shell starts it, because a setting is one word of a command. `eval` parses it again because of
        // the quotes in it.
        + &bench.gateway(
            &format!("command: \"{gateway}\""),
            "sh -c \"eval exec $COMMAND\"",
            &environment,
        )
        + "expect: {status: 200, graphql: no-errors}\n\
           baseline: {name: plain}\nvariants:\n  - {name: again}\n  "
        + &format!("- {{name: neighbor, with: {{gateway.command: \"{null}\"}}}}\n"))
}
