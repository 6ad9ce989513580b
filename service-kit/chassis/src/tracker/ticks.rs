//! The current time in ticks.

use std::cell::Cell;
use std::time::{Duration, Instant};

use crate::clock;

/// The unit of time of the tracker. It is also the interval between sweeps while places or memory are short.
pub(super) const TICK: Duration = Duration::from_millis(TICK_MS);
/// A constant of 64 bits, because a request needs the tick number several times. Durations return
/// milliseconds as 128-bit numbers, and processors cannot divide these directly.
const TICK_MS: u64 = 100;
const TICKS_PER_SECOND: u64 = 1000 / TICK_MS;

/// Counts ticks. A turn of a connection counts as one moment: the clock is read once per turn.
#[derive(Debug)]
pub(super) struct Ticks {
    /// The time of tick 0.
    began: Instant,
    moment: Cell<Moment>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Moment {
    /// No connection has its turn, and time passes.
    Between,
    /// A connection has its turn, and the clock has not been read in it yet.
    Turn,
    Known(u32),
}

/// A turn of a connection. Dropping it ends the turn.
pub(super) struct Turn<'a>(&'a Ticks);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.moment.set(Moment::Between);
    }
}

impl Ticks {
    /// Starts with tick 0 at the current time.
    pub(super) fn new() -> Self {
        Self {
            began: clock::now(),
            moment: Cell::new(Moment::Between),
        }
    }

    /// Begins a connection's turn. The turn lasts until the returned guard is dropped.
    pub(super) fn turn(&self) -> Turn<'_> {
        self.moment.set(Moment::Turn);
        Turn(self)
    }

    /// The number of the current tick.
    pub(super) fn now(&self) -> u32 {
        match self.moment.get() {
            Moment::Known(tick) => tick,
            Moment::Between => self.read(),
            Moment::Turn => {
                let tick = self.read();
                self.moment.set(Moment::Known(tick));
                tick
            }
        }
    }

    fn read(&self) -> u32 {
        let passed = clock::now() - self.began;
        let ticks =
            passed.as_secs() * TICKS_PER_SECOND + u64::from(passed.subsec_millis()) / TICK_MS;
        // Wraps around after thirteen years, as `judge` expects.
        u32::try_from(ticks % (1 << 32)).expect("a rest of 32 bits")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_is_one_moment_and_time_passes_behind_it() {
        let mut ticks = Ticks::new();
        let turn = ticks.turn();
        assert_eq!(turn.0.now(), 0);
        drop(turn);
        ticks.began -= 3 * TICK;
        assert!(ticks.now() >= 3);
        ticks.moment.set(Moment::Known(1));
        assert_eq!(ticks.now(), 1);
        drop(ticks.turn());
        assert!(ticks.now() >= 3, "the next turn looks again");
    }
}
