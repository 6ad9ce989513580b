//! Layout of Artillery's `--output`: milliseconds with one decimal, times in milliseconds since 1970.
//!
//! `http.response_time` is latency from due to the last byte, as readers understand it. Artillery's own value
//! ends at the first byte, which is `http.first_byte` here. A virtual user is one iteration of a scenario, or
//! one request if there is no scenario. It is completed if it passed, failed if it did not, and skipped if it
//! was missed. The length of an iteration is not recorded.
//!
//! Intermediate reports cover ten seconds and have only counts and means, because distributions are recorded
//! per round.

use recording::{RoundRecord, float};
use serde_json::{Map, Value, json};
use stats::Histogram;

use super::merged::{Merged, max_ms, mean_ms, min_ms, quantile_ms};

const PERIOD_US: u64 = 10_000_000;

pub(super) fn json(merged: &Merged<'_>) -> String {
    let (first, last) = merged.span();
    let (first_ms, last_ms) = (first.as_millisecond(), last.as_millisecond());
    let mut summaries = Map::new();
    let times = [
        ("http.response_time", &merged.latency),
        ("http.first_byte", &merged.first_byte),
    ];
    let session = ("vusers.session_length", &merged.latency);
    // A session is an iteration. The length of a scenario's iteration is not recorded.
    let session = merged.iterations().is_none().then_some(session);
    for (name, histogram) in times.into_iter().chain(session) {
        if !histogram.is_empty() {
            summaries.insert(name.to_owned(), summary(histogram));
        }
    }
    let intermediate: Vec<Value> = merged
        .rounds
        .iter()
        .flat_map(|round| periods(round, began_ms(merged, round)))
        .collect();
    let aggregate = json!({
        "counters": counters(merged),
        "rates": { "http.request_rate": merged.per_second(merged.sent()).round() },
        "firstCounterAt": first_ms,
        "firstHistogramAt": first_ms,
        "lastCounterAt": last_ms,
        "lastHistogramAt": last_ms,
        "firstMetricAt": first_ms,
        "lastMetricAt": last_ms,
        "period": last_ms,
        "summaries": summaries.clone(),
        "histograms": summaries,
    });
    format!(
        "{:#}\n",
        json!({ "aggregate": aggregate, "intermediate": intermediate })
    )
}

fn counters(merged: &Merged<'_>) -> Map<String, Value> {
    let outcomes = &merged.outcomes;
    let mut counters = Map::new();
    let mut set = |name: String, count: u64| counters.insert(name, count.into());
    let (created, completed, failed) = match merged.iterations() {
        Some(iterations) => (
            // A missed iteration was planned and never created.
            iterations.completed + iterations.broken + iterations.cut - outcomes.missed,
            iterations.completed,
            iterations.broken - outcomes.missed,
        ),
        None => (
            merged.sent(),
            outcomes.passed,
            merged.sent() - outcomes.passed,
        ),
    };
    set("vusers.created".to_owned(), created);
    set(format!("vusers.created_by_name.{}", merged.name), created);
    set("vusers.completed".to_owned(), completed);
    set("vusers.failed".to_owned(), failed);
    if outcomes.missed > 0 {
        set("vusers.skipped".to_owned(), outcomes.missed);
    }
    set("http.requests".to_owned(), merged.sent());
    set("http.responses".to_owned(), outcomes.completed());
    set("http.downloaded_bytes".to_owned(), merged.bytes_in_bodies);
    for (code, count) in &merged.statuses {
        set(format!("http.codes.{code}"), *count);
    }
    for (kind, count) in merged.errors() {
        set(format!("errors.{}", error_name(&kind)), count);
    }
    counters
}

/// The names that Node uses for errors with a code.
fn error_name(kind: &str) -> &str {
    match kind {
        "failed: timeout" => "ETIMEDOUT",
        "failed: reset" => "ECONNRESET",
        other => other,
    }
}

fn summary(histogram: &Histogram) -> Value {
    let quantile = |share: f64| tenth(quantile_ms(histogram, share));
    json!({
        "min": tenth(min_ms(histogram)),
        "max": tenth(max_ms(histogram)),
        "count": histogram.len(),
        "mean": tenth(mean_ms(histogram)),
        "p50": quantile(0.5),
        "median": quantile(0.5),
        "p75": quantile(0.75),
        "p90": quantile(0.9),
        "p95": quantile(0.95),
        "p99": quantile(0.99),
        "p999": quantile(0.999),
    })
}

fn began_ms(merged: &Merged<'_>, round: &RoundRecord) -> i64 {
    let first = merged
        .rounds
        .first()
        .map_or(0, |first| first.started_offset_us);
    let offset_ms = round.started_offset_us.saturating_sub(first) / 1000;
    merged.span().0.as_millisecond() + i64::try_from(offset_ms).expect("a thousandth of 64 bits")
}

/// The round in periods of ten seconds.
fn periods(round: &RoundRecord, began_ms: i64) -> Vec<Value> {
    // The width is at least 1 µs, so that a recording without windows causes no division by zero.
    let width_us = round.windows.width_us.max(1);
    let per_period = usize::try_from((PERIOD_US / width_us).max(1)).expect("at most ten million");
    let sum = |counts: &[u64], index: usize| -> u64 {
        counts
            .iter()
            .skip(index * per_period)
            .take(per_period)
            .sum()
    };
    let count = round.windows.completed.len().div_ceil(per_period);
    let period = |index: usize| {
        let answers = sum(&round.windows.completed, index);
        let errors = sum(&round.windows.errors, index);
        let mean_ms =
            float(sum(&round.windows.latency_sum_ns, index)) / float(answers.max(1)) / 1e6;
        let start_us = width_us * (index * per_period) as u64;
        let length_us =
            (width_us * per_period as u64).min(round.elapsed_us.saturating_sub(start_us));
        // The last period may be shorter than ten seconds, and a rate over its full length would be too low.
        let rate = float(answers) * 1e6 / float(length_us.max(1));
        let start_ms = began_ms + i64::try_from(start_us / 1000).expect("a thousandth of 64 bits");
        let end_ms = start_ms + i64::try_from(length_us / 1000).expect("a thousandth of 64 bits");
        let mut counters = Map::from_iter([("http.responses".to_owned(), answers.into())]);
        if errors > 0 {
            counters.insert("vusers.failed".to_owned(), errors.into());
        }
        let times = json!({ "http.response_time": { "count": answers, "mean": tenth(mean_ms) } });
        json!({
            "counters": counters,
            "rates": { "http.request_rate": rate.round() },
            "firstMetricAt": start_ms,
            "lastMetricAt": end_ms,
            "period": start_ms.to_string(),
            "summaries": times.clone(),
            "histograms": times,
        })
    };
    (0..count).map(period).collect()
}

fn tenth(ms: f64) -> f64 {
    (ms * 10.0).round() / 10.0
}
