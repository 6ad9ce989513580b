//! Planted factors: null servers that answer later, each by the sum of its factors.

use anyhow::Context as _;
use serde_json::Value;

use super::figures::{Difference, Run, list};
use super::labs::Bench;
use super::truth::{self, Row};
use crate::bench;

/// Each row of the report with its planted effect in microseconds. The log costs 5 us, TLS 20 us, auth 100 us,
/// and log with TLS 20 us more. So the effects of log and TLS contain 10 us of it.
const PLANTED: [(&str, f64); 10] = [
    ("log", 15.0),
    ("TLS", 30.0),
    ("auth", 100.0),
    ("log × TLS", 20.0),
    ("log × auth", 0.0),
    ("TLS × auth", 0.0),
    ("log × TLS × auth", 0.0),
    ("log alone", 5.0),
    ("TLS alone", 20.0),
    ("auth alone", 100.0),
];

/// The key of the figure in a summary.
const TYPICAL: &str = "latency_us_typical";

pub(super) fn section(bench: &Bench, repeat: u64) -> anyhow::Result<String> {
    let lab = lab(bench);
    let mut rows = PLANTED.map(|(name, planted_us)| Row {
        planted_us,
        subject: name.to_owned(),
        found: Vec::new(),
        added_us: Vec::new(),
    });
    for seed in 1..=repeat {
        let run = bench.lab("factors", &lab, seed)?;
        let found = effects(&run.summary["factors"])?;
        let wrong = wrong(&found);
        bench::say(&format!("factors, {seed}/{repeat}: {wrong} of 10 outside"));
        for ((row, found), added_us) in rows.iter_mut().zip(found).zip(effects_of(&sent_us(&run)?))
        {
            row.found.push(found);
            row.added_us.push(added_us);
        }
    }
    Ok(format!(
        "Null servers with three factors: the log costs 5 us, TLS 20 us, auth 100 us, and log with TLS 20 us \
         more; {}, {repeat} runs. All ten intervals of a run were right in **{} of {repeat}**. The second \
         number of a planted effect is the effect on the time that the servers need for their sends. The \
         servers measured it:\n\n{}",
        bench.setting(PLANTED.len()),
        truth::right_together(&rows),
        truth::table("effect on the typical latency", &rows),
    ))
}

/// The time that the server of each variant needs for its sends. Bit 0 of the index is the log, bit 1 is TLS,
/// and bit 2 is auth.
fn sent_us(run: &Run) -> anyhow::Result<[f64; 8]> {
    let mut all = [0.0; 8];
    for (index, sent_us) in all.iter_mut().enumerate() {
        *sent_us = run.sent_us(&name(index))?;
    }
    Ok(all)
}

/// The name that a lab gives to the variant with this index.
fn name(index: usize) -> String {
    let words = ["log", "tls", "auth"].into_iter().enumerate();
    let each = words.filter_map(|(bit, word)| match index {
        0 => Some(format!("{word} off")),
        _ => (index >> bit & 1 == 1).then(|| format!("{word} on")),
    });
    each.collect::<Vec<String>>().join(", ")
}

/// The effects and the costs alone of these values, in the order of [`PLANTED`]. The formulas are in
/// METHODOLOGY.md under "Factors".
fn effects_of(values: &[f64; 8]) -> [f64; 10] {
    let effect = |factors: usize| {
        let sign = |index: usize| match (factors & !index).count_ones() % 2 {
            0 => 1.0,
            _ => -1.0,
        };
        let sum: f64 = (0..8).map(|index| sign(index) * values[index]).sum();
        sum / f64::from(8 >> factors.count_ones())
    };
    let alone = |factor: usize| values[factor] - values[0];
    let factors = [1, 2, 4, 3, 5, 6, 7].map(effect);
    let [log, tls, auth] = [1, 2, 4].map(alone);
    let [a, b, c, ab, ac, bc, abc] = factors;
    [a, b, c, ab, ac, bc, abc, log, tls, auth]
}

/// The number of intervals without their planted effect.
fn wrong(found: &[Difference]) -> usize {
    let both = found.iter().zip(PLANTED);
    both.filter(|(found, (_, planted))| !found.contains(*planted))
        .count()
}

/// The effects of a run and the costs alone, in the order of the report.
fn effects(factors: &Value) -> anyhow::Result<Vec<Difference>> {
    let rows = list(&factors["effects"]).chain(list(&factors["alone"]));
    let each = rows.map(|row| {
        let figure = &row["metrics"][TYPICAL];
        let read = |field: &str| figure[field].as_f64().context("an effect without interval");
        anyhow::Ok(Difference {
            value: read("value")?,
            low: read("low")?,
            high: read("high")?,
        })
    });
    let found: Vec<Difference> = each.collect::<anyhow::Result<_>>()?;
    anyhow::ensure!(found.len() == PLANTED.len(), "{} effects", found.len());
    Ok(found)
}

fn lab(bench: &Bench) -> String {
    let delay = "$((200 + {{log}} + {{tls}} + {{auth}} + {{log}} * {{tls}} / 5))us";
    format!(
        "question: Is what was planted found?\n\
         load: {{rate: {}/s, duration: {}s, path: /}}\n\
         order: side-by-side\nwarmup: 300ms\nrounds: {}\ntarget: server\n\
         settings:\n  log: {{off: 0, on: 5}}\n  tls: {{off: 0, on: 20}}\n  auth: {{off: 0, on: 100}}\n\
         systems:\n  server:\n    \
         run: \"sh -c 'exec {} null-server --listen {{{{addr}}}} --delay={delay}'\"\n    \
         ready: {{path: /}}\n    limits: {{cpus: 1}}\n\
         factors:\n  log: [off, on]\n  tls: [off, on]\n  auth: [off, on]\n",
        bench.rate.get(),
        bench.seconds,
        bench.rounds(PLANTED.len()),
        bench.programs.weigh.display(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn effects_of_the_planted_delays_are_the_planted_effects() {
        let delays = std::array::from_fn(|index| {
            let on = |bit: usize| (index >> bit & 1) as f64;
            let [log, tls, auth] = [5.0 * on(0), 20.0 * on(1), 100.0 * on(2)];
            log + tls + auth + log * tls / 5.0
        });
        assert_eq!(
            effects_of(&delays),
            PLANTED.map(|(_, planted_us)| planted_us)
        );
        assert_eq!(name(0), "log off, tls off, auth off");
        assert_eq!(name(5), "log on, auth on");
    }

    #[test]
    fn effects_are_read_in_the_order_of_the_report() {
        let row = |low: f64, high: f64| {
            let value = f64::midpoint(low, high);
            serde_json::json!({"metrics": {TYPICAL: {"value": value, "low": low, "high": high}}})
        };
        let rows: Vec<Value> = PLANTED
            .iter()
            .map(|(_, planted)| row(planted - 1.0, planted + 1.0))
            .collect();
        let mut factors = serde_json::json!({"effects": rows[..7], "alone": rows[7..]});
        assert_eq!(wrong(&effects(&factors).unwrap()), 0);
        factors["alone"][0] = row(6.0, 9.0);
        assert_eq!(wrong(&effects(&factors).unwrap()), 1);
        factors["effects"][0] = serde_json::json!({"metrics": {}});
        assert!(effects(&factors).is_err());
    }
}
