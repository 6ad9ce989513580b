//! Latency in equal parts of a load, one after the other.

use std::time::Duration;

use model::{Load, Shard};
use stats::Histogram;

/// Number of parts of a load. It is divisible by twelve, eight and six.
pub(crate) const BLOCKS: u64 = 24;

/// Latencies by block. All memory is allocated before the load begins. Unused memory is never touched.
pub(crate) struct Blocks {
    length: Length,
    start_ns: u64,
    answers: u64,
    list: Vec<Histogram>,
}

/// The end of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Length {
    /// A block ends after this number of nanoseconds.
    Time(u64),
    /// A block ends after this number of responses of this thread, because the end time of a load that ends
    /// by number is unknown.
    Answers(u64),
}

impl Blocks {
    /// Returns the blocks of one of `threads` threads that send this part of a load from `start_ns`.
    pub(crate) fn new(load: &Load, shard: Shard, threads: u32, start_ns: u64) -> Blocks {
        Blocks {
            length: Length::of(load, shard, threads),
            start_ns,
            answers: 0,
            list: (0..BLOCKS).map(|_| Histogram::new()).collect(),
        }
    }

    #[inline]
    pub(crate) fn record(&mut self, done_ns: u64, latency_ns: u64) {
        let block = match self.length {
            Length::Time(block_ns) => done_ns.saturating_sub(self.start_ns) / block_ns,
            Length::Answers(most) => self.answers / most,
        };
        self.answers += 1;
        // Responses to the last requests arrive after the end.
        let last = self.list.len() - 1;
        let block = usize::try_from(block).unwrap_or(last).min(last);
        self.list[block].record_ns(latency_ns);
    }

    pub(crate) fn absorb(&mut self, other: &Blocks) {
        for (total, part) in self.list.iter_mut().zip(&other.list) {
            total.add(part);
        }
    }

    pub(crate) fn into_latencies(self) -> Vec<Histogram> {
        self.list
    }
}

impl Length {
    fn of(load: &Load, shard: Shard, threads: u32) -> Length {
        let (duration, requests) = match load {
            Load::Closed { stop, .. } => (stop.duration, stop.requests),
            Load::Open {
                phases,
                requests_max,
                ..
            } => {
                let planned = phases.iter().fold(Duration::ZERO, |sum, phase| {
                    sum.saturating_add(phase.duration)
                });
                (Some(planned), *requests_max)
            }
        };
        match (requests, duration) {
            (Some(requests), _) => {
                let of_thread = requests / u64::from(shard.of()) / u64::from(threads);
                Length::Answers((of_thread / BLOCKS).max(1))
            }
            (None, duration) => {
                let whole = duration.unwrap_or(Duration::MAX).as_nanos() / u128::from(BLOCKS);
                Length::Time(u64::try_from(whole).unwrap_or(u64::MAX).max(1))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use model::Stop;

    use super::*;

    fn closed(requests: Option<u64>, duration: Option<Duration>) -> Load {
        Load::Closed {
            connections: 2,
            stop: Stop { requests, duration },
        }
    }

    #[test]
    fn a_load_that_ends_by_time_has_blocks_of_time() {
        let load = closed(None, Some(Duration::from_nanos(240)));
        let mut blocks = Blocks::new(&load, Shard::WHOLE, 1, 100);
        for (done_ns, latency_ns) in [(100, 1), (109, 1), (110, 1), (339, 1), (400, 1)] {
            blocks.record(done_ns, latency_ns);
        }
        let counts: Vec<u64> = blocks.into_latencies().iter().map(Histogram::len).collect();
        assert_eq!((counts[0], counts[1], counts[23]), (2, 1, 2));
        assert_eq!(counts.iter().sum::<u64>(), 5);
        let phases = vec![model::Phase::constant(
            Duration::from_nanos(480),
            model::Rate::new(1.0).unwrap(),
        )];
        let open = Load::Open {
            phases,
            arrival: model::Arrival::Uniform,
            connections_max: 1,
            requests_max: None,
        };
        assert_eq!(Length::of(&open, Shard::WHOLE, 4), Length::Time(20));
    }

    #[test]
    fn a_load_that_ends_by_number_has_blocks_of_answers() {
        let load = closed(Some(480), None);
        assert_eq!(Length::of(&load, Shard::WHOLE, 2), Length::Answers(10));
        let mut threads: Vec<Blocks> = (0..2)
            .map(|_| Blocks::new(&load, Shard::WHOLE, 2, 0))
            .collect();
        for blocks in &mut threads {
            (0..240).for_each(|at| blocks.record(at, 1));
        }
        let other = threads.remove(1);
        let mut all = threads.remove(0);
        all.absorb(&other);
        let counts: Vec<u64> = all.into_latencies().iter().map(Histogram::len).collect();
        assert_eq!(counts, [20; 24]);
    }
}
