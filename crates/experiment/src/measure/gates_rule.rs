//! A stopping rule that adds rounds until the gates are decided.
//!
//! No more rounds are needed if every gate holds, or if one of them is broken. Each check of the gates costs
//! confidence, which makes the intervals wider (`stats::sequential`).

use std::time::Duration;

use analysis::Summary;
use analysis::gate::Ruling;
use lab::Lab;
use model::{Goal, micros};
use recording::{DecidedText, UntilEnd};
use stats::sequential::LOOKS;

use super::stopping_rule::Next;
use crate::gates::Gates;

/// Measures until the gates are decided, or until time or rounds run out.
pub(super) struct GatesRule {
    text: DecidedText,
    max_time: Duration,
}

impl GatesRule {
    /// Returns the rule if the lab uses its gates as a stopping rule.
    pub(super) fn of(lab: &Lab) -> Option<GatesRule> {
        (lab.until == Some(Goal::Gates)).then(|| GatesRule {
            text: DecidedText {
                gates: Vec::new(),
                rounds_max: u32::try_from(*LOOKS.end()).expect("24"),
                max_time_us: micros(lab.max_time),
                // The reason until the rule finds another.
                ended: UntilEnd::Stopped,
            },
            max_time: lab.max_time,
        })
    }

    /// Sets the names of the gates, for the recording.
    pub(super) fn name(&mut self, gates: &Gates) {
        self.text.gates = gates.all.iter().map(|gate| gate.text.clone()).collect();
    }

    /// Returns the result for the recording.
    pub(super) fn text(&self) -> DecidedText {
        self.text.clone()
    }

    /// True if the gates are checked after this number of rounds.
    pub(super) fn looks_after(rounds: usize) -> bool {
        LOOKS.contains(&rounds)
    }

    /// Decides after `rounds` rounds, which lasted `took`, if another round is measured.
    pub(super) fn next(&mut self, rounds: usize, took: Duration, is_decided: bool) -> Next {
        let each = took.div_f64(rounds.max(1) as f64);
        self.text.ended = if is_decided {
            UntilEnd::Reached
        } else if rounds >= *LOOKS.end() {
            UntilEnd::MaxRounds
        // Another round must fit completely.
        } else if took + each > self.max_time {
            UntilEnd::MaxTime
        } else {
            return Next::GoOn(None);
        };
        Next::End
    }
}

/// True if another round cannot change the result of the run.
pub(super) fn is_decided(summary: &Summary) -> bool {
    let rulings = || summary.gates.iter().map(|judgement| judgement.ruling);
    rulings().all(|it| it == Ruling::Holds) || rulings().any(|it| it == Ruling::Broken)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule() -> GatesRule {
        GatesRule {
            text: DecidedText {
                gates: Vec::new(),
                rounds_max: 24,
                max_time_us: 60_000_000,
                ended: UntilEnd::Stopped,
            },
            max_time: Duration::from_secs(60),
        }
    }

    #[test]
    fn rounds_end_with_the_decision_the_time_or_their_number() {
        let after = |rounds: usize, seconds: u64, is_decided: bool| {
            let mut rule = rule();
            match rule.next(rounds, Duration::from_secs(seconds), is_decided) {
                Next::End => Some(rule.text().ended),
                Next::GoOn(_) => None,
            }
        };
        assert_eq!(after(6, 12, true), Some(UntilEnd::Reached));
        assert_eq!(after(6, 12, false), None);
        assert_eq!(after(24, 48, false), Some(UntilEnd::MaxRounds));
        // The next round of 10 s would end after 70 s.
        assert_eq!(after(6, 60, false), Some(UntilEnd::MaxTime));
        assert_eq!(after(6, 50, false), None);
    }
}
