//! Compares the cache's estimate of an operation's size with the allocator's count.

#![cfg(test)]

use std::alloc::System;
use std::fmt::Write as _;
use std::sync::Arc;

use gateway_federation::{OperationOptions, Operations, Supergraph};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Bytes by the cache's estimate, and by the allocator.
fn weigh(operations: &Operations, query: &str, operation_name: Option<&str>) -> (usize, usize) {
    let before = operations.cache_stats().bytes;
    let region = Region::new(ALLOCATOR);
    // The cache keeps the outcome alive.
    let _ = operations.prepare(query, operation_name);
    let change = region.change();
    let allocated = change.bytes_allocated - change.bytes_deallocated;
    (operations.cache_stats().bytes - before, allocated)
}

fn many(count: usize, part: impl Fn(usize) -> String) -> String {
    (0..count).map(part).collect()
}

// A single test, because the allocator counts for all threads.
#[test]
fn the_cache_knows_what_operations_take_and_keeps_within_its_bound() {
    the_cache_knows_roughly_what_operations_take();
    no_flood_of_operations_takes_more_than_the_cache_may();
}

fn the_cache_knows_roughly_what_operations_take() {
    let supergraph = Supergraph::parse(include_str!("supergraph.graphql")).unwrap();
    let operations = Operations::new(Arc::new(supergraph), OperationOptions::default());
    // Allocations that happen once, for any operation.
    let _ = operations.prepare("{ places { id rating } }", None);
    let mut wrong = String::new();
    for query in [
        "{ places { name rating id } }".to_owned(),
        format!(
            "{{ {} }}",
            many(300, |index| format!("a{index}: places {{ id name }} "))
        ),
        format!(
            "{{ {} }}",
            many(20, |index| format!(
                "a{index}: place(id: {index}) {{ name rating }} "
            ))
        ),
        format!(
            "{{ places {{ {} }} }}",
            many(300, |index| format!("a{index}: name "))
        ),
        format!(
            "{{ found {{ {} }} }}",
            "... on Place { name rating } ".repeat(20)
        ),
        // A refused operation, with an error for each of many fields.
        format!(
            "{{ places {{ {} }} }}",
            many(300, |index| format!("nothing{index} "))
        ),
        format!("{{ {} }}", "x".repeat(30_000)),
    ] {
        let (known, allocated) = weigh(&operations, &query, None);
        // The estimate does not include growing tables and the spare capacity of lists.
        if known * 3 < allocated || allocated * 3 < known {
            let start = query.get(..50).unwrap_or(&query);
            writeln!(wrong, "{known} for {allocated} in {start}").unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");

    let name = "n".repeat(1_900_000);
    let (known, allocated) = weigh(&operations, "{ places { id } }", Some(&name));
    assert_eq!(known, 0);
    assert!(allocated < 100_000, "{allocated} are held");
}

fn no_flood_of_operations_takes_more_than_the_cache_may() {
    let supergraph = Supergraph::parse(include_str!("supergraph.graphql")).unwrap();
    let options = OperationOptions {
        cached_bytes: 200_000,
        ..OperationOptions::default()
    };
    let operations = Operations::new(Arc::new(supergraph), options);
    for round in 0..60 {
        let fields = many(40, |index| format!("a{round}_{index}: nothing "));
        let _ = operations.prepare(&format!("{{ places {{ {fields} }} }}"), None);
        let stats = operations.cache_stats();
        assert!(stats.bytes <= 200_000, "{stats:?}");
    }
    // The cache stores as many of them as fit.
    assert!((2..60).contains(&operations.cache_stats().entries));
}
