//! Tests concurrency limits, rate limits, timeouts, deduplication, and their metrics.

use std::sync::mpsc;
use std::sync::{Arc, Mutex};

use crate::client::{Connection, post};
use crate::gateway::{Gateway, Setup};
use crate::stub::{Answer, Stub, json};

const NAMES: &str = r#"{"query":"{ locations { id name } }"}"#;
const ANSWER: &str = r#"{"data":{"locations":[{"id":"1","name":"A"}]}}"#;

/// A subgraph with responses that wait until the test releases them, one by one.
fn held() -> (Stub, mpsc::Sender<()>, mpsc::Receiver<usize>) {
    held_while(|_| true, |_| json(ANSWER))
}

/// Like [`held`], with a response for each request number, from 1. Only the numbers that `waits` accepts
/// wait. The receiver gets each number when its request arrives.
fn held_while(
    waits: impl Fn(usize) -> bool + Send + Sync + 'static,
    answer: impl Fn(usize) -> Answer + Send + Sync + 'static,
) -> (Stub, mpsc::Sender<()>, mpsc::Receiver<usize>) {
    let (release, gate) = mpsc::channel::<()>();
    let (arrive, arrivals) = mpsc::channel::<usize>();
    let (gate, arrive) = (Mutex::new(gate), Mutex::new((arrive, 0)));
    let stub = Stub::start(move |_| {
        let number = {
            let (arrive, count) = &mut *arrive.lock().unwrap();
            *count += 1;
            arrive.send(*count).unwrap();
            *count
        };
        if waits(number) {
            let _ = gate.lock().unwrap().recv();
        }
        answer(number)
    });
    (stub, release, arrivals)
}

#[test]
fn requests_beyond_the_concurrency_limit_get_503() {
    let (subgraph, release, arrivals) = held();
    let config = subgraph.config("traffic_shaping: {router: {concurrency_limit: 1}}");
    let gateway = Gateway::start(&config);
    let mut first = gateway.connect();
    first.begin(&post(NAMES));
    arrivals.recv().unwrap();
    let response = gateway.send(&post(NAMES));
    assert_eq!(
        (response.status, crate::client::code(&response).as_str()),
        (503, "REQUEST_CONCURRENCY_LIMITED")
    );
    release.send(()).unwrap();
    assert_eq!(first.read(false).text(), ANSWER);
}

#[test]
fn a_client_that_sends_its_body_slowly_holds_no_place() {
    let planets = Stub::planets();
    let config = planets.config("traffic_shaping: {router: {concurrency_limit: 1}}");
    let mut gateway = Setup::new(&config).flag("--log=debug").start();
    let mut slow = gateway.connect();
    let (head, body) = (post(NAMES).to_bytes(), NAMES.as_bytes());
    let (begun, rest) = head.split_at(head.len() - body.len() / 2);
    slow.write(begun);
    gateway.wait_for("a request begins");
    for _ in 0..2 {
        let response = gateway.send(&post(NAMES));
        assert_eq!(response.status, 200, "{}", response.text());
    }
    slow.write(rest);
    assert_eq!(slow.read(false).status, 200);
}

#[test]
fn a_request_whose_body_arrives_when_all_places_are_taken_gets_503() {
    let (subgraph, release, arrivals) = held();
    let config = subgraph.config("traffic_shaping: {router: {concurrency_limit: 1}}");
    let mut gateway = Setup::new(&config).flag("--log=debug").start();
    let mut slow = gateway.connect();
    let request = post(NAMES).to_bytes();
    let (begun, rest) = request.split_at(request.len() - 1);
    slow.write(begun);
    gateway.wait_for("a request begins");
    let mut first = gateway.connect();
    first.begin(&post(NAMES));
    arrivals.recv().unwrap();
    slow.write(rest);
    let response = slow.read(false);
    assert_eq!(
        (response.status, crate::client::code(&response).as_str()),
        (503, "REQUEST_CONCURRENCY_LIMITED")
    );
    release.send(()).unwrap();
    assert_eq!(first.read(false).text(), ANSWER);
}

#[test]
fn requests_beyond_the_rate_get_503() {
    let planets = Stub::planets();
    let more = "traffic_shaping: {router: {global_rate_limit: {capacity: 2, interval: 1h}}}";
    let gateway = Gateway::start(&planets.config(more));
    let answers: Vec<u16> = (0..3).map(|_| gateway.send(&post(NAMES)).status).collect();
    assert_eq!(answers, [200, 200, 503]);
}

#[test]
fn fetches_beyond_the_rate_of_a_subgraph_are_errors() {
    let planets = Stub::planets();
    let more = "include_subgraph_errors: {all: true}\ntraffic_shaping: {subgraphs: {locations: {global_rate_limit: {capacity: 1, interval: 1h}}}}";
    let gateway = Gateway::start(&planets.config(more));
    assert_eq!(
        gateway.send(&post(NAMES)).json()["errors"],
        serde_json::Value::Null
    );
    let response = gateway.send(&post(NAMES));
    assert_eq!(
        (response.status, crate::client::code(&response).as_str()),
        (200, "REQUEST_RATE_LIMITED")
    );
    assert_eq!(planets.seen().len(), 1);
}

/// Three clients with one query. Two of them have joined the first.
fn ask_together(gateway: &mut Gateway, arrivals: &mpsc::Receiver<usize>) -> [Connection; 3] {
    let mut connections = [gateway.connect(), gateway.connect(), gateway.connect()];
    for connection in &mut connections {
        connection.begin(&post(NAMES));
    }
    arrivals.recv().unwrap();
    for _ in 1..connections.len() {
        gateway.wait_for("a fetch joins an equal one");
    }
    connections
}

#[test]
fn equal_queries_under_way_are_sent_once() {
    let (subgraph, release, arrivals) = held();
    let config = subgraph.config("traffic_shaping: {all: {deduplicate_query: true}}");
    let mut gateway = Setup::new(&config).flag("--log=debug").start();
    let mut connections = ask_together(&mut gateway, &arrivals);
    release.send(()).unwrap();
    for connection in &mut connections {
        assert_eq!(connection.read(false).text(), ANSWER);
    }
    assert_eq!(subgraph.seen().len(), 1);
}

#[test]
fn an_answer_with_a_cookie_is_not_shared_by_equal_queries() {
    let with_cookie = |number| {
        let headers = format!("content-type: application/json\r\nset-cookie: session={number}\r\n");
        Answer::Full(200, headers, ANSWER.as_bytes().to_vec())
    };
    let (subgraph, release, arrivals) = held_while(|number| number == 1, with_cookie);
    let config = subgraph.config(
        "traffic_shaping: {all: {deduplicate_query: true}}\nheaders: {all: {response: [{propagate: {named: set-cookie}}]}}",
    );
    let mut gateway = Setup::new(&config).flag("--log=debug").start();
    let mut connections = ask_together(&mut gateway, &arrivals);
    release.send(()).unwrap();
    let cookies = connections.iter_mut().map(|connection| {
        let answer = connection.read(false);
        assert_eq!(answer.text(), ANSWER);
        answer.header("set-cookie").unwrap_or("none").to_owned()
    });
    let mut cookies: Vec<String> = cookies.collect();
    cookies.sort();
    assert_eq!(cookies, ["session=1", "session=2", "session=3"]);
    assert_eq!(subgraph.seen().len(), 3);
}

#[test]
fn a_request_that_takes_too_long_gets_504_and_is_counted() {
    let subgraph = Stub::start(|_| Answer::Hang);
    let more = "traffic_shaping: {router: {timeout: 200ms}}\nhealth_check: {readiness: {allowed: 0, interval: {sampling: 1h}}}";
    let gateway = Gateway::start(&subgraph.config(more));
    assert_eq!(gateway.ask_health("/health?ready").status, 200);
    let response = gateway.send(&post(NAMES));
    assert_eq!(
        (response.status, crate::client::code(&response).as_str()),
        (504, "GATEWAY_TIMEOUT")
    );
    let health = gateway.ask_health("/health?ready");
    assert_eq!(
        (health.status, health.text()),
        (503, r#"{"status":"DOWN"}"#)
    );
    assert_eq!(gateway.ask_health("/health").text(), r#"{"status":"UP"}"#);
    let metrics = gateway.ask_health("/metrics");
    let sample = "http_server_requests_total{http_response_status_code=\"504\"} 1\n";
    assert!(metrics.text().contains(sample), "{}", metrics.text());
}

#[test]
fn a_client_that_goes_away_is_counted_as_499_and_its_work_goes_on() {
    let (subgraph, release, arrivals) = held();
    let mut gateway = Setup::new(&subgraph.config(""))
        .flag("--log=request")
        .start();
    let mut connection = gateway.connect();
    connection.begin(&post(NAMES));
    arrivals.recv().unwrap();
    drop(connection);
    let line = gateway.wait_for("\"status\":499");
    assert_eq!(line["path"], "/");
    release.send(()).unwrap();
    let metrics = gateway.ask_health("/metrics");
    let sample = "http_server_requests_total{http_response_status_code=\"499\"} 1\n";
    assert!(metrics.text().contains(sample), "{}", metrics.text());
}

#[test]
fn names_that_clients_choose_are_shortened_in_the_log_and_in_metrics() {
    let planets = Stub::planets();
    let mut gateway = Setup::new(&planets.config(""))
        .flag("--log=request")
        .start();
    let long = "n".repeat(20_000);
    let headers = [
        ("content-type", "application/json"),
        ("apollographql-client-name", long.as_str()),
        ("apollographql-client-version", long.as_str()),
    ];
    let query = format!(r#"{{"query":"query {long} {{ locations {{ name }} }}"}}"#);
    let request = crate::client::Request {
        headers: &headers,
        ..post(&query)
    };
    assert_eq!(gateway.send(&request).status, 200);
    let shown = format!("{}…", "n".repeat(127));
    let line = gateway.wait_for("\"status\":200");
    for key in ["operation", "client_name", "client_version"] {
        assert_eq!(line[key], shown, "{key}");
    }
    let metrics = gateway.ask_health("/metrics");
    let sample = format!(
        "graphql_client_requests_total{{client_name=\"{shown}\",client_version=\"{shown}\"}} 1\n"
    );
    assert!(metrics.text().contains(&sample), "{}", metrics.text());
}

#[test]
fn clients_are_counted_by_the_name_they_say() {
    let planets = Stub::planets();
    let gateway = Gateway::start(&planets.config(""));
    let headers = [
        ("content-type", "application/json"),
        ("apollographql-client-name", "web"),
        ("apollographql-client-version", "7"),
    ];
    let request = crate::client::Request {
        headers: &headers,
        ..post(NAMES)
    };
    gateway.send(&request);
    gateway.send(&request);
    let metrics = gateway.ask_health("/metrics");
    for sample in [
        "graphql_client_requests_total{client_name=\"web\",client_version=\"7\"} 2\n",
        "http_client_requests_total{subgraph_name=\"locations\",succeeded=\"true\"} 2\n",
        "apollo_router_cache_hit_count_total{kind=\"query planner\"} 1\n",
    ] {
        assert!(
            metrics.text().contains(sample),
            "{sample}{}",
            metrics.text()
        );
    }
    // Client names reach subgraphs only through a rule.
    assert_eq!(planets.seen()[0].header("apollographql-client-name"), None);
}

#[test]
fn one_connection_carries_many_requests_side_by_side_over_http2() {
    let planets = Arc::new(Stub::planets());
    let gateway = Gateway::start(&planets.config(""));
    let address = gateway.address.clone();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let bodies = runtime.block_on(async move {
        let stream = tokio::net::TcpStream::connect(&address).await.unwrap();
        let (sender, connection) = hyper::client::conn::http2::handshake(
            hyper_util::rt::TokioExecutor::new(),
            hyper_util::rt::TokioIo::new(stream),
        )
        .await
        .unwrap();
        tokio::spawn(connection);
        let mut answers = Vec::new();
        for _ in 0..5 {
            let request = http::Request::post(format!("http://{address}/"))
                .header("content-type", "application/json")
                .body(http_body_util::Full::new(bytes::Bytes::from(NAMES)))
                .unwrap();
            answers.push(tokio::spawn(sender.clone().send_request(request)));
        }
        let mut bodies = Vec::new();
        for answer in answers {
            use http_body_util::BodyExt as _;
            let body = answer.await.unwrap().unwrap().into_body();
            bodies.push(body.collect().await.unwrap().to_bytes());
        }
        bodies
    });
    for body in bodies {
        assert!(body.starts_with(b"{\"data\":{\"locations\":"), "{body:?}");
    }
}
