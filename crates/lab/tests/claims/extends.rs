//! Claims about variants that build on other variants.

use lab::{Lab, Proof};

use crate::{check, lab};

const STEPS: &str = "  - {name: b, with: {server.stack: b}, target: proxy, load: {headers: {X-A: a}, path: /b}, proof: [&p {name: first, expect: {headers: {a: b}}}, {name: second, expect: {}}]}
  - {name: c, extends: b, with: {server.log: on}}
  - {name: d, extends: c, with: {server.stack: d}, load: {headers: {X-D: d}}, proof: [{name: second, expect: {status: 201}}]}
  - {name: e, extends: a}";

const SYSTEMS: [(&str, &str); 2] = [
    ("{stack: a}", "{stack: a, log: off}"),
    (
        "--listen {{addr}}\n",
        "--listen {{addr}} {{log}}\n  proxy: {run: 'p {{addr}} {{server.addr}}'}\n",
    ),
];

fn steps(variants: &str) -> Lab {
    let [one, other] = SYSTEMS;
    lab(&[
        one,
        other,
        ("  - {name: b, with: {server.stack: b}}", variants),
    ])
}

fn mistakes(variants: &str) -> String {
    let [one, other] = SYSTEMS;
    check(&[
        one,
        other,
        ("  - {name: b, with: {server.stack: b}}", variants),
    ])
}

#[test]
fn each_step_has_the_keys_of_the_step_before_and_its_own_keys_win() {
    let lab = steps(STEPS);
    let with = |index: usize| {
        let with = lab.variants[index].with.iter();
        with.map(|(key, value)| format!("{key}={value}"))
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(with(0), "server.stack=b");
    assert_eq!(with(1), "server.log=on server.stack=b");
    assert_eq!(with(2), "server.log=on server.stack=d");
    assert_eq!(with(3), "");
    let last = &lab.variants[2];
    assert_eq!(last.systems().last().unwrap().system, "proxy");
    let request = &last.requests[0];
    assert_eq!(request.path, "/b");
    assert_eq!(request.headers.len(), 2, "{:?}", request.headers);
    // The comparison does not change.
    assert_eq!(last.against.as_deref(), Some("a"));
    assert_eq!(lab.variants[3].systems().last().unwrap().system, "server");
}

#[test]
fn proofs_are_inherited_unless_a_proof_has_the_same_name() {
    let lab = steps(STEPS);
    let names = |proofs: &[Proof]| proofs.iter().map(|it| it.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&lab.variants[1].proofs), ["first", "second"]);
    assert_eq!(lab.variants[1].proofs, lab.variants[0].proofs);
    assert_eq!(names(&lab.variants[2].proofs), ["first", "second"]);
    assert_ne!(lab.variants[2].proofs[1], lab.variants[0].proofs[1]);
    assert!(lab.variants[3].proofs.is_empty());
}

#[test]
fn an_extended_variant_is_above_and_has_a_name_of_its_own() {
    for (variants, words, help) in [
        (
            "  - {name: c, extends: bb}\n  - {name: bc}",
            "there is no variant `bb` to extend",
            "the variants above are a",
        ),
        (
            "  - {name: c, extends: b}\n  - {name: b}",
            "`b` is below the variant that extends it",
            "move `b` above",
        ),
        (
            "  - {name: c, extends: c}",
            "a variant cannot extend itself",
            "the baseline",
        ),
        (
            "  - {name: b, for: {size: [1, 2]}, with: {server.stack: '{{size}}'}}\n  - {name: c, extends: b}",
            "`b` has a `for`, so no variant can extend it",
            "without `for`",
        ),
    ] {
        let shown = mistakes(variants);
        for expected in [words, help, "labs/x.yaml:"] {
            assert!(shown.contains(expected), "{expected}\n{shown}");
        }
    }
}
