//! Measures the time of the federation alone.
//!
//! `cargo bench -p gateway-federation`. Each line is the time of one call.

#![expect(clippy::unwrap_used, reason = "a bench that cannot go on fails")]

mod cases;

use test_client::bench::time;

/// The gateway's allocator. The system's allocator requests large blocks from the kernel each time, and page
/// faults would be half of the time of a large response.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    cases::each(|name, calls, call| time(name, calls, call));
}
