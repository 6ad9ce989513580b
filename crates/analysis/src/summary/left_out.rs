//! Requests of side-by-side rounds that are in no latency, and their effect on the mean.
//!
//! The machine, the generator or a neighbor disturbed them, so they do not represent the variant. If they
//! were left out because they were slow, a reader must see it. The mean over all requests shows that.

use model::Unit;
use recording::{RoundRecord, digits, float};
use schemars::JsonSchema;
use serde::Serialize;

use super::quantity;

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
    pub fn sentence(&self, variant: &str, times: Unit) -> Option<String> {
        let us = |value: f64| quantity::figure(times, value);
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
