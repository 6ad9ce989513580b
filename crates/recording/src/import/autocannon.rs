//! Reader of autocannon's JSON, with latencies in whole milliseconds and the rate sampled once a second.

use model::Metric;

use super::{Condition, Document, ForeignRun, Missing, Reader, whole};
use crate::digits;

const SHAPE: &str = "autocannon --json";

pub(super) const JSON: Reader = Reader {
    shape: SHAPE,
    recognizes: |document| document.has(&["non2xx"]) && document.has(&["latency", "p97_5"]),
    read,
};

fn read(document: &Document<'_>) -> Result<Vec<ForeignRun>, Missing> {
    let latency = |name: &str| document.number(&["latency", name]);
    let mut run = ForeignRun::new(SHAPE);
    run.put_all(
        1e3,
        [
            (Metric::Min, latency("min")),
            (Metric::Mean, latency("mean").or_else(|| latency("average"))),
            (Metric::Stdev, latency("stddev")),
            (Metric::P50, latency("p50")),
            (Metric::P75, latency("p75")),
            (Metric::P90, latency("p90")),
            (Metric::P99, latency("p99")),
            (Metric::P999, latency("p99_9")),
            (Metric::Max, latency("max")),
        ],
    );
    run.subject = document.string(&["url"]).map(str::to_owned);
    run.under(Condition::Target, document.string(&["url"]));
    run.under(Condition::Connections, document.number(&["connections"]));
    run.under(Condition::Pipelining, document.number(&["pipelining"]));
    let count = |name: &str| document.number(&[name]).map_or(0, whole);
    let (succeeded, others) = (
        count("2xx") + count("3xx"),
        count("1xx") + count("4xx") + count("5xx"),
    );
    // Errors already include timeouts.
    run.count(
        succeeded,
        others + count("errors"),
        "a status outside of 200 to 399, or no answer",
    );
    run.rate_over(Some(document.need(&["duration"])?));
    let mismatches = count("mismatches");
    if mismatches > 0 {
        run.note(format!(
            "{} answers had an unexpected body",
            digits::count(mismatches)
        ));
    }
    run.note("autocannon keeps latency in whole milliseconds, and has no p95");
    run.note("in runs at a rate (-R) autocannon fills in latencies that it did not measure");
    Ok(vec![run.closed()])
}
