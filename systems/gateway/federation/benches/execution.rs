//! What federation costs by itself, in time.
//!
//! `cargo bench -p gateway-federation`. Each line is the time of one call.

#![expect(clippy::unwrap_used, reason = "a bench that cannot go on fails")]

mod cases;

use test_client::bench::time;

/// The gateway's. The system's takes large blocks from the kernel anew each time, and page faults
/// would be half of what a large answer costs.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    cases::each(|name, calls, call| time(name, calls, call));
}
