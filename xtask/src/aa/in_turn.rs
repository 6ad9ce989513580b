//! Null servers in turn: one against itself, one that is later, and some that burn processor time.

use std::fmt::Write as _;

use anyhow::{Context as _, bail};
use serde_json::Value;

use super::figures::{Difference, Run, list, median, text, variant};
use super::labs::Bench;
use crate::bench;

/// The planted delay.
const DELAY_US: f64 = 200.0;
/// The planted processor times.
const BURNT_US: [f64; 3] = [100.0, 1_000.0, 5_000.0];

const OPEN: &str = "{rate: 1000/s, duration: 400ms}";
const CLOSED: &str = "{connections: 1, duration: 1s}";
/// The closed loop without cores that are kept awake, because these would be busy all the time.
const ASLEEP: &str = "{connections: 1, duration: 1s, awake: off}";

/// Keys of the figures, with their display names.
const SHOWN: [(&str, &str); 6] = [
    ("latency_us_mean", "mean"),
    ("latency_us_p50", "p50"),
    ("latency_us_p90", "p90"),
    ("latency_us_p95", "p95"),
    ("latency_us_p99", "p99"),
    ("cpu_us_per_request", "CPU"),
];

/// Compares equal servers repeatedly.
pub(super) fn same(bench: &Bench, repeat: u64) -> anyhow::Result<String> {
    let mut claims: Vec<(&str, u64)> = SHOWN.iter().map(|(_, name)| (*name, 0)).collect();
    let mut rows = String::new();
    let mut verdicts = 0;
    for seed in 1..=repeat {
        let summary = lab(bench, "same", "  - {name: again}\n", OPEN, seed)?.summary;
        let again = variant(&summary, "again")?;
        let verdict = text(again, "verdict_text");
        verdicts += u64::from(claim(again, "latency_us_mean") != "no-difference-shown");
        for ((key, _), (_, count)) in SHOWN.iter().zip(&mut claims) {
            *count += u64::from(claim(again, key) != "no-difference-shown");
        }
        bench::say(&format!("{seed}/{repeat}: {verdict}"));
        let _ = writeln!(
            rows,
            "| {seed} | {} | {verdict} |",
            overhead(again, "latency_us_mean")
        );
    }
    let claimed = claims.iter().map(|(name, count)| format!("{name} {count}"));
    Ok(format!(
        "The same server twice, {repeat} labs of 8 rounds: a difference was claimed in \
         **{verdicts} of {repeat}**.\nBy figure, each at 95 %: {}.\n\n\
         | lab | mean latency, difference (us) | verdict |\n|---|---|---|\n{rows}",
        claimed.collect::<Vec<_>>().join(", ")
    ))
}

pub(super) fn delay(bench: &Bench) -> anyhow::Result<String> {
    let variants = "  - {name: later, with: {server.flag: --delay=200us}}\n";
    let summary = lab(bench, "delay", variants, OPEN, 1)?.summary;
    let later = variant(&summary, "later")?;
    let mut rows = String::new();
    for (key, name) in SHOWN.iter().filter(|(key, _)| key.starts_with("latency")) {
        let is_inside = Difference::of(later, key)?.contains(DELAY_US);
        let verdict = if is_inside { "yes" } else { "no" };
        let _ = writeln!(rows, "| {name} | {} | {verdict} |", overhead(later, key));
    }
    Ok(format!(
        "A server that answers {DELAY_US} us later; verdict: **{}**.\n\n\
         | figure | difference (us) | the planted one is in the interval |\n\
         |---|---|---|\n{rows}",
        text(later, "verdict_text")
    ))
}

/// Compares processor time with a known burn, and with the busy time of the machine.
pub(super) fn cpu(bench: &Bench) -> anyhow::Result<String> {
    Ok(format!(
        "{}\n{}",
        burnt(bench)?,
        outside_of_processes(bench)?
    ))
}

/// Servers that burn a known time, in the program and in the kernel.
fn burnt(bench: &Bench) -> anyhow::Result<String> {
    let places = [
        ("the program", "--burn-every=1"),
        ("the kernel", "--burn-in-kernel"),
    ];
    let all = || {
        let pairs = BURNT_US
            .iter()
            .map(move |us| places.map(|place| (*us, place)));
        pairs.flatten()
    };
    let variants: String = all()
        .map(|(us, (place, flag))| {
            format!(
                "  - {{name: '{us}us in {place}', with: {{server.flag: '--burn={us}us', server.place: {flag}}}}}\n"
            )
        })
        .collect();
    let summary = lab(bench, "cpu", &variants, CLOSED, 1)?.summary;
    let mut rows = String::new();
    for (us, (place, _)) in all() {
        let row = variant(&summary, &format!("{us}us in {place}"))?;
        let cpu = &row["metrics"]["cpu_us_per_request"];
        let Some(value) = cpu["value"].as_f64() else {
            bail!(
                "`{us}us in {place}` has no number: {}",
                text(row, "verdict_text")
            );
        };
        let (low, high) = (number(&cpu["low"]), number(&cpu["high"]));
        let off = value - us;
        let _ = writeln!(
            rows,
            "| {us} us in {place} | {value:.1} us ({low:.1} to {high:.1}) | {off:+.1} us |"
        );
    }
    Ok(format!(
        "Servers that burn a known processor time per request:\n\n\
         | burnt | reported (95 % interval) | off |\n|---|---|---|\n{rows}"
    ))
}

/// Processor time of the machine that belongs to no process of the run, such as interrupts of the network.
fn outside_of_processes(bench: &Bench) -> anyhow::Result<String> {
    let bodies = [("100 B", 100), ("100 kB", 100_000)];
    let variants: String = bodies
        .iter()
        .map(|(name, bytes)| {
            format!("  - {{name: {name}, with: {{server.flag: --body={bytes}}}}}\n")
        })
        .collect();
    let run = lab(bench, "softirq", &variants, ASLEEP, 1)?;
    let mut rows = String::new();
    for (name, _) in bodies {
        let mut shares: [Vec<f64>; 4] = Default::default();
        for round in list(&run.recording["rounds"]).filter(|round| round["variant"] == name) {
            let found = Shares::of(round).with_context(|| format!("no counters of `{name}`"))?;
            let values = [
                found.busy_us,
                found.systems_us,
                found.generator_us,
                found.rest_us(),
            ];
            for (all, value) in shares.iter_mut().zip(values) {
                all.push(value);
            }
        }
        let [busy, systems, generator, rest] = shares.map(|values| median(&values));
        let _ = writeln!(
            rows,
            "| {name} | {busy:.1} us | {systems:.1} us | {generator:.1} us | {rest:+.1} us |"
        );
    }
    Ok(format!(
        "Servers with small and large answers, and the busy time of all cores (`/proc/stat`, with \
         interrupts) per request, medians of 8 rounds:\n\n\
         | answer | all cores | server | generator | rest |\n|---|---|---|---|---|\n{rows}"
    ))
}

/// Processor time per request in one round, in microseconds.
struct Shares {
    busy_us: f64,
    systems_us: f64,
    generator_us: f64,
}

impl Shares {
    /// `None` if a counter is missing.
    fn of(round: &Value) -> Option<Shares> {
        let answers = round["outcomes"]["passed"]
            .as_f64()
            .filter(|it| *it > 0.0)?;
        let systems: Option<f64> = list(&round["systems"])
            .map(|it| it["cpu_us"].as_f64())
            .sum();
        Some(Shares {
            busy_us: round["machine"]["busy_us"].as_f64()? / answers,
            systems_us: systems? / answers,
            generator_us: round["generator"]["cpu_us"].as_f64()? / answers,
        })
    }

    /// Time that belongs to no process of the run.
    fn rest_us(&self) -> f64 {
        self.busy_us - self.systems_us - self.generator_us
    }
}

/// Runs a lab of null servers.
fn lab(bench: &Bench, name: &str, variants: &str, load: &str, seed: u64) -> anyhow::Result<Run> {
    let weigh = bench.programs.weigh.display();
    let lab = format!(
        "question: Is what was planted found ({name})?\nload: {load}\norder: in-turn\n\
         warmup: 100ms\nrounds: 8\n\
         target: server\nsystems:\n  server:\n    settings: {{flag: --seed=1, place: --burn-every=1}}\n    \
         run: \"'{weigh}' null-server --listen {{{{addr}}}} {{{{flag}}}} {{{{place}}}}\"\n    pin: 0\n\
         baseline: {{name: plain}}\nvariants:\n{variants}"
    );
    bench.lab(name, &lab, seed)
}

fn claim<'a>(row: &'a Value, key: &str) -> &'a str {
    let overhead = &row["metrics"][key]["overhead"];
    overhead["claim"].as_str().unwrap_or("no-difference-shown")
}

/// An overhead with its interval, such as `+199.2 (196.1 to 203.4)`.
fn overhead(row: &Value, key: &str) -> String {
    Difference::of(row, key).map_or_else(
        |_| "none".to_owned(),
        |Difference { value, low, high }| format!("{value:+.1} ({low:+.1} to {high:+.1})"),
    )
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_is_in_no_process() {
        let round = serde_json::json!({
            "outcomes": {"passed": 10},
            "machine": {"busy_us": 1000},
            "generator": {"cpu_us": 300},
            "systems": [{"cpu_us": 400}, {"cpu_us": 100}],
        });
        let shares = Shares::of(&round).unwrap();
        assert!((shares.rest_us() - 20.0).abs() < 1e-9);
        let mut unread = round;
        unread["systems"][0]["cpu_us"] = Value::Null;
        assert!(Shares::of(&unread).is_none());
    }
}
