//! Reader of k6's end-of-test summaries, which have three shapes.
//!
//! `http_req_duration` is sending, waiting and receiving. Earlier phases are separate. Arrivals that k6
//! dropped are in no latency. Two of the shapes give thresholds opposite meanings. In the file of
//! `--summary-export`, `true` means that a threshold was crossed.

use model::Metric;
use serde_json::Value;

use super::{Condition, Document, ForeignRun, Missing, Reader, Reports, at, whole};
use crate::digits;

const EXPORT_SHAPE: &str = "k6 --summary-export";
const HANDLED_SHAPE: &str = "k6 handleSummary";
const MACHINE_SHAPE: &str = "k6 --new-machine-readable-summary";

pub(super) const EXPORT: Reader = Reader {
    shape: EXPORT_SHAPE,
    reports: Reports::One,
    recognizes: |document| {
        let of = |name: &str| document.at(&["metrics", name]);
        let rate = of("http_reqs").filter(|rate| rate.get("count").is_some());
        // A test of gRPC has no requests of HTTP.
        let found = rate.or_else(|| of("grpc_req_duration"));
        found.is_some_and(|found| found.get("values").is_none())
    },
    read: |document| read(document, EXPORT_SHAPE, exported),
};

pub(super) const HANDLED: Reader = Reader {
    shape: HANDLED_SHAPE,
    reports: Reports::One,
    recognizes: |document| {
        let has = |name: &str| document.has(&["metrics", name, "values"]);
        has("http_reqs") || has("grpc_req_duration")
    },
    read: |document| read(document, HANDLED_SHAPE, handled),
};

pub(super) const MACHINE: Reader = Reader {
    shape: MACHINE_SHAPE,
    reports: Reports::One,
    recognizes: |document| {
        document
            .at(&["results", "metrics"])
            .is_some_and(Value::is_array)
    },
    read: |document| read(document, MACHINE_SHAPE, machine),
};

/// Lookup of a metric's values in one shape.
type Find = for<'a> fn(&'a Document<'_>, &str) -> Option<&'a Value>;

fn exported<'a>(document: &'a Document<'_>, metric: &str) -> Option<&'a Value> {
    document.at(&["metrics", metric])
}

fn handled<'a>(document: &'a Document<'_>, metric: &str) -> Option<&'a Value> {
    document.at(&["metrics", metric, "values"])
}

fn machine<'a>(document: &'a Document<'_>, metric: &str) -> Option<&'a Value> {
    let metrics = document.at(&["results", "metrics"])?.as_array()?;
    let found = metrics
        .iter()
        .find(|one| one.get("name").and_then(Value::as_str) == Some(metric))?;
    found.get("values")
}

fn read(
    document: &Document<'_>,
    shape: &'static str,
    find: Find,
) -> Result<Vec<ForeignRun>, Missing> {
    let duration = DURATIONS
        .iter()
        .find_map(|name| find(document, name))
        .ok_or_else(|| Missing("it has no `http_req_duration`".to_owned()))?;
    let mut run = of_trend(shape, duration);
    let value = |metric: &str, name: &str| {
        find(document, metric).and_then(|values| values.get(name)?.as_f64())
    };
    answers(&mut run, document, &value)?;
    // Two shapes use `max`, the third uses `value`.
    let users = value("vus_max", "max").or_else(|| value("vus_max", "value"));
    run.under(Condition::Users, users);
    run.name_parts(tagged(document, shape));
    notes(&mut run, document, &value);
    Ok(vec![run])
}

/// Lookup of a value of a metric.
type ValueOf<'a> = &'a dyn Fn(&str, &str) -> Option<f64>;

fn answers(
    run: &mut ForeignRun,
    document: &Document<'_>,
    value: ValueOf<'_>,
) -> Result<(), Missing> {
    let Some(sent) = value("http_reqs", "count") else {
        if value("grpc_req_duration", "avg").is_none() {
            return Err(Missing("`http_reqs` has no `count`".to_owned()));
        }
        run.note(GRPC);
        return Ok(());
    };
    let failed_share = ["value", "rate"]
        .into_iter()
        .find_map(|name| value("http_req_failed", name));
    // All shapes contain the share, but not all contain the count.
    if let Some(failed) = failed_share.map(|share| share * sent) {
        run.count(whole(sent - failed), whole(failed), "`http_req_failed`");
    }
    let seconds = document.number(&["config", "duration"]).or_else(|| {
        let rate = value("http_reqs", "rate").filter(|rate| *rate > 0.0)?;
        // The count divided by the rate is k6's own length of the run.
        Some(sent / rate)
    });
    run.rate_of_count(Some(sent), seconds.map(|seconds| seconds * 1e6));
    Ok(())
}

/// The latencies of requests with a tag, which k6 has if a threshold names it: `http_req_duration{name:list}`.
fn tagged(document: &Document<'_>, shape: &'static str) -> Vec<ForeignRun> {
    let metrics = document.at(&["metrics"]).and_then(Value::as_object);
    let named = metrics.into_iter().flatten().filter_map(|(name, metric)| {
        let tag = name.strip_prefix("http_req_duration{")?.strip_suffix('}')?;
        // This tag is a result of a request and not its name.
        let is_name = !tag.starts_with("expected_response");
        let mut run = of_trend(shape, metric.get("values").unwrap_or(metric));
        run.subject = Some(tag.strip_prefix("name:").unwrap_or(tag).to_owned());
        is_name.then_some(run)
    });
    named.collect()
}

/// The figures of one metric of durations.
fn of_trend(shape: &'static str, duration: &Value) -> ForeignRun {
    let figure = |name: &str| duration.get(name).and_then(Value::as_f64);
    // One shape writes `p90`, the other shapes write `p(90)`.
    let quantile =
        |percent: &str| figure(&format!("p({percent})")).or_else(|| figure(&format!("p{percent}")));
    let mut run = ForeignRun::new(shape);
    run.put_all(
        1e3,
        [
            (Metric::Min, figure("min")),
            (Metric::Mean, figure("avg")),
            (Metric::P50, figure("med")),
            (Metric::P75, quantile("75")),
            (Metric::P90, quantile("90")),
            (Metric::P95, quantile("95")),
            (Metric::P99, quantile("99")),
            (Metric::P999, quantile("99.9")),
            (Metric::Max, figure("max")),
        ],
    );
    run
}

fn notes(run: &mut ForeignRun, document: &Document<'_>, value: ValueOf<'_>) {
    run.note(MEANING);
    if let Some(dropped) = value("dropped_iterations", "count").filter(|count| *count > 0.0) {
        run.note(dropped_text(whole(dropped)));
    }
    if document
        .at(&["setup_data"])
        .is_some_and(|data| !data.is_null())
    {
        run.note("the figures include requests of `setup()`");
    }
    for crossed in crossed(document, run.shape) {
        run.note(format!("k6 reports a crossed threshold: {crossed}"));
    }
    let checks_failed = value("checks", "fails").filter(|count| *count > 0.0);
    let checks_failed = checks_failed.or_else(|| {
        let metrics = at(
            document.json.as_ref().ok()?,
            &["results", "checks", "metrics"],
        )?
        .as_array()?;
        let failed = metrics
            .iter()
            .find(|one| one.get("name").and_then(Value::as_str) == Some("checks_failed"))?;
        at(failed, &["values", "matches"])?.as_f64()
    });
    if let Some(count) = checks_failed.filter(|count| *count > 0.0) {
        run.note(format!("{} k6 checks failed", digits::count(whole(count))));
    }
    if run.shape == MACHINE_SHAPE {
        run.note("this kind of summary drops p99 and p99.9 even if they were requested");
    } else if !run.figures.contains_key(&Metric::P99) {
        run.note("it has no p99. Run k6 with --summary-trend-stats");
    }
}

/// Metrics of durations, of HTTP and of gRPC.
pub(super) const DURATIONS: [&str; 2] = ["http_req_duration", "grpc_req_duration"];

pub(super) const GRPC: &str = "k6 counts no calls of gRPC, so rate and failures are unknown";

pub(super) const MEANING: &str = "k6's latency is sending, waiting and receiving, without the wait \
                                  for a connection, connecting and TLS. It counts from the send, \
                                  not from due";

pub(super) fn dropped_text(count: u64) -> String {
    format!(
        "k6 dropped {} arrivals because no virtual user was free. They are in no latency, so the \
         tail of a stall is missing",
        digits::count(count)
    )
}

/// Crossed thresholds, as `metric: expression`.
fn crossed(document: &Document<'_>, shape: &str) -> Vec<String> {
    let mut found = Vec::new();
    let metrics = document.at(&["metrics"]).and_then(Value::as_object);
    for (name, metric) in metrics.into_iter().flatten() {
        let thresholds = metric.get("thresholds").and_then(Value::as_object);
        for (expression, state) in thresholds.into_iter().flatten() {
            // The two shapes contradict each other here. The module's documentation explains this.
            let is_crossed = if shape == EXPORT_SHAPE {
                state.as_bool() == Some(true)
            } else {
                state.get("ok").and_then(Value::as_bool) == Some(false)
            };
            if is_crossed {
                found.push(format!("{name}: {expression}"));
            }
        }
    }
    found
}
