//! Tests the warnings about keys that do less than they seem to.

use std::path::Path;

use insta::assert_snapshot;

use super::table;
use crate::read;

#[test]
fn patterns_that_fit_longer_origins_are_warned_about() {
    let text = r"cors:
  policies:
    - match_origins: ['^https://shop\.example$', '^https://shop\.example']
    - match_origins:
        - '^https://(a|b$)'
        - '\.shop\.example(:\d+)?$'
        - '(?m)example$'
";
    let warned = |text| {
        read(Path::new("r.yaml"), text, &table(), false)
            .unwrap()
            .warnings
    };
    assert_snapshot!(warned(text).join("\n"), @r"
    line 3: `^https://shop\.example` also fits longer origins, which may belong to another site; end it with `$`
    line 5: `^https://(a|b$)` also fits longer origins, which may belong to another site; end it with `$`
    ");
    let version_1 = warned("cors: {match_origins: ['^https://b', 'c$']}");
    assert_eq!(version_1.len(), 1, "{version_1:?}");
    assert!(
        version_1[0].starts_with("line 1: `^https://b` "),
        "{version_1:?}"
    );
    assert!(warned("cors: {policies: [{origins: ['https://a.example']}]}").is_empty());
}

#[test]
fn header_rules_without_effect_are_said() {
    let text = r"
headers:
  all:
    request:
      - propagate: {matching: '^GraphStore-.*'}
      - propagate: {matching: '(?i)^GraphStore-.*'}
      - propagate: {matching: '^(x-a|X-B)$'}
      - remove: {matching: '[A-Z]+x'}
      - propagate: {named: X-Own}
      - propagate: {named: host}
      - propagate: {named: host, rename: x-host}
      - remove: {named: Content-Length}
      - insert: {name: te, value: trailers}
  subgraphs:
    a:
      response:
        operations: [{propagate: {matching: 'X-.*'}}]
        masking: {replace_defaults: true}
";
    let reading = read(Path::new("r.yaml"), text, &table(), false).unwrap();
    assert_snapshot!(reading.warnings.join("\n"), @r"
    `headers.all`: `^GraphStore-.*` matches no header, because names are in lower case: write `(?i)^GraphStore-.*`
    `headers.all`: `[A-Z]+x` matches no header, because names are in lower case: write `(?i)[A-Z]+x`
    `headers.all`: a rule for `host` has no effect, because the gateway writes this header itself: remove the rule
    `headers.all`: a rule for `content-length` has no effect, because the gateway writes this header itself: remove the rule
    `headers.all`: a rule for `te` has no effect, because the gateway writes this header itself: remove the rule
    `headers.subgraphs.a`: `X-.*` matches no header, because names are in lower case: write `(?i)X-.*`
    `headers.subgraphs.a.response.masking` masks no header, so telemetry shows credentials: remove `replace_defaults`, or name headers in `sensitive_headers`
    ");
}

#[test]
fn empty_lists_of_a_key_set_are_said() {
    let warned = |lists: &str| {
        let text = format!(
            "authentication: {{router: {{jwt: {{jwks: [{{url: 'https://a.example/keys', {lists}}}]}}}}}}"
        );
        let reading = read(Path::new("r.yaml"), &text, &table(), false).unwrap();
        reading.warnings
    };
    assert_snapshot!(warned("issuers: [], audiences: [], algorithms: []").join("\n"), @r"
    `authentication.router.jwt.jwks[0].issuers` is an empty list, so every issuer is allowed: name the allowed issuers, or remove the key
    `authentication.router.jwt.jwks[0].audiences` is an empty list, so every audience is allowed: name the allowed audiences, or remove the key
    `authentication.router.jwt.jwks[0].algorithms` is an empty list, so every token is refused: name the allowed algorithms, or remove the key
    ");
    assert!(warned("issuers: [me], audiences: [a], algorithms: [RS256]").is_empty());
}

#[test]
fn keys_without_effect_are_said_with_their_lines() {
    let text = "homepage:\n  graph_ref: a@b\nsupergraph: {generate_query_fragments: false}\n";
    let reading = read(Path::new("r.yaml"), text, &table(), false).unwrap();
    assert_snapshot!(reading.warnings.join("\n"), @r"
    line 2: `homepage.graph_ref` has no effect here: the homepage has no links
    line 3: `supergraph.generate_query_fragments` has no effect here: the query planner decides about fragments
    ");
}

#[test]
fn endpoints_that_both_fit_are_warned_about() {
    let text = r#"query_collections: [{name: a, queries: [{name: q, query: 'query ($x: ID) { a(x: $x) }'}]}]
rest_endpoints:
  - {name: one, url: '/p/:x/', methods: [GET, PUT], query: {collection_name: a, query_name: q}}
  - {name: two, url: p/all, methods: [PUT], query: {collection_name: a, query_name: q}}
  - {name: three, url: p/all, methods: [POST], query: {collection_name: a, query_name: q}}
"#;
    let reading = read(Path::new("router.yaml"), text, &table(), false).unwrap();
    assert_eq!(reading.warnings.len(), 1, "{:?}", reading.warnings);
    assert!(
        reading.warnings[0].starts_with("line 4: "),
        "{:?}",
        reading.warnings
    );
}

/// Finding M10 of a review: each header of a subgraph request is part of the key in the cache.
#[test]
fn headers_that_divide_the_response_cache_are_said() {
    let warned = |text: &str| {
        let reading = read(Path::new("r.yaml"), text, &table(), false).unwrap();
        reading.warnings.join("\n")
    };
    let pattern = "request: [{propagate: {matching: '.*'}}]";
    let on = "response_cache: {enabled: true}\n";
    for rules in [
        format!("{on}headers: {{all: {{{pattern}}}}}\n"),
        format!("{on}headers: {{subgraphs: {{a: {{{pattern}}}}}}}\n"),
    ] {
        let warning = "`headers` copies client headers by a pattern, and every header of a subgraph request is part of the key in `response_cache`. Clients with different headers share no response: name the headers";
        assert_eq!(warned(&rules), warning, "{rules}");
    }
    for silent in [
        format!("headers: {{all: {{{pattern}}}}}\n"),
        format!("{on}headers: {{all: {{request: [{{propagate: {{named: x-a}}}}]}}}}\n"),
        format!(
            "{on}headers: {{all: {{response: {{operations: [{{propagate: {{matching: '.*'}}}}]}}}}}}\n"
        ),
        on.to_owned(),
    ] {
        assert_eq!(warned(&silent), "", "{silent}");
    }
}
