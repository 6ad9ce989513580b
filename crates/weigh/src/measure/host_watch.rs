//! When the host gave cores to other guests: the kernel's count of stolen time, read often.
//!
//! The count has a resolution of a hundredth of a second, so it says in which stretch something was
//! taken and hardly how much. That is enough to leave the stretch out for all candidates alike.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use stats::cycles::{Cause, Disturbance};

use crate::environment::instant;

/// Between two readings. A reading takes some 20 microseconds of a core.
const EVERY: Duration = Duration::from_millis(20);

/// The readings of one load.
pub(super) struct HostWatch {
    readings: Vec<(Instant, Duration)>,
}

impl HostWatch {
    /// Reads the count while `work` is done.
    pub(super) fn during<T>(work: impl FnOnce() -> T) -> (T, HostWatch) {
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            let watcher = scope.spawn(|| {
                let mut readings = Vec::new();
                while !done.load(Ordering::Relaxed) {
                    readings.extend(rig::stolen().map(|stolen| (instant(), stolen)));
                    thread::park_timeout(EVERY);
                }
                readings.extend(rig::stolen().map(|stolen| (instant(), stolen)));
                readings
            });
            let result = work();
            done.store(true, Ordering::Relaxed);
            watcher.thread().unpark();
            let readings = watcher.join().expect("reading a count does not panic");
            (result, HostWatch { readings })
        })
    }

    /// The stretches in which something was taken, from this moment on.
    pub(super) fn stolen_since(&self, began: Instant) -> impl Iterator<Item = Disturbance> {
        let since = move |at: Instant| {
            let passed = at.saturating_duration_since(began).as_nanos();
            u64::try_from(passed).expect("no load lasts for centuries")
        };
        self.readings.windows(2).filter_map(move |pair| {
            let [(from, before), (to, after)] = pair else {
                unreachable!("windows of two")
            };
            (after > before && *to > began).then(|| Disturbance {
                from_ns: since(*from),
                to_ns: since(*to),
                cause: Cause::Host,
            })
        })
    }
}
