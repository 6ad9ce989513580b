//! Takes readings repeatedly while other work is done.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Does `work`. Meanwhile another thread calls `look`, pauses for `every`, and repeats.
pub(super) fn watching<T>(
    every: Duration,
    mut look: impl FnMut() + Send,
    work: impl FnOnce() -> T,
) -> T {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                look();
                thread::park_timeout(every);
            }
        });
        let result = work();
        done.store(true, Ordering::Relaxed);
        // Wakes the thread, because otherwise every load would last up to one pause longer.
        watcher.thread().unpark();
        watcher.join().expect("a look does not panic");
        result
    })
}
