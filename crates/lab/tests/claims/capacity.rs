//! Claims about the search for the highest rate, and about proofs of several answers.

use std::time::Duration;

use insta::assert_snapshot;
use lab::{DistinctValues, ProofWhat};
use model::Load;

use crate::{check, lab};

const LOAD: &str = "connections: 10\n  duration: 1s";

fn mistake(keys: &str) -> String {
    check(&[(LOAD, keys)])
}

#[test]
fn a_search_begins_at_its_lowest_rate() {
    let lab = lab(&[(
        LOAD,
        "capacity: {from: 100/s, to: 1000/s, p99-below: 10ms}\n  duration: 2s\n  connections-max: 7",
    )]);
    let capacity = lab.capacity.unwrap();
    assert_eq!(capacity.from().per_second(), 100.0);
    assert!(capacity.to().per_second() <= 1000.0);
    assert!((capacity.step_percent() - 10.0).abs() < 1e-9, "the default");
    assert_eq!(capacity.p99_below(), Duration::from_millis(10));
    let Load::Open { phases, .. } = &lab.load else {
        panic!("{:?}", lab.load);
    };
    assert_eq!(phases[0].from, capacity.from());
    assert_eq!(phases[0].duration, Duration::from_secs(2));
    assert_eq!(lab.load.connections(), 7);
}

#[test]
fn rates_that_go_down_are_refused() {
    assert_snapshot!(mistake("capacity: {from: 100/s, to: 50/s, p99-below: 10ms}\n  duration: 2s"), @"
    error: expected rates from the lowest to a higher one, found 100/s to 50/s
     --> labs/x.yaml:3:31
      |
    3 |   capacity: {from: 100/s, to: 50/s, p99-below: 10ms}
      |                    -----      ^^^^
      |                    |
      |                    the lowest rate
      |
      = help: the search increases the rate. Write the higher rate under `to`
    ");
}

#[test]
fn a_search_is_one_kind_of_load_and_each_rate_lasts() {
    let search = "capacity: {from: 100/s, to: 500/s, p99-below: 10ms}";
    for (keys, words) in [
        (format!("{search}\n  rate: 5/s\n  duration: 1s"), "exclude each other"),
        (format!("{search}\n  duration: 1s\n  count: 5"), "`count` cannot be used with `capacity`"),
        (search.to_owned(), "the load has no end"),
        (
            "capacity: {from: 100/s, to: 500/s}\n  duration: 1s".to_owned(),
            "p99-below",
        ),
        (
            "capacity: {from: 100/s, to: 500/s, p99-below: 10ms, step-percent: 0.5}\n  duration: 1s".to_owned(),
            "0.5",
        ),
    ] {
        let text = mistake(&keys);
        assert!(text.contains(words), "{keys}: {text}");
    }
}

#[test]
fn a_request_of_a_proof_may_be_sent_often_and_its_answers_differ() {
    let lab = lab(&[
        (
            "target: server",
            "target: server\nproof:\n  - {request: {path: /who}, times: 40, expect: {distinct: {/name: {at-least: '{{server.many}}', at-most: 4}}}}",
        ),
        ("settings: {stack: a}", "settings: {stack: a, many: 1}"),
        ("with: {server.stack: b}", "with: {server.many: 3}"),
    ]);
    let distinct = |proofs: &[lab::Proof]| match &proofs[0].what {
        ProofWhat::Answer {
            times, distinct, ..
        } => (*times, distinct.clone()),
        other => panic!("{other:?}"),
    };
    let wanted = |least| DistinctValues {
        pointer: "/name".to_owned(),
        least,
        most: Some(4),
    };
    assert_eq!(distinct(&lab.baseline.proofs), (40, vec![wanted(1)]));
    assert_eq!(distinct(&lab.variants[0].proofs), (40, vec![wanted(3)]));
}

#[test]
fn what_says_nothing_of_several_answers_is_refused() {
    let proof = |proof: &str| {
        check(&[(
            "target: server",
            &format!("target: server\nproof:\n  - {proof}"),
        )])
    };
    for (text, words) in [
        (
            "{times: 4, expect: {status: 200}}",
            "`times` without `request`",
        ),
        (
            "{expect: {distinct: {/name: {}}}}",
            "`distinct` has no limit",
        ),
        (
            "{expect: {distinct: {/name: {at-least: 0}}}}",
            "`0` is not a number of values",
        ),
        (
            "{expect: {distinct: {/name: {at-most: some}}}}",
            "`some` is not a number of values",
        ),
    ] {
        let found = proof(text);
        assert!(found.contains(words), "{text}: {found}");
    }
}
