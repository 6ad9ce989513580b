//! Claims about variants that run together: groups, shared systems, and the order of a round.

use insta::assert_snapshot;
use model::Order;

use crate::{check, lab};

const OPEN: (&str, &str) = ("connections: 10", "rate: 10/s");
const THREE: (&str, &str) = (
    "  - {name: b, with: {server.stack: b}}\n",
    "  - {name: b, with: {server.stack: b}}\n  - {name: c}\n  - {name: d}\n",
);

#[test]
fn a_round_is_side_by_side_unless_the_lab_says_otherwise() {
    assert_eq!(lab(&[OPEN]).order(), (Order::SideBySide, None));
    let in_turn = lab(&[OPEN, ("target:", "order: in-turn\ntarget:")]);
    assert_eq!(in_turn.order(), (Order::InTurn, None));
}

#[test]
fn groups_have_every_variant_once() {
    let groups = ("target:", "groups: [[b, c], [d]]\ntarget:");
    let found = lab(&[OPEN, groups, THREE]);
    let names = |group: &[&str]| group.iter().map(ToString::to_string).collect();
    let expected: Vec<Vec<String>> = vec![names(&["b", "c"]), names(&["d"])];
    assert_eq!(found.groups, Some(expected));
}

#[test]
fn a_group_with_a_stranger_a_baseline_or_a_variant_twice_is_a_mistake() {
    let groups = ("target:", "groups: [[b, bb], [a, b], []]\ntarget:");
    assert_snapshot!(check(&[OPEN, groups, THREE]), @"
    error: `groups` does not contain c, d
     --> labs/x.yaml:5:9
      |
    5 | groups: [[b, bb], [a, b], []]
      |         ^^^^^^^^^^^^^^^^^^^^^
      |
      = help: add every variant to one of the groups

    error: there is no variant `bb`
     --> labs/x.yaml:5:14
      |
    5 | groups: [[b, bb], [a, b], []]
      |              ^^
      |
      = help: did you mean `b`?

    error: `a` is a baseline
     --> labs/x.yaml:5:20
      |
    5 | groups: [[b, bb], [a, b], []]
      |                    ^
      |
      = help: `weigh` adds a baseline to each group with one of its variants. Remove it here

    error: `b` is in two groups
     --> labs/x.yaml:5:23
      |
    5 | groups: [[b, bb], [a, b], []]
      |           -           ^
      |           |
      |           first here
      |
      = help: each variant belongs to one group. `weigh` adds the baselines to the groups

    error: this group has no variants
     --> labs/x.yaml:5:27
      |
    5 | groups: [[b, bb], [a, b], []]
      |                           ^^
      |
      = help: remove it
    ");
}

#[test]
fn groups_in_turn_are_a_mistake() {
    let groups = ("target:", "groups: [[b]]\norder: in-turn\ntarget:");
    assert_snapshot!(check(&[OPEN, groups]), @"
    error: `groups` cannot be used with `order: in-turn`
     --> labs/x.yaml:5:9
      |
    5 | groups: [[b]]
      |         ^^^^^
    6 | order: in-turn
      | ----- `order` is given here
      |
      = help: in turn, only one variant runs at a time. Remove one of the two
    ");
}

/// A lab with a store that the server needs.
fn with_store(store: &str) -> [(&'static str, String); 2] {
    [
        (
            "    run: serve",
            "    run: serve --store {{store.url}}".to_owned(),
        ),
        (
            "baseline:",
            format!("  store: {{shared: true, {store}}}\nbaseline:"),
        ),
    ]
}

fn check_store(store: &str, more: &[(&str, &str)]) -> String {
    let changes = with_store(store);
    let changes: Vec<(&str, &str)> = changes
        .iter()
        .map(|(from, to)| (*from, to.as_str()))
        .chain(more.iter().copied())
        .collect();
    check(&changes)
}

#[test]
fn a_shared_system_is_one_setup_for_all() {
    let changes = with_store("run: 'store {{addr}}'");
    let changes: Vec<(&str, &str)> = changes
        .iter()
        .map(|(from, to)| (*from, to.as_str()))
        .collect();
    let found = lab(&changes);
    for variant in found.all() {
        let shared: Vec<bool> = variant.systems().iter().map(|one| one.is_shared).collect();
        assert_eq!(shared, [true, false]);
    }
}

#[test]
fn a_shared_system_that_differs_between_variants_is_a_mistake() {
    assert_snapshot!(check_store("run: 'store {{addr}} {{name}}'", &[]), @"
    error: `store` is shared, but it differs between `a` and `b`
      --> labs/x.yaml:10:19
       |
    10 |   store: {shared: true, run: 'store {{addr}} {{name}}'}
       |                   ^^^^
       |
       = help: one process of a shared system serves all variants. Remove `shared`, or the difference
    ");
}

#[test]
fn a_shared_system_that_needs_one_that_is_not_is_a_mistake() {
    let disk = ("baseline:", "  disk: {run: 'disk {{addr}}'}\nbaseline:");
    assert_snapshot!(check_store("run: 'store {{addr}} {{disk.addr}}'", &[disk]), @"
    error: `store` is shared, but it needs `disk`, which is not shared
      --> labs/x.yaml:10:19
       |
    10 |   store: {shared: true, run: 'store {{addr}} {{disk.addr}}'}
       |                   ^^^^
       |
       = help: one process of a shared system serves all variants. Remove `shared`, or the difference
    ");
}

#[test]
fn the_target_cannot_be_shared() {
    assert_snapshot!(check(&[("    settings: {stack: a}", "    shared: true\n    settings: {stack: a}")]), @"
    error: `server` receives the load, so it cannot be shared
     --> labs/x.yaml:8:13
      |
    8 |     shared: true
      |             ^^^^
      |
      = help: one process of a shared system serves all variants. Remove `shared`, or the difference
    ");
}

#[test]
fn no_proof_counts_requests_on_a_shared_system() {
    let proof = (
        "baseline:",
        "proof:\n  - {ask: '{{store.url}}/seen', json: /requests, at-least-per-request: 1}\nbaseline:",
    );
    assert_snapshot!(check_store("run: 'store {{addr}}'", &[proof]), @"
    error: `store` is shared, so it counts the requests of all variants
      --> labs/x.yaml:12:11
       |
    12 |   - {ask: '{{store.url}}/seen', json: /requests, at-least-per-request: 1}
       |           ^^^^^^^^^^^^^^^^^^^^
       |
       = help: ask a system that is not shared, or remove its `shared`
    ");
}
