//! The times at which the host gave cores to other guests, from frequent readings of the kernel's stolen
//! time.
//!
//! The counter has a resolution of a hundredth of a second. It shows the period of a disturbance, but hardly
//! its amount. That suffices to leave out the period for all candidates equally.

use std::time::{Duration, Instant};

use stats::cycles::{Cause, Disturbance};

use super::watching::watching;
use crate::environment::instant;

/// Interval between two readings. A reading takes some 20 microseconds of a core.
const EVERY: Duration = Duration::from_millis(20);

/// The readings of one load.
pub(super) struct HostWatch {
    readings: Vec<(Instant, Duration)>,
}

impl HostWatch {
    /// Reads the counter during `work`.
    pub(super) fn during<T>(work: impl FnOnce() -> T) -> (T, HostWatch) {
        let mut readings = Vec::new();
        let mut read = || readings.extend(rig::stolen().map(|stolen| (instant(), stolen)));
        let result = watching(EVERY, &mut read, work);
        // Read once more after the work, so that the last period has an end.
        read();
        (result, HostWatch { readings })
    }

    /// The periods with stolen time, from this moment on.
    pub(super) fn stolen_since(&self, began: Instant) -> impl Iterator<Item = Disturbance> {
        let since = move |at: Instant| {
            let passed = at.saturating_duration_since(began).as_nanos();
            u64::try_from(passed).expect("no load lasts for centuries")
        };
        self.readings.windows(2).filter_map(move |pair| {
            let [(from, before), (to, after)] = pair else {
                unreachable!("windows of two")
            };
            // Readings begin before the load, because its threads connect first.
            (after > before && *to > began).then(|| Disturbance {
                from_ns: since(*from),
                to_ns: since(*to),
                cause: Cause::Host,
                variant: None,
            })
        })
    }

    /// Time stolen in this period, summed over cores. A reading that is partly inside counts with that part.
    pub(super) fn stolen_in(&self, from: Instant, to: Instant) -> Duration {
        let inside = |pair: &[(Instant, Duration)]| {
            let [(began, before), (ended, after)] = pair else {
                unreachable!("windows of two")
            };
            let length = ended.saturating_duration_since(*began);
            let common = (*ended)
                .min(to)
                .saturating_duration_since((*began).max(from));
            // Two readings may have the same time, so the minimum avoids a division by 0.
            let share = common.as_secs_f64() / length.as_secs_f64().max(1e-9);
            after.saturating_sub(*before).mul_f64(share)
        };
        self.readings.windows(2).map(inside).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_taken_is_counted_for_the_stretch_it_was_taken_in() {
        let (ms, began) = (Duration::from_millis(1), instant());
        // 20 ms between readings. The host takes 10 ms in the second and in the fourth period.
        let readings = (0..).zip([0, 0, 10, 10, 20]);
        let host = HostWatch {
            readings: readings
                .map(|(index, stolen)| (began + 20 * index * ms, stolen * ms))
                .collect(),
        };
        let stolen_ms = |from: u32, to: u32| {
            let stolen = host.stolen_in(began + from * ms, began + to * ms);
            stolen.as_secs_f64() * 1e3
        };
        for (from, to, expected) in [
            (0, 80, 20.0),
            (0, 20, 0.0),
            (0, 30, 5.0),
            (40, 60, 0.0),
            (50, 90, 10.0),
        ] {
            let found = stolen_ms(from, to);
            assert!((found - expected).abs() < 0.001, "{from} to {to}: {found}");
        }
    }
}
