//! The settling load after a start. A program with a just-in-time compiler gets faster for a while, and no
//! figure may contain that phase.
//!
//! Alone, a target's speed is its rate. Side by side, the rate of one target depends on the other targets.
//! Its speed is then the number of responses per second of its own processor time, which other targets hardly
//! affect.

use std::time::{Duration, Instant};

use load::Measurement;
use model::{Load, Settle, Stop};

use crate::environment::instant;

/// The length of one window of that load.
const WINDOW: Duration = Duration::from_millis(250);
/// A step is the number of windows with at least this many responses. Compilers count the calls of a
/// function. Fewer responses, as from a slow program among many, would not show if more compilation follows.
const STEP_ANSWERS: u64 = 250;
/// Minimum number of steps for a target with just-in-time compilation. A compiler compiles a function after
/// some number of calls, and the calls before that show a plateau. The coprocessor in Node needs 230 us of
/// processor time for each of its first 2,000 calls and 50 us from then on. The coprocessor in Java needs 460
/// us at the 1,000th call, 220 us at the 2,000th and 85 us at the 4,000th. A request to the gateway is two
/// calls.
const STEPS_COMPILED: usize = 10;
/// After this number of steps without a gain, the target has settled.
const STEPS_STILL: usize = 3;
/// A target that got faster by this factor needs twice as many steps without a gain. It compiles in waves,
/// and a machine that is slowed down for a second hides a wave.
const COMPILES: f64 = 1.5;
/// The last steps are a gain if their mean speed exceeds the earlier best times this factor. It is the mean
/// because steps of a settled target differ by some hundredths. With many targets side by side, the best step
/// of one would nearly always look like a gain.
const GAIN: f64 = 1.05;

/// A settling load in progress.
pub(super) struct Settling {
    settle: Settle,
    /// Minimum number of steps before it can be settled.
    steps_least: usize,
    began: Instant,
    /// Speed of each step: passed requests per second of the step or of processor time.
    speeds: Vec<f64>,
    /// Passed requests of the current step. `time` is its length.
    passed: u64,
    time: Duration,
    /// True if all times are processor time.
    is_in_processor_time: bool,
}

impl Settling {
    /// `compiles` is true if a system of the target has a just-in-time compiler.
    pub(super) fn new(settle: Settle, compiles: bool) -> Settling {
        Settling {
            settle,
            steps_least: if compiles { STEPS_COMPILED } else { 0 },
            began: instant(),
            speeds: Vec::new(),
            passed: 0,
            time: Duration::ZERO,
            is_in_processor_time: true,
        }
    }

    /// The load of one window. It is a closed loop, because a closed loop adapts to the target's speed.
    pub(super) fn load(&self) -> Load {
        let left = self.settle.within.saturating_sub(self.began.elapsed());
        Load::Closed {
            connections: self.settle.connections,
            stop: Stop {
                requests: None,
                // A limit shorter than a window ends the first window. At least one millisecond, because the
                // limit may have passed meanwhile.
                duration: Some(WINDOW.min(left).max(Duration::from_millis(1))),
            },
        }
    }

    /// True if another window is sent.
    pub(super) fn goes_on(&self) -> bool {
        let is_settled = self.speeds.len() >= self.steps_least && is_settled(&self.speeds);
        !is_settled && self.began.elapsed() < self.settle.within
    }

    /// Number of completed steps.
    pub(super) fn steps(&self) -> usize {
        self.speeds.len()
    }

    pub(super) fn add(&mut self, window: &Measurement) {
        self.add_in(window.outcomes.passed, window.elapsed);
        self.is_in_processor_time = false;
    }

    /// Like [`Settling::add`], with the passed responses of a window and the processor time of the systems in
    /// it.
    pub(super) fn add_in(&mut self, passed: u64, time: Duration) {
        self.passed += passed;
        self.time += time;
        if self.passed >= STEP_ANSWERS {
            self.speeds
                .push(self.passed as f64 / self.time.as_secs_f64());
            self.passed = 0;
            self.time = Duration::ZERO;
        }
    }
}

impl Settling {
    /// Processor time per response in the last steps. `None` if it is unknown.
    pub(super) fn cost(&self) -> Option<Duration> {
        let from = self.speeds.len().saturating_sub(STEPS_STILL);
        let last = &self.speeds[from..];
        let speed = match last {
            // The target is too slow for a single step.
            [] => self.passed as f64 / self.time.as_secs_f64(),
            _ => mean(last),
        };
        // Without a response the speed is not a number, and speed 0 has no cost.
        let is_known = self.is_in_processor_time && speed.is_finite() && speed > 0.0;
        is_known.then(|| Duration::from_secs_f64(1.0 / speed))
    }
}

/// True if the last steps brought no gain over the earlier best.
fn is_settled(speeds: &[f64]) -> bool {
    let best = |speeds: &[f64]| speeds.iter().copied().fold(0.0, f64::max);
    let compiles = speeds
        .first()
        .is_some_and(|first| best(speeds) > first * COMPILES);
    let still = if compiles {
        2 * STEPS_STILL
    } else {
        STEPS_STILL
    };
    let Some(before) = speeds.len().checked_sub(still) else {
        return false;
    };
    // Compared with the best of all earlier steps, not with the last. Otherwise a slow step would make the
    // next look like a gain.
    before > 0 && mean(&speeds[before..]) <= best(&speeds[..before]) * GAIN
}

fn mean(speeds: &[f64]) -> f64 {
    speeds.iter().sum::<f64>() / speeds.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_has_settled_when_three_steps_brought_nothing() {
        for (speeds, settled) in [
            (&[][..], false),
            (&[100.0, 100.0, 100.0], false),
            (&[100.0, 101.0, 99.0, 102.0], true),
            // One fast step among three is chance, three are a gain.
            (&[100.0, 101.0, 99.0, 112.0], true),
            (&[100.0, 107.0, 105.0, 108.0], false),
        ] {
            assert_eq!(is_settled(speeds), settled, "{speeds:?}");
        }
    }

    #[test]
    fn a_target_that_compiles_itself_has_settled_after_six_steps_without_a_gain() {
        let mut speeds = vec![100.0, 150.0, 190.0, 250.0];
        speeds.extend([200.0, 240.0, 250.0, 255.0, 245.0]);
        assert!(!is_settled(&speeds));
        speeds.push(250.0);
        assert!(is_settled(&speeds));
        // A later wave of compilation.
        speeds.extend([320.0; 6]);
        assert!(!is_settled(&speeds));
    }

    const SETTLE: Settle = Settle {
        connections: 1,
        within: Duration::from_secs(60),
    };

    /// Adds one step of responses with this processor time each.
    fn step(settling: &mut Settling, answer_us: u64) {
        let time = Duration::from_micros(answer_us) * u32::try_from(STEP_ANSWERS).unwrap();
        settling.add_in(STEP_ANSWERS, time);
    }

    #[test]
    fn a_plateau_before_the_compiler_sets_in_is_not_the_end() {
        // The coprocessor in Node, as measured: 230 us until it is compiled, and 50 us afterwards.
        let mut compiled = Settling::new(SETTLE, true);
        let mut ahead = Settling::new(SETTLE, false);
        for _ in 0..STEPS_COMPILED - 2 {
            step(&mut compiled, 230);
            step(&mut ahead, 230);
        }
        assert!(compiled.goes_on());
        assert!(
            !ahead.goes_on(),
            "a program that was compiled ahead is at its end"
        );
        for _ in 0..2 * STEPS_STILL {
            step(&mut compiled, 50);
            assert!(compiled.goes_on());
        }
        step(&mut compiled, 50);
        assert!(!compiled.goes_on());
        assert_eq!(compiled.cost().unwrap(), Duration::from_micros(50));
    }

    #[test]
    fn few_answers_are_no_step() {
        let mut settling = Settling::new(SETTLE, false);
        let time = Duration::from_millis(100);
        settling.add_in(STEP_ANSWERS - 50, time);
        assert_eq!(settling.steps(), 0);
        let cost = settling.cost().unwrap();
        assert_eq!(cost, Duration::from_micros(500), "of the step on its way");

        settling.add_in(50, time * 4);
        assert_eq!(settling.steps(), 1);
        assert_eq!(settling.cost().unwrap(), Duration::from_millis(2));
    }
}
