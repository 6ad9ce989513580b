//! The shares of scenarios: how often each function runs, compared with the other functions.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// The share of each scenario by its name, and a remark if the script does not say the shares.
pub(super) fn shares(options: &Value) -> (BTreeMap<String, u64>, Option<&'static str>) {
    let empty = Map::new();
    let scenarios = options
        .get("scenarios")
        .and_then(Value::as_object)
        .unwrap_or(&empty);
    let of = |share: fn(&Value) -> Option<f64>| {
        let found: Option<Vec<f64>> = scenarios.values().map(share).collect();
        found.and_then(|shares| whole(&shares))
    };
    let named = |shares: Vec<u64>| scenarios.keys().cloned().zip(shares).collect();
    if scenarios.len() < 2 {
        return (named(vec![1]), None);
    }
    match of(rate).or_else(|| of(iterations)) {
        Some(shares) => (named(shares), None),
        None => (named(vec![1; scenarios.len()]), Some(UNKNOWN)),
    }
}

const UNKNOWN: &str = "The shares of the scenarios are not known, because they depend on times or numbers of \
                       users. Each counts once. Change `weight` to change a share.";

/// The iterations per millisecond of a scenario with a constant rate.
fn rate(scenario: &Value) -> Option<f64> {
    if scenario.get("executor")?.as_str()? != "constant-arrival-rate" {
        return None;
    }
    let rate = number(scenario.get("rate")?)?;
    let unit = match scenario.get("timeUnit") {
        None | Some(Value::Null) => 1000.0,
        Some(unit) => milliseconds(unit)?,
    };
    (rate > 0.0 && unit > 0.0).then_some(rate / unit)
}

/// The number of iterations of a scenario that counts them.
fn iterations(scenario: &Value) -> Option<f64> {
    let one = |key: &str| scenario.get(key).map_or(Some(1.0), number);
    match scenario.get("executor")?.as_str()? {
        "shared-iterations" => one("iterations"),
        "per-vu-iterations" => Some(one("iterations")? * one("vus")?),
        _ => None,
    }
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::String(text) => text.trim().parse().ok(),
        value => value.as_f64(),
    }
}

/// A duration of k6 in milliseconds: `1s`, `1m30s`, or a number of milliseconds.
fn milliseconds(value: &Value) -> Option<f64> {
    let Value::String(text) = value else {
        return value.as_f64();
    };
    let mut rest = text.trim();
    let mut total = 0.0;
    while !rest.is_empty() {
        let end = rest.find(|it: char| !it.is_ascii_digit() && it != '.')?;
        let (number, after) = rest.split_at(end);
        let end = after
            .find(|it: char| it.is_ascii_digit())
            .unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        let unit = match unit {
            "ms" => 1.0,
            "s" => 1000.0,
            "m" => 60_000.0,
            "h" => 3_600_000.0,
            "d" => 86_400_000.0,
            _ => return None,
        };
        total += number.parse::<f64>().ok()? * unit;
        rest = after;
    }
    Some(total)
}

/// The shares as small whole numbers in the same proportion.
fn whole(shares: &[f64]) -> Option<Vec<u64>> {
    let least = shares.iter().copied().fold(f64::INFINITY, f64::min);
    // A proportion such as 3 to 2 needs a factor.
    (1_u32..=1000).find_map(|factor| {
        let factor = f64::from(factor);
        let scaled = shares.iter().map(|share| share / least * factor);
        scaled.map(integer).collect::<Option<Vec<u64>>>()
    })
}

/// The whole number that a number is, apart from an error of its last digits.
fn integer(number: f64) -> Option<u64> {
    let rounded = number.round();
    let is_whole = (number - rounded).abs() < 1e-6 * number.max(1.0);
    is_whole
        .then(|| format!("{rounded:.0}").parse().ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(scenarios: Value) -> (Vec<u64>, bool) {
        let (shares, why) = shares(&json!({"scenarios": scenarios}));
        (shares.into_values().collect(), why.is_some())
    }

    #[test]
    fn rates_count_per_time_unit() {
        let rate = |rate: Value, unit: Value| json!({"executor": "constant-arrival-rate", "rate": rate, "timeUnit": unit});
        assert_eq!(
            of(json!({"a": rate(json!(100), json!("1s")), "b": rate(json!(5), json!("1s"))})),
            (vec![20, 1], false)
        );
        assert_eq!(
            of(json!({"a": rate(json!(3), json!("1s")), "b": rate(json!(120), json!("1m"))})),
            (vec![3, 2], false)
        );
        assert_eq!(
            of(json!({"a": rate(json!("6"), json!(500)), "b": rate(json!(1), Value::Null)})),
            (vec![12, 1], false)
        );
        assert_eq!(
            of(json!({"a": rate(json!(90), json!("1m30s")), "b": rate(json!(1), json!("1s"))})),
            (vec![1, 1], false)
        );
    }

    #[test]
    fn other_shares_are_said_to_be_unknown() {
        let users = json!({"executor": "constant-vus", "vus": 90});
        let ramp = json!({"executor": "ramping-arrival-rate", "startRate": 10, "timeUnit": "1m"});
        assert_eq!(of(json!({"a": users, "b": ramp})), (vec![1, 1], true));
        assert_eq!(of(json!({"a": users})), (vec![1], false));
        let turns =
            |executor: &str, vus: u64| json!({"executor": executor, "vus": vus, "iterations": 6});
        assert_eq!(
            of(json!({"a": turns("per-vu-iterations", 4), "b": turns("shared-iterations", 4)})),
            (vec![4, 1], false)
        );
    }
}
