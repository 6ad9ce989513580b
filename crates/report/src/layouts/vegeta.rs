//! Layout of vegeta's reports: durations in nanoseconds (JSON) or in Go's form (text).
//!
//! `success` is the share of requests that passed, which is stricter than vegeta's 200 to 399. Requests
//! without a response are under status code `0`, as in vegeta. Missed requests were never sent and are only
//! in `errors`. `wait` is 0, because the time of the last send is not recorded. So `duration` includes the
//! time to the last response.

use std::fmt::Write as _;

use recording::float;
use serde_json::{Map, Value, json};

use super::merged::Merged;

pub(super) fn json(merged: &Merged<'_>) -> String {
    let latency = &merged.latency;
    // vegeta writes 0 if there was no response.
    let ns = |share: f64| latency.quantile_ns(share).unwrap_or(0);
    let (earliest, end) = merged.span();
    let requests = merged.sent();
    let mut codes: Map<String, Value> = Map::new();
    for (code, count) in status_codes(merged) {
        codes.insert(code.to_string(), count.into());
    }
    let errors: Vec<String> = merged.errors().into_iter().map(|(name, _)| name).collect();
    let mean = latency.mean_ns().unwrap_or(0.0);
    let report = json!({
        "latencies": {
            "total": whole(mean * float(latency.len())),
            "mean": whole(mean),
            "50th": ns(0.5),
            "90th": ns(0.9),
            "95th": ns(0.95),
            "99th": ns(0.99),
            "max": latency.max_ns().unwrap_or(0),
            "min": latency.min_ns().unwrap_or(0),
        },
        "bytes_in": {
            "total": merged.bytes_in_bodies,
            "mean": ratio(float(merged.bytes_in_bodies), requests),
        },
        "bytes_out": {
            "total": whole(merged.bytes_out_bodies()),
            "mean": ratio(merged.bytes_out_bodies(), requests),
        },
        "earliest": earliest.to_string(),
        "latest": end.to_string(),
        "end": end.to_string(),
        "duration": merged.elapsed_us * 1000,
        "wait": 0,
        "requests": requests,
        "rate": merged.per_second(requests),
        "throughput": merged.per_second(merged.outcomes.passed),
        "success": ratio(float(merged.outcomes.passed), requests),
        "status_codes": codes,
        "errors": errors,
    });
    report.to_string() + "\n"
}

pub(super) fn text(merged: &Merged<'_>) -> String {
    let requests = merged.sent();
    let elapsed = go_duration(merged.elapsed_us * 1000);
    let codes: Vec<String> = status_codes(merged)
        .iter()
        .map(|(code, count)| format!("{code}:{count}"))
        .collect();
    let bytes_in = merged.bytes_in_bodies;
    let bytes_out = merged.bytes_out_bodies();
    let rows = [
        (
            "Requests",
            "[total, rate, throughput]",
            format!(
                "{requests}, {:.2}, {:.2}",
                merged.per_second(requests),
                merged.per_second(merged.outcomes.passed)
            ),
        ),
        (
            "Duration",
            "[total, attack, wait]",
            format!("{elapsed}, {elapsed}, 0s"),
        ),
        (
            "Latencies",
            "[min, mean, 50, 90, 95, 99, max]",
            latencies(merged).join(", "),
        ),
        (
            "Bytes In",
            "[total, mean]",
            format!("{bytes_in}, {:.2}", ratio(float(bytes_in), requests)),
        ),
        (
            "Bytes Out",
            "[total, mean]",
            format!("{bytes_out:.0}, {:.2}", ratio(bytes_out, requests)),
        ),
        (
            "Success",
            "[ratio]",
            format!(
                "{:.2}%",
                100.0 * ratio(float(merged.outcomes.passed), requests)
            ),
        ),
        ("Status Codes", "[code:count]", codes.join("  ")),
    ];
    let mut out = String::new();
    for (name, keys, values) in rows {
        let _ = writeln!(out, "{name:<14}{keys:<34}{values}");
    }
    out += "Error Set:\n";
    for (name, _) in merged.errors() {
        let _ = writeln!(out, "{name}");
    }
    out
}

/// The minimum, the mean, four percentiles and the maximum.
fn latencies(merged: &Merged<'_>) -> [String; 7] {
    let latency = &merged.latency;
    // As in the JSON, it is 0 if there was no response.
    let duration = |ns: Option<u64>| go_duration(ns.unwrap_or(0));
    let quantile = |share: f64| duration(latency.quantile_ns(share));
    [
        duration(latency.min_ns()),
        go_duration(whole(latency.mean_ns().unwrap_or(0.0))),
        quantile(0.5),
        quantile(0.9),
        quantile(0.95),
        quantile(0.99),
        duration(latency.max_ns()),
    ]
}

fn status_codes(merged: &Merged<'_>) -> Vec<(u16, u64)> {
    let failed = merged.outcomes.failed.total();
    // vegeta lists status code 0 first, and only if a request failed.
    let without_answer = (failed > 0).then_some((0, failed));
    let codes = merged.statuses.iter().map(|(code, count)| (*code, *count));
    without_answer.into_iter().chain(codes).collect()
}

fn ratio(part: f64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part / float(whole) }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "sums of nanoseconds and of bytes are not negative and below 2^64"
)]
fn whole(value: f64) -> u64 {
    value.round() as u64
}

/// A duration in Go's form (`1.235s`, `2.346ms`, `714.123µs`, `1m1s`), rounded to the next finer unit as in
/// vegeta.
fn go_duration(ns: u64) -> String {
    const UNITS: [u64; 6] = [
        3_600_000_000_000,
        60_000_000_000,
        1_000_000_000,
        1_000_000,
        1_000,
        1,
    ];
    // Only 0 is below a nanosecond, and it has the smallest unit.
    let coarse = UNITS.iter().position(|unit| ns >= *unit).unwrap_or(5);
    let fine = UNITS[(coarse + 1).min(5)];
    // The value is rounded to the nearest finer unit, half of it upwards, like Go's `Round`.
    let ns = (ns + fine / 2) / fine * fine;
    let fraction = |ns: u64, unit: u64| {
        let digits = unit.ilog10() as usize;
        let text = format!("{}.{:0digits$}", ns / unit, ns % unit);
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    match ns {
        0 => "0s".to_owned(),
        1..1_000 => format!("{ns}ns"),
        1_000..1_000_000 => format!("{}µs", fraction(ns, 1_000)),
        1_000_000..1_000_000_000 => format!("{}ms", fraction(ns, 1_000_000)),
        _ => {
            let (hours, rest) = (ns / UNITS[0], ns % UNITS[0]);
            let (minutes, rest) = (rest / UNITS[1], rest % UNITS[1]);
            let seconds = fraction(rest, UNITS[2]);
            match (hours, minutes) {
                (0, 0) => format!("{seconds}s"),
                (0, _) => format!("{minutes}m{seconds}s"),
                _ => format!("{hours}h{minutes}m{seconds}s"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_written_as_go_writes_them() {
        assert_eq!(go_duration(0), "0s");
        assert_eq!(go_duration(999), "999ns");
        assert_eq!(go_duration(714_123), "714.123µs");
        assert_eq!(go_duration(2_345_678), "2.346ms");
        assert_eq!(go_duration(1_234_567_890), "1.235s");
        assert_eq!(go_duration(10_000_000_000), "10s");
        assert_eq!(go_duration(61_400_000_000), "1m1s");
        assert_eq!(go_duration(3_600_000_000_000), "1h0m0s");
        assert_eq!(go_duration(999_999_999), "1s");
    }
}
