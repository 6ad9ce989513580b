//! `weigh tare`: the noise floor of this machine, and its problems for measuring.

use std::fmt::Write as _;
use std::time::Duration;

use experiment::console::Console;
use experiment::environment;
use experiment::exit::{Exit, Failure};
use experiment::progress::Progress;
use experiment::stop::StopSignal;
use model::Rate;

mod floor;
mod host_checks;
mod store;

use floor::{Weighed, Weighing};
use host_checks::{Facts, State};
use store::MachineName;
pub(crate) use store::Tare;

/// Measure the noise of this machine, and find its causes.
///
/// `weigh` compares the null server with itself on loopback, in interleaved rounds, like a variant with
/// its baseline. Both are equal, so each difference is noise. This machine cannot show a smaller overhead.
/// Then host checks name the causes of noise and the remedies.
///
/// `weigh` keeps the result in XDG_STATE_HOME/weighbridge/tare.json (by default in ~/.local/state). `weigh
/// lab` shows it next to its results until the processor, the cores or the kernel change.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "The exit code is 0 if no check failed (a weak check is no failure), and 7 if a check failed."
)]
pub(crate) struct Args {
    /// Number of rounds. Each round measures the null server twice.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(6..=1000))]
    rounds: u32,
    /// Length of one measurement.
    #[arg(short = 'z', long, value_name = "TIME", default_value = "500ms", value_parser = lab::duration)]
    duration: Duration,
    /// Requests per second.
    #[arg(short, long, default_value = "1000", value_parser = super::load::rate)]
    rate: Rate,
    /// Maximum number of connections.
    #[arg(short, long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=65_000))]
    connections: u32,
    /// Seed of the random order of the two.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Do not keep the result for later labs.
    #[arg(long)]
    no_keep: bool,
    /// Layout of the answer: text or json.
    #[arg(
        long,
        value_enum,
        value_name = "NAME",
        default_value = "text",
        hide_possible_values = true
    )]
    format: Layout,
}

/// The layouts of a tare.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Layout {
    Text,
    Json,
}

pub(crate) fn run(args: &Args, console: Console, stop: &StopSignal) -> Result<Exit, Failure> {
    let made_at = environment::now().to_string();
    let mut facts = Facts::read(rig::machine::snapshot());
    let weighing = Weighing {
        rate: args.rate,
        rounds: args.rounds as usize,
        length: args.duration,
        connections: args.connections,
        seed: args.seed.unwrap_or_else(environment::fresh_seed),
    };
    // As in the labs that are compared with the noise floor.
    let _awake = load::keep_cores_awake();
    // Two measurements per round, and the warm-up.
    let progress = Progress::new(console, u64::from(args.rounds) * 2 + 1);
    let began = environment::instant();
    let weighed = floor::weigh(weighing, &progress, stop);
    progress.finish();
    let weighed = weighed?;
    // Not stored, because the floor of fewer rounds would be taken for the floor of this machine.
    if weighed.is_interrupted {
        return Ok(Exit::Interrupted);
    }
    facts.lateness_us_p99 = weighed.lateness_us_p99;
    facts.steal_share = steal_share(&facts, environment::instant().duration_since(began));
    let tare = tare(made_at, weighing, &facts, &weighed);
    if !args.no_keep {
        match tare.store() {
            Ok(path) => console.say(format_args!("weigh: kept in {}", path.display())),
            Err(reason) => console.warn(&format!("the tare could not be saved: {reason}")),
        }
    }
    console.answer(&match args.format {
        Layout::Text => text(&tare),
        Layout::Json => json(&tare),
    });
    Ok(exit_of(&tare, &weighed))
}

fn tare(made_at: String, weighing: Weighing, facts: &Facts, weighed: &Weighed) -> Tare {
    Tare {
        made_at,
        machine: MachineName::of(&facts.machine),
        requests_per_s: weighing.rate.per_second(),
        rounds: weighing.rounds,
        measurement_ms: u64::try_from(weighing.length.as_millis())
            .expect("the command line takes at most 1000 hours"),
        cpu_us_per_request: weighed.cpu_us_per_request,
        floors: weighed.floors.clone(),
        findings: host_checks::examine(facts),
    }
}

/// The share of all cores' time that other guests of the host received since the first reading.
fn steal_share(facts: &Facts, elapsed: Duration) -> Option<f64> {
    let before_ms = facts.machine.steal_ms?;
    let after_ms = rig::machine::snapshot().steal_ms?;
    // All online cores, because the kernel counts stolen time over the whole machine.
    let all_ms = elapsed.as_secs_f64() * 1000.0 * facts.machine.cpus_online.max(1) as f64;
    Some(after_ms.saturating_sub(before_ms) as f64 / all_ms)
}

/// The exit code. Wrong responses of the null server come before a failed check of the machine.
fn exit_of(tare: &Tare, weighed: &Weighed) -> Exit {
    if weighed.not_passed > 0 {
        Exit::Mismatch
    } else if tare
        .findings
        .iter()
        .any(|found| found.state == State::Failed)
    {
        Exit::Withheld
    } else {
        Exit::Done
    }
}

fn json(tare: &Tare) -> String {
    serde_json::to_string_pretty(tare).expect("a tare has only text keys and finite numbers")
}

fn text(tare: &Tare) -> String {
    let mut out = format!(
        "tare: the null server against itself, {} requests/s, {} rounds of 2 x {} ms\n\n  {:<18} \
         {:>10} {:>12}   (us, a smaller overhead is noise)\n",
        tare.requests_per_s, tare.rounds, tare.measurement_ms, "", "found", "noise floor"
    );
    for (name, floor) in floor::names().filter_map(|name| Some((name, tare.floors.get(name)?))) {
        let _ = writeln!(
            out,
            "  {name:<18} {:>10.1} {:>12.1}",
            floor.value_us, floor.floor_us
        );
    }
    let _ = writeln!(
        out,
        "\n  generator: {:.1} us CPU a request\n\nThis machine",
        tare.cpu_us_per_request
    );
    for finding in &tare.findings {
        let word = finding.state.word();
        let _ = writeln!(out, "  {word:<7} {:<12} {}", finding.name, finding.found);
        if let Some(advice) = &finding.advice {
            let _ = writeln!(out, "          {:<12} {advice}", "");
        }
    }
    out
}
