//! Tools that run scenarios: autocannon, Artillery, JMeter, Locust, Gatling and Hyperfoil.

use model::Metric;
use serde_json::Value;

use super::super::table::{Answered, Counts, Fields, Pace, Split, find, number, rows, text};
use super::super::{Condition, Reports, whole};
use crate::digits;

use Metric::{Max, Mean, Min, P50, P75, P90, P95, P99, P999, Stdev};

pub(in crate::import) const AUTOCANNON: Fields = Fields {
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
pub(in crate::import) const ARTILLERY: Fields = Fields {
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

pub(in crate::import) const ARTILLERY_1: Fields = Fields {
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

pub(in crate::import) const JMETER_STATISTICS: Fields = Fields {
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

pub(in crate::import) const JMETER_FAILURES: &str = "JMeter calls them errors: a status of 400 or more, a \
                                          failed assertion, or no answer";

/// JMeter's aggregate report, from its plugin and from its window, and the summary report.
pub(in crate::import) const JMETER_AGGREGATE: Fields = Fields {
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
pub(in crate::import) const LOCUST: Fields = Fields {
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
pub(in crate::import) const GATLING_GLOBAL: Fields = Fields {
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
pub(in crate::import) const GATLING: Fields = Fields {
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

pub(in crate::import) const HYPERFOIL: Fields = Fields {
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
