//! Conditions that several runs have in common, and notes on their differences.

use std::collections::{BTreeMap, BTreeSet};

use super::{Condition, ForeignRun, RATE_TOLERANCE};
use crate::digits;

/// Value that all runs have in common.
pub(super) struct Agreed<T> {
    pub(super) value: T,
    /// Differences between the runs, in words.
    pub(super) notes: Vec<String>,
}

/// The conditions that all runs state. If the runs differ in a condition, it contains all values. So it also
/// differs from the condition of a run with only one of these values.
pub(super) fn conditions(runs: &[ForeignRun]) -> Agreed<BTreeMap<Condition, String>> {
    let stated = runs.iter().flat_map(|run| run.conditions.keys());
    let mut agreed = Agreed {
        value: BTreeMap::new(),
        notes: Vec::new(),
    };
    for condition in stated.copied().collect::<BTreeSet<Condition>>() {
        let label = condition.label();
        let stated = runs.iter().filter_map(|run| run.conditions.get(&condition));
        let count = stated.clone().count();
        let mut values: Vec<&str> = Vec::new();
        for value in stated {
            if !values.contains(&&**value) {
                values.push(value);
            }
        }
        let values = values.join(" and ");
        if count < runs.len() {
            let all = runs.len();
            let note =
                format!("{label}: {values} in {count} of {all} runs, unknown in the other runs");
            agreed.notes.push(note);
            continue;
        }
        if runs.iter().any(|run| run.conditions[&condition] != values) {
            let note = format!("the runs differ in {label}: {values}");
            agreed.notes.push(note);
        }
        agreed.value.insert(condition, values);
    }
    agreed
}

/// The planned rate if it is equal in all runs.
pub(super) fn offered(runs: &[ForeignRun]) -> Agreed<Option<f64>> {
    let rates: Vec<Option<f64>> = runs.iter().map(|run| run.offered_per_s).collect();
    let first = rates.first().copied().flatten();
    let is_first = |rate: &Option<f64>| match (first, rate) {
        (Some(first), Some(rate)) => (rate / first - 1.0).abs() <= RATE_TOLERANCE,
        (None, None) => true,
        _ => false,
    };
    if rates.iter().all(is_first) {
        return Agreed {
            value: first,
            notes: Vec::new(),
        };
    }
    let shown = rates.iter().map(|rate| match rate {
        Some(rate) => format!("{}/s", digits::value(*rate, None)),
        None => "unknown".to_owned(),
    });
    let shown: Vec<String> = shown.collect();
    Agreed {
        value: None,
        notes: vec![format!("the runs differ in rate: {}", shown.join(", "))],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(conditions: &[(Condition, &str)], offered_per_s: Option<f64>) -> ForeignRun {
        let conditions = conditions.iter();
        ForeignRun {
            conditions: conditions
                .map(|(condition, value)| (*condition, (*value).to_owned()))
                .collect(),
            offered_per_s,
            ..ForeignRun::new("tool")
        }
    }

    #[test]
    fn what_runs_differ_in_is_said_and_is_no_ones_value() {
        use Condition::{Connections, Length, Threads};
        let ten = run(&[(Connections, "10"), (Length, "3s")], None);
        let fifty = run(&[(Connections, "50"), (Length, "3s"), (Threads, "1")], None);
        let agreed = conditions(&[ten.clone(), fifty, ten]);
        let expected = BTreeMap::from([
            (Connections, "10 and 50".to_owned()),
            (Length, "3s".to_owned()),
        ]);
        assert_eq!(agreed.value, expected);
        assert_eq!(
            agreed.notes,
            [
                "the runs differ in connections: 10 and 50",
                "threads of the tool: 1 in 1 of 3 runs, unknown in the other runs"
            ]
        );
    }

    #[test]
    fn rates_that_are_measured_are_the_same_when_they_are_near() {
        let at = |rates: &[f64]| {
            let runs: Vec<ForeignRun> = rates.iter().map(|rate| run(&[], Some(*rate))).collect();
            offered(&runs)
        };
        let same = at(&[100.03, 99.9]);
        assert_eq!((same.value, same.notes.len()), (Some(100.03), 0));
        let other = at(&[100.0, 200.0]);
        assert_eq!(other.value, None);
        assert_eq!(other.notes, ["the runs differ in rate: 100/s, 200/s"]);
    }
}
