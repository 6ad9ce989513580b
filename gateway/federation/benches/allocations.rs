//! Counts the allocations of one call of the federation. The counts include the stand-in for the subgraphs,
//! which makes one allocation per fetch, for the `Bytes` of its response.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a bench that cannot go on fails and prints its answer"
)]

mod cases;

use std::alloc::System;

use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static COUNTING: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn main() {
    cases::each(|name, _, call| {
        call();
        let region = Region::new(COUNTING);
        call();
        let change = region.change();
        let allocations = change.allocations + change.reallocations;
        let bytes = change.bytes_allocated;
        println!("{name:<44} {allocations:>6} allocations {bytes:>9} bytes");
    });
}
