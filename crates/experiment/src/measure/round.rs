//! Rounds are the unit of statistics. Each round is one start of every candidate and its measurement.

use std::time::Duration;

use lab::Lab;
use recording::{DecidedText, RoundRecord, UntilText};
use stats::sequential::LOOKS;

use super::candidate::Candidates;
use super::candidate_id::CandidateId;
use super::gates_rule::GatesRule;
use super::stopping_rule::{Next, ROUNDS_MAX, StoppingRule};
use crate::gates::Gates;

/// One planned round.
pub(super) struct Round {
    /// The round's number, from 0.
    pub(super) number: usize,
    /// Total number of rounds, as expected when this round begins.
    pub(super) planned: usize,
    /// The seed of random arrivals. It differs from round to round and is equal for all candidates of a
    /// round. The plan therefore affects all candidates equally.
    pub(super) arrival_seed: u64,
    /// The candidates in the order of this round.
    order: Vec<CandidateId>,
}

/// A candidate's place in a round.
#[derive(Clone, Copy, Debug)]
pub(super) struct Position {
    /// The round's number, from 0.
    pub(super) round: usize,
    /// The place in the round's order, from 0.
    pub(super) index: usize,
    pub(super) candidate: CandidateId,
    /// The group of the candidate, from 0. `None` if the round has a single group.
    pub(super) group: Option<u32>,
}

impl Round {
    /// Every candidate once, in the order of this round.
    pub(super) fn positions(&self) -> impl Iterator<Item = Position> {
        (0..).zip(&self.order).map(|(index, candidate)| Position {
            round: self.number,
            index,
            candidate: *candidate,
            group: None,
        })
    }
}

/// The measured rounds, as input of the stopping rule.
pub(super) struct Seen<'a> {
    /// Time since the start of the first round.
    pub(super) took: Duration,
    pub(super) records: &'a [RoundRecord],
    /// The variants with the deciding intervals.
    pub(super) compared: &'a [&'a str],
    pub(super) is_side_by_side: bool,
    /// True if the gates are decided. False if they were not checked.
    pub(super) is_decided: bool,
}

/// The rule for the number of rounds.
enum Rule {
    Fixed,
    Width(Box<StoppingRule>),
    Gates(GatesRule),
}

impl Rule {
    fn of(lab: &Lab) -> Rule {
        let width = StoppingRule::of(lab).map(|rule| Rule::Width(Box::new(rule)));
        width
            .or_else(|| GatesRule::of(lab).map(Rule::Gates))
            .unwrap_or(Rule::Fixed)
    }
}

/// All rounds of a run: their orders and their number.
pub(super) struct Rounds {
    /// One order for each possible round.
    orders: Vec<Vec<CandidateId>>,
    rule: Rule,
    seed: u64,
    begun: usize,
}

impl Rounds {
    pub(super) fn of(lab: &Lab, candidates: &Candidates<'_>, seed: u64) -> Rounds {
        let rule = Rule::of(lab);
        let rounds = match rule {
            // Orders are drawn for all possible rounds. A rule that ends early therefore does not change the
            // seed's order of the first rounds.
            Rule::Width(_) => ROUNDS_MAX,
            Rule::Gates(_) => *LOOKS.end(),
            Rule::Fixed => usize::try_from(lab.rounds)
                .expect("a usize holds 32 bits on every machine that weigh runs on"),
        };
        let orders = schedule::round_order(candidates.len(), rounds, seed);
        let named = |order: &Vec<usize>| {
            let positions = order.iter();
            positions.map(|position| candidates.at(*position)).collect()
        };
        Rounds {
            orders: orders.iter().map(named).collect(),
            rule,
            seed,
            begun: 0,
        }
    }

    /// Total number of rounds, as currently expected.
    pub(super) fn planned(&self) -> usize {
        let expected = match &self.rule {
            Rule::Width(rule) => rule.rounds(),
            Rule::Fixed | Rule::Gates(_) => self.orders.len(),
        };
        // The rounds may have exceeded the prediction.
        expected.max(self.begun)
    }

    /// The next round. `None` after the last.
    pub(super) fn begin(&mut self) -> Option<Round> {
        let number = self.begun;
        let order = self.orders.get(number)?.clone();
        self.begun += 1;
        Some(Round {
            number,
            planned: self.planned(),
            arrival_seed: self.arrival_seed(number),
            order,
        })
    }

    /// The seed of random arrivals in an uncounted round. No counted round has used it.
    pub(super) fn arrival_seed_after(&self) -> u64 {
        self.arrival_seed(self.begun)
    }

    fn arrival_seed(&self, number: usize) -> u64 {
        // It may wrap, because any number is a seed and neighbors give unrelated sequences.
        self.seed.wrapping_add(number as u64)
    }

    /// Sets the gates that decide the number of rounds, if the rule uses gates.
    pub(super) fn name_gates(&mut self, gates: &Gates) {
        if let Rule::Gates(rule) = &mut self.rule {
            rule.name(gates);
        }
    }

    /// True if the rule checks the gates after the current round.
    pub(super) fn looks_at_gates(&self) -> bool {
        matches!(self.rule, Rule::Gates(_)) && GatesRule::looks_after(self.begun)
    }

    /// Decides if another round follows.
    pub(super) fn next(&mut self, seen: &Seen<'_>) -> Next {
        match &mut self.rule {
            Rule::Fixed => Next::GoOn(None),
            Rule::Width(rule) => {
                rule.side_by_side(seen.is_side_by_side);
                rule.next(self.begun, seen.took, seen.records, seen.compared)
            }
            Rule::Gates(rule) => rule.next(self.begun, seen.took, seen.is_decided),
        }
    }

    /// Returns the result of a stopping rule by width, for the recording.
    pub(super) fn until(&self) -> Option<UntilText> {
        match &self.rule {
            Rule::Width(rule) => Some(rule.text()),
            Rule::Fixed | Rule::Gates(_) => None,
        }
    }

    /// Returns the result of a stopping rule by gates, for the recording.
    pub(super) fn decided(&self) -> Option<DecidedText> {
        match &self.rule {
            Rule::Gates(rule) => Some(rule.text()),
            Rule::Fixed | Rule::Width(_) => None,
        }
    }

    /// The orders for the recording. All planned orders, or only the measured ones if a rule has ended the
    /// run.
    pub(super) fn orders_recorded(
        &self,
        candidates: &Candidates<'_>,
        is_interrupted: bool,
    ) -> Vec<Vec<String>> {
        let rounds = match &self.rule {
            Rule::Width(_) | Rule::Gates(_) if !is_interrupted => self.begun,
            _ => self.planned(),
        };
        let names = |order: &Vec<CandidateId>| {
            let ids = order.iter();
            ids.map(|id| candidates.get(*id).name().to_owned())
                .collect()
        };
        self.orders.iter().take(rounds).map(names).collect()
    }
}
