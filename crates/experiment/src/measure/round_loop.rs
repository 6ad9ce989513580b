//! The loop over the rounds of a run. A [`RoundStrategy`] carries out each round.

use std::convert::Infallible;
use std::time::Duration;

use analysis::Summary;
use model::Order;
use recording::Recording;

use super::Experiment;
use super::gates_rule::is_decided;
use super::round::{Round, Seen};
use super::stopping_rule::Next;
use crate::environment::instant;

/// Number of rounds after which the live table is no longer rebuilt after every round.
const INTERIM_MOST: usize = 32;

/// A way to carry out the rounds of a run.
pub(super) trait RoundStrategy {
    /// The failure that ends the run.
    type Error;

    /// Measures all remaining candidates once. The measurements become records of the experiment.
    ///
    /// # Errors
    /// When the run cannot continue.
    fn carry_out(
        &mut self,
        experiment: &mut Experiment<'_>,
        round: &Round,
    ) -> Result<(), Self::Error>;
}

/// The rounds of this machine: all candidates at once, or one after the other.
///
/// The design decides before each round, because the first round may show that the candidates cannot run
/// together.
pub(super) struct OnThisMachine;

impl RoundStrategy for OnThisMachine {
    type Error = Infallible;

    fn carry_out(
        &mut self,
        experiment: &mut Experiment<'_>,
        round: &Round,
    ) -> Result<(), Infallible> {
        tracing::debug!(
            round = round.number + 1,
            planned = round.planned,
            "a round begins"
        );
        match experiment.design.order {
            Order::SideBySide => experiment.side_by_side(round),
            Order::InTurn => experiment.in_turn(round),
        }
        Ok(())
    }
}

impl Experiment<'_> {
    /// Measures rounds until the stopping rule is met or the run is over.
    ///
    /// # Errors
    /// When a round fails. The measurements of earlier rounds remain.
    pub(super) fn measure_rounds<S: RoundStrategy>(
        &mut self,
        strategy: &mut S,
    ) -> Result<(), S::Error> {
        let began = instant();
        while !self.is_over()
            && let Some(round) = self.rounds.begin()
        {
            let known = self.records.len();
            if let Some(account) = self.session.progress.account() {
                account.round(round.number + 1, round.planned);
            }
            strategy.carry_out(self, &round)?;
            if let Some(account) = self.session.progress.account() {
                self.records[known..]
                    .iter()
                    .for_each(|record| account.measured(record));
            }
            self.show_interim(round.number + 1);
            if self.has_yielded {
                self.end_all("the run was stopped, because a server asked for less load");
                break;
            }
            // Checked after whole rounds only, because then every candidate has been measured once.
            if self.has_enough(instant().duration_since(began)) {
                break;
            }
        }
        Ok(())
    }

    /// Shows the measured rounds on a terminal and on the page. It runs between rounds, when it disturbs no
    /// measurement.
    fn show_interim(&mut self, rounds: usize) {
        // Both read all rounds again. With many rounds they are therefore not renewed after each one.
        let is_due = rounds.is_multiple_of((rounds / INTERIM_MOST).max(1));
        let is_live = self.session.progress.is_live();
        let is_wanted = is_live || self.board.is_some();
        if !is_due || !is_wanted || self.session.stop.is_asked() {
            return;
        }
        let (recording, summary) = self.so_far();
        if is_live {
            let lines = report::interim(&summary, self.session.progress.width());
            self.session.progress.table(&lines);
        }
        if let Some(board) = &self.board {
            board.show(&recording, &self.gates.judge(summary));
        }
        self.take_back(recording);
    }

    /// The recording of all rounds until now, with its summary. [`take_back`](Self::take_back) returns the
    /// rounds.
    fn so_far(&mut self) -> (Recording, Summary) {
        let profiles = std::mem::take(&mut self.profiles);
        let recording = self.recording();
        self.profiles = profiles;
        let summary = Summary::of(&recording);
        (recording, summary)
    }

    fn take_back(&mut self, recording: Recording) {
        self.records = recording.rounds;
    }

    /// The summary of all rounds until now.
    fn summary_so_far(&mut self) -> Summary {
        let (recording, summary) = self.so_far();
        self.take_back(recording);
        summary
    }

    /// True if the measured rounds, which lasted `took`, are sufficient.
    fn has_enough(&mut self, took: Duration) -> bool {
        // A round that was cut short yields no interval.
        if self.is_over() {
            return false;
        }
        let is_decided = self.rounds.looks_at_gates() && {
            let summary = self.summary_so_far();
            is_decided(&self.gates.judge(summary))
        };
        let seen = Seen {
            took,
            records: &self.records,
            compared: &self.candidates.names_compared(),
            is_side_by_side: self.design.order == Order::SideBySide
                && self.session.lab.capacity.is_none(),
            is_decided,
        };
        match self.rounds.next(&seen) {
            Next::End => true,
            Next::GoOn(news) => {
                if let Some(news) = news {
                    let measurements = self.rounds.planned() * self.candidates.len();
                    self.session.progress.note(&news);
                    self.session.progress.expect(measurements as u64);
                }
                false
            }
        }
    }
}
