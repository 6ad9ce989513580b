//! Reads the processor time of each candidate's systems during the load. It shows when the systems of one
//! candidate kept the cores from another candidate ([`stats::occupied`]).

use std::time::{Duration, Instant};

use rig::processor_time;
use stats::cycles::Disturbance;
use stats::occupied::{CoreReading, occupied};

use super::running_variant::nanoseconds;
use super::watching::watching;
use crate::environment::instant;

/// Interval between two readings. One reading of a process takes about a microsecond.
const EVERY: Duration = Duration::from_millis(10);

/// The readings of one load.
pub(super) struct NeighborWatch {
    /// In order of time, with the total of each candidate.
    readings: Vec<(Instant, Vec<Duration>)>,
}

impl NeighborWatch {
    /// Reads the processor time of each candidate's processes during `work`. Processes that start later are
    /// not included. With a single candidate there are no readings.
    pub(super) fn during<T>(candidates: &[Vec<i32>], work: impl FnOnce() -> T) -> (T, Self) {
        if candidates.len() < 2 {
            let readings = Vec::new();
            return (work(), NeighborWatch { readings });
        }
        let mut readings: Vec<(Instant, Vec<Duration>)> = Vec::new();
        let mut read = || {
            let before = readings.last().map(|(_, used)| used.as_slice());
            let reading = (instant(), used(candidates, before));
            readings.push(reading);
        };
        let result = watching(EVERY, &mut read, work);
        // Read once more after the work, so that the last period has an end.
        read();
        (result, NeighborWatch { readings })
    }

    /// Returns the periods when other candidates disturbed a candidate, from the start of the load.
    pub(super) fn disturbances_since(&self, began: Instant, cores: usize) -> Vec<Disturbance> {
        // Includes the last reading before the start, because its period extends into the load.
        let first = self.readings.partition_point(|(at, _)| *at <= began);
        let since = self.readings[first.saturating_sub(1)..].iter();
        let readings: Vec<CoreReading> = since
            .map(|(at, used)| CoreReading {
                at_ns: nanoseconds(at.saturating_duration_since(began)),
                used_ns: used.iter().copied().map(nanoseconds).collect(),
            })
            .collect();
        occupied(&readings, cores)
    }
}

/// The total of each candidate. The time of an ended process is lost, so a total is at least the total of the
/// previous reading.
fn used(candidates: &[Vec<i32>], before: Option<&[Duration]>) -> Vec<Duration> {
    let total = |(index, pids): (usize, &Vec<i32>)| {
        let known = pids.iter().filter_map(|pid| processor_time(*pid));
        let before = before.map_or(Duration::ZERO, |before| before[index]);
        known.sum::<Duration>().max(before)
    };
    candidates.iter().enumerate().map(total).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_spins_disturbs_the_candidate_beside_it() {
        let own = i32::try_from(std::process::id()).expect("the kernel's numbers fit");
        let began = instant();
        let spin = || {
            // Measured in processor time instead of wall time, so that a busy machine does not matter.
            let begin = processor_time(own).expect("its clock");
            while processor_time(own).expect("its clock") < begin + Duration::from_millis(100) {}
        };
        let ((), watch) = NeighborWatch::during(&[vec![own], Vec::new()], spin);
        assert!(watch.readings.len() > 2);
        let total = |index: usize| watch.readings[index].1[0];
        let spun = total(watch.readings.len() - 1) - total(0);
        assert!(spun >= Duration::from_millis(90), "{spun:?}");
        let found = watch.disturbances_since(began, 2);
        assert!(found.iter().all(|it| it.variant == Some(1)), "{found:?}");
    }

    #[test]
    fn nothing_is_read_of_a_single_candidate() {
        let own = i32::try_from(std::process::id()).expect("the kernel's numbers fit");
        let (result, watch) = NeighborWatch::during(&[vec![own]], || 7);
        assert_eq!((result, watch.readings.len()), (7, 0));
        assert_eq!(watch.disturbances_since(instant(), 2), []);
    }
}
