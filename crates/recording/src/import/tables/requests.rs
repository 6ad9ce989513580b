//! Tools that repeat one request: vegeta, oha, hey, ghz, bombardier, Fortio and Nighthawk.

use model::Metric;
use serde_json::Value;

use super::super::table::{Answered, Counts, Fields, Pace, find, labels, number, text};
use super::super::{Condition, ForeignRun, Reports, by_status, whole};
use crate::digits;

use Metric::{Max, Mean, Min, P50, P75, P90, P95, P99, P999, Stdev};

pub(in crate::import) const VEGETA: Fields = Fields {
    shape: "vegeta report -type=json",
    marks: &["latencies/99th", "status_codes"],
    latencies: "latencies",
    unit_us: Some(1e-3),
    figures: &[
        (Min, "min"),
        (Mean, "mean"),
        (P50, "50th"),
        (P90, "90th"),
        (P95, "95th"),
        (P99, "99th"),
        (Max, "max"),
    ],
    counts: Counts::StatusesOf("status_codes", "requests"),
    // vegeta's throughput counts successes over the whole run. This is the meaning of `requests/s` here.
    rate: Pace::Successes("throughput"),
    offered: "rate",
    more: |tree, run| {
        let first = tree
            .get("errors")
            .and_then(|errors| errors.get(0)?.as_str());
        if let Some(first) = first {
            run.note(format!("vegeta's first error: {first}"));
        }
    },
    notes: &[super::super::vegeta::ESTIMATES, super::super::vegeta::CLOCK],
    ..Fields::NONE
};

const OHA_CLOCK: &str = "oha counts latency from the send, or with --latency-correction from the \
                         wake-up of its timer, but never from due";

pub(in crate::import) const OHA: Fields = Fields {
    shape: "oha --output-format json",
    marks: &["summary", "latencyPercentiles", "statusCodeDistribution"],
    unit_us: Some(1e6),
    figures: &[
        (Min, "summary/fastest"),
        (Mean, "summary/average"),
        (P50, "latencyPercentiles/p50"),
        (P75, "latencyPercentiles/p75"),
        (P90, "latencyPercentiles/p90"),
        (P95, "latencyPercentiles/p95"),
        (P99, "latencyPercentiles/p99"),
        (P999, "latencyPercentiles/p99.9"),
        (Max, "summary/slowest"),
    ],
    counts: Counts::By(of_oha),
    rate: Pace::Over("summary/total", 1.0),
    is_closed_loop: true,
    more: notes_of_oha,
    notes: &[OHA_CLOCK],
    ..Fields::NONE
};

/// oha's text looks like hey's, except for the success rate and oha's own units.
pub(in crate::import) const OHA_TEXT: Fields = Fields {
    shape: "oha",
    reports: Reports::Lines(&["Slowest:", "Summary:"]),
    words: &["Success rate:", "Requests/sec:"],
    marks: &[],
    tree: labels,
    figures: &[
        (Min, "Fastest"),
        (Mean, "Average"),
        (P50, "50%"),
        (P75, "75%"),
        (P90, "90%"),
        (P95, "95%"),
        (P99, "99%"),
        (P999, "99.9%"),
        (Max, "Slowest"),
    ],
    rate: Pace::Over("Total", 1.0),
    ..OHA
};

/// oha's error text for requests in flight when its time is over. The server did not fail them.
const CUT_OFF: &str = "aborted due to deadline";

fn of_oha(tree: &Value) -> Option<Answered> {
    let (succeeded, others) = by_status(find(tree, "statusCodeDistribution|statuses"));
    let errors = find(tree, "errorDistribution|errors").and_then(Value::as_object);
    let broken = errors
        .into_iter()
        .flatten()
        .filter(|(kind, _)| *kind != CUT_OFF);
    let broken = broken
        .map(|(_, count)| count.as_f64().map_or(0, whole))
        .sum::<u64>();
    Some(Answered {
        succeeded,
        failed: others + broken,
    })
}

fn notes_of_oha(tree: &Value, run: &mut ForeignRun) {
    let (_, others) = by_status(find(tree, "statusCodeDistribution|statuses"));
    if others > 0 {
        run.note("oha's own success rate counts every answer as a success, whatever its status");
    }
    let errors = find(tree, "errorDistribution|errors");
    if let Some(cut_off) = errors.and_then(|errors| errors.get(CUT_OFF)?.as_f64()) {
        let count = digits::count(whole(cut_off));
        run.note(format!(
            "no figure contains the {count} requests that were in flight at the end"
        ));
    }
}

pub(in crate::import) const HEY_TEXT: Fields = Fields {
    shape: "hey",
    reports: Reports::Lines(&["Slowest:", "Summary:"]),
    words: &["Slowest:", "Response time histogram:"],
    tree: labels,
    unit_us: Some(1e6),
    figures: OHA_TEXT.figures,
    counts: Counts::Statuses("statuses", "errors"),
    rate: Pace::Over("Total", 1.0),
    is_closed_loop: true,
    notes: &["hey prints latencies in steps of 0.1 ms and keeps only the first million"],
    ..Fields::NONE
};

const GHZ_NOTE: &str =
    "ghz counts latency from the actual send. A call succeeds with the status OK";

/// ghz's text looks like hey's, but each time has a unit.
pub(in crate::import) const GHZ_TEXT: Fields = Fields {
    shape: "ghz",
    reports: Reports::Lines(&["Slowest:", "Summary:"]),
    words: &["Slowest:", "Response time histogram:", "Count:"],
    tree: labels,
    unit_us: Some(1e3),
    figures: OHA_TEXT.figures,
    counts: Counts::By(of_ghz),
    failures: "a status other than OK, or no answer",
    rate: Pace::Over("Total", 1e-3),
    notes: &[GHZ_NOTE],
    ..Fields::NONE
};

pub(in crate::import) const GHZ: Fields = Fields {
    shape: "ghz -O json",
    marks: &["latencyDistribution", "rps", "average"],
    unit_us: Some(1e-3),
    figures: &[
        (Min, "fastest"),
        (Mean, "average"),
        (P50, "latencyDistribution/[percentage=50]/latency"),
        (P75, "latencyDistribution/[percentage=75]/latency"),
        (P90, "latencyDistribution/[percentage=90]/latency"),
        (P95, "latencyDistribution/[percentage=95]/latency"),
        (P99, "latencyDistribution/[percentage=99]/latency"),
        (Max, "slowest"),
    ],
    rate: Pace::Over("total", 1e-9),
    subject: "options/call",
    conditions: &[
        (Condition::Target, "options/host"),
        (Condition::Connections, "options/connections"),
        (Condition::Users, "options/concurrency"),
    ],
    offered: "options/rps",
    ..GHZ_TEXT_JSON
};

const GHZ_TEXT_JSON: Fields = Fields {
    counts: Counts::By(of_ghz),
    failures: "a status other than OK, or no answer",
    notes: &[GHZ_NOTE],
    ..Fields::NONE
};

fn of_ghz(tree: &Value) -> Option<Answered> {
    let statuses = find(tree, "statusCodeDistribution|statuses")?.as_object()?;
    let sum = |is_ok: bool| {
        let chosen = statuses.iter().filter(|(name, _)| (*name == "OK") == is_ok);
        chosen
            .filter_map(|(_, count)| count.as_f64())
            .map(whole)
            .sum::<u64>()
    };
    // Failed calls have a status too. The larger number also contains calls without one.
    let total = number(tree, "count|Count").map_or(0, whole);
    let succeeded = sum(true);
    Some(Answered {
        succeeded,
        failed: sum(false).max(total.saturating_sub(succeeded)),
    })
}

pub(in crate::import) const BOMBARDIER: Fields = Fields {
    shape: "bombardier -o json",
    marks: &["spec", "result/timeTakenSeconds"],
    latencies: "result/latency",
    figures: &[
        (Mean, "mean"),
        (P50, "percentiles/50"),
        (P75, "percentiles/75"),
        (P90, "percentiles/90"),
        (P95, "percentiles/95"),
        (P99, "percentiles/99"),
        (Max, "max"),
    ],
    counts: Counts::Sums(
        &["result/req2xx", "result/req3xx"],
        &[
            "result/req1xx",
            "result/req4xx",
            "result/req5xx",
            "result/others",
        ],
    ),
    rate: Pace::Over("result/timeTakenSeconds", 1.0),
    subject: "spec/url",
    conditions: &[
        (Condition::Target, "spec/url"),
        (Condition::Connections, "spec/numberOfConnections"),
    ],
    offered: "spec/rate",
    is_closed_loop: true,
    more: |tree, run| {
        let seconds = number(tree, "spec/testDurationSeconds").map(|s| format!("{s}s"));
        let requests =
            number(tree, "spec/numberOfRequests").map(|count| format!("{count} requests"));
        run.under(Condition::Length, seconds.or(requests));
        super::super::bombardier::notes(run);
    },
    ..Fields::NONE
};

pub(in crate::import) const FORTIO: Fields = Fields {
    shape: "fortio -json",
    marks: &["DurationHistogram", "ActualDuration"],
    latencies: "DurationHistogram",
    unit_us: Some(1e6),
    figures: &[
        (Min, "Min"),
        (Mean, "Avg"),
        (Stdev, "StdDev"),
        (P50, "Percentiles/[Percentile=50]/Value"),
        (P75, "Percentiles/[Percentile=75]/Value"),
        (P90, "Percentiles/[Percentile=90]/Value"),
        (P95, "Percentiles/[Percentile=95]/Value"),
        (P99, "Percentiles/[Percentile=99]/Value"),
        (P999, "Percentiles/[Percentile=99.9]/Value"),
        (Max, "Max"),
    ],
    counts: Counts::By(of_fortio),
    failures: "a status outside of 200 to 399, a status of gRPC other than OK, or no answer",
    rate: Pace::Over("ActualDuration", 1e-9),
    subject: "URL|Destination",
    conditions: &[
        (Condition::Target, "URL|Destination"),
        (Condition::Connections, "NumThreads"),
        (Condition::Length, "RequestedDuration"),
    ],
    offered: "RequestedQPS",
    more: |tree, run| {
        // Without a rate (`max`), Fortio waits for each answer.
        run.is_closed_loop = run.offered_per_s.is_none() && find(tree, "RequestedQPS").is_some();
    },
    notes: &[
        "Fortio interpolates percentiles within the cells of its histogram",
        "Fortio counts latency from the actual send. If all threads are busy, the schedule slips",
    ],
    ..Fields::NONE
};

fn of_fortio(tree: &Value) -> Option<Answered> {
    let codes = find(tree, "RetCodes")?.as_object()?;
    let mut answered = Answered::default();
    for (code, count) in codes {
        let is_good = match code.parse::<i32>() {
            Ok(code) => (200..400).contains(&code),
            Err(_) => ["OK", "SERVING"].contains(&&**code),
        };
        let of_kind = if is_good {
            &mut answered.succeeded
        } else {
            &mut answered.failed
        };
        *of_kind += count.as_f64().map_or(0, whole);
    }
    // Without a code, the result of the requests is unknown.
    (answered.succeeded + answered.failed > 0).then_some(answered)
}

pub(in crate::import) const NIGHTHAWK: Fields = Fields {
    shape: "nighthawk --output-format json",
    marks: &[
        "results/[name=global]/statistics",
        "results/[name=global]/counters",
    ],
    latencies: "results/[name=global]/statistics/[id=benchmark_http_client.request_to_response]|\
                results/[name=global]/statistics/[id=benchmark_http_client.latency_2xx]",
    // Its durations are texts with a unit, such as `0.000200s`.
    unit_us: Some(1e6),
    figures: &[
        (Min, "min"),
        (Mean, "mean"),
        (Stdev, "pstdev"),
        (P50, "percentiles/[percentile>=0.5]/duration"),
        (P75, "percentiles/[percentile>=0.75]/duration"),
        (P90, "percentiles/[percentile>=0.9]/duration"),
        (P95, "percentiles/[percentile>=0.95]/duration"),
        (P99, "percentiles/[percentile>=0.99]/duration"),
        (P999, "percentiles/[percentile>=0.999]/duration"),
        (Max, "max"),
    ],
    counts: Counts::By(of_nighthawk),
    rate: Pace::Over(
        "results/[name=global]/execution_duration|options/duration",
        1.0,
    ),
    subject: "options/uri",
    conditions: &[
        (Condition::Target, "options/uri"),
        (Condition::Length, "options/duration"),
    ],
    more: |tree, run| {
        // Rate and connections belong to one worker, and each worker has a result next to the sum.
        let results = find(tree, "results")
            .and_then(Value::as_array)
            .map_or(0, Vec::len);
        let concurrency = number(tree, "options/concurrency");
        let workers =
            concurrency.unwrap_or(crate::float::float(results.saturating_sub(1).max(1) as u64));
        let all = |path: &str| number(tree, path).map(|of_one| of_one * workers);
        run.under(Condition::Connections, all("options/connections"));
        run.offered_per_s = all("options/requests_per_second");
    },
    notes: &["Nighthawk's percentiles are the next higher row of its histogram"],
    ..Fields::NONE
};

fn of_nighthawk(tree: &Value) -> Option<Answered> {
    let counters = find(tree, "results/[name=global]/counters")?.as_array()?;
    let mut answered = Answered::default();
    for counter in counters {
        let count = number(counter, "value").map_or(0, whole);
        match text(counter, "name")?.as_str() {
            "benchmark.http_2xx" | "benchmark.http_3xx" => answered.succeeded += count,
            "benchmark.http_1xx"
            | "benchmark.http_4xx"
            | "benchmark.http_5xx"
            | "benchmark.http_xxx"
            | "benchmark.stream_resets"
            | "benchmark.pool_connection_failure"
            | "benchmark.pool_overflow" => {
                answered.failed += count;
            }
            _ => {}
        }
    }
    Some(answered)
}
