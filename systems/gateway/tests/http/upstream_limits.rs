//! How many connections the gateway opens to services, and who is served when one of them is slow.

use std::sync::{Mutex, mpsc};
use std::time::Duration;

use crate::client::{code, post};
use crate::gateway::{Gateway, Setup};
use crate::stub::{Stub, json};

const NAMES: &str = r#"{"query":"{ locations { id name } }"}"#;
const ANSWER: &str = r#"{"data":{"locations":[{"id":"1","name":"A"}]}}"#;
const RATINGS: &str = r#"{"query":"{ locations { id overallRating } }"}"#;
const RATED: &str = r#"{"data":{"locations":[{"id":"1","overallRating":4.0}]}}"#;
const PATIENCE: Duration = Duration::from_secs(20);

/// A service whose answers wait until the sender is dropped.
fn held(answer: &'static str) -> (Stub, mpsc::Sender<()>) {
    let (release, gate) = mpsc::channel::<()>();
    let gate = Mutex::new(gate);
    let stub = Stub::start(move |_| {
        let _ = gate.lock().unwrap().recv();
        json(answer)
    });
    (stub, release)
}

fn config(locations: &Stub, reviews: &Stub, more: &str) -> String {
    format!(
        "include_subgraph_errors: {{all: true}}\n\
         override_subgraph_url: {{locations: {}, reviews: {}}}\n{more}",
        locations.url, reviews.url
    )
}

fn metric(gateway: &Gateway, name: &str) -> u64 {
    let page = gateway.ask_health("/metrics");
    let line = page.text().lines().find_map(|it| it.strip_prefix(name));
    let line = line.unwrap_or_else(|| panic!("no {name} in {}", page.text()));
    line.trim().parse().unwrap()
}

fn wait_for(gateway: &Gateway, name: &str, wanted: u64) {
    let start = test_client::now();
    while metric(gateway, name) != wanted {
        assert!(
            start.elapsed() < PATIENCE,
            "{name}: {}",
            metric(gateway, name)
        );
    }
}

/// Asks a slow subgraph from eight clients: some requests are sent, two wait, the others fail at once.
fn crowd(more: &str, sent: usize) {
    let (slow, release) = held(r#"{"data":{"_entities":[{"overallRating":4.0}]}}"#);
    let quick = Stub::start(|_| {
        json(r#"{"data":{"locations":[{"__typename":"Location","id":"1","name":"A"}]}}"#)
    });
    let gateway = Gateway::start(&config(&quick, &slow, more));
    let mut clients: Vec<_> = (0..8).map(|_| gateway.connect()).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        client.begin(&post(RATINGS));
        // One after the other, as the first of its fetches goes to another subgraph.
        let start = test_client::now();
        let known = |name| usize::try_from(metric(&gateway, name)).unwrap();
        while slow.seen().len()
            + known("http_client_requests_waiting ")
            + known("http_client_requests_refused_total ")
            <= number
        {
            assert!(start.elapsed() < PATIENCE);
        }
    }
    let refused = 8 - 2 - sent;
    wait_for(
        &gateway,
        "http_client_requests_refused_total ",
        refused as u64,
    );
    wait_for(&gateway, "http_client_requests_waiting ", 2);
    // Others are served meanwhile.
    assert_eq!(gateway.send(&post(NAMES)).text(), ANSWER);
    assert_eq!(slow.seen().len(), sent);
    drop(release);
    let answers: Vec<_> = clients.iter_mut().map(|it| it.read(false)).collect();
    let others: Vec<_> = answers.iter().filter(|it| it.text() != RATED).collect();
    assert_eq!(others.len(), refused);
    for answer in others {
        assert_eq!(
            (answer.status, code(answer).as_str()),
            (200, "REQUEST_CONCURRENCY_LIMITED")
        );
        let body = answer.json();
        assert_eq!(
            body["errors"][0]["message"],
            "too many requests wait for 'reviews'"
        );
        // What other subgraphs know is there.
        assert_eq!(body["data"]["locations"][0]["id"], "1");
    }
    assert_eq!(slow.seen().len(), sent + 2);
}

#[test]
fn a_slow_subgraph_gets_so_many_connections_and_no_more() {
    crowd(
        "limits: {max_upstream_connections_per_origin: 3, max_upstream_waiting: 2}",
        3,
    );
}

#[test]
fn a_subgraph_may_have_a_limit_of_its_own() {
    crowd(
        "limits: {max_upstream_waiting: 2}\n\
         traffic_shaping: {subgraphs: {reviews: {max_connections: 1}}}",
        1,
    );
}

#[test]
fn clients_cannot_use_up_the_descriptors_by_asking_a_slow_subgraph() {
    let (slow, release) = held(ANSWER);
    let gateway = Setup::new(&config(&slow, &slow, ""))
        .descriptors(128)
        .start();
    // As many as clients may be, and each needs a connection to the subgraph.
    let mut clients: Vec<_> = (0..50).map(|_| gateway.connect()).collect();
    for client in &mut clients {
        client.begin(&post(NAMES));
    }
    // Three eighths of 128 are 48 in all, and half of these to one address.
    wait_for(&gateway, "http_client_requests_waiting ", 50 - 24);
    // A request has its place before it is sent: the subgraph may see it later.
    let start = test_client::now();
    while slow.seen().len() < 24 {
        assert!(start.elapsed() < PATIENCE, "{} of 24", slow.seen().len());
    }
    assert_eq!(metric(&gateway, "http_client_requests_waiting "), 50 - 24);
    assert_eq!(slow.seen().len(), 24);
    drop(release);
    for client in &mut clients {
        assert_eq!(client.read(false).text(), ANSWER);
    }
}

#[test]
fn requests_beyond_what_may_wait_for_a_coprocessor_get_503() {
    let planets = Stub::planets();
    let (slow, release) = held("{}");
    let more = format!(
        "limits: {{max_upstream_connections_per_origin: 1, max_upstream_waiting: 1}}\n\
         coprocessor: {{url: {}, router: {{request: {{headers: true}}}}}}",
        slow.url
    );
    let gateway = Gateway::start(&planets.config(&more));
    let mut clients = [gateway.connect(), gateway.connect()];
    for client in &mut clients {
        client.begin(&post(NAMES));
    }
    wait_for(&gateway, "http_client_requests_waiting ", 1);
    let answer = gateway.send(&post(NAMES));
    assert_eq!(
        (answer.status, code(&answer).as_str()),
        (503, "REQUEST_CONCURRENCY_LIMITED")
    );
    drop(release);
    for client in &mut clients {
        // It has answered nothing that could be used, but it was asked.
        assert_eq!(client.read(false).status, 500);
    }
}
