//! The tables of fields of each kind of file: names of figures, units, failures and conditions.

use model::Metric;
use serde_json::Value;

use super::table::{Answered, Counts, Fields, Pace, Split, find, labels, number, rows, text};
use super::{Condition, ForeignRun, Reports, by_status, whole, words};
use crate::digits;

use Metric::{Max, Mean, Min, P50, P75, P90, P95, P99, P999, Requests, Stdev};

pub(super) const VEGETA: Fields = Fields {
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
    notes: &[super::vegeta::ESTIMATES, super::vegeta::CLOCK],
    ..Fields::NONE
};

const OHA_CLOCK: &str = "oha counts latency from the send, or with --latency-correction from the \
                         wake-up of its timer, but never from due";

pub(super) const OHA: Fields = Fields {
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
pub(super) const OHA_TEXT: Fields = Fields {
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

pub(super) const HEY_TEXT: Fields = Fields {
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
pub(super) const GHZ_TEXT: Fields = Fields {
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

pub(super) const GHZ: Fields = Fields {
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

pub(super) const BOMBARDIER: Fields = Fields {
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
        super::bombardier::notes(run);
    },
    ..Fields::NONE
};

pub(super) const AUTOCANNON: Fields = Fields {
    shape: "autocannon --json",
    marks: &["non2xx", "latency/p97_5"],
    latencies: "latency",
    unit_us: Some(1e3),
    figures: &[
        (Min, "min"),
        (Mean, "mean|average"),
        (Stdev, "stddev"),
        (P50, "p50"),
        (P75, "p75"),
        (P90, "p90"),
        (P99, "p99"),
        (P999, "p99_9"),
        (Max, "max"),
    ],
    // Errors already include timeouts.
    counts: Counts::Sums(&["2xx", "3xx"], &["1xx", "4xx", "5xx", "errors"]),
    rate: Pace::Over("duration", 1.0),
    subject: "url",
    conditions: &[
        (Condition::Target, "url"),
        (Condition::Connections, "connections"),
        (Condition::Pipelining, "pipelining"),
    ],
    is_closed_loop: true,
    more: |tree, run| {
        if let Some(count) = number(tree, "mismatches").filter(|count| *count > 0.0) {
            run.note(format!(
                "{} answers had an unexpected body",
                digits::count(whole(count))
            ));
        }
    },
    notes: &[
        "autocannon keeps latency in whole milliseconds, and has no p95",
        "in runs at a rate (-R) autocannon fills in latencies that it did not measure",
    ],
    ..Fields::NONE
};

const ARTILLERY_FIGURES: &[(Metric, &str)] = &[
    (Min, "min"),
    (Mean, "mean"),
    (P50, "p50|median"),
    (P75, "p75"),
    (P90, "p90"),
    (P95, "p95"),
    (P99, "p99"),
    (P999, "p999"),
    (Max, "max"),
];

const ROUNDED: &str = "Artillery's figures are rounded to 0.1 ms or whole milliseconds, and its \
                       percentiles are estimates with an error of 1 %";
const FIRST_BYTE: &str = "Artillery's response time ends with the first byte. For the whole answer, \
                          set `extendedMetrics: true`";

/// The time to the last byte is `http.total`, which exists only with `extendedMetrics: true`.
pub(super) const ARTILLERY: Fields = Fields {
    shape: "artillery run --output",
    marks: &["aggregate/counters", "aggregate/summaries", "intermediate"],
    latencies: "aggregate/summaries/http.total|aggregate/summaries/http.response_time|\
                aggregate/summaries/engine.http.response_time",
    unit_us: Some(1e3),
    figures: ARTILLERY_FIGURES,
    counts: Counts::By(of_artillery),
    failures: "a status outside of 200 to 399, a failed expectation, or an error",
    more: |tree, run| {
        let number = |path: &str| number(tree, path);
        let last = number("aggregate/lastMetricAt|aggregate/lastCounterAt");
        let first = number("aggregate/firstMetricAt|aggregate/firstCounterAt");
        let span_s = last.zip(first).map(|(last, first)| (last - first) / 1e3);
        match span_s.filter(|span| *span >= 1.0) {
            Some(span) => run.rate_over(Some(span)),
            // The marks are times of periods. A short run has too few of them for a rate.
            None => run.rate_of_all(number(
                "aggregate/rates/http.request_rate|aggregate/rates/engine.http.request_rate",
            )),
        }
        run.note(match find(tree, "aggregate/summaries/http.total") {
            Some(_) => {
                "the latency is Artillery's `http.total`, which includes name lookup and connecting"
            }
            None => FIRST_BYTE,
        });
    },
    notes: &[ROUNDED],
    ..Fields::NONE
};

/// Counts the answers of Artillery 2. A failed expectation or capture belongs to an answer that its status
/// counts already.
fn of_artillery(tree: &Value) -> Option<Answered> {
    let counters = find(tree, "aggregate/counters")?.as_object()?;
    let (mut good, mut bad, mut unanswered, mut unexpected) = (0, 0, 0, 0);
    for (name, count) in counters {
        let count = count.as_f64().map_or(0, whole);
        let name = name.strip_prefix("engine.").unwrap_or(name);
        if let Some(code) = name.strip_prefix("http.codes.") {
            let is_good = code
                .parse()
                .is_ok_and(|code: u16| (200..400).contains(&code));
            *if is_good { &mut good } else { &mut bad } += count;
        } else if let Some(error) = name.strip_prefix("errors.") {
            let is_of_answer = ["Failed expectations", "Failed capture"];
            let is_of_answer = is_of_answer.iter().any(|start| error.starts_with(start));
            *if is_of_answer {
                &mut unexpected
            } else {
                &mut unanswered
            } += count;
        }
    }
    // An answer of a bad status usually fails its expectation too, so the larger number counts.
    let failed = unexpected.max(bad).min(good + bad);
    Some(Answered {
        succeeded: good + bad - failed,
        failed: failed + unanswered,
    })
}

pub(super) const ARTILLERY_1: Fields = Fields {
    shape: "artillery run --output (version 1)",
    marks: &["aggregate/latency", "aggregate/codes", "intermediate"],
    latencies: "aggregate/latency",
    unit_us: Some(1e3),
    figures: ARTILLERY_FIGURES,
    counts: Counts::Statuses("aggregate/codes", "aggregate/errors"),
    rate: Pace::Answers("aggregate/rps/mean"),
    notes: &[FIRST_BYTE, ROUNDED],
    ..Fields::NONE
};

pub(super) const FORTIO: Fields = Fields {
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

pub(super) const NIGHTHAWK: Fields = Fields {
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

pub(super) const JMETER_STATISTICS: Fields = Fields {
    shape: "statistics.json of JMeter",
    marks: &["Total/sampleCount", "Total/meanResTime"],
    split: |tree| {
        let parts = tree.as_object().into_iter().flatten();
        let named = parts.filter(|(name, _)| *name != "Total");
        Split {
            total: tree.get("Total"),
            named: named.map(|(name, part)| (name.clone(), part)).collect(),
        }
    },
    unit_us: Some(1e3),
    figures: &[
        (Min, "minResTime"),
        (Mean, "meanResTime"),
        (P50, "medianResTime"),
        (P90, "pct1ResTime"),
        (P95, "pct2ResTime"),
        (P99, "pct3ResTime"),
        (Max, "maxResTime"),
    ],
    counts: Counts::Failed("sampleCount", "errorCount"),
    failures: JMETER_FAILURES,
    rate: Pace::Answers("throughput"),
    is_closed_loop: true,
    notes: &[
        "JMeter writes no names of its three percentiles. They are read as p90, p95 and p99, which \
         JMeter uses unless `aggregate_rpt_pct1` to `pct3` are set",
        "JMeter keeps latency in whole milliseconds",
    ],
    ..Fields::NONE
};

pub(super) const JMETER_FAILURES: &str = "JMeter calls them errors: a status of 400 or more, a \
                                          failed assertion, or no answer";

/// JMeter's aggregate report, from its plugin and from its window, and the summary report.
pub(super) const JMETER_AGGREGATE: Fields = Fields {
    shape: "aggregate report of JMeter",
    reports: Reports::FirstLine,
    words: &["rror"],
    marks: &[
        "0/sampler_label|0/Label",
        "0/aggregate_report_count|0/# Samples",
    ],
    tree: rows,
    split: |rows| {
        named_rows(rows, &["TOTAL", "Total"], |row| {
            text(row, "sampler_label|Label")
        })
    },
    unit_us: Some(1e3),
    figures: &[
        (Min, "aggregate_report_min|Min"),
        (Mean, "average|Average"),
        (Stdev, "aggregate_report_stddev|Std. Dev."),
        (P50, "aggregate_report_median|Median"),
        (P90, "aggregate_report_90%_line|90% Line"),
        (P95, "aggregate_report_95%_line|95% Line"),
        (P99, "aggregate_report_99%_line|99% Line"),
        (Max, "aggregate_report_max|Max"),
    ],
    counts: Counts::Percent(
        "aggregate_report_count|# Samples",
        "aggregate_report_error%|Error %",
    ),
    failures: JMETER_FAILURES,
    rate: Pace::Answers("aggregate_report_rate|Throughput"),
    is_closed_loop: true,
    notes: &["JMeter keeps latency in whole milliseconds"],
    ..Fields::NONE
};

/// Locust's table of requests, of old and new versions.
pub(super) const LOCUST: Fields = Fields {
    shape: "stats.csv of Locust",
    reports: Reports::FirstLine,
    words: &["Name", "equest"],
    marks: &["0/Name", "0/Request Count|0/# requests"],
    tree: rows,
    split: |rows| {
        named_rows(rows, &["Aggregated", "Total"], |row| {
            let name = text(row, "Name")?;
            // The row of all requests has no type, or in old versions the type `None`.
            let method = text(row, "Type|Method").filter(|method| method != "None");
            Some(method.map_or(name.clone(), |method| format!("{method} {name}")))
        })
    },
    unit_us: Some(1e3),
    figures: &[
        (Min, "Min Response Time|Min response time"),
        (Mean, "Average Response Time|Average response time"),
        (P50, "50%|Median Response Time|Median response time"),
        (P75, "75%"),
        (P90, "90%"),
        (P95, "95%"),
        (P99, "99%"),
        (P999, "99.9%|99.90%"),
        (Max, "Max Response Time|Max response time|100%"),
    ],
    counts: Counts::Failed("Request Count|# requests", "Failure Count|# failures"),
    failures: "Locust calls them failures",
    rate: Pace::Answers("Requests/s"),
    is_closed_loop: true,
    notes: &[
        "Locust rounds percentiles to two digits, or to whole milliseconds",
        "a user of Locust waits for each answer, so a stall hides the requests that it delays",
    ],
    ..Fields::NONE
};

fn named_rows<'a>(
    rows: &'a Value,
    totals: &[&str],
    name: fn(&Value) -> Option<String>,
) -> Split<'a> {
    let mut split = Split::default();
    for row in rows.as_array().into_iter().flatten() {
        match name(row) {
            Some(name) if totals.contains(&&*name) => split.total = Some(row),
            Some(name) => split.named.push((name, row)),
            None => {}
        }
    }
    split
}

const GATLING_FIGURES: &[(Metric, &str)] = &[
    (Min, "minResponseTime/total"),
    (Mean, "meanResponseTime/total"),
    (Stdev, "standardDeviation/total"),
    (P50, "percentiles1/total"),
    (P75, "percentiles2/total"),
    (P95, "percentiles3/total"),
    (P99, "percentiles4/total"),
    (Max, "maxResponseTime/total"),
];

/// Gatling's figures of all requests.
pub(super) const GATLING_GLOBAL: Fields = Fields {
    shape: "global_stats.json of Gatling",
    marks: &["numberOfRequests/total", "percentiles1/total"],
    unit_us: Some(1e3),
    figures: GATLING_FIGURES,
    counts: Counts::Sums(&["numberOfRequests/ok"], &["numberOfRequests/ko"]),
    failures: "Gatling calls them KO",
    rate: Pace::Successes("meanNumberOfRequestsPerSecond/ok"),
    notes: &[
        "Gatling writes no names of its four percentiles. They are read as p50, p75, p95 and p99, \
         which Gatling uses unless `charting.indicators` says otherwise",
        "Gatling keeps latency in whole milliseconds",
    ],
    ..Fields::NONE
};

/// Gatling's figures of all requests and of each named request.
pub(super) const GATLING: Fields = Fields {
    shape: "stats.json of Gatling",
    marks: &["stats/numberOfRequests", "stats/percentiles1", "contents"],
    split: |tree| {
        let mut split = Split {
            total: tree.get("stats"),
            named: Vec::new(),
        };
        leaves(tree, "", &mut split.named);
        split
    },
    unit_us: Some(1e3),
    figures: GATLING_FIGURES,
    counts: Counts::Sums(&["numberOfRequests/ok"], &["numberOfRequests/ko"]),
    failures: "Gatling calls them KO",
    rate: Pace::Successes("meanNumberOfRequestsPerSecond/ok"),
    notes: GATLING_GLOBAL.notes,
    ..Fields::NONE
};

/// The requests in the groups of Gatling, with the names of their groups.
fn leaves<'a>(group: &'a Value, path: &str, found: &mut Vec<(String, &'a Value)>) {
    let contents = group.get("contents").and_then(Value::as_object);
    for part in contents.into_iter().flatten().map(|(_, part)| part) {
        let name = text(part, "name").unwrap_or_default();
        let name = if path.is_empty() {
            name
        } else {
            format!("{path} / {name}")
        };
        match (part.get("contents"), part.get("stats")) {
            (Some(_), _) => leaves(part, &name, found),
            (None, Some(stats)) => found.push((name, stats)),
            (None, None) => {}
        }
    }
}

pub(super) const HYPERFOIL: Fields = Fields {
    shape: "run of Hyperfoil",
    marks: &["stats", "info/benchmark"],
    split: |tree| {
        let mut split = Split::default();
        for part in tree
            .get("stats")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            let phase = text(part, "total/phase|name").unwrap_or_default();
            let metric = text(part, "total/metric").map_or(String::new(), |it| format!("/{it}"));
            split.named.push((phase + &metric, part));
        }
        split
    },
    latencies: "total/summary",
    unit_us: Some(1e-3),
    figures: &[
        (Min, "minResponseTime"),
        (Mean, "meanResponseTime"),
        (Stdev, "stdDevResponseTime"),
        (P50, "percentileResponseTime/50.0"),
        (P75, "percentileResponseTime/75.0"),
        (P90, "percentileResponseTime/90.0"),
        (P95, "percentileResponseTime/95.0"),
        (P99, "percentileResponseTime/99.0"),
        (P999, "percentileResponseTime/99.9"),
        (Max, "maxResponseTime"),
    ],
    counts: Counts::By(of_hyperfoil),
    more: |tree, run| {
        let start_ms = number(tree, "total/summary/startTime|total/start");
        let end_ms = number(tree, "total/summary/endTime|total/end");
        run.rate_over(end_ms.zip(start_ms).map(|(end, start)| (end - start) / 1e3));
    },
    ..Fields::NONE
};

/// Counts by the classes of status codes. Without them, an answer may be a failure.
fn of_hyperfoil(tree: &Value) -> Option<Answered> {
    let summary = find(tree, "total/summary")?;
    let class = |class: &str| {
        let paths = ["extensions/http/", "http/", ""];
        let found = paths
            .iter()
            .find_map(|path| number(summary, &format!("{path}status_{class}")));
        found.map(whole)
    };
    let succeeded = class("2xx")? + class("3xx").unwrap_or(0);
    let broken = ["connectionErrors", "requestTimeouts", "internalErrors"];
    let broken = broken
        .iter()
        .filter_map(|name| number(summary, name))
        .map(whole);
    let others = ["4xx", "5xx", "other"]
        .iter()
        .filter_map(|name| class(name));
    Some(Answered {
        succeeded,
        failed: others.chain(broken).sum(),
    })
}

pub(super) const SIEGE: Fields = Fields {
    shape: "siege",
    marks: &["transactions", "availability", "elapsed_time"],
    unit_us: Some(1e6),
    figures: &[
        (Min, "shortest_transaction|Shortest transaction"),
        (Mean, "response_time|Response time"),
        (Max, "longest_transaction|Longest transaction"),
    ],
    counts: Counts::Sums(
        &["successful_transactions|Successful transactions"],
        &["failed_transactions|Failed transactions"],
    ),
    failures: "a status of 400 or more, or no answer",
    rate: Pace::Over("elapsed_time|Elapsed time", 1.0),
    is_closed_loop: true,
    more: |_, run| {
        // A time of 0.00 s is below siege's resolution and not a latency of zero.
        run.figures
            .retain(|metric, values| *metric == Requests || values[0] > 0.0);
        if !run.figures.contains_key(&Mean) {
            run.note("its mean is 0.00 s. siege rounds to 10 ms, so the mean is unknown");
        }
    },
    notes: &["siege rounds times to 10 ms and has no percentiles"],
    ..Fields::NONE
};

pub(super) const SIEGE_TEXT: Fields = Fields {
    reports: Reports::Lines(&["Transactions:"]),
    words: &["Transactions:", "Availability:", "Elapsed time:"],
    marks: &[],
    tree: labels,
    ..SIEGE
};

pub(super) const H2LOAD: Fields = Fields {
    shape: "h2load",
    reports: Reports::Lines(&["finished in ", "starting benchmark..."]),
    words: &["finished in ", "time for request:"],
    tree: labels,
    latencies: "time for request",
    figures: &[
        (Min, "min"),
        (Mean, "mean"),
        (Stdev, "sd"),
        (P50, "median"),
        (P95, "p95"),
        (P99, "p99"),
        (Max, "max"),
    ],
    is_closed_loop: true,
    more: of_h2load,
    ..Fields::NONE
};

/// Reads the sentences of h2load, which have no labels: `finished in 52ms`, `1000 total, … 1000 succeeded`.
fn of_h2load(tree: &Value, run: &mut ForeignRun) {
    let list = text(tree, "requests").unwrap_or_default();
    let count = |name: &str| {
        list.split(',')
            .find_map(|part| words::number(part.trim().strip_suffix(name)?.trim()))
    };
    if let (Some(succeeded), Some(failed)) = (count("succeeded"), count("failed")) {
        run.count(
            whole(succeeded),
            whole(failed),
            "a status of 400 or more, or no answer",
        );
    }
    run.rate_over(number(tree, "finished_us").map(|us| us / 1e6));
    if let Some(protocol) = text(tree, "Application protocol") {
        run.note(format!("the protocol was {protocol}"));
    }
    if !run.figures.contains_key(&P99) {
        run.note("h2load has no percentiles. Its --log-file has every request, which is not read");
    }
}

/// JSON that a script of wrk or wrk2 writes. Only some scripts name the unit of latencies.
pub(super) const WRK_SCRIPT: Fields = Fields {
    shape: "JSON of a script of wrk",
    marks: &[
        "duration_in_microseconds",
        "requests",
        "latency_distribution/0/latency_in_microseconds",
    ],
    figures: &[
        (
            P50,
            "latency_distribution/[percentile=50]/latency_in_microseconds",
        ),
        (
            P75,
            "latency_distribution/[percentile=75]/latency_in_microseconds",
        ),
        (
            P90,
            "latency_distribution/[percentile=90]/latency_in_microseconds",
        ),
        (
            P95,
            "latency_distribution/[percentile=95]/latency_in_microseconds",
        ),
        (
            P99,
            "latency_distribution/[percentile=99]/latency_in_microseconds",
        ),
        (
            P999,
            "latency_distribution/[percentile=99.9]/latency_in_microseconds",
        ),
    ],
    counts: Counts::By(of_wrk),
    more: |tree, run| {
        run.rate_of_count(
            number(tree, "requests"),
            number(tree, "duration_in_microseconds"),
        )
    },
    ..Fields::NONE
};

pub(super) const WRK_SCRIPT_WITHOUT_UNIT: Fields = Fields {
    marks: &["duration_in_microseconds", "requests", "latency"],
    latencies: "latency",
    unit_us: None,
    figures: &[
        (Min, "min"),
        (Mean, "mean|avg"),
        (Stdev, "stdev|stddev"),
        (P50, "p50|50|median"),
        (P75, "p75|75"),
        (P90, "p90|90"),
        (P95, "p95|95"),
        (P99, "p99|99"),
        (P999, "p999|p99.9|p99_9|99.9"),
        (Max, "max"),
    ],
    ..WRK_SCRIPT
};

/// Counts of wrk's errors. A script that leaves out the errors of statuses does not know the failures.
fn of_wrk(tree: &Value) -> Option<Answered> {
    let errors = find(tree, "errors")?;
    let answers = whole(number(tree, "requests")?);
    let status = whole(number(errors, "status")?);
    let broken = ["connect", "read", "write", "timeout"];
    let broken = broken
        .iter()
        .filter_map(|kind| number(errors, kind))
        .map(whole)
        .sum::<u64>();
    Some(Answered {
        succeeded: answers.saturating_sub(status),
        failed: status + broken,
    })
}
