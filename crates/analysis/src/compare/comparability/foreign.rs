//! Differences between two results if at least one is from another tool.

use std::collections::BTreeMap;

use model::Load;
use recording::import::{Condition, ForeignRun, RATE_TOLERANCE};
use recording::{Recording, digits};

use super::Comparability;
use crate::compare::{Operand, OperandSource};

/// Conditions of one result, if it contains them.
#[derive(Default)]
struct Manner {
    tool: Option<&'static str>,
    conditions: BTreeMap<Condition, String>,
    is_closed_loop: bool,
    offered_per_s: Option<f64>,
}

/// Names the differences, and the conditions that only one result states.
pub(super) fn runs(found: &mut Comparability, a: &Operand, b: &Operand) {
    let (a, b) = (Manner::of(&a.source), Manner::of(&b.source));
    // A recording has no tool here, so it differs from a file of any tool.
    if a.tool != b.tool {
        found.notes.push(
            "measured by two tools. The difference contains the difference of the tools".to_owned(),
        );
    }
    for (condition, of_a) in &a.conditions {
        // A condition that only one file states is not a known difference.
        if let Some(of_b) = b.conditions.get(condition) {
            let what = condition.label();
            let (of_a, of_b) = (Some(of_a.clone()), Some(of_b.clone()));
            found.differ(condition.is_load(), what, of_a, of_b);
        }
    }
    for (label, one, other) in [("A", &a, &b), ("B", &b, &a)] {
        let alone = one.known_alone(other);
        if !alone.is_empty() {
            let list = alone.join(", ");
            found.notes.push(format!(
                "only {label} states these, so they are not compared: {list}"
            ));
        }
    }
    let shown = |per_s: f64| Some(per_second(per_s));
    match (a.offered_per_s, b.offered_per_s) {
        // The comparison is relative to A and allows a tolerance, because a requested rate and a measured
        // rate differ slightly.
        (Some(of_a), Some(of_b)) if (of_b / of_a - 1.0).abs() > RATE_TOLERANCE => {
            found.differ(true, "rate of requests", shown(of_a), shown(of_b));
        }
        // A closed loop sends less if responses are late, and an open loop does not. So their latencies have
        // different meanings.
        (Some(of_a), None) if b.is_closed_loop => {
            found.differ(true, "load", shown(of_a), Some(CLOSED.to_owned()));
        }
        (None, Some(of_b)) if a.is_closed_loop => {
            found.differ(true, "load", Some(CLOSED.to_owned()), shown(of_b));
        }
        _ => {}
    }
}

const CLOSED: &str = "closed loop";

fn per_second(rate: f64) -> String {
    format!("{}/s", digits::value(rate, None))
}

impl Manner {
    fn of(source: &OperandSource) -> Self {
        match source {
            OperandSource::Recording(recording) => Self::of_recording(recording),
            OperandSource::Runs(runs) => match runs.as_slice() {
                [run] => Self::of_run(run),
                // If a file has several commands, each row names its command.
                several => Self {
                    tool: several.first().map(|run| run.shape),
                    ..Self::default()
                },
            },
        }
    }

    /// The conditions that the other result does not state, with their values.
    fn known_alone(&self, other: &Self) -> Vec<String> {
        let conditions = self.conditions.iter();
        let mut alone: Vec<String> = conditions
            .filter(|(condition, _)| !other.conditions.contains_key(condition))
            .map(|(condition, value)| format!("{} {value}", condition.label()))
            .collect();
        let is_rate_unknown = other.offered_per_s.is_none() && !other.is_closed_loop;
        if let Some(rate) = self.offered_per_s.filter(|_| is_rate_unknown) {
            alone.push(format!("rate of requests {}", per_second(rate)));
        }
        alone
    }

    fn of_run(run: &ForeignRun) -> Self {
        Self {
            tool: Some(run.shape),
            conditions: run.conditions.clone(),
            // A tool at a fixed rate is an open loop, whatever its usual mode.
            is_closed_loop: run.is_closed_loop && run.offered_per_s.is_none(),
            offered_per_s: run.offered_per_s,
        }
    }

    fn of_recording(recording: &Recording) -> Self {
        let mut manner = Self {
            is_closed_loop: !recording.load.model.is_open(),
            ..Self::default()
        };
        let is_kept = if recording.load.keep_alive {
            "yes"
        } else {
            "no"
        };
        let conditions = &mut manner.conditions;
        conditions.insert(Condition::KeepAlive, is_kept.to_owned());
        if let Some(url) = &recording.load.url {
            conditions.insert(Condition::Target, url.clone());
        }
        match &recording.load.model {
            Load::Closed { connections, .. } => {
                conditions.insert(Condition::Connections, connections.to_string());
            }
            Load::Open { phases, .. } => {
                if let [phase] = phases.as_slice()
                    && (phase.from.per_second() - phase.to.per_second()).abs() < f64::EPSILON
                {
                    manner.offered_per_s = Some(phase.from.per_second());
                }
            }
        }
        manner
    }
}

#[cfg(test)]
mod tests {
    use recording::sample::SampleRun;

    use super::*;
    use crate::Comparison;

    const WRK: &str = include_str!("../../../../recording/samples/wrk.txt");
    const VEGETA: &str = include_str!("../../../../recording/samples/vegeta.txt");

    fn operand(text: &str) -> Operand {
        Operand {
            label: "file".to_owned(),
            variant: None,
            source: OperandSource::read(&[("file".to_owned(), text.to_owned())]).unwrap(),
        }
    }

    fn found(a: &Operand, b: &Operand) -> (String, String) {
        let found = Comparison::of(a, b, false).unwrap();
        (found.obstacles.join("\n"), found.notes.join("\n"))
    }

    #[test]
    fn another_number_of_connections_withholds_and_another_target_is_named() {
        let other = WRK
            .replace("and 10 connections", "and 50 connections")
            .replace(
                "Running 3s test @ http://127.0.0.1:18181/",
                "Running 9s test @ http://elsewhere/",
            );
        let (obstacles, notes) = found(&operand(WRK), &operand(&other));
        assert_eq!(obstacles, "connections: 10 in A, 50 in B");
        assert!(notes.contains("http://elsewhere/ in B"), "{notes}");
        assert!(notes.contains("length: 3s in A, 9s in B"), "{notes}");
    }

    #[test]
    fn another_rate_withholds_and_one_that_is_only_measured_differently_does_not() {
        let (obstacles, _) = found(
            &operand(VEGETA),
            &operand(&VEGETA.replace("100.03", "200.01")),
        );
        assert_eq!(
            obstacles.lines().last(),
            Some("rate of requests: 100/s in A, 200/s in B")
        );
        let (obstacles, _) = found(
            &operand(VEGETA),
            &operand(&VEGETA.replace("100.03", "100.2")),
        );
        assert!(!obstacles.contains("rate of requests"), "{obstacles}");
    }

    #[test]
    fn what_only_one_of_the_two_says_is_named() {
        let silent = WRK.replace("1 threads and 10 connections", "");
        let (obstacles, notes) = found(&operand(WRK), &operand(&silent));
        assert_eq!(obstacles, "");
        assert_eq!(
            notes,
            "only A states these, so they are not compared: connections 10, threads of the tool 1"
        );
        let (_, notes) = found(&operand(&silent), &operand(WRK));
        assert!(notes.starts_with("only B states these"), "{notes}");
    }

    #[test]
    fn a_folder_whose_runs_had_other_connections_is_not_like_a_run_with_some_of_them() {
        let fifty = WRK.replace("and 10 connections", "and 50 connections");
        let files = [("1", WRK), ("2", &fifty)];
        let files = files.map(|(name, text)| (name.to_owned(), text.to_owned()));
        let mixed = Operand {
            source: OperandSource::read(&files).unwrap(),
            ..operand(WRK)
        };
        let (obstacles, _) = found(&operand(WRK), &mixed);
        assert_eq!(obstacles, "connections: 10 in A, 10 and 50 in B");
        let found = Comparison::of(&mixed, &operand(&fifty), false).unwrap();
        let notes = &found.a.notes;
        let note = "the runs differ in connections: 10 and 50";
        assert!(notes.iter().any(|found| found == note), "{notes:?}");
        assert!(!found.obstacles.is_empty());
    }

    #[test]
    fn a_closed_loop_and_a_rate_are_two_loads() {
        let (obstacles, notes) = found(&operand(WRK), &operand(VEGETA));
        assert!(
            obstacles.contains("load: closed loop in A, 100/s in B"),
            "{obstacles}"
        );
        assert!(notes.contains("measured by two tools"), "{notes}");
    }

    #[test]
    fn a_recording_and_a_file_are_held_against_each_other() {
        let mut recording = SampleRun::load_alone(false);
        recording.load.keep_alive = false;
        let own = Operand {
            label: "own".to_owned(),
            variant: None,
            source: OperandSource::Recording(Box::new(recording)),
        };
        let (obstacles, _) = found(&own, &operand(WRK));
        assert!(
            obstacles.contains("connections: 100 in A, 10 in B"),
            "{obstacles}"
        );
        let (obstacles, _) = found(
            &own,
            &operand(include_str!("../../../../recording/samples/ab.txt")),
        );
        assert!(
            obstacles.contains("connections kept open: no in A, yes in B"),
            "{obstacles}"
        );
    }
}
