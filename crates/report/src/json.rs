//! Every figure with its unit in its name, for programs.

use serde::Serialize;

use crate::recording::{Environment, LoadText, Recording, Version};
use crate::summary::Summary;

/// What `--format json` prints: how it was measured, then what it says. Field names are stable
/// within a method; [`Summary`] documents them.
#[derive(Serialize)]
struct Report<'a> {
    format: &'static str,
    weigh: &'a Version,
    command: &'a [String],
    started_at: &'a str,
    ended_at: &'a str,
    load: &'a LoadText,
    environment: &'a Environment,
    summary: &'a Summary,
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
        summary,
    };
    serde_json::to_string_pretty(&report).expect("a summary has only text keys") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Sample;

    #[test]
    fn figures_are_found_by_variant_and_metric() {
        let recording = Sample::closed()
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
        let recording = Sample::closed().variant("a", 700.0).build();
        let mut summary = Summary::of(&recording);
        summary.variants[0].checks[0].figure = f64::NAN;
        let value: serde_json::Value = serde_json::from_str(&json(&recording, &summary)).unwrap();
        assert!(value["summary"]["variants"][0]["checks"][0]["figure"].is_null());
    }
}
