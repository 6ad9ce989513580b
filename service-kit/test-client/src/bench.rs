//! Loops for benches that time one call, with warm and with cold caches.

use crate::now;

/// Number of turns. Each turn is timed separately, so that a disturbed turn does not spoil the result.
const TURNS: usize = 9;

/// Prints the time of one call: the mean of `calls`, from the best of several turns, because noise only adds
/// time. One call before the first turn fills caches and is not timed.
///
/// # Panics
/// Panics if `calls` is zero.
pub fn time(name: &str, calls: u32, mut call: impl FnMut()) {
    call();
    let turn = |_| {
        let started = now();
        for _ in 0..calls {
            call();
        }
        started.elapsed().as_nanos() / u128::from(calls)
    };
    let best = (0..TURNS).map(turn).min().expect("there are turns");
    say(name, best);
}

/// The state of the caches in a rarely used service: other programs have filled them between two calls.
#[derive(Clone, Copy, Debug)]
pub enum Cold {
    /// The data of the call are no longer in the core's caches, but in the cache that all cores share.
    Core,
    /// The data of the call are only in memory.
    Machine,
}

impl Cold {
    /// A multiple of the caches of server processors: 1 to 2 MiB per core, and 32 MiB shared.
    const fn bytes(self) -> usize {
        match self {
            Self::Core => 8 << 20,
            Self::Machine => 128 << 20,
        }
    }
}

/// Number of timed calls with cold caches. Before each, the bench fills the caches again.
const COLD_CALLS: usize = 200;

/// Prints the median time of one call after the caches were filled with other data. Only the call is timed.
pub fn time_cold(name: &str, cold: Cold, mut call: impl FnMut()) {
    let mut others = vec![0_u8; cold.bytes()];
    call();
    let mut times: Vec<u128> = (0..COLD_CALLS)
        .map(|_| {
            // Writes each cache line, so that it must be loaded.
            for line in others.chunks_mut(64) {
                line[0] = line[0].wrapping_add(1);
            }
            let _seen = std::hint::black_box(&others);
            let started = now();
            call();
            started.elapsed().as_nanos()
        })
        .collect();
    times.sort_unstable();
    say(name, times[COLD_CALLS / 2]);
}

#[expect(clippy::print_stdout, reason = "a bench prints its answer")]
fn say(name: &str, ns: u128) {
    println!("{name:<58} {ns:>9} ns");
}
