//! Reader of Artillery's `--output`, in milliseconds.
//!
//! `http.response_time` ends with the first byte. The time to the last byte is `http.total`, which exists
//! only with `extendedMetrics: true`.

use model::Metric;
use serde_json::Value;

use super::{Document, ForeignRun, Missing, Reader, whole};

const SHAPE: &str = "artillery run --output";

pub(super) const JSON: Reader = Reader {
    shape: SHAPE,
    recognizes: |document| {
        document.has(&["aggregate", "counters"]) && document.has(&["intermediate"])
    },
    read,
};

fn read(document: &Document<'_>) -> Result<Vec<ForeignRun>, Missing> {
    let summary = |name: &str| document.at(&["aggregate", "summaries", name]);
    let is_whole = summary("http.total").is_some();
    // This is the time to the last byte if it was measured, else to the first byte. A note states which.
    let times = summary("http.total")
        .or_else(|| summary("http.response_time"))
        .ok_or_else(|| Missing("`aggregate.summaries` has no `http.response_time`".to_owned()))?;
    let figure = |name: &str| times.get(name).and_then(Value::as_f64);
    let mut run = ForeignRun::new(SHAPE);
    run.put_all(
        1e3,
        [
            (Metric::Min, figure("min")),
            (Metric::Mean, figure("mean")),
            (Metric::P50, figure("p50").or_else(|| figure("median"))),
            (Metric::P75, figure("p75")),
            (Metric::P90, figure("p90")),
            (Metric::P95, figure("p95")),
            (Metric::P99, figure("p99")),
            (Metric::P999, figure("p999")),
            (Metric::Max, figure("max")),
        ],
    );
    let mut counts = [0, 0];
    let counters = document
        .at(&["aggregate", "counters"])
        .and_then(Value::as_object);
    for (name, count) in counters.into_iter().flatten() {
        let count = count.as_f64().map_or(0, whole);
        if let Some(code) = name.strip_prefix("http.codes.") {
            let is_success = code
                .parse()
                .is_ok_and(|code: u16| (200..400).contains(&code));
            counts[usize::from(!is_success)] += count;
        } else if name.starts_with("errors.") {
            counts[1] += count;
        }
    }
    run.count(
        counts[0],
        counts[1],
        "a status outside of 200 to 399, or an error",
    );
    let mark = |name: &str| document.number(&["aggregate", name]);
    let span_ms = mark("lastMetricAt").zip(mark("firstMetricAt"));
    run.rate_over(span_ms.map(|(last, first)| (last - first) / 1e3));
    run.note(if is_whole {
        "the latency is Artillery's `http.total`, which includes name lookup and connecting"
    } else {
        "Artillery's response time ends with the first byte. For the whole answer, set \
         `extendedMetrics: true`"
    });
    run.note(
        "Artillery's figures are rounded to 0.1 ms or whole milliseconds, and its percentiles are \
         estimates with an error of 1 %",
    );
    Ok(vec![run])
}
