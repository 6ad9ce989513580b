//! The report in JSON for programs. Every figure has its unit in its name.

mod comparison;
mod judgement;
mod summary;
mod verdict;

use analysis::{Comparison, Summary};
use model::{FailureKind, micros};
use recording::{Environment, LoadText, Recording, Version};
use serde::Serialize;

/// Output of `--format json`: the conditions of the measurement, then the summary. Field names are stable
/// within a method. [`Summary`] documents them.
#[derive(Serialize)]
struct Report<'a> {
    format: &'static str,
    weigh: &'a Version,
    command: &'a [String],
    started_at: &'a str,
    ended_at: &'a str,
    load: &'a LoadText,
    environment: &'a Environment,
    summary: summary::Summary<'a>,
    /// The first requests of each kind that did not pass. Their bytes are only in the recording.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    failures: Vec<Failed<'a>>,
}

/// A request that did not pass.
#[derive(Serialize)]
struct Failed<'a> {
    variant: &'a str,
    round: u32,
    kind: FailureKind,
    at_us: u64,
    reason: &'a str,
}

fn failures(recording: &Recording) -> Vec<Failed<'_>> {
    let mut all = Vec::new();
    for round in &recording.rounds {
        for sample in &round.failures {
            all.push(Failed {
                variant: &round.variant,
                round: round.round,
                kind: sample.kind,
                at_us: micros(sample.at),
                reason: &sample.reason,
            });
        }
    }
    all
}

/// Renders the summary of a recording as JSON.
pub fn json(recording: &Recording, summary: &Summary) -> String {
    let report = Report {
        format: "weighbridge-summary",
        weigh: &recording.weigh,
        command: &recording.command,
        started_at: &recording.started_at,
        ended_at: &recording.ended_at,
        load: &recording.load,
        environment: &recording.environment,
        summary: summary::Summary::of(summary),
        failures: failures(recording),
    };
    serde_json::to_string_pretty(&report).expect("a summary has only text keys") + "\n"
}

/// The comparison as JSON for programs. Every figure has its unit in its name.
///
/// # Panics
/// Never, because a comparison has only text keys.
#[must_use]
pub fn comparison_json(comparison: &Comparison) -> String {
    let layout = comparison::Comparison::of(comparison);
    serde_json::to_string_pretty(&layout).expect("a comparison has only text keys") + "\n"
}

/// The JSON Schema of `weigh compare --format json`, committed at
/// `schemas/comparison.schema.json`.
#[must_use]
pub fn comparison_schema() -> serde_json::Value {
    schemars::schema_for!(comparison::Comparison).to_value()
}

#[cfg(test)]
mod tests {
    use recording::sample::SampleRun;

    use super::*;

    #[test]
    fn reasons_of_failures_are_there() {
        let mut recording = SampleRun::load_alone(false);
        recording.rounds[0].failures.push(model::FailureSample {
            kind: FailureKind::Connect,
            reason: "connect: Connection refused".to_owned(),
            at: std::time::Duration::from_millis(5),
            request: String::new(),
            answer: String::new(),
        });
        let text = json(&recording, &Summary::of(&recording));
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        let wanted = serde_json::json!([{
            "variant": "target",
            "round": 0,
            "kind": "connect",
            "at_us": 5_000,
            "reason": "connect: Connection refused",
        }]);
        assert_eq!(value["failures"], wanted);
    }

    #[test]
    fn figures_are_found_by_variant_and_metric() {
        let recording = SampleRun::closed()
            .variant("a", 700.0)
            .variant("b", 800.0)
            .build();
        let summary = Summary::of(&recording);
        let value: serde_json::Value = serde_json::from_str(&json(&recording, &summary)).unwrap();
        let row = &value["summary"]["variants"][1];
        assert_eq!(row["verdict"]["state"], "slower");
        assert_eq!(
            row["metrics"]["requests_per_s"]["overhead"]["claim"],
            "lower"
        );
        let p99 = row["metrics"]["latency_us_p99"]["value"].as_f64().unwrap();
        assert!((800.0..2000.0).contains(&p99), "{p99}");
    }

    #[test]
    fn a_figure_that_is_not_finite_is_null_and_not_broken_json() {
        let recording = SampleRun::closed().variant("a", 700.0).build();
        let mut summary = Summary::of(&recording);
        summary.variants[0].checks[0].figure = f64::NAN;
        let value: serde_json::Value = serde_json::from_str(&json(&recording, &summary)).unwrap();
        assert!(value["summary"]["variants"][0]["checks"][0]["figure"].is_null());
    }
}
