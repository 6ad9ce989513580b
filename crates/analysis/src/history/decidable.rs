//! Detection of gates that a lab can never decide, from the widths of earlier runs.

use model::{Gate, Relation, Subject};
use recording::describe::plural;
use recording::digits;
use stats::sequential::{LOOKS, look_confidence};
use stats::{Interval, sample, width};

use super::Entry;
use super::forecast::{self, Plan};
use crate::confidence::CONFIDENCE;

/// Returns the reason why a gate cannot be decided, from the latest runs of the lab that are like the planned
/// run. The gate must hold for a change without a cost. So the distance of the limit from "no difference"
/// must exceed half of the expected interval. If rounds continue for the gates, the maximum number of rounds
/// counts. `None` if the gate can be decided, and if the history has no such run or figure.
#[must_use]
pub fn undecidable(history: &[Entry], plan: Plan<'_>, gate: &Gate) -> Option<String> {
    let distance = distance(gate)?;
    let (entries, _) = forecast::alike(history, plan);
    let (rounds_at_end, at_end) = match plan.is_for_gates {
        true => (*LOOKS.end(), look_confidence(CONFIDENCE)),
        false => (plan.rounds, CONFIDENCE),
    };
    let halves: Vec<f64> = entries
        .iter()
        .filter_map(|entry| {
            let width = entry.widths.get(&gate.metric)?;
            let half = match gate.subject {
                Subject::Ratio => width.ratio?,
                _ => width.difference,
            };
            expected(half, width.confidence, entry.rounds, rounds_at_end, at_end)
        })
        .collect();
    let half = sample::median(&halves)?;
    if half < distance {
        return None;
    }
    let shown = |value: f64| in_words(gate, value);
    Some(format!(
        "the gate `{}` cannot be decided. By {} of `{}`, {} rounds measure {} to ±{}, but the limit \
         is only {} away from no difference. Set it to {} or more, or gate a figure with less \
         scatter, such as `typical`, `mean` or `cpu`",
        gate.text,
        plural(halves.len() as u64, "earlier run"),
        plan.lab,
        rounds_at_end,
        gate.metric.name(),
        shown(half),
        shown(distance),
        // The extra 50 % make the gate decidable in nearly all runs.
        shown(half * 1.5)
    ))
}

/// The distance of a gate's limit from no difference, in the unit of its figure or as a share of the
/// baseline. `None` for a gate that breaks without a difference. `None` also for a gate on a value, because a
/// history does not contain values.
fn distance(gate: &Gate) -> Option<f64> {
    let none = match gate.subject {
        Subject::Value => return None,
        Subject::Overhead => 0.0,
        Subject::Ratio => 1.0,
    };
    let distance = match gate.relation {
        Relation::Below | Relation::AtMost => gate.limit - none,
        Relation::Above | Relation::AtLeast => none - gate.limit,
    };
    (distance > 0.0).then_some(distance)
}

/// Half of the expected width, from a run with an interval of half width `half` and this confidence over
/// `rounds` rounds. `at_end` is the confidence of the interval after `rounds_at_end` rounds.
fn expected(
    half: f64,
    confidence: f64,
    rounds: usize,
    rounds_at_end: usize,
    at_end: f64,
) -> Option<f64> {
    let interval = |half: f64, confidence: f64| Interval {
        low: -half,
        high: half,
        confidence,
    };
    let error = width::standard_error(&interval(half, confidence), rounds)?;
    let unit = width::standard_error(&interval(1.0, at_end), rounds)?;
    width::half_width_expected(&interval(error / unit, at_end), rounds, rounds_at_end)
}

fn in_words(gate: &Gate, value: f64) -> String {
    if gate.subject == Subject::Ratio {
        let percent = value * 100.0;
        return format!("{} %", digits::value(percent, Some(percent * 0.2)));
    }
    forecast::about(gate.metric.unit(), value)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use model::{Metric, Order};
    use recording::METHOD;

    use super::super::Width;
    use super::*;
    use crate::sample::entry;

    fn history() -> Vec<Entry> {
        let of = |number: usize| Entry {
            machine: "here".to_owned(),
            method: METHOD,
            method_of_figures: None,
            widths: BTreeMap::from([
                (
                    Metric::P99,
                    Width {
                        difference: 400.0,
                        ratio: Some(0.65),
                        confidence: 0.95,
                    },
                ),
                (
                    Metric::Typical,
                    Width {
                        difference: 4.0,
                        ratio: Some(0.02),
                        confidence: 0.95,
                    },
                ),
            ]),
            sha256: format!("{number}"),
            ..entry(number, 0.0)
        };
        (0..12).map(of).collect()
    }

    fn found(gate: &str) -> Option<String> {
        let plan = Plan {
            lab: "api",
            load: "100 requests/s",
            machine: "here",
            order: Order::SideBySide,
            rounds: 8,
            until: None,
            is_for_gates: true,
        };
        undecidable(&history(), plan, &gate.parse().unwrap())
    }

    #[test]
    fn a_limit_inside_of_every_interval_is_refused_with_the_width() {
        // Half of an interval of 95 % over 8 rounds is 2.365 standard errors. Half of an interval of 99 %
        // over 24 rounds is 2.81 standard errors, which are smaller by the root of 3. So 0.65 becomes 0.446.
        let reason = found("p99 overhead < 5%").unwrap();
        assert!(
            reason.contains("By 12 earlier runs of `api`, 24 rounds measure p99 to ±45 %"),
            "{reason}"
        );
        assert!(
            reason.contains("the limit is only 5.0 % away from no difference"),
            "{reason}"
        );
        assert!(reason.contains("Set it to 67 % or more"), "{reason}");
        assert!(found("p99 overhead < 0.1ms").is_some());
        assert!(found("p99 ratio < 1.05").is_some());
    }

    #[test]
    fn a_limit_beyond_the_intervals_is_not_refused() {
        for gate in [
            "typical overhead < 20us",
            "typical overhead < 5%",
            "p99 overhead < 80%",
            // A limit on a value, a limit that requires a saving, and a figure that is not in the history.
            "p99 value < 1ms",
            "p99 overhead < -1ms",
            "mean overhead < 1us",
        ] {
            assert_eq!(found(gate), None, "{gate}");
        }
    }
}
