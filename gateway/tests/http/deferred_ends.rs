//! Tests the ends of responses in parts: limits of time, stops, reloads, and clients that leave.

use std::fs;
use std::io::Read as _;
use std::net::TcpListener;
use std::sync::mpsc::channel;
use std::time::Duration;

use rustix::process::Signal;

use crate::client::post;
use crate::connections::metric_reaches;
use crate::deferred::{BY_ID, BY_PATH, LOCATIONS, RATINGS, REVIEWS, Stream, slow_reviews};
use crate::gateway::{Gateway, Setup};
use crate::stub::{Answer, Stub, json as answer_json};

#[test]
fn the_time_of_a_request_is_that_of_all_its_parts() {
    // The first part takes most of the time.
    let stub = Stub::start(|seen| match seen.target.as_str() {
        "/l" => {
            let (_keep, wait) = channel::<()>();
            let _ = wait.recv_timeout(Duration::from_millis(1_500));
            answer_json(LOCATIONS)
        }
        _ => Answer::Hang,
    });
    let config = "traffic_shaping: {router: {timeout: 2s}, all: {timeout: 1h}}\n";
    let gateway = Gateway::start(&stub.config(config));
    for accept in [BY_PATH, BY_ID] {
        let start = test_client::now();
        let parts = Stream::begin(&gateway, accept, RATINGS).rest();
        let took = start.elapsed();
        assert!(took > Duration::from_millis(1_900), "{took:?}");
        assert!(took < Duration::from_millis(3_200), "{took:?}");
        assert_eq!(parts.len(), 2);
        assert_eq!(parts[0]["data"]["locations"][1]["name"], "B");
        let told = if accept == BY_ID {
            "completed"
        } else {
            "incremental"
        };
        let places = parts[1][told].as_array().unwrap();
        assert_eq!(places.len(), 2);
        for place in places {
            assert_eq!(place["errors"][0]["extensions"]["code"], "GATEWAY_TIMEOUT");
        }
    }
}

#[test]
fn a_first_part_that_is_too_late_is_a_timeout() {
    let planets = Stub::planets();
    let coprocessor = Stub::start(|_| Answer::Hang);
    let config = format!(
        "traffic_shaping: {{router: {{timeout: 500ms}}}}\ncoprocessor: {{url: '{}', timeout: 1h, supergraph: {{response: {{body: true}}}}}}\n",
        coprocessor.url
    );
    let gateway = Gateway::start(&planets.config(&config));
    let stream = Stream::begin(&gateway, BY_PATH, RATINGS);
    assert!(stream.head.starts_with("HTTP/1.1 504"), "{}", stream.head);
    assert!(stream.length().is_some(), "{}", stream.head);
}

#[test]
fn a_client_that_never_reads_its_parts_holds_nothing_for_long() {
    let long = "x".repeat(16 << 20);
    let stub = Stub::start(move |seen| match seen.target.as_str() {
        "/l" => answer_json(LOCATIONS),
        _ => answer_json(format!(
            r#"{{"data":{{"_entities":[{{"reviewsForLocation":[{{"comment":"{long}"}}]}},{{"reviewsForLocation":[]}}]}}}}"#
        )),
    });
    let config = "server: {http: {write_timeout: 500ms}}\ntraffic_shaping: {router: {concurrency_limit: 1, timeout: 1h}}\n";
    let gateway = Gateway::start(&stub.config(config));
    let query = "{ locations { id ... @defer { reviewsForLocation { comment } } } }";
    let mut stream = Stream::begin(&gateway, BY_PATH, query);
    stream.part();
    metric_reaches(
        &gateway,
        "http_server_connections_closed_total{cause=\"write_timeout\"}",
        1,
    );
    let other = post(r#"{"query":"{ locations { id } }"}"#);
    assert_eq!(gateway.send(&other).status, 200);
}

#[test]
fn parts_under_way_are_delivered_while_it_stops() {
    let slow = slow_reviews(answer_json(REVIEWS));
    let mut gateway = Gateway::start(&slow.stub.config(""));
    let mut stream = Stream::begin(&gateway, BY_PATH, RATINGS);
    stream.part();
    slow.asked.recv().unwrap();
    gateway.signal(Signal::TERM);
    gateway.wait_for("stopping");
    slow.release.send(()).unwrap();
    let (part, is_last) = stream.part();
    assert!(is_last);
    assert_eq!(part["incremental"][1]["data"]["overallRating"], 5);
    assert_eq!(stream.chunk(), None);
    let (status, log) = gateway.wait();
    assert!(status.success(), "{log}");
}

#[test]
fn an_answer_that_takes_longer_than_the_stop_says_so() {
    let slow = slow_reviews(Answer::Hang);
    let config = "supergraph: {connection_shutdown_timeout: 2s}\ntraffic_shaping: {all: {timeout: 1h}, router: {timeout: 1h}}\n";
    let gateway = Gateway::start(&slow.stub.config(config));
    let mut stream = Stream::begin(&gateway, BY_ID, RATINGS);
    stream.part();
    slow.asked.recv().unwrap();
    slow.release.send(()).unwrap();
    gateway.signal(Signal::TERM);
    let parts = stream.rest();
    let code = &parts[0]["completed"][1]["errors"][0]["extensions"]["code"];
    assert_eq!(code, "GATEWAY_STOPPING");
    let (status, log) = gateway.wait();
    assert!(status.success(), "{log}");
}

#[test]
fn a_reload_leaves_parts_under_way_alone() {
    let slow = slow_reviews(answer_json(REVIEWS));
    let old = "rhai: {scripts: rhai}";
    let script = "fn supergraph_service(service) { service.map_response(|response| { response.body.extensions = #{by: \"old\"}; }); }";
    let mut gateway = Setup::new(&slow.stub.config(old))
        .file("rhai/main.rhai", script)
        .start();
    let mut stream = Stream::begin(&gateway, BY_ID, RATINGS);
    assert_eq!(stream.part().0["extensions"]["by"], "old");
    slow.asked.recv().unwrap();
    fs::write(gateway.path("router.yaml"), slow.stub.config("")).unwrap();
    gateway.signal(Signal::HUP);
    gateway.wait_for("reloaded: SIGHUP");
    slow.release.send(()).unwrap();
    let (part, is_last) = stream.part();
    assert!(is_last);
    // The script of the old generation runs. The gateway keeps the members that connect the parts.
    assert_eq!(part["extensions"]["by"], "old");
    assert_eq!(part["incremental"][0]["data"]["overallRating"], 4);
    assert_eq!(part["completed"].as_array().unwrap().len(), 2);
    slow.release.send(()).unwrap();
    let parts = Stream::begin(&gateway, BY_ID, RATINGS).rest();
    assert!(parts.iter().all(|part| part.get("extensions").is_none()));
}

#[test]
fn a_client_that_leaves_ends_what_is_deferred() {
    let reviews = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", reviews.local_addr().unwrap());
    let planets = Stub::planets();
    let config = format!(
        "override_subgraph_url: {{locations: '{}/l', reviews: '{url}/r'}}\n",
        planets.url
    );
    let gateway = Gateway::start(&config);
    let mut stream = Stream::begin(&gateway, BY_PATH, RATINGS);
    stream.part();
    let (mut socket, _) = reviews.accept().unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    let mut buffer = [0; 4096];
    assert!(socket.read(&mut buffer).unwrap() > 0);
    drop(stream);
    // The gateway closes the connection, because the response is useless now.
    while socket.read(&mut buffer).unwrap() > 0 {}
}
