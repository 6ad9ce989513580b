//! Requests of side-by-side rounds that are in no latency, and their effect on the mean.
//!
//! The machine, the generator or a neighbor disturbed them, so they do not represent the variant. If they
//! were left out because they were slow, a reader must see it. The mean over all requests shows that.

use schemars::JsonSchema;
use serde::Serialize;

use super::quantity;
use crate::digits;
use crate::float::float;
use crate::metric::Metric;
use crate::recording::RoundRecord;

/// If more than this share of the requests was left out, every report has a line about it.
const WORTH_A_LINE: f64 = 0.01;

/// The requests that are in no latency.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LeftOutSummary {
    /// The share of the complete answers, from 0 to 1.
    pub share: f64,
    /// Mean latency of the answers that were left out, in microseconds.
    pub latency_us_mean: f64,
    /// Mean latency of the answers that count, in microseconds.
    pub latency_us_mean_counted: f64,
    /// Mean latency of all answers, in microseconds.
    pub latency_us_mean_all: f64,
}

impl LeftOutSummary {
    /// Summarizes all complete measurements of a variant. `None` if no request was left out.
    pub(super) fn of(complete: &[&RoundRecord]) -> Option<Self> {
        // Slices are whole periods of a load, and their requests do not form cycles.
        let mut rounds = complete.iter().filter(|round| round.slices.is_none());
        let is_left_out = |round: &&RoundRecord| round.left_out.is_some_and(|it| it.total() > 0);
        rounds.clone().find(|round| is_left_out(round))?;
        let (mut all, mut counted) = (Mean::default(), Mean::default());
        rounds.try_for_each(|round| {
            let windows = &round.windows;
            // The windows contain all responses of the plan.
            all.add(
                windows.completed.iter().sum(),
                float(windows.latency_sum_ns.iter().sum()),
            );
            counted.add_counted(round)
        })?;
        let left_out = Mean {
            count: all
                .count
                .checked_sub(counted.count)
                .filter(|left| *left > 0)?,
            sum_ns: (all.sum_ns - counted.sum_ns).max(0.0),
        };
        Some(Self {
            share: float(left_out.count) / float(all.count),
            latency_us_mean: left_out.us()?,
            latency_us_mean_counted: counted.us()?,
            latency_us_mean_all: all.us()?,
        })
    }

    /// Sentence on the mean: `` `a`: 27 % of the requests are in no latency (mean 206 us). The mean of all
    /// requests is 107 us, and the mean of the counted requests is 69.0 us ``. `None` if at most a hundredth
    /// was left out.
    pub(crate) fn sentence(&self, variant: &str) -> Option<String> {
        let us = |value: f64| quantity::figure(Metric::Mean.unit(), value);
        (self.share > WORTH_A_LINE).then(|| {
            format!(
                "`{variant}`: {} of the requests are in no latency (mean {}). The mean of all \
                 requests is {}, and the mean of the counted requests is {}",
                digits::percent(self.share),
                us(self.latency_us_mean),
                us(self.latency_us_mean_all),
                us(self.latency_us_mean_counted)
            )
        })
    }
}

/// Relative rise of the mean latency if it included the requests that were left out because the generator did
/// not run. The other causes are not included. The host and a busy neighbor make a request slower, but they
/// are outside of the variant. The generator may stand still because the variant itself has the cores. `None`
/// if the recording does not contain these requests.
pub(super) fn rise(complete: &[&RoundRecord]) -> Option<f64> {
    complete.iter().find_map(|round| round.left_out_answers)?;
    let mut counted = Mean::default();
    complete
        .iter()
        .try_for_each(|round| counted.add_counted(round))?;
    let mut with = counted;
    let lost = complete.iter().filter_map(|round| round.left_out_answers);
    for answers in lost.map(|lost| lost.generator) {
        with.add(answers.count, float(answers.latency_sum_ns));
    }
    Some(with.us()? / counted.us()? - 1.0)
}

/// A mean of latencies, as its sum and count.
#[derive(Clone, Copy, Default)]
struct Mean {
    count: u64,
    sum_ns: f64,
}

impl Mean {
    fn add(&mut self, count: u64, sum_ns: f64) {
        self.count += count;
        self.sum_ns += sum_ns;
    }

    /// Adds the counted latencies of a round. `None` without a response.
    fn add_counted(&mut self, round: &RoundRecord) -> Option<()> {
        let latency = round.latency_ns_hdr.histogram();
        self.add(
            latency.len(),
            round.mean_ns(&latency)? * float(latency.len()),
        );
        Some(())
    }

    /// The mean in microseconds. `None` without a latency.
    fn us(self) -> Option<f64> {
        (self.count > 0).then(|| self.sum_ns / float(self.count) / 1e3)
    }
}

#[cfg(test)]
mod tests {
    use model::Order;

    use super::*;
    use crate::recording::{Answers, LeftOut, LeftOutAnswers, Recording};
    use crate::sample::Sample;
    use crate::summary::{CheckName, CheckState, Summary, Verdict};

    /// A recording with `lost` lost responses of the variant `b` in each round, each with this latency.
    fn recording(lost: u64, latency_us: u64, is_generator: bool) -> Recording {
        let sample = Sample::side_by_side().variant("a", 700.0);
        let mut recording = sample.variant("b", 720.0).build();
        assert_eq!(recording.order_measured(), Order::SideBySide);
        for round in &mut recording.rounds {
            let latency = round.latency_ns_hdr.histogram();
            let counted_ns = latency.mean_ns().unwrap() * float(latency.len());
            let is_lost = round.variant == "b";
            let lost = if is_lost { lost } else { 0 };
            let answers = Answers {
                count: lost,
                latency_sum_ns: lost * latency_us * 1_000,
            };
            // One window is enough, because the test uses only the sums.
            round.windows.completed = vec![latency.len() + lost];
            round.windows.errors = vec![0];
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a sum of latencies"
            )]
            let sum_ns = counted_ns as u64 + answers.latency_sum_ns;
            round.windows.latency_sum_ns = vec![sum_ns];
            let (host, generator) = match is_generator {
                true => (0, lost),
                false => (0, 0),
            };
            round.left_out = Some(LeftOut {
                cycles: latency.len() + lost,
                host,
                generator,
                neighbor: lost - generator,
                overrun: None,
            });
            let mut of = LeftOutAnswers::default();
            match is_generator {
                true => of.generator = answers,
                false => of.neighbor = answers,
            }
            round.left_out_answers = Some(of);
        }
        recording
    }

    #[test]
    fn the_mean_of_all_requests_is_in_every_report() {
        // 30 % of the counted number, 2 ms each: (720 + 0.3 * 2,000) / 1.3 = 1,015 us.
        let recording = recording(30_000, 2_000, false);
        let summary = Summary::of(&recording);
        let found = summary.variants[1].left_out.clone().unwrap();
        assert!((found.share - 0.3 / 1.3).abs() < 1e-6, "{found:?}");
        assert!((found.latency_us_mean - 2_000.0).abs() < 1.0, "{found:?}");
        let expected = (found.latency_us_mean_counted + 0.3 * 2_000.0) / 1.3;
        assert!(
            (found.latency_us_mean_all - expected).abs() < 1.0,
            "{found:?}"
        );
        assert_eq!(summary.variants[0].left_out, None);
        let words = "The mean of all requests is 1.02 ms, and the mean of the counted requests";
        for shown in [
            crate::text(&recording, &summary, crate::Terminal::plain(300)),
            crate::full_text(&recording, &summary, crate::Terminal::plain(300)),
            crate::markdown(&recording, &summary),
            crate::html(&recording, &summary),
            crate::comment(&recording, &summary),
        ] {
            assert!(shown.contains(words), "{shown}");
        }
    }

    #[test]
    fn hardly_any_are_not_worth_a_line() {
        let recording = recording(900, 2_000, false);
        let summary = Summary::of(&recording);
        assert!(summary.variants[1].left_out.is_some());
        let shown = crate::full_text(&recording, &summary, crate::Terminal::plain(300));
        assert!(!shown.contains("The mean of all requests"), "{shown}");
    }

    #[test]
    fn slow_requests_that_were_left_out_withhold_the_verdict() {
        let check_of = |recording: &Recording| {
            let summary = Summary::of(recording);
            let row = summary.variants[1].clone();
            let check = row
                .checks
                .iter()
                .find(|it| it.name == CheckName::LeftOutSlower);
            (check.cloned().unwrap().state, row.verdict)
        };
        // Requests with an equal latency do not change the mean, whatever their number.
        assert_eq!(check_of(&recording(30_000, 720, true)).0, CheckState::Ok);
        // 4 % of the counted number, 3 ms each. The mean would be 12 % higher.
        assert_eq!(check_of(&recording(4_000, 3_000, true)).0, CheckState::Weak);
        let (state, verdict) = check_of(&recording(30_000, 3_000, true));
        assert_eq!(state, CheckState::Failed);
        assert!(matches!(
            verdict,
            Verdict::Withheld {
                check: CheckName::LeftOutSlower,
                ..
            }
        ));
        // A neighbor that kept the cores busy explains the rise.
        assert_eq!(check_of(&recording(30_000, 3_000, false)).0, CheckState::Ok);
    }
}
