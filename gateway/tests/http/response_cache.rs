//! Tests the cache of subgraph responses.

use std::time::Duration;

use serde_json::Value;
use test_client::tls::Authority;
use test_client::{Redis, Sentinel, now};

use crate::client::{Connection, Request, Response, post};
use crate::gateway::{Gateway, Setup};
use crate::stub::{Answer, Stub};

const BOTH: &str = r#"{"query":"{ locations { name overallRating } }"}"#;
const NAMES: &str = r#"{"query":"{ locations { name } }"}"#;

/// Both subgraphs: two places with one rating each, and this `Cache-Control`.
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
    // The cache is off for all subgraphs, or for one.
    let asked = |config: &str| {
        let planets = planets("cache-control: max-age=60\r\n");
        let gateway = Gateway::start(&planets.config(config));
        (0..2).for_each(|_| assert_eq!(gateway.send(&post(BOTH)).text(), ANSWER));
        planets.seen().len()
    };
    assert_eq!(asked(""), 4);
    let one = "response_cache: {enabled: true, subgraph: {subgraphs: {reviews: {enabled: false}}}}";
    assert_eq!(asked(one), 3);
    // The configuration of the entity cache of version 1.
    let former = "preview_entity_cache: {enabled: true, metrics: {enabled: true}, subgraph: {all: {enabled: true}}}";
    assert_eq!(asked(former), 2);
}

/// The commonest rule of public files. Two clients with different headers share no response.
#[test]
fn the_log_says_that_a_pattern_of_headers_divides_the_cache() {
    let planets = planets("cache-control: max-age=60\r\n");
    let rules = format!("{ON}headers: {{all: {{request: [{{propagate: {{matching: '.*'}}}}]}}}}\n");
    let mut gateway = Gateway::start(&planets.config(&rules));
    for agent in ["one", "other", "one"] {
        let mut headers = post(NAMES).headers.to_vec();
        headers.push(("user-agent", agent));
        let asked = Request {
            headers: &headers,
            ..post(NAMES)
        };
        assert_eq!(gateway.send(&asked).status, 200);
    }
    assert_eq!(planets.seen().len(), 2);
    let line = gateway.wait_for("is part of the key in `response_cache`");
    assert_eq!(line["level"], "warn");
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
    // A script identifies the client, and the subgraph marks the response as private.
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

/// A configuration that stores responses in this Redis.
fn shared(redis: &Redis, more: &str) -> String {
    format!(
        "response_cache: {{enabled: true, subgraph: {{all: {{ttl: 60s, redis: {{urls: ['{}'], required_to_start: true{more}}}}}}}}}\n",
        redis.url()
    )
}

/// Responses are stored in the background. Waits until a query reaches no subgraph.
fn asks_no_subgraph(gateway: &Gateway, planets: &Stub, query: &str, answer: &str) {
    let deadline = now() + Duration::from_secs(10);
    loop {
        let before = planets.seen().len();
        assert_eq!(gateway.send(&post(query)).text(), answer);
        if planets.seen().len() == before {
            return;
        }
        assert!(now() < deadline, "it is asked for again and again");
    }
}

fn metric(gateway: &Gateway, name: &str) -> f64 {
    let answer = gateway.ask_health("/metrics");
    let text = answer.text();
    let line = text.lines().find(|line| line.starts_with(name));
    let value = line.and_then(|line| line.split_whitespace().last());
    value
        .unwrap_or_else(|| panic!("{name} in {text}"))
        .parse()
        .unwrap()
}

#[test]
fn processes_that_share_a_redis_share_answers() {
    let redis = Redis::start();
    let planets = planets("cache-control: max-age=60\r\n");
    let config = planets.config(&shared(&redis, ""));
    let first = Gateway::start(&config);
    asks_no_subgraph(&first, &planets, BOTH, ANSWER);
    let before = planets.seen().len();
    let second = Gateway::start(&config);
    assert_eq!(second.send(&post(BOTH)).text(), ANSWER);
    assert_eq!(planets.seen().len(), before);
    let hits = "apollo_router_operations_response_cache_fetch_total{subgraph_name=\"reviews\",cache_hit=\"true\"}";
    assert_eq!(metric(&second, hits), 2.0);
    assert_eq!(metric(&second, "response_cache_redis_failures_total"), 0.0);
    // Another namespace does not find the entries. Entries with a short lifetime are requested again.
    let other = planets.config(&shared(&redis, ", namespace: other, ttl: 1ms"));
    let other = Gateway::start(&other);
    assert_eq!(other.send(&post(BOTH)).text(), ANSWER);
    assert_eq!(planets.seen().len(), before + 2);
    let deadline = now() + Duration::from_secs(10);
    while planets.seen().len() < before + 4 {
        assert_eq!(other.send(&post(BOTH)).text(), ANSWER);
        assert!(now() < deadline, "it is kept for longer than it may be");
    }
}

/// The login of the configuration replaces the login of the address.
#[test]
fn answers_are_in_a_redis_with_tls_whose_certificate_is_checked() {
    let (own, other) = (Authority::new("own"), Authority::new("other"));
    let identity = own.identity("127.0.0.1");
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let redis = Redis::start_with(&[
        "--port",
        "0",
        "--tls-port",
        "{port}",
        "--tls-cert-file",
        &file("cert.pem", &identity.certificate),
        "--tls-key-file",
        &file("key.pem", &identity.key),
        "--tls-ca-cert-file",
        &file("ca.pem", &own.pem()),
        "--tls-auth-clients",
        "no",
        "--requirepass",
        "p@ss",
    ]);
    let planets = planets("cache-control: max-age=60\r\n");
    let setup = |authority: &Authority| {
        let port = redis.port();
        let caching = format!(
            "response_cache: {{enabled: true, subgraph: {{all: {{ttl: 60s, redis: {{urls: ['rediss://:wrong@127.0.0.1:{port}/1'], password: 'p@ss', required_to_start: true, tls: {{certificate_authorities: '${{file.trusted.pem}}'}}}}}}}}}}\n"
        );
        Setup::new(&planets.config(&caching)).file("trusted.pem", &authority.pem())
    };
    let gateway = setup(&own).start();
    asks_no_subgraph(&gateway, &planets, BOTH, ANSWER);
    let (status, said) = setup(&other).fail();
    assert!(!status.success(), "{said}");
    assert!(said.contains("is `required_to_start`"), "{said}");
}

/// The address names sentinels. The login of the configuration is the login of Redis.
#[test]
fn answers_are_in_the_redis_that_a_sentinel_names() {
    let redis = Redis::start_with(&["--requirepass", "p@ss"]);
    let sentinel = Sentinel::start(&[
        format!("sentinel monitor answers 127.0.0.1 {} 1", redis.port()),
        "sentinel auth-pass answers p@ss".to_owned(),
    ]);
    let planets = planets("cache-control: max-age=60\r\n");
    let config = |master: &str| {
        let port = sentinel.port();
        planets.config(&format!(
            "response_cache: {{enabled: true, subgraph: {{all: {{ttl: 60s, redis: {{urls: ['redis+sentinel://127.0.0.1:{port}/{master}/1'], password: 'p@ss', required_to_start: true}}}}}}}}\n"
        ))
    };
    let gateway = Gateway::start(&config("answers"));
    asks_no_subgraph(&gateway, &planets, BOTH, ANSWER);
    let before = planets.seen().len();
    let second = Gateway::start(&config("answers"));
    assert_eq!(second.send(&post(BOTH)).text(), ANSWER);
    assert_eq!(planets.seen().len(), before);
    let (status, said) = Setup::new(&config("questions")).fail();
    assert!(!status.success(), "{said}");
    assert!(said.contains("does not know `questions`"), "{said}");
}

#[test]
fn answers_of_another_address_in_the_same_redis_are_not_found() {
    let redis = Redis::start();
    let one = planets("cache-control: max-age=60\r\n");
    let other = Stub::start(|seen| {
        let body = match seen.target.as_str() {
            "/l" => r#"{"data":{"locations":[{"__typename":"Location","id":"1","name":"C"}]}}"#,
            _ => r#"{"data":{"_entities":[{"overallRating":9}]}}"#,
        };
        let headers = "content-type: application/json\r\ncache-control: max-age=60\r\n";
        Answer::Full(200, headers.to_owned(), body.as_bytes().to_vec())
    });
    let caching = shared(&redis, "");
    let first = Gateway::start(&one.config(&caching));
    asks_no_subgraph(&first, &one, BOTH, ANSWER);
    let second = Gateway::start(&other.config(&caching));
    let others = r#"{"data":{"locations":[{"name":"C","overallRating":9}]}}"#;
    assert_eq!(second.send(&post(BOTH)).text(), others);
    asks_no_subgraph(&second, &other, BOTH, others);
    asks_no_subgraph(&first, &one, BOTH, ANSWER);
}

#[test]
fn what_one_process_is_told_all_know_and_a_redis_that_is_gone_makes_nothing_wrong() {
    let mut redis = Redis::start();
    let planets = planets("cache-control: max-age=60\r\n");
    let address = free_address();
    let config = |endpoint: &str| {
        let caching = format!(
            "response_cache: {{enabled: true, {endpoint}subgraph: {{all: {{invalidation: {{enabled: true, shared_key: secret}}, redis: {{urls: ['{}'], required_to_start: true}}}}}}}}\n",
            redis.url()
        );
        planets.config(&caching)
    };
    let endpoint = format!("invalidation: {{listen: '{address}', path: /invalidation}}, ");
    let (told, other) = (
        Gateway::start(&config(&endpoint)),
        Gateway::start(&config("")),
    );
    asks_no_subgraph(&told, &planets, BOTH, ANSWER);
    asks_no_subgraph(&other, &planets, BOTH, ANSWER);
    let of_type = r#"[{"kind":"type","subgraph":"reviews","type":"Location"}]"#;
    assert_eq!(invalidate(&address, Some("secret"), of_type).status, 202);
    let before = planets.seen().len();
    assert_eq!(other.send(&post(BOTH)).text(), ANSWER);
    assert_eq!(planets.seen().len(), before + 1);
    let all = r#"[{"kind":"subgraph","subgraph":"locations"}]"#;
    asks_no_subgraph(&other, &planets, BOTH, ANSWER);
    assert_eq!(invalidate(&address, Some("secret"), all).status, 202);
    let before = planets.seen().len();
    assert_eq!(other.send(&post(NAMES)).status, 200);
    assert_eq!(planets.seen().len(), before + 1);
    redis.kill();
    let before = planets.seen().len();
    (0..2).for_each(|_| assert_eq!(other.send(&post(BOTH)).text(), ANSWER));
    assert_eq!(planets.seen().len(), before + 4);
    assert!(metric(&other, "response_cache_redis_failures_total") >= 4.0);
    // The invalidation is not lost silently: its response reports the failure.
    let refused = invalidate(&address, Some("secret"), all);
    assert_eq!(refused.status, 503, "{}", refused.text());
    redis.resume();
    asks_no_subgraph(&other, &planets, BOTH, ANSWER);
}

#[test]
fn a_redis_that_is_required_or_cannot_be_named_is_told_before_anything_is_served() {
    let planets = planets("");
    let of = |redis: &str| {
        let caching = format!(
            "response_cache: {{enabled: true, subgraph: {{all: {{ttl: 1s, redis: {redis}}}}}}}\n"
        );
        Setup::new(&planets.config(&caching))
    };
    let mut gone = Redis::start();
    gone.kill();
    let url = gone.url();
    for (redis, why) in [
        (
            format!("{{urls: ['{url}'], required_to_start: true}}"),
            "is `required_to_start`",
        ),
        (
            "{urls: ['redis://a', 'redis://b']}".to_owned(),
            "found 2: clusters are not followed",
        ),
        ("{urls: []}".to_owned(), "expected one address, found 0"),
        (
            "{urls: ['redis-sentinel://a']}".to_owned(),
            "write `redis+sentinel://",
        ),
        (
            "{urls: ['redis-cluster://a']}".to_owned(),
            "clusters are not followed",
        ),
        (
            "{urls: ['redis://a:b']}".to_owned(),
            "expected redis://HOST:PORT/DATABASE",
        ),
        (
            "{urls: ['redis://a'], tls: {client_authentication: {}}}".to_owned(),
            "`certificate_chain`",
        ),
        (
            "{urls: ['redis://a'], tls: {certificate_authorities: x}}".to_owned(),
            "expected a URL that starts with rediss://",
        ),
    ] {
        let (status, said) = of(&redis).fail();
        assert!(!status.success() && said.contains(why), "{redis}: {said}");
    }
    // Redis is not required here, so the gateway serves without cached responses.
    let gateway = of(&format!("{{urls: ['{url}'], pool_size: 5, timeout: 5ms}}")).start();
    assert_eq!(gateway.send(&post(BOTH)).text(), ANSWER);
}

/// An address that is free now. The gateway prints the invalidation address in a line that these tests do not
/// read.
fn free_address() -> String {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    free.local_addr().unwrap().to_string()
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
    let address = free_address();
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
    // This address does not serve GraphQL, and the GraphQL address does not serve invalidation.
    assert_eq!(
        invalidate(&gateway.address, Some("secret"), all).status,
        404
    );
}
