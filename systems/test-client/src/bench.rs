//! The loop of benches that time one call.

use crate::now;

/// Each turn is timed by itself, so that one that was disturbed does not spoil the others.
const TURNS: usize = 9;

/// Prints the time of one call: the mean of `calls`, and of that the best of several turns, because
/// noise only ever adds. One call before the first turn fills caches and is not timed.
///
/// # Panics
/// When `calls` is zero.
#[expect(clippy::print_stdout, reason = "a bench prints its answer")]
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
    println!("{name:<58} {best:>9} ns");
}
