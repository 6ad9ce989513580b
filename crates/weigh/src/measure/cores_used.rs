//! How much of the cores a candidate uses at the rate at which it will be measured.

use std::time::Duration;

use lab::Setup;
use load::Measurement;
use model::Load;

use super::groups::CoresUsed;
use crate::systems::UsageReading;

/// What a candidate's systems did while it was warmed up.
pub(super) struct Used<'a> {
    pub(super) before: &'a [UsageReading],
    pub(super) after: &'a [UsageReading],
    pub(super) sent: &'a Measurement,
}

impl Used<'_> {
    /// Processor time per second, background threads included; none where it cannot be read. Where
    /// fewer requests were answered than planned, as many as planned are counted.
    pub(super) fn cores(&self, setups: &[Setup]) -> Option<CoresUsed> {
        let seconds = self.sent.elapsed.as_secs_f64();
        let answers = self.sent.outcomes.completed();
        if seconds <= 0.0 {
            return None;
        }
        let mut by_cores = Vec::new();
        for (before, after) in self.before.iter().zip(self.after) {
            let (before, after) = (before.usage.as_ref()?, after.usage.as_ref()?);
            by_cores.push(after.cpu.saturating_sub(before.cpu).as_secs_f64() / seconds);
        }
        let pins = self.before.iter().map(|reading| {
            let setup = setups.iter().find(|setup| setup.system == reading.system);
            setup.and_then(|setup| setup.pin.clone())
        });
        let found = CoresUsed::new(pins.zip(by_cores).collect());
        let unanswered = self.sent.planned.saturating_sub(answers);
        let factor = match answers {
            0 => 1.0,
            answers => 1.0 + unanswered as f64 / answers as f64,
        };
        let total = found.total() * factor;
        Some(found.scaled_to(total))
    }
}

/// What it will use when it is measured: what the warm-up showed, at the highest rate of the load, or
/// what an answer cost at the end of settling times that rate, whichever is more.
pub(super) fn planned(
    warm: Option<CoresUsed>,
    cost: Option<Duration>,
    load: &Load,
) -> Option<CoresUsed> {
    let Load::Open { phases, .. } = load else {
        return warm;
    };
    let top = |phase: &model::Phase| phase.from.per_second().max(phase.to.per_second());
    let rate = phases.iter().map(top).fold(0.0, f64::max);
    // A warm-up is at the rate of the first phase.
    let warmed_at = phases.first().map_or(rate, top);
    let by_time = warm.as_ref().map(|warm| match warmed_at > 0.0 {
        true => warm.total() * (rate / warmed_at),
        false => warm.total(),
    });
    let by_cost = cost.map(|cost| cost.as_secs_f64() * rate);
    let total = by_time.into_iter().chain(by_cost).reduce(f64::max)?;
    Some(warm.unwrap_or_default().scaled_to(total))
}
