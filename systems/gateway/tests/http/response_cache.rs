//! Answers of subgraphs that are kept.

use serde_json::Value;

use crate::client::{Connection, Request, Response, post};
use crate::gateway::{Gateway, Setup};
use crate::stub::{Answer, Stub};

const BOTH: &str = r#"{"query":"{ locations { name overallRating } }"}"#;
const NAMES: &str = r#"{"query":"{ locations { name } }"}"#;

/// Both subgraphs: two places with a rating each, with this `Cache-Control`.
fn planets(control: &'static str) -> Stub {
    Stub::start(move |seen| {
        let body = match seen.target.as_str() {
            "/l" => {
                r#"{"data":{"locations":[{"__typename":"Location","id":"1","name":"A"},{"__typename":"Location","id":"2","name":"B"}]}}"#.to_owned()
            }
            _ => {
                let list = seen.json()["variables"]["representations"].clone();
                let ratings: Vec<Value> = list
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|it| serde_json::json!({"overallRating": it["id"].as_str().unwrap().parse::<u32>().unwrap() + 3}))
                    .collect();
                serde_json::json!({"data": {"_entities": ratings}}).to_string()
            }
        };
        let headers = format!("content-type: application/json\r\n{control}");
        Answer::Full(200, headers, body.into_bytes())
    })
}

const ANSWER: &str =
    r#"{"data":{"locations":[{"name":"A","overallRating":4},{"name":"B","overallRating":5}]}}"#;

const ON: &str = "response_cache: {enabled: true, subgraph: {all: {ttl: 60s}}}\n";

#[test]
fn a_second_request_asks_no_subgraph_and_hits_are_counted() {
    let planets = planets("cache-control: max-age=60\r\n");
    let gateway = Gateway::start(&planets.config(ON));
    for _ in 0..3 {
        assert_eq!(gateway.send(&post(BOTH)).text(), ANSWER);
    }
    assert_eq!(planets.seen().len(), 2);
    let metrics = gateway.ask_health("/metrics");
    let metrics = metrics.text();
    for line in [
        "response_cache_fetch_total{subgraph_name=\"reviews\",cache_hit=\"true\"} 4",
        "response_cache_fetch_total{subgraph_name=\"reviews\",cache_hit=\"false\"} 2",
        "response_cache_fetch_total{subgraph_name=\"locations\",cache_hit=\"true\"} 2",
        "apollo_router_cache_size{kind=\"response\"} 3",
    ] {
        assert!(metrics.contains(line), "{line} in {metrics}");
    }
}

#[test]
fn what_may_not_be_kept_is_asked_for_each_time() {
    for control in [
        "",
        "cache-control: no-store\r\n",
        "cache-control: private, max-age=60\r\n",
        "cache-control: max-age=60\r\nset-cookie: a=1\r\n",
    ] {
        let planets = planets(control);
        let gateway = Gateway::start(&planets.config(ON));
        (0..2).for_each(|_| assert_eq!(gateway.send(&post(BOTH)).text(), ANSWER));
        assert_eq!(planets.seen().len(), 4, "{control}");
    }
    // Off, for all or for one subgraph.
    let asked = |config: &str| {
        let planets = planets("cache-control: max-age=60\r\n");
        let gateway = Gateway::start(&planets.config(config));
        (0..2).for_each(|_| assert_eq!(gateway.send(&post(BOTH)).text(), ANSWER));
        planets.seen().len()
    };
    assert_eq!(asked(""), 4);
    let one = "response_cache: {enabled: true, subgraph: {subgraphs: {reviews: {enabled: false}}}}";
    assert_eq!(asked(one), 3);
    // As the cache of entities of version 1 is configured.
    let former = "preview_entity_cache: {enabled: true, metrics: {enabled: true}, subgraph: {all: {enabled: true, redis: {urls: ['redis://a']}}}}";
    assert_eq!(asked(former), 2);
}

#[test]
fn clients_with_other_headers_or_names_do_not_get_each_others_answers() {
    let subgraph = Stub::start(|seen| {
        let tenant = seen.header("x-tenant").unwrap_or("none").to_owned();
        let body = format!(r#"{{"data":{{"locations":[{{"name":"{tenant}"}}]}}}}"#);
        let headers = "content-type: application/json\r\ncache-control: max-age=60\r\n";
        Answer::Full(200, headers.to_owned(), body.into_bytes())
    });
    let rules =
        format!("{ON}headers: {{all: {{request: [{{propagate: {{named: x-tenant}}}}]}}}}\n");
    let gateway = Gateway::start(&subgraph.config(&rules));
    for tenant in ["a", "b", "a"] {
        let mut headers = post(NAMES).headers.to_vec();
        headers.push(("x-tenant", tenant));
        let asked = Request {
            headers: &headers,
            ..post(NAMES)
        };
        let answer = gateway.send(&asked).json();
        assert_eq!(answer["data"]["locations"][0]["name"], tenant);
    }
    assert_eq!(subgraph.seen().len(), 2);
    // A script says who is asking, and the subgraph that the answer is for that client alone.
    let planets = planets("cache-control: private, max-age=60\r\n");
    let script = "fn router_service(service) { service.map_request(Fn(\"enter\")); }\n\
        fn enter(request) { if \"x-user\" in request.headers { request.context[\"user\"] = request.headers[\"x-user\"]; } }\n";
    let config = "response_cache: {enabled: true, subgraph: {all: {private_id: user}}}\nrhai: {scripts: ., main: main.rhai}\n";
    let gateway = Setup::new(&planets.config(config))
        .file("main.rhai", script)
        .start();
    let mut asked = Vec::new();
    for user in [Some("x"), Some("x"), Some("y"), None, None] {
        let mut headers = post(NAMES).headers.to_vec();
        headers.extend(user.map(|user| ("x-user", user)));
        let request = Request {
            headers: &headers,
            ..post(NAMES)
        };
        assert_eq!(gateway.send(&request).status, 200);
        asked.push(planets.seen().len());
    }
    assert_eq!(asked, [1, 1, 2, 3, 4]);
}

fn invalidate(address: &str, key: Option<&str>, body: &str) -> Response {
    let mut headers = vec![("content-type", "application/json")];
    headers.extend(key.map(|key| ("authorization", key)));
    let request = Request {
        headers: &headers,
        ..test_client::post_json("/invalidation", body)
    };
    Connection::open(address).send(&request)
}

#[test]
fn what_the_endpoint_is_told_is_asked_for_again() {
    let planets = planets("cache-control: max-age=60\r\n");
    // Free a moment ago: the gateway prints it in a line that these tests do not read.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap().to_string();
    drop(free);
    let config = format!(
        "response_cache: {{enabled: true, invalidation: {{listen: '{address}', path: /invalidation}}, subgraph: {{all: {{invalidation: {{enabled: true, shared_key: secret}}}}, subgraphs: {{locations: {{invalidation: {{enabled: false}}}}}}}}}}\n"
    );
    let gateway = Gateway::start(&planets.config(&config));
    let ask = || {
        let before = planets.seen().len();
        assert_eq!(gateway.send(&post(BOTH)).text(), ANSWER);
        planets.seen().len() - before
    };
    assert_eq!((ask(), ask()), (2, 0));
    let of_type = r#"[{"kind":"type","subgraph":"reviews","type":"Location"}]"#;
    for (key, body, status) in [
        (None, of_type, 401),
        (Some("wrong"), of_type, 401),
        (
            Some("secret"),
            r#"[{"kind":"subgraph","subgraph":"locations"}]"#,
            401,
        ),
        (
            Some("secret"),
            r#"[{"kind":"subgraph","subgraph":"unknown"}]"#,
            401,
        ),
        (Some("secret"), "{", 400),
        (
            Some("secret"),
            r#"[{"kind":"cache_tag","subgraphs":["reviews"],"cache_tag":"a"}]"#,
            400,
        ),
    ] {
        assert_eq!(invalidate(&address, key, body).status, status, "{body}");
    }
    assert_eq!(ask(), 0);
    let told = invalidate(&address, Some("secret"), of_type);
    assert_eq!((told.status, told.text()), (202, "{\"count\":1}"));
    assert_eq!((ask(), ask()), (1, 0));
    let all = r#"[{"kind":"subgraph","subgraph":"reviews"}]"#;
    assert_eq!(invalidate(&address, Some("secret"), all).status, 202);
    assert_eq!((ask(), ask()), (1, 0));
    // GraphQL is not served there, nor this where GraphQL is.
    assert_eq!(
        invalidate(&gateway.address, Some("secret"), all).status,
        404
    );
}
