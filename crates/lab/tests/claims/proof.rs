//! Claims about the proofs of variants.

use std::time::Duration;

use lab::{Proof, ProofWhat, SeenNumber, SeenRule};

use crate::{check, lab};

const ORIGIN: (&str, &str) = (
    "    run: serve {{stack}} --listen {{addr}}\n",
    "    run: serve {{stack}} --listen {{addr}} --origin {{origin.url}}\n  origin: {run: 'o {{addr}}'}\n  other: {run: 'o {{addr}}'}\n",
);

fn proofs(proof: &str, variants: &str) -> (Vec<Proof>, Vec<Proof>) {
    let lab = lab(&[
        ORIGIN,
        (
            "target: server",
            &format!("target: server\nproof:\n{proof}"),
        ),
        ("  - {name: b, with: {server.stack: b}}", variants),
    ]);
    (lab.baseline.proofs, lab.variants[0].proofs.clone())
}

fn mistake(proof: &str) -> String {
    check(&[
        ORIGIN,
        (
            "target: server",
            &format!("target: server\nproof:\n{proof}"),
        ),
    ])
}

#[test]
fn a_proof_is_filled_in_for_each_variant_that_must_give_it() {
    let (baseline, variant) = proofs(
        "  - {of: variants, ask: '{{origin.url}}/seen', json: '/by/{{name}}', at-least-per-request: 2}\n  \
         - {of: baseline, ask: '{{origin.url}}/seen', json: /by/x, exactly-per-request: 0}\n",
        "  - {name: b, proof: [{ask: '{{origin.url}}/seen', json: /on, equals: true}]}",
    );
    let names = |proofs: &[Proof]| -> Vec<String> {
        proofs.iter().map(|proof| proof.name.clone()).collect()
    };
    assert_eq!(names(&baseline), ["/by/x of {{origin.url}}/seen"]);
    assert_eq!(
        names(&variant),
        ["/by/b of {{origin.url}}/seen", "/on of {{origin.url}}/seen"]
    );
    let ProofWhat::Seen { number, rule, .. } = &variant[0].what else {
        panic!("{variant:?}");
    };
    assert_eq!(*number, SeenNumber::Json("/by/b".to_owned()));
    assert_eq!(
        *rule,
        SeenRule::PerRequest {
            least: Some(2.0),
            most: None
        }
    );
    let ProofWhat::Seen { rule, .. } = &baseline[0].what else {
        panic!("{baseline:?}");
    };
    assert_eq!(
        *rule,
        SeenRule::PerRequest {
            least: Some(0.0),
            most: Some(0.0)
        }
    );
}

#[test]
fn a_request_of_its_own_has_the_defaults_of_the_load() {
    let (_, variant) = proofs(
        "  - {name: 'tampered, {{name}}', request: {headers: {X-Who: '{{name}}'}, json: {a: 1}}, expect: {status: 401, values: {'guid*': {count: 10, distinct: 10}}, json: {/a/b: '{{name}}'}}}\n",
        "  - {name: b}",
    );
    assert_eq!(variant[0].name, "tampered, b");
    let ProofWhat::Answer {
        request,
        expect,
        values,
        members,
        ..
    } = &variant[0].what
    else {
        panic!("{variant:?}");
    };
    let request = request.as_ref().unwrap();
    assert_eq!(
        (request.method.as_str(), request.path.as_str()),
        ("POST", "/")
    );
    assert_eq!(request.headers[0], ("X-Who".to_owned(), "b".to_owned()));
    assert_eq!(expect.answer.status, model::StatusRule::Exactly(401));
    assert_eq!(
        (values[0].header.as_str(), values[0].distinct),
        ("guid*", Some(10))
    );
    assert_eq!(members[..], [("/a/b".to_owned(), "\"b\"".to_owned())]);
}

#[test]
fn mistakes_in_a_proof_say_where_and_what_to_write() {
    for (proof, words) in [
        ("  - {}\n", "this proof has no check"),
        ("  - {json: /a}\n", "`json` without `ask`"),
        (
            "  - {ask: '{{origin.url}}/x', json: /a}\n",
            "the proof has no condition for the number",
        ),
        (
            "  - {ask: '{{origin.url}}/x', at-least-per-request: 1}\n",
            "expected exactly one of `json` and `metric`",
        ),
        (
            "  - {ask: '{{origin.url}}/x', json: /a, metric: b, equals: 1}\n",
            "expected exactly one of `json` and `metric`",
        ),
        (
            "  - {ask: '{{origin.url}}/x', json: /a, equals: 1, at-most-per-request: 1}\n",
            "`equals` cannot be used with a number per request",
        ),
        (
            "  - {ask: '{{origin.url}}/x', metric: a, equals: 1}\n",
            "`equals` cannot be used with `metric`",
        ),
        (
            "  - {ask: '{{origin.url}}/x', json: /a, exactly-per-request: 1, at-most-per-request: 1}\n",
            "cannot be used with another limit",
        ),
        (
            "  - {ask: '{{origin.url}}/x', json: /a, at-least-per-request: -1}\n",
            "expected at least 0",
        ),
        (
            "  - {ask: '/seen', json: /a, equals: 1}\n",
            "does not begin with an address",
        ),
        (
            "  - {ask: '{{orign.url}}/x', json: /a, equals: 1}\n",
            "did you mean `origin`?",
        ),
        (
            "  - {ask: '{{other.url}}/x', json: /a, equals: 1}\n",
            "`other` does not run for every variant",
        ),
        (
            "  - {ask: '{{origin.url}}/x', json: /a, equals: 1, expect: {status: 200}}\n",
            "`ask` and `expect` exclude each other",
        ),
        (
            "  - {request: {path: /a}, within: 2s}\n",
            "`within` without `ask`",
        ),
        (
            "  - {ask: '{{origin.url}}/x', json: /a, equals: 1, within: 0s}\n",
            "it must be above 0",
        ),
        (
            "  - {expect: {same-as: baseline}}\n",
            "unknown key `same-as`",
        ),
        (
            "  - {of: nobody, expect: {}}\n",
            "expected `all` or `baseline` or `variants`",
        ),
    ] {
        let found = mistake(proof);
        assert!(found.contains(words), "{proof}: {words}\n{found}");
        assert!(found.contains("labs/x.yaml:"), "{found}");
    }
}

#[test]
fn a_number_can_have_time_to_arrive() {
    let (baseline, variant) = proofs(
        "  - {ask: '{{origin.url}}/seen', json: /a, at-least-per-request: 1, within: 2s}\n  \
         - {ask: '{{origin.url}}/seen', json: /b, equals: 1}\n",
        "  - {name: b}",
    );
    assert_eq!(baseline, variant);
    let within = |proof: &Proof| match &proof.what {
        ProofWhat::Seen { within, .. } => *within,
        ProofWhat::Answer { .. } => panic!("{proof:?}"),
    };
    let times: Vec<Duration> = variant.iter().map(within).collect();
    assert_eq!(times, [Duration::from_secs(2), Duration::ZERO]);
}

#[test]
fn the_target_has_a_name_of_its_own_in_a_proof() {
    let variants = "  - {name: b, target: origin, with: {server.stack: b}}";
    let (baseline, variant) = proofs(
        "  - {ask: '{{target.url}}/seen', json: /a, at-least-per-request: 1}\n",
        variants,
    );
    assert_eq!(baseline[0].name, "/a of {{server.url}}/seen");
    assert_eq!(variant[0].name, "/a of {{origin.url}}/seen");
    // A system of this name is meant, if there is one.
    let declared = (
        "  origin: {run",
        "  target: {run: 't {{addr}}'}\n  origin: {run",
    );
    let lab = lab(&[
        ORIGIN,
        declared,
        (
            "--origin {{origin.url}}",
            "--origin {{origin.url}} {{target.url}}",
        ),
        (
            "target: server",
            "target: server\nproof: [{ask: '{{target.url}}/x', json: /a, equals: 1}]",
        ),
    ]);
    assert_eq!(lab.baseline.proofs[0].name, "/a of {{target.url}}/x");
}
