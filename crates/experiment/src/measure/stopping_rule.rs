//! The stopping rule that adds rounds until an interval is narrow.
//!
//! The first rounds are the pilot. They predict the number of rounds and minutes before that time is spent.
//! Only widths decide when to stop, never the position of an interval. Looking at widths has a price: wider
//! intervals (`stats::width::watched_confidence`).

use std::time::Duration;

use analysis::until::{Seen, Watch, is_reached, width_in_words};
use lab::Lab;
use model::micros;
use recording::{PilotText, RoundRecord, UntilEnd, UntilText};

use super::duration_text::duration_text;

/// Maximum number of rounds of any lab.
pub(super) const ROUNDS_MAX: usize = 1_000;

/// Fewest rounds before the first decision. If differences have short tails, six of them lie close together
/// too often. `watched_confidence` cannot compensate for that.
const PILOT_MIN: usize = 8;

/// Measures until an interval is narrow enough, or until time or rounds run out.
pub(super) struct StoppingRule {
    /// The rule with its current result, for the recording.
    text: UntilText,
    max_time: Duration,
    pilot: usize,
    watch: Watch,
    /// Number of measurements that `watch` contains.
    watched: usize,
    /// Total number of rounds by the last prediction.
    expected: Option<usize>,
}

/// The decision after a round.
pub(super) enum Next {
    /// Another round, with a note for the user if the prediction changed.
    GoOn(Option<String>),
    /// No more rounds.
    End,
}

impl StoppingRule {
    /// The lab's rule. `None` if the lab does not stop by a width.
    pub(super) fn of(lab: &Lab) -> Option<StoppingRule> {
        let until = lab.until_width()?;
        let text = UntilText {
            until: until.clone(),
            max_time_us: micros(lab.max_time),
            // The reason until the rule finds another.
            ended: UntilEnd::Stopped,
            pilot: None,
        };
        let confidence = stats::width::watched_confidence(analysis::CONFIDENCE);
        let needed = stats::multiple::rounds_needed(confidence, lab.variants.len());
        let compared = lab.variants.iter().filter_map(|variant| {
            let baseline = variant.against.clone()?;
            Some((variant.name.clone(), baseline))
        });
        // `ROUNDS_MAX` limits it below in any case.
        let asked = usize::try_from(lab.rounds).unwrap_or(ROUNDS_MAX);
        Some(StoppingRule {
            max_time: lab.max_time,
            // With fewer rounds than `needed` there is no interval with a width to watch.
            pilot: asked.clamp(needed.max(PILOT_MIN), ROUNDS_MAX),
            watch: Watch::new(until, compared),
            text,
            watched: 0,
            expected: None,
        })
    }

    /// Total number of rounds, as currently predicted.
    pub(super) fn rounds(&self) -> usize {
        self.expected.unwrap_or(self.pilot).min(ROUNDS_MAX)
    }

    /// The result of the rule, for the recording.
    pub(super) fn text(&self) -> UntilText {
        self.text.clone()
    }

    /// Records the order of the variants. Side by side, each variant shows for the other variants how slow
    /// the machine was.
    pub(super) fn side_by_side(&mut self, is_side_by_side: bool) {
        self.watch.side_by_side(is_side_by_side);
    }

    /// Decides after `rounds` rounds, which lasted `took`, if another round is measured.
    pub(super) fn next(
        &mut self,
        rounds: usize,
        took: Duration,
        measurements: &[RoundRecord],
        variants: &[&str],
    ) -> Next {
        // Only the new rounds. Otherwise a long run would read all histograms again after each round.
        for round in &measurements[self.watched..] {
            self.watch.add(round);
        }
        self.watched = measurements.len();
        let seen = self.watch.look(variants);
        let each = took.div_f64(rounds.max(1) as f64);
        let end = if rounds >= self.pilot && is_reached(&seen) {
            Some(UntilEnd::Reached)
        // Another round must fit completely, because a round that is cut short yields no interval.
        } else if took + each > self.max_time {
            Some(UntilEnd::MaxTime)
        } else if rounds >= ROUNDS_MAX {
            Some(UntilEnd::MaxRounds)
        } else {
            None
        };
        let is_news = rounds == self.pilot || self.expected.is_some_and(|all| rounds >= all);
        let news = (rounds >= self.pilot && is_news).then(|| self.predict(rounds, each, &seen));
        if let Some(end) = end {
            self.text.ended = end;
            return Next::End;
        }
        Next::GoOn(news)
    }

    /// Predicts the rounds and minutes from the current widths.
    fn predict(&mut self, rounds: usize, each: Duration, seen: &[Seen]) -> String {
        let expected = seen.iter().map(|one| one.rounds_expected);
        let all = expected
            // The slowest variant decides. A variant without a prediction is slower than all.
            .max_by_key(|all| all.unwrap_or(usize::MAX))
            .flatten();
        let all = all.filter(|all| *all <= ROUNDS_MAX);
        // At least one more round, because the last prediction has just failed.
        self.expected = Some(all.unwrap_or(ROUNDS_MAX).max(rounds + 1));
        let time = all.map(|all| each.mul_f64(all as f64));
        if rounds == self.pilot {
            self.text.pilot = Some(PilotText {
                rounds: u32::try_from(rounds).expect("there are at most 1,000 rounds"),
                rounds_expected: all
                    .map(|all| u32::try_from(all).expect("filtered by the most rounds")),
                time_us_expected: time.map(micros),
            });
        }
        let widths: Vec<String> = seen
            .iter()
            .map(|one| {
                let width = self.in_words(one, one.half_width);
                format!("{} {width}", one.variant)
            })
            .collect();
        let what = self.text.until.metric.label();
        let mut line = format!("after {rounds} rounds, {what}: {}", widths.join(", "));
        line += &match (all, time) {
            (Some(all), Some(time)) => format!(
                ". {} takes about {all} rounds, {} in all",
                self.text.until,
                duration_text(time)
            ),
            _ => format!(". {} takes more than {ROUNDS_MAX} rounds", self.text.until),
        };
        if time.is_none_or(|time| time > self.max_time) {
            let affordable = self.max_time.as_secs_f64() / each.as_secs_f64().max(1e-6);
            // The measured rounds may have used up the time. They still count.
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "positive, and cut to the most rounds"
            )]
            let affordable = (affordable as usize).clamp(rounds, ROUNDS_MAX);
            let widths: Vec<String> = seen
                .iter()
                .map(|one| self.in_words(one, one.half_width_expected(affordable)))
                .collect();
            line += &format!(
                ". After {} expect about {}",
                duration_text(self.max_time),
                widths.join(", ")
            );
        }
        line
    }

    fn in_words(&self, seen: &Seen, half_width: Option<f64>) -> String {
        width_in_words(&self.text.until, seen, half_width)
            .unwrap_or_else(|| "without an interval".to_owned())
    }
}
