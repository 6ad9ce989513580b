//! Tests the GraphQL endpoint: methods, negotiation, statuses and codes, CSRF, CORS, compression.

use std::io::Write as _;

use crate::client::{Request, Response, get, post};
use crate::gateway::{Gateway, Setup};
use crate::stub::{Answer, Stub};

const NAMES: &str = r#"{"query":"{ locations { id name } }"}"#;
const NAMES_ANSWER: &str =
    r#"{"data":{"locations":[{"id":"1","name":"A"},{"id":"2","name":"B"}]}}"#;

fn with_headers<'a>(request: Request<'a>, headers: &'a [(&'a str, &'a str)]) -> Request<'a> {
    Request { headers, ..request }
}

#[test]
fn a_query_over_two_subgraphs_is_one_answer() {
    let planets = Stub::planets();
    let gateway = Gateway::start(&planets.config(""));
    let query = r#"{"query":"query Q { locations { name overallRating } }","operationName":"Q"}"#;
    let response = gateway.send(&post(query));
    assert_eq!(response.status, 200);
    assert_eq!(response.header("content-type"), Some("application/json"));
    assert_eq!(
        response.text(),
        r#"{"data":{"locations":[{"name":"A","overallRating":4},{"name":"B","overallRating":5}]}}"#
    );
    let seen = planets.seen();
    assert_eq!(
        seen[0].body,
        r#"{"query":"query Q__locations__0{locations{__typename id name}}","operationName":"Q__locations__0"}"#
    );
    assert_eq!(
        seen[1].body,
        concat!(
            r#"{"query":"query Q__reviews__1($representations:[_Any!]!){_entities(representations:$representations)"#,
            r#"{...on Location{overallRating}}}","operationName":"Q__reviews__1","#,
            r#""variables":{"representations":[{"__typename":"Location","id":"1"},{"__typename":"Location","id":"2"}]}}"#
        )
    );
    let accept = "application/json, application/graphql-response+json";
    assert_eq!(seen[0].header("content-type"), Some("application/json"));
    assert_eq!(seen[0].header("accept"), Some(accept));
}

#[test]
fn defer_is_answered_in_one_piece_where_no_known_format_is_named() {
    let planets = Stub::planets();
    let gateway = Gateway::start(&planets.config(""));
    let query =
        r#"{"query":"{ locations { name ... @defer(label: \"later\") { overallRating } } }"}"#;
    for accept in [
        "multipart/mixed;deferSpec=20991231,application/json",
        "multipart/mixed;deferSpec=20991231",
    ] {
        let headers = [("content-type", "application/json"), ("accept", accept)];
        let response = gateway.send(&with_headers(post(query), &headers));
        assert_eq!(response.status, 200, "{}", response.text());
        assert_eq!(response.header("content-type"), Some("application/json"));
        assert_eq!(
            response.text(),
            r#"{"data":{"locations":[{"name":"A","overallRating":4},{"name":"B","overallRating":5}]}}"#
        );
    }
}

#[test]
fn get_and_post_give_the_same_answer() {
    let planets = Stub::planets();
    let gateway = Gateway::start(&planets.config(""));
    assert_eq!(gateway.send(&post(NAMES)).text(), NAMES_ANSWER);
    let target =
        "/?query=query($i:ID!)%7Blocation(id:$i)%7Bid%20name%7D%7D&variables=%7B%22i%22:%221%22%7D";
    let preflighted = [("apollo-require-preflight", "1")];
    let response = gateway.send(&with_headers(get(target), &preflighted));
    assert_eq!(
        response.text(),
        r#"{"data":{"location":{"id":"1","name":"A"}}}"#
    );
}

#[test]
fn what_is_wrong_with_a_request_has_its_status_and_code() {
    let planets = Stub::planets();
    let gateway = Gateway::start(&planets.config("limits: {max_depth: 3, max_aliases: 1}"));
    let query = |query: &str| format!(r#"{{"query":"{query}"}}"#);
    let cases = [
        ("{", 400, "INVALID_GRAPHQL_REQUEST"),
        ("", 400, "INVALID_GRAPHQL_REQUEST"),
        (r#"[{"query":"{a}"}]"#, 400, "BATCHING_NOT_ENABLED"),
        ("{}", 400, "MISSING_QUERY_STRING"),
        (&query(""), 400, "MISSING_QUERY_STRING"),
        (&query("{"), 400, "PARSING_ERROR"),
        (&query("{ nothing }"), 400, "GRAPHQL_VALIDATION_FAILED"),
        (
            &query("query A { locations { id } } query B { locations { id } }"),
            400,
            "GRAPHQL_VALIDATION_FAILED",
        ),
        (
            r#"{"query":"query A { locations { id } }","operationName":"B"}"#,
            400,
            "GRAPHQL_UNKNOWN_OPERATION_NAME",
        ),
        (
            r#"{"query":"query($i:ID!){location(id:$i){id}}","variables":{"i":{}}}"#,
            400,
            "VALIDATION_INVALID_TYPE_VARIABLE",
        ),
        (
            &query("{ __schema { queryType { name } } }"),
            400,
            "INTROSPECTION_DISABLED",
        ),
        (
            &query("{ locations { reviewsForLocation { location { id } } } }"),
            400,
            "MAX_DEPTH_LIMIT",
        ),
        (
            &query("{ locations { a: id b: id c: id } }"),
            400,
            "MAX_ALIASES_LIMIT",
        ),
    ];
    for (body, status, code) in cases {
        let response = gateway.send(&post(body));
        assert_eq!(
            (response.status, crate::client::code(&response).as_str()),
            (status, code),
            "{body}: {}",
            response.text()
        );
        assert_eq!(response.header("content-type"), Some("application/json"));
    }
    assert!(planets.seen().is_empty());
}

fn in_gzip(body: &[u8]) -> Vec<u8> {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(body).unwrap();
    gzip.finish().unwrap()
}

/// Sends a body with a content coding.
fn coded(gateway: &Gateway, coding: &str, body: &[u8]) -> Response {
    let mut connection = gateway.connect();
    let length = body.len();
    let head = format!(
        "POST / HTTP/1.1\r\nhost: t\r\ncontent-type: application/json\r\ncontent-encoding: {coding}\r\ncontent-length: {length}\r\n\r\n"
    );
    connection.write(head.as_bytes());
    connection.write(body);
    connection.read(false)
}

/// As in Apollo Router. Subgraphs must not see the coding, because they get another body.
#[test]
fn a_body_with_a_content_coding_is_expanded() {
    let planets = Stub::planets();
    let rules = "headers: {all: {request: [{propagate: {matching: '.*'}}]}}";
    let gateway = Gateway::start(&planets.config(rules));
    let body = br#"{"query":"{ locations { id } }"}"#;
    let deflated = |level| {
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), level);
        encoder.write_all(body).unwrap();
        encoder.finish().unwrap()
    };
    let mut brotli = brotli::CompressorWriter::new(Vec::new(), 4096, 4, 20);
    brotli.write_all(body).unwrap();
    for (coding, bytes) in [
        ("gzip", in_gzip(body)),
        ("GZIP", in_gzip(body)),
        ("deflate", deflated(flate2::Compression::best())),
        ("br", brotli.into_inner()),
        ("identity", body.to_vec()),
    ] {
        let response = coded(&gateway, coding, &bytes);
        assert_eq!(response.status, 200, "{coding}: {}", response.text());
        let seen = planets.seen();
        assert_eq!(seen.last().unwrap().header("content-encoding"), None);
    }
}

#[test]
fn a_body_that_cannot_be_expanded_has_its_own_refusal() {
    let planets = Stub::planets();
    let limit = "limits: {http_max_request_bytes: 1000}";
    let gateway = Gateway::start(&planets.config(limit));
    let body = br#"{"query":"{ locations { id } }"}"#;
    let long = format!(
        r#"{{"query":"{{ locations {{ id }} }} #{}"}}"#,
        "x".repeat(1000)
    );
    let bomb = in_gzip(long.as_bytes());
    assert!(bomb.len() < 200);
    for (coding, bytes, status, words) in [
        (
            "zstd",
            body.to_vec(),
            415,
            "unsupported content-encoding `zstd`",
        ),
        ("gzip, gzip", in_gzip(body), 415, "`gzip, gzip`"),
        (
            "gzip",
            body.to_vec(),
            400,
            "the body cannot be decompressed",
        ),
        (
            "gzip",
            in_gzip(body)[..20].to_vec(),
            400,
            "the body cannot be decompressed",
        ),
        ("gzip", bomb, 413, "Request body payload too large"),
    ] {
        let response = coded(&gateway, coding, &bytes);
        assert_eq!(response.status, status, "{coding}: {}", response.text());
        assert!(response.text().contains(words), "{}", response.text());
    }
    assert!(planets.seen().is_empty());
}

#[test]
fn negotiation_decides_status_and_media_type() {
    let planets = Stub::planets();
    let gateway = Gateway::start(&planets.config(""));
    let modern = "application/graphql-response+json";
    let legacy = "application/json";
    // Header `accept`, status of a query with a syntax error, media type.
    let cases = [
        ("*/*", 400, legacy),
        (modern, 400, modern),
        (legacy, 200, legacy),
        ("text/html", 406, legacy),
    ];
    let body = r#"{"query":"{"}"#;
    for (accept, status, media) in cases {
        let headers = [("content-type", legacy), ("accept", accept)];
        let response = gateway.send(&with_headers(post(body), &headers));
        assert_eq!(response.status, status, "{accept}");
        assert_eq!(response.header("content-type"), Some(media), "{accept}");
    }
    let headers = [("content-type", "application/xml")];
    let response = gateway.send(&with_headers(post(NAMES), &headers));
    assert_eq!(response.status, 415);
    assert_eq!(
        crate::client::code(&response),
        "INVALID_CONTENT_TYPE_HEADER"
    );
    let put = Request {
        method: "PUT",
        ..post(NAMES)
    };
    let response = gateway.send(&put);
    assert_eq!(response.status, 405);
    assert!(response.header("allow").unwrap().contains("POST"));
    let elsewhere = Request {
        target: "/elsewhere",
        ..post(NAMES)
    };
    assert_eq!(gateway.send(&elsewhere).status, 404);
}

#[test]
fn a_mutation_needs_a_post() {
    let planets = Stub::start(|_| crate::stub::json(r#"{"data":{"touch":1}}"#));
    let supergraph = include_str!("../../../services/planets/supergraph.graphql").replace(
        "type Query @join__type",
        "type Mutation @join__type(graph: LOCATIONS) { touch: Int @join__field(graph: LOCATIONS) }\n\ntype Query @join__type",
    );
    let supergraph =
        supergraph.replace("  query: Query\n", "  query: Query\n  mutation: Mutation\n");
    let gateway = Setup::new(&planets.config(""))
        .file("supergraph.graphql", &supergraph)
        .start();
    let preflighted = [("apollo-require-preflight", "1")];
    let request = get("/?query=mutation%7Btouch%7D");
    let response = gateway.send(&with_headers(request, &preflighted));
    assert_eq!(
        (response.status, crate::client::code(&response).as_str()),
        (405, "MUTATION_FORBIDDEN")
    );
    assert_eq!(response.header("allow"), Some("POST"));
    let response = gateway.send(&post(r#"{"query":"mutation{touch}"}"#));
    assert_eq!(response.text(), r#"{"data":{"touch":1}}"#);
}

#[test]
fn what_a_foreign_page_could_send_is_refused() {
    let planets = Stub::planets();
    let gateway = Gateway::start(&planets.config(""));
    let response = gateway.send(&get("/?query=%7B__typename%7D"));
    assert_eq!(
        (response.status, crate::client::code(&response).as_str()),
        (400, "CSRF_ERROR")
    );
    let headers = [("content-type", "text/plain")];
    let response = gateway.send(&with_headers(post(NAMES), &headers));
    assert_eq!(
        (response.status, crate::client::code(&response).as_str()),
        (400, "CSRF_ERROR")
    );
}

#[test]
fn browsers_get_graphiql() {
    let planets = Stub::planets();
    let gateway = Gateway::start(&planets.config(""));
    let headers = [("accept", "text/html,application/xhtml+xml,*/*;q=0.8")];
    let response = gateway.send(&with_headers(get("/"), &headers));
    assert_eq!(response.status, 200);
    assert!(
        response
            .header("content-type")
            .unwrap()
            .starts_with("text/html")
    );
    assert!(response.text().contains("<title>GraphiQL</title>"));
    let gateway = Gateway::start(&planets.config("homepage: {enabled: false}"));
    assert_eq!(gateway.send(&with_headers(get("/"), &headers)).status, 400);
}

#[test]
fn options_is_answered_without_reaching_anything() {
    let planets = Stub::planets();
    let config = planets.config("cors: {policies: [{origins: ['https://a.example']}]}");
    let gateway = Gateway::start(&config);
    let headers = [
        ("origin", "https://a.example"),
        ("access-control-request-headers", "x-one"),
    ];
    let preflight = Request {
        method: "OPTIONS",
        target: "/",
        headers: &headers,
        body: b"",
    };
    let response = gateway.send(&preflight);
    assert_eq!((response.status, response.text()), (200, ""));
    let origin = "access-control-allow-origin";
    assert_eq!(response.header(origin), Some("https://a.example"));
    assert_eq!(
        response.header("access-control-allow-headers"),
        Some("x-one")
    );
    let headers = [
        ("content-type", "application/json"),
        ("origin", "https://a.example"),
    ];
    let response = gateway.send(&with_headers(post(NAMES), &headers));
    assert_eq!(response.header(origin), Some("https://a.example"));
    let response = gateway.send(&post(NAMES));
    assert_eq!(response.header(origin), None);
    assert_eq!(response.header("vary"), Some("origin"));
}

#[test]
fn no_rule_lets_a_subgraph_say_which_pages_may_read() {
    let body = r#"{"data":{"locations":[{"id":"1","name":"A"}]}}"#;
    let subgraph = Stub::start(move |_| {
        let headers = [
            "content-type: application/json",
            "access-control-allow-origin: https://evil.example",
            "access-control-allow-credentials: true",
            "access-control-expose-headers: x-secret",
            "vary: accept-language",
            "x-open: https://evil.example",
            "x-secret: 1",
        ];
        let headers = headers.map(|line| format!("{line}\r\n")).concat();
        Answer::Full(200, headers, body.as_bytes().to_vec())
    });
    let cors = "cors: {policies: [{origins: ['https://a.example']}]}\n";
    for rule in [
        "{propagate: {matching: '.*'}}",
        "{propagate: {named: access-control-allow-origin}}, {propagate: {named: access-control-allow-credentials}}, {propagate: {named: access-control-expose-headers}}, {propagate: {named: vary}}, {propagate: {named: x-secret}}",
        "{propagate: {named: x-open, rename: Access-Control-Allow-Origin}}, {propagate: {named: access-control-max-age, default: '9'}}, {propagate: {matching: '^(vary|x-secret)$'}}",
    ] {
        let rules = format!("{cors}headers: {{all: {{response: [{rule}]}}}}\n");
        let gateway = Gateway::start(&subgraph.config(&rules));
        for (origin, expected) in [
            ("https://evil.example", &[][..]),
            (
                "https://a.example",
                &[("access-control-allow-origin", "https://a.example")],
            ),
        ] {
            let headers = [("content-type", "application/json"), ("origin", origin)];
            let response = gateway.send(&with_headers(post(NAMES), &headers));
            assert_eq!(response.text(), body);
            assert_eq!(response.header("x-secret"), Some("1"), "{rule}");
            let said = response.headers.iter();
            let said: Vec<(&str, &str)> = said
                .map(|(name, value)| (name.as_str(), value.as_str()))
                .filter(|(name, _)| name.starts_with("access-control-"))
                .collect();
            assert_eq!(said, expected, "{origin} by {rule}");
            // A cache must not give the response for one page to another page.
            let vary = response.header("vary");
            assert_eq!(vary, Some("accept-language, origin"), "{rule}");
        }
    }
}

#[test]
fn large_answers_are_compressed_for_who_takes_it() {
    use std::io::Read as _;

    // Written in one turn, and in many.
    for length in [5_000, 1_000_000] {
        let long = "x".repeat(length);
        let body = format!(r#"{{"data":{{"locations":[{{"id":"1","name":"{long}"}}]}}}}"#);
        let expected = body.clone();
        let planets = Stub::start(move |_| crate::stub::json(&body));
        let gateway = Gateway::start(&planets.config(""));
        let headers = [
            ("content-type", "application/json"),
            ("accept-encoding", "gzip"),
        ];
        let response = gateway.send(&with_headers(post(NAMES), &headers));
        assert_eq!(response.header("content-encoding"), Some("gzip"));
        assert!(response.bytes.len() < length / 10);
        let mut text = String::new();
        flate2::read::GzDecoder::new(&response.bytes[..])
            .read_to_string(&mut text)
            .unwrap();
        assert!(text == expected);
        assert!(gateway.send(&post(NAMES)).text() == expected);
    }
}

#[test]
fn the_path_can_have_parameters() {
    let planets = Stub::planets();
    let gateway = Gateway::start(&planets.config("supergraph: {path: '/:tenant/graphql'}"));
    let request = Request {
        target: "/acme/graphql?x=1",
        ..post(NAMES)
    };
    assert_eq!(gateway.send(&request).text(), NAMES_ANSWER);
    assert_eq!(gateway.send(&post(NAMES)).status, 404);
}

/// A value that the schema does not allow becomes null. A switch decides if that is an error.
#[test]
fn wrong_values_of_subgraphs_are_reported_as_the_switch_says() {
    let planets = Stub::start(|_| {
        crate::stub::json(
            r#"{"data":{"locations":[{"__typename":"Location","id":null,"name":"A"}]}}"#,
        )
    });
    let query = r#"{"query":"{ locations { id name } }"}"#;
    let quiet = Gateway::start(&planets.config(""))
        .send(&post(query))
        .json();
    assert!(quiet.get("errors").is_none(), "{quiet}");
    let completion = &quiet["extensions"]["valueCompletion"];
    assert_eq!(completion.as_array().map(Vec::len), Some(1), "{quiet}");
    assert_eq!(
        completion[0]["path"],
        serde_json::json!(["locations", 0, "id"])
    );
    assert!(completion[0].get("extensions").is_none(), "{quiet}");
    let switch = "supergraph: {enable_result_coercion_errors: true}";
    let strict = Gateway::start(&planets.config(switch))
        .send(&post(query))
        .json();
    assert!(strict.get("extensions").is_none(), "{strict}");
    let code = &strict["errors"][0]["extensions"]["code"];
    assert_eq!(code, "RESPONSE_VALIDATION_FAILED", "{strict}");
    assert_eq!(strict["data"], quiet["data"]);
}
