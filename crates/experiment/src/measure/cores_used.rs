//! The processor use of a candidate at the rate of its measurement.

use std::time::Duration;

use lab::Setup;
use load::Measurement;
use model::{Load, Phase, Rate};

use super::groups::{CoresUsed, Part};
use crate::systems::UsageReading;

/// The readings of a candidate's systems around its warm-up.
pub(super) struct Used<'a> {
    pub(super) before: &'a [UsageReading],
    pub(super) after: &'a [UsageReading],
    pub(super) sent: &'a Measurement,
}

impl Used<'_> {
    /// Processor time per second, including background threads. `None` if it cannot be read.
    ///
    /// If other programs occupy the cores, responses come later than planned, and time per second is too low.
    /// The result is then the time per response times the planned rate.
    pub(super) fn cores(&self, setups: &[Setup], sent_at: Rate) -> Option<CoresUsed> {
        let seconds = self.sent.elapsed.as_secs_f64();
        let answers = self.sent.outcomes.completed();
        if seconds <= 0.0 {
            return None;
        }
        let mut by_cores = Vec::new();
        for (before, after) in self.before.iter().zip(self.after) {
            let setup = setups.iter().find(|setup| setup.system == before.system);
            let pin = setup.and_then(|setup| setup.pin.clone());
            let system = before.system.clone();
            let (before, after) = (before.usage.as_ref()?, after.usage.as_ref()?);
            let used = after.cpu.saturating_sub(before.cpu);
            by_cores.push(Part {
                system,
                on: pin,
                used: used.as_secs_f64() / seconds,
            });
        }
        let by_time = CoresUsed::new(by_cores);
        let total = by_time.total();
        // Without a response there is no cost per response, and processor time per second decides.
        let by_answer = match answers {
            0 => 0.0,
            answers => total * seconds / answers as f64 * sent_at.per_second(),
        };
        Some(by_time.scaled_to(total.max(by_answer)))
    }
}

/// The rate of a load's warm-up: the higher end of its first phase.
pub(super) fn first_rate(load: &Load) -> Rate {
    match load {
        Load::Open { phases, .. } => phases.first().map_or(Rate::ZERO, top),
        Load::Closed { .. } => Rate::ZERO,
    }
}

fn top(phase: &Phase) -> Rate {
    if phase.from < phase.to {
        phase.to
    } else {
        phase.from
    }
}

/// The expected processor use in the measurement, at the highest rate of the load. It is the higher of two
/// values: the use during warm-up, and the cost per response at the end of settling.
pub(super) fn planned(
    warm: Option<CoresUsed>,
    cost: Option<Duration>,
    load: &Load,
) -> Option<CoresUsed> {
    let Load::Open { phases, .. } = load else {
        return warm;
    };
    let rate = phases.iter().map(|phase| top(phase).per_second());
    let rate = rate.fold(0.0, f64::max);
    let warmed_at = first_rate(load).per_second();
    let by_time = warm.as_ref().map(|warm| match warmed_at > 0.0 {
        true => warm.total() * (rate / warmed_at),
        false => warm.total(),
    });
    let by_cost = cost.map(|cost| cost.as_secs_f64() * rate);
    let total = by_time.into_iter().chain(by_cost).reduce(f64::max)?;
    Some(warm.unwrap_or_default().scaled_to(total))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(rates: &[f64]) -> Load {
        let phase = |rate: &f64| {
            let rate = Rate::new(*rate).expect("a rate");
            Phase::constant(Duration::from_secs(1), rate)
        };
        Load::Open {
            phases: rates.iter().map(phase).collect(),
            arrival: model::Arrival::Uniform,
            connections_max: 1,
            requests_max: None,
        }
    }

    fn warm(cores: f64) -> Option<CoresUsed> {
        Some(CoresUsed::new(vec![Part {
            system: "server".to_owned(),
            on: None,
            used: cores,
        }]))
    }

    fn total(used: Option<CoresUsed>) -> Option<f64> {
        used.map(|used| (used.total() * 1e6).round() / 1e6)
    }

    #[test]
    fn the_larger_of_warming_up_and_settling_counts_at_the_highest_rate() {
        let cost = |us: u64| Some(Duration::from_micros(us));
        let steady = open(&[100.0]);
        assert_eq!(total(planned(warm(0.2), cost(500), &steady)), Some(0.2));
        assert_eq!(total(planned(warm(0.02), cost(500), &steady)), Some(0.05));
        assert_eq!(total(planned(None, cost(500), &steady)), Some(0.05));
        assert_eq!(total(planned(None, None, &steady)), None);
        // Warmed up at 100 per second, measured at up to 300.
        assert_eq!(
            total(planned(warm(0.1), None, &open(&[100.0, 300.0]))),
            Some(0.3)
        );
    }
}
