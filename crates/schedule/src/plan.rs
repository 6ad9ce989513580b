//! Open plans: every intended send with the time at which it is due.
//!
//! The one idea: count requests, not gaps. The rate over time adds up to a rising curve of
//! planned requests, and slot `k` is due where the curve reaches `k` (uniform arrivals) or where
//! it reaches the `k`-th event of a Poisson process of rate 1 (Poisson arrivals; Lewis and
//! Shedler call it time-scale transformation, "Simulation of nonhomogeneous Poisson processes",
//! 1979). So steps and ramps need no special case, and nothing adds up rounding errors.

use std::sync::Arc;
use std::time::Duration;

use model::{Arrival, Phase, Rate};

use crate::random::Random;
use crate::segment::{Q64, RATE_MAX, Segment, fraction_of, whole_of};

/// One intended send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Position in the whole plan, from 0; also in a shard.
    pub index: u64,
    /// Offset from the start of the load, in whole nanoseconds.
    pub due: Duration,
}

/// The full list of intended sends of an open loop, computed as it is read.
///
/// **Invariant:** a plan depends on nothing but the arguments of [`OpenPlan::new`] and is equal,
/// nanosecond by nanosecond, on every machine. **Invariant:** slots are sorted by `due`, and
/// every `due` lies before the end of the last phase.
#[derive(Clone, Debug)]
pub struct OpenPlan {
    segments: Arc<[Segment]>,
    arrival: Arrival,
    requests_max: u64,
    /// End of the last phase, ns.
    end: u64,
}

/// Why phases are not a plan.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PlanError {
    /// There is no phase, or all of them together send nothing.
    #[error(
        "expected a plan that sends at least one request, found none. Give a phase with a rate above 0 and a duration"
    )]
    NothingToSend,
    /// Slots would be less than a nanosecond apart.
    #[error("expected a rate of at most 1000000000/s, found {rate} in phase {phase}")]
    TooFast {
        /// Index of the phase, from 0.
        phase: usize,
        /// The rate.
        rate: Rate,
    },
    /// The times of a ramp this long could not be told to the nanosecond.
    #[error(
        "expected a ramp of at most 10 days, found {duration:?} in phase {phase}. Split it into several phases"
    )]
    RampTooLong {
        /// Index of the phase, from 0.
        phase: usize,
        /// Its length.
        duration: Duration,
    },
}

impl OpenPlan {
    /// 292 years, so that a longer phase can stand for "until the last request".
    const END_MAX: u64 = i64::MAX as u64;

    const RAMP_MAX: Duration = Duration::from_secs(10 * 24 * 60 * 60);

    /// Purpose of the random numbers, see `Random::new`.
    const GAPS: u64 = 1;

    /// Plans the phases one after the other, at most `requests_max` requests in all.
    ///
    /// # Errors
    /// When no request would be sent, or when a rate is above a request per nanosecond.
    pub fn new(
        phases: &[Phase],
        arrival: Arrival,
        requests_max: Option<u64>,
    ) -> Result<OpenPlan, PlanError> {
        let mut segments = Vec::with_capacity(phases.len());
        let mut end = 0_u64;
        let mut planned: Q64 = 0;
        for (index, phase) in phases.iter().enumerate() {
            check(index, phase)?;
            let length = u64::try_from(phase.duration.as_nanos())
                .unwrap_or(u64::MAX)
                // Cut, not refused: a length without end is how a plan says that its count ends it.
                .min(Self::END_MAX - end);
            // A phase that sends nothing still takes its time.
            if let Some(segment) = Segment::new(phase, end, length, planned) {
                planned = segment.after;
                segments.push(segment);
            }
            end += length;
        }
        if planned == 0 || requests_max == Some(0) {
            return Err(PlanError::NothingToSend);
        }
        Ok(OpenPlan {
            segments: segments.into(),
            arrival,
            // No plan has so many slots, so this is no limit.
            requests_max: requests_max.unwrap_or(u64::MAX),
            end,
        })
    }

    /// All slots in the order in which they are due.
    #[must_use]
    pub fn slots(&self) -> Slots {
        self.shard(0, 1)
    }

    /// The slots of shard `shard` of `shards`: those whose index is `shard` modulo `shards`. All
    /// shards together are the plan, and none needs to know of the others.
    ///
    /// Reading a Poisson shard draws the gaps of the other shards as well, about 20 ns each.
    ///
    /// # Panics
    /// When `shard` is not below `shards`.
    #[must_use]
    pub fn shard(&self, shard: u64, shards: u64) -> Slots {
        assert!(shard < shards, "shard {shard} of {shards} does not exist");
        let position = match self.arrival {
            Arrival::Uniform => Position::Uniform,
            Arrival::Poisson { seed } => {
                let mut position = Position::Poisson {
                    random: Random::new(seed, Self::GAPS),
                    reached: 0,
                };
                // The gaps before the first slot of this shard belong to the process as well.
                position.advance(shard + 1);
                position
            }
        };
        Slots {
            segments: Arc::clone(&self.segments),
            segment: 0,
            position,
            index: shard,
            shards,
            requests_max: self.requests_max,
            end: self.end,
        }
    }

    /// Number of slots. At once for uniform arrivals; Poisson arrivals are drawn and counted,
    /// which takes about 30 ns for each.
    #[must_use]
    pub fn len(&self) -> u64 {
        match self.arrival {
            Arrival::Uniform => self.count_uniform().min(self.requests_max),
            Arrival::Poisson { .. } => self.slots().map(|_| 1).sum(),
        }
    }

    /// Whether no request would be sent: never with uniform arrivals, rarely with Poisson
    /// arrivals (when the first one would come after the end).
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slots().next().is_none()
    }

    /// How long the plan lasts: to the end of the last phase or, when the number of requests is
    /// limited and reached before, to the due of the first request that is not sent any more (so
    /// 1,000 requests at 100/s last 10 s). As costly as [`OpenPlan::len`].
    #[must_use]
    pub fn duration(&self) -> Duration {
        let mut unlimited = self.slots();
        unlimited.requests_max = u64::MAX;
        let cut = match self.arrival {
            Arrival::Uniform => {
                unlimited.index = self.requests_max;
                unlimited.next()
            }
            Arrival::Poisson { .. } => {
                usize::try_from(self.requests_max).map_or(None, |nth| unlimited.nth(nth))
            }
        };
        cut.map_or(Duration::from_nanos(self.end), |slot| slot.due)
    }

    /// Number of slots without regard to `requests_max`.
    fn count_uniform(&self) -> u64 {
        let Some(last) = self.segments.last() else {
            return 0;
        };
        let mut count = whole_of(last.after) + u64::from(fraction_of(last.after) > 0);
        // 0.1/s is a little more than a tenth in binary, so in 60 s a seventh request is planned
        // "before" the end: at 60 s, to the nanosecond. It does not belong to the plan.
        let mut slots = self.slots();
        slots.requests_max = u64::MAX;
        while count > 0 {
            slots.index = count - 1;
            slots.segment = 0;
            if slots.next().is_some() {
                break;
            }
            count -= 1;
        }
        count
    }
}

fn check(index: usize, phase: &Phase) -> Result<(), PlanError> {
    let fastest = if phase.from > phase.to {
        phase.from
    } else {
        phase.to
    };
    if fastest.per_second() > RATE_MAX {
        return Err(PlanError::TooFast {
            phase: index,
            rate: fastest,
        });
    }
    if phase.from != phase.to && phase.duration > OpenPlan::RAMP_MAX {
        return Err(PlanError::RampTooLong {
            phase: index,
            duration: phase.duration,
        });
    }
    Ok(())
}

/// The slots of a plan or of a shard, in the order in which they are due. Reading one costs 5
/// to 40 ns (uniform at a constant rate, Poisson on a ramp), and never allocates.
#[derive(Clone, Debug)]
pub struct Slots {
    segments: Arc<[Segment]>,
    /// Index of the segment that the last slot was in.
    segment: usize,
    position: Position,
    /// Index of the next slot.
    index: u64,
    /// Distance to the one after it.
    shards: u64,
    requests_max: u64,
    end: u64,
}

/// How far the arrival law has come.
#[derive(Clone, Debug)]
enum Position {
    /// Slot `k` is due when `k` requests are planned.
    Uniform,
    /// The next slot is due when `reached` requests are planned.
    Poisson { random: Random, reached: Q64 },
}

impl Position {
    #[inline]
    fn advance(&mut self, slots: u64) {
        if let Position::Poisson { random, reached } = self {
            for _ in 0..slots {
                // From 58 fractional bits to 64.
                *reached += Q64::from(random.exponential_q58()) << 6;
            }
        }
    }
}

impl Iterator for Slots {
    type Item = Slot;

    #[inline]
    fn next(&mut self) -> Option<Slot> {
        let index = self.index;
        if index >= self.requests_max {
            return None;
        }
        let count = match self.position {
            Position::Uniform => Q64::from(index) << 64,
            Position::Poisson { reached, .. } => reached,
        };
        // Counts rise, so no segment is looked at again.
        while count >= self.segments.get(self.segment)?.after {
            self.segment += 1;
        }
        let due = self.segments[self.segment].when(count);
        // Rounded to a nanosecond, a last slot may fall on the end itself.
        if due >= self.end {
            return None;
        }
        // At the top it stays, where `requests_max` ends the plan.
        self.index = index.saturating_add(self.shards);
        self.position.advance(self.shards);
        Some(Slot {
            index,
            due: Duration::from_nanos(due),
        })
    }
}

impl std::iter::FusedIterator for Slots {}

#[cfg(test)]
mod tests;
