//! Thresholds of k6 as gates of a lab.

use model::Gate;
use serde_json::Value;

use super::super::requests::Requests;

/// Converts the limits that a lab can judge to gates, and names the other limits.
pub(super) fn add(limits: &Value, requests: &mut Requests) {
    for (metric, limits) in limits.as_object().into_iter().flatten() {
        let limits = match limits {
            Value::Array(limits) => limits.as_slice(),
            single => std::slice::from_ref(single),
        };
        for limit in limits {
            // A limit may be an object that also sets a condition to abort the run.
            let text = limit.get("threshold").unwrap_or(limit).as_str();
            let text = text.ok_or_else(|| "it is known only when the script runs".to_owned());
            let gate = text.and_then(|text| {
                own(metric, requests)
                    .and_then(|metric| gate(metric, text))
                    .map_err(|why| format!("`{text}` has no gate: {why}"))
            });
            match gate {
                Ok(gate) => requests.add_gate(gate),
                Err(why) => requests.leave_out(&format!("threshold of {metric}"), &why),
            }
        }
    }
}

/// The metric of HTTP for a metric of the requests in the lab.
fn own<'a>(metric: &'a str, requests: &Requests) -> Result<&'a str, String> {
    let is_http = metric.starts_with("http_req");
    match (requests.is_grpc(), requests.is_websocket()) {
        (true, _) if metric == "grpc_req_duration" => Ok("http_req_duration"),
        (true, _) | (_, true) if is_http => Err("the lab sends no request of HTTP".to_owned()),
        _ => Ok(metric),
    }
}

/// A threshold as a gate: `p(95)<200` of `http_req_duration` is `p95 value < 200ms`.
fn gate(metric: &str, threshold: &str) -> Result<String, String> {
    let plain: String = threshold.chars().filter(|it| !it.is_whitespace()).collect();
    let begin = plain
        .find(['<', '>', '=', '!'])
        .ok_or("it has no `<` or `>`")?;
    let (figure, rest) = plain.split_at(begin);
    let limit = rest.trim_start_matches(['<', '>', '=', '!']);
    let relation = &rest[..rest.len() - limit.len()];
    let limit: f64 = limit.parse().map_err(|_| "its limit is not a number")?;
    // A share is never below 0.
    let is_none = figure == "rate" && relation.starts_with("==") && limit == 0.0;
    let relation = if is_none { "<=" } else { relation };
    let percentile = figure
        .strip_prefix("p(")
        .and_then(|rest| rest.strip_suffix(')'));
    let gate = match (metric, figure, percentile) {
        ("http_req_duration", _, Some(percentile)) => {
            format!("p{percentile} value {relation} {limit}ms")
        }
        ("http_req_duration", "med", _) => format!("p50 value {relation} {limit}ms"),
        ("http_req_duration", "avg", _) => format!("mean value {relation} {limit}ms"),
        ("http_req_duration", "max", _) => format!("max value {relation} {limit}ms"),
        ("http_req_failed", "rate", _) => {
            // A share such as 0.07 has no exact binary form, and neither has its percentage.
            format!(
                "failures value {relation} {}%",
                (limit * 1e11).round() / 1e9
            )
        }
        ("checks", ..) => {
            return Err("every answer must be right for a row to have a number".to_owned());
        }
        _ => return Err("a lab measures no such figure of all requests".to_owned()),
    };
    match gate.parse::<Gate>() {
        Ok(_) => Ok(gate),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_keep_their_digits() {
        let of = |metric: &str, text: &str| gate(metric, text).unwrap_or_else(|why| why);
        assert_eq!(of("http_req_failed", "rate<0.07"), "failures value < 7%");
        assert_eq!(of("http_req_failed", "rate<0.001"), "failures value < 0.1%");
        assert_eq!(of("http_req_failed", "rate==0"), "failures value <= 0%");
        assert_eq!(
            of("http_req_failed", "rate<0.00015"),
            "failures value < 0.015%"
        );
        assert_eq!(
            of("http_req_duration", "p(99.9) < 1500"),
            "p99.9 value < 1500ms"
        );
        assert_eq!(of("http_req_duration", "med<=80"), "p50 value <= 80ms");
        assert!(of("http_req_duration", "min>1").contains("no such figure"));
    }
}
