//! Rounds that go on until an interval is narrow.
//!
//! The first rounds are the pilot: it says how many rounds and minutes the rule takes, before they
//! are spent. Widths decide when to stop, never where an interval lies; what looking at them costs is
//! paid with wider intervals (`stats::width::watched_confidence`).

use std::time::Duration;

use lab::Lab;
use report::recording::{PilotText, RoundRecord, UntilEnd, UntilText};
use report::until::{Seen, Watch, is_reached, width_in_words};

use super::duration_text::duration_text;
use model::micros;

/// No lab has more rounds.
pub(super) const ROUNDS_MAX: usize = 1_000;

/// The first look is not before so many rounds: where differences have short tails, six lie close
/// together too often for what `watched_confidence` makes up for.
const PILOT_MIN: usize = 8;

/// Measures until an interval is narrow enough, or until time or rounds run out.
pub(super) struct StoppingRule {
    /// The rule, with what has become of it so far.
    text: UntilText,
    max_time: Duration,
    pilot: usize,
    watch: Watch,
    /// Measurements already watched.
    watched: usize,
    /// Rounds in all, as last expected.
    expected: Option<usize>,
}

/// What to do after a round.
pub(super) enum Next {
    /// Another round, with something to tell where there is news.
    GoOn(Option<String>),
    /// No more rounds.
    End,
}

impl StoppingRule {
    /// The lab's rule; none when it does not go on for a width.
    pub(super) fn of(lab: &Lab) -> Option<StoppingRule> {
        let until = lab.until_width()?;
        let text = UntilText {
            until: until.clone(),
            max_time_us: micros(lab.max_time),
            // Until there is another reason.
            ended: UntilEnd::Stopped,
            pilot: None,
        };
        let confidence = stats::width::watched_confidence(report::CONFIDENCE);
        let needed = stats::multiple::rounds_needed(confidence, lab.variants.len());
        let compared = lab.variants.iter().filter_map(|variant| {
            let baseline = variant.against.clone()?;
            Some((variant.name.clone(), baseline))
        });
        // It is cut to that number below in any case.
        let asked = usize::try_from(lab.rounds).unwrap_or(ROUNDS_MAX);
        Some(StoppingRule {
            max_time: lab.max_time,
            // With fewer rounds than `needed` there is no interval whose width could be watched.
            pilot: asked.clamp(needed.max(PILOT_MIN), ROUNDS_MAX),
            watch: Watch::new(until, compared),
            text,
            watched: 0,
            expected: None,
        })
    }

    /// Rounds in all, as far as is known.
    pub(super) fn rounds(&self) -> usize {
        self.expected.unwrap_or(self.pilot).min(ROUNDS_MAX)
    }

    /// What became of it, for the recording.
    pub(super) fn text(&self) -> UntilText {
        self.text.clone()
    }

    /// Says whether all variants are measured side by side, so that they tell about each other how slow
    /// the machine was.
    pub(super) fn side_by_side(&mut self, is_side_by_side: bool) {
        self.watch.side_by_side(is_side_by_side);
    }

    /// Decides after so many rounds, which took so long, whether another one is measured.
    pub(super) fn next(
        &mut self,
        rounds: usize,
        took: Duration,
        measurements: &[RoundRecord],
        variants: &[&str],
    ) -> Next {
        // Only the new ones: a long run would otherwise read all histograms again after each round.
        for round in &measurements[self.watched..] {
            self.watch.add(round);
        }
        self.watched = measurements.len();
        let seen = self.watch.look(variants);
        let each = took.div_f64(rounds.max(1) as f64);
        let end = if rounds >= self.pilot && is_reached(&seen) {
            Some(UntilEnd::Reached)
        // Another round must fit as a whole. A round that is cut short says nothing.
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

    /// Predicts the rounds and minutes from the widths so far.
    fn predict(&mut self, rounds: usize, each: Duration, seen: &[Seen]) -> String {
        let expected = seen.iter().map(|one| one.rounds_expected);
        let all = expected
            // Of several variants the slowest decides; one without a prediction is slower than all.
            .max_by_key(|all| all.unwrap_or(usize::MAX))
            .flatten();
        let all = all.filter(|all| *all <= ROUNDS_MAX);
        // Never fewer than one more: the last prediction has just failed.
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
            // The rounds so far may have taken all of the time, and none of them is taken back.
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
