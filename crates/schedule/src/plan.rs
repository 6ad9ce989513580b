//! Plan of an open loop: every intended send with its due time.
//!
//! The main idea is to count requests instead of gaps. The rate over time adds up to a rising curve of planned
//! requests. With uniform arrivals, slot `k` is due when the curve reaches `k`. With Poisson arrivals, it is
//! due when the curve reaches the `k`-th event of a Poisson process of rate 1. Lewis and Shedler call this
//! time-scale transformation ("Simulation of nonhomogeneous Poisson processes", 1979). So steps and ramps
//! need no special case, and rounding errors do not add up.

use std::sync::Arc;
use std::time::Duration;

use model::{Arrival, Phase, Rate};

use crate::random::Random;
use crate::segment::{Q64, RATE_MAX, Segment, fraction_of, whole_of};

/// One intended send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Position in the whole plan, from 0. A shard keeps the positions of the whole plan.
    pub index: u64,
    /// Offset from the start of the load, in whole nanoseconds.
    pub due: Duration,
}

/// The full list of intended sends of an open loop. Each slot is computed when it is read.
///
/// **Invariant:** a plan depends only on the arguments of [`OpenPlan::new`] and is equal, nanosecond by
/// nanosecond, on every machine. **Invariant:** slots are sorted by `due`, and every `due` lies before the
/// end of the last phase.
#[derive(Clone, Debug)]
pub struct OpenPlan {
    segments: Arc<[Segment]>,
    arrival: Arrival,
    requests_max: u64,
    /// End of the last phase, ns.
    end: u64,
}

/// Reason why phases do not form a plan.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PlanError {
    /// There is no phase, or all phases together send no request.
    #[error(
        "expected a plan that sends at least one request, found none. Give a phase with a rate above 0 and a duration"
    )]
    NothingToSend,
    /// Slots would be less than a nanosecond apart.
    #[error("expected a rate of at most 1000000000/s, found {rate} in phase {phase}")]
    TooFast {
        /// Index of the phase, from 0.
        phase: usize,
        /// The rate that is too high.
        rate: Rate,
    },
    /// A float cannot represent the times of such a long ramp to the nanosecond.
    #[error(
        "expected a ramp of at most 10 days, found {duration:?} in phase {phase}. Split it into several phases"
    )]
    RampTooLong {
        /// Index of the phase, from 0.
        phase: usize,
        /// Length of the ramp.
        duration: Duration,
    },
}

impl OpenPlan {
    /// 292 years. A phase of this length can represent "until the last request".
    const END_MAX: u64 = i64::MAX as u64;

    const RAMP_MAX: Duration = Duration::from_secs(10 * 24 * 60 * 60);

    /// Purpose of the random numbers, see `Random::new`.
    const GAPS: u64 = 1;

    /// Plans the phases one after the other, at most `requests_max` requests in all.
    ///
    /// # Errors
    /// When the plan would have no request, or when a rate is above one request per nanosecond.
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
                // A plan that ends after a count has an unlimited length. So the length is cut here and not
                // refused.
                .min(Self::END_MAX - end);
            // A phase without requests still takes its time.
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
            // No plan has this many slots, so the value is not a limit.
            requests_max: requests_max.unwrap_or(u64::MAX),
            end,
        })
    }

    /// All slots, sorted by their due times.
    #[must_use]
    pub fn slots(&self) -> Slots {
        self.shard(0, 1)
    }

    /// The slots of shard `shard` of `shards`. A slot belongs to it if its index modulo `shards` is `shard`.
    /// All shards together are the plan, and a shard needs no data of the other shards.
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
                // The random process includes the gaps before the first slot of this shard.
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

    /// Number of slots. Uniform arrivals take constant time. Poisson arrivals are drawn and counted, which
    /// takes about 30 ns for each.
    #[must_use]
    pub fn len(&self) -> u64 {
        match self.arrival {
            Arrival::Uniform => self.count_uniform().min(self.requests_max),
            Arrival::Poisson { .. } => self.slots().map(|_| 1).sum(),
        }
    }

    /// True if the plan sends no request. This never happens with uniform arrivals. It happens rarely with
    /// Poisson arrivals, if the first one would come after the end.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slots().next().is_none()
    }

    /// Duration of the plan, to the end of the last phase. If the limit of requests is reached before, the
    /// plan ends at the due time of the first request that is not sent. So 1,000 requests at 100/s last 10 s.
    /// As costly as [`OpenPlan::len`].
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
        // In binary, 0.1/s is slightly more than a tenth. So in 60 s a seventh request is planned "before"
        // the end, at 60 s to the nanosecond. It does not belong to the plan.
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

/// The slots of a plan or of a shard, sorted by their due times. Reading one costs 5 to 40 ns (uniform at a
/// constant rate, Poisson on a ramp), and never allocates.
#[derive(Clone, Debug)]
pub struct Slots {
    segments: Arc<[Segment]>,
    /// Index of the segment that the last slot was in.
    segment: usize,
    position: Position,
    /// Index of the next slot.
    index: u64,
    /// Distance from the index of one slot to the index of the next.
    shards: u64,
    requests_max: u64,
    end: u64,
}

/// Progress of the arrival process.
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
        // Counts rise, so earlier segments are not needed again.
        while count >= self.segments.get(self.segment)?.after {
            self.segment += 1;
        }
        let due = self.segments[self.segment].when(count);
        // After rounding to a nanosecond, a last slot may be due exactly at the end.
        if due >= self.end {
            return None;
        }
        // The index saturates at its maximum, where `requests_max` ends the plan.
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
