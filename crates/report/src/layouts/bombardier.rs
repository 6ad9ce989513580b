//! Layout of bombardier's reports with latencies: microseconds in JSON, adaptive units in text.
//!
//! The standard deviations count every sample (bombardier's own count every distinct value once). `others`
//! are requests without a response. Rates are over whole windows of 100 ms.

use std::fmt::Write as _;

use model::{Load, micros};
use recording::float;
use serde_json::{Map, Value, json};
use stats::sample;

use super::merged::Merged;

const SHARES: [(&str, f64); 5] = [
    ("50", 0.5),
    ("75", 0.75),
    ("90", 0.9),
    ("95", 0.95),
    ("99", 0.99),
];

pub(super) fn text(merged: &Merged<'_>) -> String {
    let mut out = format!(
        "{:>10} {:>10} {:>10} {:>10}\n",
        "Statistics", "Avg", "Stdev", "Max"
    );
    let rates = merged.rates();
    match rate_statistics(&rates) {
        Some([mean, stdev, max]) => {
            let _ = writeln!(
                out,
                "  {:<10} {mean:>10.2} {stdev:>10.2} {max:>10.2}",
                "Reqs/sec"
            );
        }
        None => out += "  There wasn't enough data to compute statistics for requests.\n",
    }
    let latency = &merged.latency;
    let us = |ns: f64| time(ns / 1e3);
    match (latency.mean_ns(), latency.stddev_ns(), latency.max_ns()) {
        (Some(mean), Some(stdev), Some(max)) => {
            let (mean, stdev, max) = (us(mean), us(stdev), us(float(max)));
            let _ = writeln!(out, "  {:<10} {mean:>10} {stdev:>10} {max:>10}", "Latency");
            out += "  Latency Distribution\n";
            for (percent, share) in SHARES {
                let value = us(latency.quantile_ns(share).map_or(0.0, float));
                let _ = writeln!(out, "     {percent}% {value:>10}");
            }
        }
        _ => out += "  There wasn't enough data to compute statistics for latencies.\n",
    }
    let [one, two, three, four, five] = [1, 2, 3, 4, 5].map(|class| merged.class(class));
    let _ = write!(
        out,
        "  HTTP codes:\n    1xx - {one}, 2xx - {two}, 3xx - {three}, 4xx - {four}, 5xx - {five}\n    \
         others - {}\n",
        others(merged)
    );
    let errors = merged.errors();
    if !errors.is_empty() {
        out += "  Errors:\n";
    }
    for (name, count) in errors {
        let _ = writeln!(out, "    {name:>10} - {count}");
    }
    let throughput = merged.per_second(merged.bytes_in + merged.bytes_out);
    let _ = writeln!(out, "  {:<10} {:>10}/s", "Throughput:", binary(throughput));
    out
}

pub(super) fn json(merged: &Merged<'_>) -> String {
    let mut report = json!({ "spec": spec(merged), "result": result(merged) }).to_string();
    report.push('\n');
    report
}

fn spec(merged: &Merged<'_>) -> Value {
    let load = &merged.recording.load;
    let mut spec = Map::new();
    let mut set = |key: &str, value: Value| spec.insert(key.to_owned(), value);
    set("numberOfConnections", merged.connections().into());
    // This follows bombardier. It treats a count without a time as another kind of test.
    match (load.model.duration(), load.model.requests()) {
        (None, Some(requests)) => {
            set("testType", "number-of-requests".into());
            set("numberOfRequests", requests.into());
        }
        (duration, _) => {
            set("testType", "timed".into());
            set(
                "testDurationSeconds",
                (float(duration.map_or(0, micros)) / 1e6).into(),
            );
        }
    }
    if let Some(request) = merged.request() {
        set("method", request.method.clone().into());
        let headers = request.headers.iter();
        let headers = headers.map(|header| json!({ "key": header.name, "value": header.value }));
        set("headers", headers.collect());
        set("body", request.body.clone().unwrap_or_default().into());
    }
    set("url", merged.url().into());
    set("stream", false.into());
    set("timeoutSeconds", (float(load.timeout_us) / 1e6).into());
    set("client", "weigh".into());
    // bombardier reports one rate, but several phases may have several rates.
    if let Load::Open { phases, .. } = &load.model
        && let [phase] = phases[..]
    {
        set("rate", phase.from.per_second().into());
    }
    spec.into()
}

fn result(merged: &Merged<'_>) -> Value {
    let mut result = Map::new();
    let mut set = |key: &str, value: Value| result.insert(key.to_owned(), value);
    set("bytesRead", merged.bytes_in.into());
    set("bytesWritten", merged.bytes_out.into());
    set("timeTakenSeconds", merged.seconds().into());
    for class in 1..=5 {
        set(&format!("req{class}xx"), merged.class(class).into());
    }
    set("others", others(merged).into());
    let errors = merged.errors();
    if !errors.is_empty() {
        let errors = errors.into_iter();
        let errors = errors.map(|(name, count)| json!({ "description": name, "count": count }));
        set("errors", errors.collect());
    }
    let latency = &merged.latency;
    let us = |ns: Option<u64>| ns.map_or(0.0, float) / 1e3;
    if !latency.is_empty() {
        let percentiles: Map<String, Value> = SHARES
            .map(|(percent, share)| {
                (
                    percent.to_owned(),
                    us(latency.quantile_ns(share)).round().into(),
                )
            })
            .into_iter()
            .collect();
        let latency = json!({
            "mean": latency.mean_ns().unwrap_or(0.0) / 1e3,
            "stddev": latency.stddev_ns().unwrap_or(0.0) / 1e3,
            "max": us(latency.max_ns()),
            "percentiles": percentiles,
        });
        set("latency", latency);
    }
    let rates = merged.rates();
    if let Some([mean, stddev, max]) = rate_statistics(&rates) {
        let percentiles: Map<String, Value> = SHARES
            .map(|(percent, share)| (percent.to_owned(), sample::quantile(&rates, share).into()))
            .into_iter()
            .collect();
        let rps = json!({ "mean": mean, "stddev": stddev, "max": max, "percentiles": percentiles });
        set("rps", rps);
    }
    result.into()
}

fn rate_statistics(rates: &[f64]) -> Option<[f64; 3]> {
    Some([
        sample::mean(rates)?,
        sample::stddev(rates).unwrap_or(0.0),
        sample::max(rates)?,
    ])
}

fn others(merged: &Merged<'_>) -> u64 {
    let classes: u64 = (1..=5).map(|class| merged.class(class)).sum();
    // These are the requests without a response, and the responses outside of the five classes.
    merged.outcomes.failed.total() + merged.outcomes.completed() - classes
}

/// Microseconds in bombardier's units. A unit begins at 85 % of itself, so 900 us are 0.90ms.
fn time(us: f64) -> String {
    if us >= 1e6 {
        scaled(us / 1e6, 60.0, &["s", "m", "h"])
    } else {
        scaled(us, 1000.0, &["us", "ms", "s"])
    }
}

fn binary(bytes: f64) -> String {
    scaled(bytes, 1024.0, &["", "KB", "MB", "GB", "TB", "PB"])
}

fn scaled(value: f64, factor: f64, units: &[&str]) -> String {
    let mut value = value;
    let mut unit = 0;
    while unit + 1 < units.len() && value >= factor * 0.85 {
        value /= factor;
        unit += 1;
    }
    format!("{value:.2}{}", units[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_change_at_85_percent() {
        assert_eq!(time(714.0), "714.00us");
        assert_eq!(time(890.0), "0.89ms");
        assert_eq!(time(1290.0), "1.29ms");
        assert_eq!(time(2_500_000.0), "2.50s");
        assert_eq!(time(52_000_000.0), "0.87m");
        assert_eq!(binary(41.72 * 1024.0 * 1024.0), "41.72MB");
    }
}
