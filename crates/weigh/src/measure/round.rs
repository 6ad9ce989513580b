//! Rounds: the unit of statistics. Each is one start of every candidate and its measurement.

use std::time::Duration;

use lab::Lab;
use report::recording::{RoundRecord, UntilText};

use super::candidate::{CandidateId, Candidates};
use super::stopping_rule::{Next, ROUNDS_MAX, StoppingRule};

/// One round, before it is carried out.
pub(super) struct Round {
    /// From 0.
    pub(super) number: usize,
    /// Rounds in all, as far as is known when this one begins.
    pub(super) planned: usize,
    /// The seed of random arrivals. It differs from round to round and is one for all candidates of a
    /// round: what a plan does to one of them, it does to all.
    pub(super) arrival_seed: u64,
    /// The candidates in the order of this round.
    order: Vec<CandidateId>,
}

/// A candidate's place in a round.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seat {
    /// The round's number, from 0.
    pub(super) round: usize,
    /// The place in the round's order, from 0.
    pub(super) position: usize,
    pub(super) candidate: CandidateId,
    /// The group in which it is measured, from 0, where a round has several.
    pub(super) group: Option<u32>,
}

impl Round {
    /// Every candidate once, in the order of this round.
    pub(super) fn seats(&self) -> impl Iterator<Item = Seat> {
        (0..).zip(&self.order).map(|(position, candidate)| Seat {
            round: self.number,
            position,
            candidate: *candidate,
            group: None,
        })
    }
}

/// All rounds of a run: their orders, and how many there are to be.
pub(super) struct Rounds {
    /// One for each round that there may be.
    orders: Vec<Vec<CandidateId>>,
    /// What decides about the number of rounds, when it is not fixed.
    stopping_rule: Option<StoppingRule>,
    seed: u64,
    begun: usize,
}

impl Rounds {
    pub(super) fn of(lab: &Lab, candidates: &Candidates<'_>, seed: u64) -> Rounds {
        let stopping_rule = StoppingRule::of(lab);
        let rounds = match stopping_rule {
            // Orders are drawn for all rounds that there may be: a rule that ends early leaves the
            // seed's order of the first rounds as it is.
            Some(_) => ROUNDS_MAX,
            None => usize::try_from(lab.rounds)
                .expect("a usize holds 32 bits on every machine that weigh runs on"),
        };
        let orders = schedule::round_order(candidates.len(), rounds, seed);
        let named = |order: &Vec<usize>| {
            let positions = order.iter();
            positions.map(|position| candidates.at(*position)).collect()
        };
        Rounds {
            orders: orders.iter().map(named).collect(),
            stopping_rule,
            seed,
            begun: 0,
        }
    }

    /// Rounds in all, as far as is known.
    pub(super) fn planned(&self) -> usize {
        let expected = self.stopping_rule.as_ref().map(StoppingRule::rounds);
        // A prediction may be overtaken by the rounds.
        expected.unwrap_or(self.orders.len()).max(self.begun)
    }

    /// The next round; none when there are no more.
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

    /// The seed of random arrivals in a round that is not counted: one that no round has had.
    pub(super) fn arrival_seed_after(&self) -> u64 {
        self.arrival_seed(self.begun)
    }

    fn arrival_seed(&self, number: usize) -> u64 {
        // It may wrap: any number is a seed, and neighbors give unrelated sequences.
        self.seed.wrapping_add(number as u64)
    }

    /// Whether another round is measured after those that have begun, which took so long. `compared`
    /// are the variants whose intervals decide.
    pub(super) fn next(
        &mut self,
        took: Duration,
        records: &[RoundRecord],
        compared: &[&str],
        is_side_by_side: bool,
    ) -> Next {
        match &mut self.stopping_rule {
            None => Next::GoOn(None),
            Some(rule) => {
                rule.side_by_side(is_side_by_side);
                rule.next(self.begun, took, records, compared)
            }
        }
    }

    /// What became of the rule, for the recording; none when the number of rounds was fixed.
    pub(super) fn until(&self) -> Option<UntilText> {
        self.stopping_rule.as_ref().map(StoppingRule::text)
    }

    /// The orders as the recording has them: those that were planned, or where a rule has ended the
    /// run those that have begun.
    pub(super) fn orders_recorded(
        &self,
        candidates: &Candidates<'_>,
        is_interrupted: bool,
    ) -> Vec<Vec<String>> {
        let rounds = match &self.stopping_rule {
            Some(_) if !is_interrupted => self.begun,
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
