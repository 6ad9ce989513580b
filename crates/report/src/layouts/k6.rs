//! Layout of k6's `--summary-export`: milliseconds, `avg min med max p(90) p(95)`.
//!
//! `http_req_duration` and `iteration_duration` are latency from due, whereas k6 counts from the send. An
//! iteration is a finished iteration of a scenario, or a request if there is no scenario. `http_req_failed`
//! counts requests that did not pass, so its `passes` are failures, as in k6. Sending, receiving and blocked
//! times are not recorded separately and are left out.

use recording::float;
use serde_json::{Map, Value, json};
use stats::Histogram;

use super::merged::{Merged, max_ms, mean_ms, min_ms, quantile_ms};

const CHECK: &str = "answer as expected";
/// MD5 of the paths `` and `::answer as expected`. k6 identifies groups and checks by this hash.
const ROOT_ID: &str = "d41d8cd98f00b204e9800998ecf8427e";
const CHECK_ID: &str = "a051076eaa1c436245d7e1607ce36e18";

pub(super) fn json(merged: &Merged<'_>) -> String {
    let sent = merged.sent();
    let passed = merged.outcomes.passed;
    let not_passed = sent - passed;
    let share = |part: u64| {
        if sent == 0 {
            0.0
        } else {
            float(part) / float(sent)
        }
    };
    let counter = |count: u64| json!({ "count": count, "rate": merged.per_second(count) });
    let connections = merged.connections();
    let gauge = json!({ "value": connections, "min": connections, "max": connections });
    let mut metrics = Map::new();
    let mut set = |name: &str, values: Value| metrics.insert(name.to_owned(), values);
    set(
        "checks",
        json!({ "passes": passed, "fails": not_passed, "value": share(passed) }),
    );
    set("data_received", counter(merged.bytes_in));
    set("data_sent", counter(merged.bytes_out));
    set("http_req_connecting", trend(&merged.connect_per_request()));
    set("http_req_duration", trend(&merged.latency));
    set(
        "http_req_failed",
        json!({ "passes": not_passed, "fails": passed, "value": share(not_passed) }),
    );
    set("http_req_waiting", trend(&merged.first_byte));
    set("http_reqs", counter(sent));
    match merged.iterations() {
        // The length of an iteration is not recorded separately.
        Some(iterations) => {
            set(
                "iterations",
                counter(iterations.completed + iterations.broken),
            );
        }
        None => {
            set("iteration_duration", trend(&merged.latency));
            set("iterations", counter(sent));
        }
    }
    set("vus", gauge.clone());
    set("vus_max", gauge);
    if merged.outcomes.missed > 0 {
        set("dropped_iterations", counter(merged.outcomes.missed));
    }
    let check = json!({
        "name": CHECK,
        "path": format!("::{CHECK}"),
        "id": CHECK_ID,
        "passes": passed,
        "fails": not_passed,
    });
    let report = json!({
        "root_group": {
            "name": "",
            "path": "",
            "id": ROOT_ID,
            "groups": {},
            "checks": { CHECK: check },
        },
        "metrics": metrics,
    });
    format!("{report:#}\n")
}

fn trend(histogram: &Histogram) -> Value {
    json!({
        "avg": mean_ms(histogram),
        "min": min_ms(histogram),
        "med": quantile_ms(histogram, 0.5),
        "max": max_ms(histogram),
        "p(90)": quantile_ms(histogram, 0.9),
        "p(95)": quantile_ms(histogram, 0.95),
    })
}
