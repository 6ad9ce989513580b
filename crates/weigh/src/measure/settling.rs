//! The load that comes once after a start: a program that compiles as it runs gets faster for a
//! while, and none of that is to be in the figures.
//!
//! Alone, a target's speed is its rate. Side by side the rate of one depends on the others, so its
//! speed is what it answers per second of its own processor time, which the others hardly touch.

use std::time::{Duration, Instant};

use load::Measurement;
use model::{Load, Settle, Stop};

use crate::environment::instant;

/// The length of one window of that load.
const WINDOW: Duration = Duration::from_millis(500);
/// After so many windows without a gain, the target has settled.
const WINDOWS_STILL: usize = 3;
/// A window is a gain when its rate is above the best before it times this. Windows of a target that
/// has nothing left to gain differ by some hundredths: with less, one of many targets side by side
/// nearly always seems to gain.
const GAIN: f64 = 1.05;

/// The load after a start, on its way.
pub(super) struct Settling {
    settle: Settle,
    began: Instant,
    /// How fast it was, window by window: requests that passed, per second of the window or of
    /// processor time.
    speeds: Vec<f64>,
    /// Whether all of these are per second of processor time.
    is_in_processor_time: bool,
}

impl Settling {
    pub(super) fn new(settle: Settle) -> Settling {
        Settling {
            settle,
            began: instant(),
            speeds: Vec::new(),
            is_in_processor_time: true,
        }
    }

    /// What one window sends. A closed loop, because it finds out by itself how fast the target is.
    pub(super) fn load(&self) -> Load {
        Load::Closed {
            connections: self.settle.connections,
            stop: Stop {
                requests: None,
                // A limit shorter than a window ends the first one.
                duration: Some(WINDOW.min(self.settle.within)),
            },
        }
    }

    /// Whether another window is sent.
    pub(super) fn goes_on(&self) -> bool {
        !is_settled(&self.speeds) && self.began.elapsed() < self.settle.within
    }

    /// How many windows it took so far.
    pub(super) fn windows(&self) -> usize {
        self.speeds.len()
    }

    pub(super) fn add(&mut self, window: &Measurement) {
        self.add_in(window, window.elapsed);
        self.is_in_processor_time = false;
    }

    /// As [`Settling::add`], with the processor time that the systems had in the window.
    pub(super) fn add_in(&mut self, window: &Measurement, time: Duration) {
        self.speeds
            .push(window.outcomes.passed as f64 / time.as_secs_f64());
    }
}

impl Settling {
    /// Processor time per answer in the last windows; none where it is not known.
    pub(super) fn cost(&self) -> Option<Duration> {
        let from = self.speeds.len().saturating_sub(WINDOWS_STILL);
        let last = &self.speeds[from..];
        let speed = last.iter().sum::<f64>() / last.len() as f64;
        // Without a window the speed is not a number, and at 0 a cost is no duration.
        let is_known = self.is_in_processor_time && speed.is_finite() && speed > 0.0;
        is_known.then(|| Duration::from_secs_f64(1.0 / speed))
    }
}

/// Whether the last windows brought nothing beyond the best before them.
fn is_settled(rates: &[f64]) -> bool {
    let Some(before) = rates.len().checked_sub(WINDOWS_STILL) else {
        return false;
    };
    let best = |rates: &[f64]| rates.iter().copied().fold(0.0, f64::max);
    // Held against the best of all windows before, not the last one: a slow window must not make
    // the next look like a gain.
    before > 0 && best(&rates[before..]) <= best(&rates[..before]) * GAIN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_has_settled_when_three_windows_brought_nothing() {
        for (rates, settled) in [
            (&[][..], false),
            (&[100.0, 100.0, 100.0], false),
            (&[100.0, 101.0, 99.0, 102.0], true),
            (&[100.0, 101.0, 99.0, 106.0], false),
            (&[100.0, 150.0, 190.0, 200.0, 199.0, 209.0, 201.0], true),
            (&[100.0, 150.0, 190.0, 200.0, 199.0, 209.0], false),
        ] {
            assert_eq!(is_settled(rates), settled, "{rates:?}");
        }
    }
}
