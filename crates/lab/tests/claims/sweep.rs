//! Claims about sweeps: several loads of one kind, each an ordinary lab.

use lab::Level;
use model::Load;

use crate::{check, lab};

const LOAD: &str = "connections: 10\n  duration: 1s";

fn levels(keys: &str) -> Vec<String> {
    lab(&[(LOAD, keys)])
        .sweep
        .iter()
        .map(Level::to_string)
        .collect()
}

#[test]
fn levels_are_rates_or_connections_the_lowest_first() {
    let rates = "sweep: [1600/s, 100/s, 400/s]\n  duration: 2s";
    assert_eq!(levels(rates), ["100/s", "400/s", "1600/s"]);
    let connections = "sweep: [64, 1, 8]\n  duration: 2s";
    assert_eq!(
        levels(connections),
        ["1 connection", "8 connections", "64 connections"]
    );
}

#[test]
fn a_level_is_the_lab_with_that_load_and_no_sweep() {
    let rates = lab(&[(
        LOAD,
        "sweep: [100/s, 400/s]\n  duration: 2s\n  arrival: poisson",
    )]);
    let at = rates.at(rates.sweep[1]);
    assert!(at.sweep.is_empty());
    let Load::Open { phases, .. } = &at.load else {
        panic!("{:?}", at.load);
    };
    assert_eq!((phases.len(), phases[0].from.per_second()), (1, 400.0));
    let closed = lab(&[(LOAD, "sweep: [1, 8]\n  duration: 2s")]);
    assert_eq!(closed.at(closed.sweep[1]).load.connections(), 8);
    assert_eq!(closed.load.connections(), 1, "the lowest");
}

#[test]
fn what_is_no_sweep_is_refused_at_its_place() {
    for (keys, words) in [
        (
            "sweep: [100/s]\n  duration: 1s",
            "expected a list of 2 to 16 values, found 1",
        ),
        (
            "sweep: [100/s, 8]\n  duration: 1s",
            "`8 connections` cannot be used with `100/s`",
        ),
        (
            "sweep: [100/s, 100/s]\n  duration: 1s",
            "`100/s` is given twice",
        ),
        (
            "sweep: [100/s, fast]\n  duration: 1s",
            "`fast` is not a level of load",
        ),
        (
            "sweep: [0, 8]\n  duration: 1s",
            "`0` is not a level of load",
        ),
        ("sweep: [100/s, 200/s]", "the load has no end"),
        (
            "sweep: [100/s, 200/s]\n  duration: 1s\n  count: 5",
            "`count` cannot be used with `sweep`",
        ),
        (
            "sweep: [100/s, 200/s]\n  duration: 1s\n  rate: 5/s",
            "exclude each other",
        ),
        (
            "sweep: [100/s, 200/s]\n  duration: 1s\n  slice: 100ms",
            "`slice` cannot be used with a `sweep` of rate",
        ),
        (
            "sweep: [1, 8]\n  duration: 1s\n  arrival: poisson",
            "`arrival` cannot be used with a `sweep` of connections",
        ),
        (
            "sweep: [1, 8]\n  duration: 1s\n  threads: 2",
            "2 threads for 1 connections",
        ),
    ] {
        let found = check(&[(LOAD, keys)]);
        assert!(found.contains(words), "{keys}: {found}");
        assert!(
            found.contains("labs/x.yaml:3:")
                || found.contains("labs/x.yaml:4:")
                || found.contains("labs/x.yaml:5:"),
            "{found}"
        );
    }
    let many: Vec<String> = (1..18).map(|level| format!("{level}/s")).collect();
    let keys = format!("sweep: [{}]\n  duration: 1s", many.join(", "));
    let found = check(&[(LOAD, &keys)]);
    assert!(found.contains("17"), "{found}");
}
