//! Claims about the loads that need slices of time side by side, and about the length of slices.

use std::time::Duration;

use model::Order;

use crate::{Folder, changed, lab};

const SIDE_BY_SIDE: (&str, &str) = ("target: server", "target: server\norder: side-by-side");

/// The example lab with these keys in its load, and `order: side-by-side`.
fn load(keys: &str) -> [(&str, &str); 2] {
    [("connections: 10\n  duration: 1s", keys), SIDE_BY_SIDE]
}

#[test]
fn a_closed_loop_and_a_search_are_measured_side_by_side() {
    let closed = lab(&load("connections: 10\n  duration: 1s"));
    assert_eq!(closed.order(), (Order::SideBySide, None));
    assert!(!closed.is_loaded_at_once(), "slices take turns");
    assert_eq!(closed.slice, Duration::from_millis(100));
    let search = "capacity: {from: 100/s, to: 500/s, p99-below: 10ms}\n  duration: 1s";
    assert_eq!(lab(&load(search)).order(), (Order::SideBySide, None));
    let set = lab(&load("connections: 10\n  duration: 1s\n  slice: 50ms"));
    assert_eq!(set.slice, Duration::from_millis(50));
}

#[test]
fn a_closed_loop_that_ends_by_a_count_is_measured_in_turn_and_says_why() {
    for keys in [
        "connections: 10\n  count: 100",
        "connections: 10\n  count: 100\n  duration: 1s",
    ] {
        let (order, because) = lab(&load(keys)).order();
        assert_eq!(order, Order::InTurn);
        assert!(
            because.is_some_and(|why| why.contains("`count`")),
            "{because:?}"
        );
    }
}

#[test]
fn slices_that_cannot_be_are_refused() {
    let search = "capacity: {from: 100/s, to: 500/s, p99-below: 10ms}\n  duration: 1s";
    for (keys, words) in [
        (
            "rate: 5/s\n  duration: 1s\n  slice: 300ms".to_owned(),
            "`slice` cannot be used in an open loop",
        ),
        (
            format!("{search}\n  slice: 300ms"),
            "`slice` cannot be used in an open loop",
        ),
        (
            "connections: 10\n  duration: 1s\n  slice: 49ms".to_owned(),
            "a slice of 49ms is too short",
        ),
        (
            "connections: 10\n  duration: 1s\n  slice: 1001ms".to_owned(),
            "a slice of 1.001s is longer than the load of 1s",
        ),
        (
            "connections: 10\n  count: 5\n  slice: 300ms".to_owned(),
            "`slice` cannot be used with `count`",
        ),
        (
            "connections: 10\n  duration: 1s\n  slice: fast".to_owned(),
            "`fast` is not a length of time",
        ),
    ] {
        let shown = Folder::with_lab(changed(&load(&keys))).mistakes();
        assert!(shown.contains(words), "{keys}: {shown}");
        assert!(shown.contains("labs/x.yaml:"), "{shown}");
    }
}

#[test]
fn a_processor_limit_is_not_cut_into_slices() {
    let run = "    run: serve {{stack}} --listen {{addr}}\n";
    let limited = format!("{run}    limits: {{cpus: 0.25}}\n");
    let (order, because) = lab(&[(run, &limited)]).order();
    assert_eq!(order, Order::InTurn);
    assert!(
        because.is_some_and(|why| why.contains("processor limit")),
        "{because:?}"
    );
    // An open loop gives each variant its load all the time.
    let open = (
        "connections: 10\n  duration: 1s",
        "rate: 5/s\n  duration: 1s",
    );
    assert_eq!(lab(&[(run, &limited), open]).order().0, Order::SideBySide);
}
