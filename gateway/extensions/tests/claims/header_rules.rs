//! Header rules, tested by the headers that a subgraph receives.

use serde_json::json;

use crate::stand::{exchange, fetch, origin, run, worker};

/// Runs a subgraph request under `rules` (JSON is YAML). Returns the received headers with `x-` names,
/// `source` and `authorization`, in alphabetical order.
fn arrived(rules: &str, own: &str) -> Vec<String> {
    run(async {
        let origin = origin().await;
        let yaml = format!(
            r#"{{"headers": {{"all": {{"request": {rules}}}, "subgraphs": {{"one": {{"request": {own}}}}}}}}}"#
        );
        let worker = worker(&yaml, &origin.url);
        let exchange = exchange(&[
            ("x-a", "1"),
            ("x-a", "2"),
            ("x-b", "b"),
            ("authorization", "Bearer t"),
            ("content-type", "text/odd"),
            ("keep-alive", "timeout=1"),
        ]);
        exchange.context.insert("word", json!("w"));
        exchange.context.insert("number", json!(1));
        exchange
            .context
            .insert("claims", json!({"name": {"first": "ada"}}));
        exchange.context.insert("line", json!("a\nb"));
        fetch(&worker, &exchange).await;
        let seen = origin.last();
        assert_eq!(seen.all("content-type"), ["application/json"], "{rules}");
        let accept = seen.all("accept");
        assert_eq!(
            accept.last(),
            Some(&"application/json, application/graphql-response+json")
        );
        let mut lines: Vec<String> = seen
            .headers
            .iter()
            .filter(|(name, _)| {
                !["host", "content-type", "content-length"].contains(&name.as_str())
            })
            .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
            .filter(|line| !line.starts_with("accept: application/json, application/graphql"))
            .collect();
        lines.sort();
        lines
    })
}

#[test]
fn every_form_of_a_rule_does_what_it_says() {
    let cases: &[(&str, &[&str])] = &[
        ("[]", &[]),
        (
            r#"[{"insert": {"name": "source", "value": "config"}}]"#,
            &["source: config"],
        ),
        (
            r#"[{"insert": {"name": "x", "value": "1"}}, {"insert": {"name": "x", "value": "2"}}]"#,
            &["x: 2"],
        ),
        (
            r#"[{"insert": {"name": "x", "from_context": "word"}}]"#,
            &["x: w"],
        ),
        (
            r#"[{"insert": {"name": "x", "from_context": "number"}}]"#,
            &[],
        ),
        (
            r#"[{"insert": {"name": "x", "from_context": "missing"}}]"#,
            &[],
        ),
        (
            r#"[{"insert": {"name": "x", "from_context": "line"}}]"#,
            &[],
        ),
        (
            r#"[{"insert": {"name": "x", "from_context": "claims#/name/first"}}]"#,
            &["x: ada"],
        ),
        (
            r#"[{"insert": {"name": "x", "path": ".operationName"}}]"#,
            &["x: Q"],
        ),
        (
            r#"[{"insert": {"name": "x", "path": ".extensions.x[0].y"}}]"#,
            &["x: deep"],
        ),
        (
            r#"[{"insert": {"name": "x", "path": ".variables"}}]"#,
            &[r#"x: {"n":1}"#],
        ),
        (r#"[{"insert": {"name": "x", "path": ".nothing"}}]"#, &[]),
        (
            r#"[{"insert": {"name": "x", "path": ".nothing", "default": "d"}}]"#,
            &["x: d"],
        ),
        (
            r#"[{"propagate": {"named": "x-a"}}]"#,
            &["x-a: 1", "x-a: 2"],
        ),
        (
            r#"[{"propagate": {"named": "x-b", "rename": "x-c"}}]"#,
            &["x-c: b"],
        ),
        (
            r#"[{"propagate": {"named": "x-z", "default": "d"}}]"#,
            &["x-z: d"],
        ),
        (r#"[{"propagate": {"named": "x-z"}}]"#, &[]),
        (
            r#"[{"propagate": {"matching": "^x-.*"}}]"#,
            &["x-a: 1", "x-a: 2", "x-b: b"],
        ),
        // Patterns are not anchored. Reserved names never match.
        (
            r#"[{"propagate": {"matching": "a"}}]"#,
            &["authorization: Bearer t", "x-a: 1", "x-a: 2"],
        ),
        // The first propagation that sets a name wins. A default counts too.
        (
            r#"[{"propagate": {"named": "x-z", "default": "d"}}, {"propagate": {"named": "x-b", "rename": "x-z"}}]"#,
            &["x-z: d"],
        ),
        (
            r#"[{"propagate": {"named": "x-b", "rename": "x-a"}}, {"propagate": {"matching": "^x-a"}}]"#,
            &["x-a: b"],
        ),
        // An insert is not a propagation, so its value is appended.
        (
            r#"[{"insert": {"name": "x-b", "value": "i"}}, {"propagate": {"named": "x-b"}}]"#,
            &["x-b: b", "x-b: i"],
        ),
        (
            r#"[{"propagate": {"matching": "^x-"}}, {"remove": {"named": "x-a"}}]"#,
            &["x-b: b"],
        ),
        (
            r#"[{"propagate": {"matching": ".*"}}, {"remove": {"matching": "^x-"}}]"#,
            &["authorization: Bearer t"],
        ),
        (
            r#"[{"insert": {"name": "accept", "value": "a/b"}}, {"remove": {"matching": ".*"}}]"#,
            &["accept: a/b"],
        ),
    ];
    for (rules, expected) in cases {
        assert_eq!(arrived(rules, "[]"), *expected, "{rules}");
    }
}

#[test]
fn the_subgraphs_own_rules_run_after_those_for_all() {
    let all = r#"[{"insert": {"name": "source", "value": "all"}}]"#;
    let own = r#"[{"insert": {"name": "source", "value": "own"}}]"#;
    assert_eq!(arrived(all, own), ["source: own"]);
}
