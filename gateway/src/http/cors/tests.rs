use std::path::Path;

use super::*;

struct Nothing;

impl gateway_config::Surroundings for Nothing {
    fn variable(&self, _: &str) -> Option<String> {
        None
    }

    fn file(&self, _: &Path) -> Option<String> {
        None
    }
}

fn rules(text: &str) -> Rules {
    let reading = gateway_config::read(Path::new("r.yaml"), text, &Nothing, false);
    Rules::new(
        &reading
            .unwrap_or_else(|mistakes| panic!("{mistakes}"))
            .config
            .cors,
    )
}

fn show(headers: &HeaderMap) -> String {
    let mut lines: Vec<String> = headers
        .iter()
        .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
        .collect();
    lines.sort();
    lines.join("\n")
}

fn preflight(rules: &Rules, origin: &'static str) -> String {
    let mut request = HeaderMap::new();
    request.insert(header::ORIGIN, HeaderValue::from_static(origin));
    request.insert(
        header::ACCESS_CONTROL_REQUEST_HEADERS,
        HeaderValue::from_static("x-a, x-b"),
    );
    show(&rules.preflight(&request).headers)
}

fn marked(rules: &Rules, origin: &'static str) -> String {
    let mut headers = HeaderMap::new();
    rules.mark(Some(&HeaderValue::from_static(origin)), &mut headers);
    show(&headers)
}

#[test]
fn without_keys_only_the_studio_may_read() {
    let rules = rules("");
    insta::assert_snapshot!(preflight(&rules, "https://studio.apollographql.com"), @r"
    access-control-allow-headers: x-a, x-b
    access-control-allow-methods: GET, POST, OPTIONS
    access-control-allow-origin: https://studio.apollographql.com
    vary: origin, access-control-request-method, access-control-request-headers
    ");
    assert_eq!(marked(&rules, "https://other.example"), "vary: origin");
}

#[test]
fn an_empty_list_of_headers_mirrors_what_is_asked_for() {
    let rules = rules("cors: {allow_headers: [], allow_any_origin: true}");
    assert!(preflight(&rules, "https://a.example").contains("allow-headers: x-a, x-b"));
    assert!(marked(&rules, "null").contains("access-control-allow-origin: *"));
}

#[test]
fn the_first_policy_that_names_the_origin_wins() {
    let rules = rules(
        "cors:\n  max_age: 1m\n  policies:\n    - {match_origins: ['^https://'], allow_headers: [x-r]}\n    - {origins: ['https://a.example'], allow_credentials: true, allow_headers: [x-o], expose_headers: [x-e], methods: [], max_age: 2h}\n",
    );
    insta::assert_snapshot!(preflight(&rules, "https://a.example"), @r"
    access-control-allow-credentials: true
    access-control-allow-headers: x-o
    access-control-allow-origin: https://a.example
    access-control-max-age: 7200
    vary: origin, access-control-request-method, access-control-request-headers
    ");
    insta::assert_snapshot!(marked(&rules, "https://a.example"), @r"
    access-control-allow-credentials: true
    access-control-allow-origin: https://a.example
    access-control-expose-headers: x-e
    vary: origin
    ");
    assert!(preflight(&rules, "https://b.example").contains("allow-headers: x-r"));
    assert_eq!(marked(&rules, "null"), "vary: origin");
}

#[test]
fn an_empty_list_of_policies_turns_cors_off() {
    let rules = rules("cors: {policies: []}");
    assert_eq!(
        marked(&rules, "https://studio.apollographql.com"),
        "vary: origin"
    );
}

#[test]
fn access_to_private_networks_is_allowed_where_configured() {
    let rules = rules(
        "cors: {policies: [{origins: ['https://a.example'], private_network_access: {access_id: '01:02', access_name: home}}]}",
    );
    let mut request = HeaderMap::new();
    request.insert(
        header::ORIGIN,
        HeaderValue::from_static("https://a.example"),
    );
    request.insert(PRIVATE_NETWORK, HeaderValue::from_static("true"));
    let text = show(&rules.preflight(&request).headers);
    assert!(text.contains("access-control-allow-private-network: true"));
    assert!(text.contains("private-network-access-id: 01:02"));
    assert!(text.contains("private-network-access-name: home"));
}

#[test]
fn every_answer_depends_on_the_origin_whatever_else_it_depends_on() {
    let rules = rules("");
    for (said, expected) in [
        (&[][..], "vary: origin"),
        (&["origin"], "vary: origin"),
        (&["Accept, Origin"], "vary: Accept, Origin"),
        (&["*"], "vary: *"),
        (&["accept", "cookie"], "vary: accept, cookie, origin"),
        (&["x-origin"], "vary: x-origin, origin"),
    ] {
        let mut headers = HeaderMap::new();
        for value in said {
            headers.append(header::VARY, HeaderValue::from_static(value));
        }
        rules.mark(None, &mut headers);
        assert_eq!(show(&headers), expected);
    }
}
