//! What federation costs by itself, in time.
//!
//! `cargo bench -p gateway-federation`. Each line is the time of one call, the best of several
//! turns, because noise only ever adds.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a bench that cannot go on fails, prints its answer and reads the clock"
)]

mod cases;

use std::time::Instant;

/// The gateway's. The system's takes large blocks from the kernel anew each time, and page faults
/// would be half of what a large answer costs.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const TURNS: usize = 7;

fn main() {
    cases::each(|name, calls, call| {
        call();
        let best = (0..TURNS)
            .map(|_| {
                let started = Instant::now();
                for _ in 0..calls {
                    call();
                }
                started.elapsed().as_nanos() / u128::from(calls)
            })
            .min()
            .unwrap();
        println!("{name:<44} {best:>9} ns");
    });
}
