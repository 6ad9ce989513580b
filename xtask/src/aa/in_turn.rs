//! Null servers in turn: one against itself, one that is later, and some that burn processor time.

use std::fmt::Write as _;

use anyhow::bail;
use serde_json::Value;

use super::figures::{Difference, text, variant};
use super::labs::Bench;
use crate::bench;

/// The planted delay.
const DELAY_US: f64 = 200.0;
/// The planted processor times.
const BURNT_US: [f64; 3] = [100.0, 1_000.0, 5_000.0];

const OPEN: &str = "{rate: 1000/s, duration: 400ms}";
const CLOSED: &str = "{connections: 1, duration: 1s}";

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
        let summary = lab(bench, "same", "  - {name: again}\n", OPEN, seed)?;
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
    let summary = lab(bench, "delay", variants, OPEN, 1)?;
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

pub(super) fn cpu(bench: &Bench) -> anyhow::Result<String> {
    let variants: String = BURNT_US
        .iter()
        .map(|us| format!("  - {{name: burns-{us}us, with: {{server.flag: --burn={us}us}}}}\n"))
        .collect();
    let summary = lab(bench, "cpu", &variants, CLOSED, 1)?;
    let mut rows = String::new();
    for us in BURNT_US {
        let row = variant(&summary, &format!("burns-{us}us"))?;
        let cpu = &row["metrics"]["cpu_us_per_request"];
        let Some(value) = cpu["value"].as_f64() else {
            bail!(
                "`burns-{us}us` has no number: {}",
                text(row, "verdict_text")
            );
        };
        let (low, high) = (number(&cpu["low"]), number(&cpu["high"]));
        let off = (value / us - 1.0) * 100.0;
        let _ = writeln!(
            rows,
            "| {us} us | {value:.1} us ({low:.1} to {high:.1}) | {off:+.1} % |"
        );
    }
    Ok(format!(
        "Servers that burn a known processor time per request:\n\n\
         | burnt | reported (95 % interval) | off |\n|---|---|---|\n{rows}"
    ))
}

/// Runs a lab of null servers, and returns its summary.
fn lab(bench: &Bench, name: &str, variants: &str, load: &str, seed: u64) -> anyhow::Result<Value> {
    let weigh = bench.programs.weigh.display();
    let lab = format!(
        "question: Is what was planted found ({name})?\nload: {load}\norder: in-turn\n\
         warmup: 100ms\nrounds: 8\n\
         target: server\nsystems:\n  server:\n    settings: {{flag: --seed=1}}\n    \
         run: \"'{weigh}' null-server --listen {{{{addr}}}} {{{{flag}}}}\"\n    pin: 0\n\
         baseline: {{name: plain}}\nvariants:\n{variants}"
    );
    Ok(bench.lab(name, &lab, seed)?.summary)
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
