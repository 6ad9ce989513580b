//! Tests clients that hold idle connections, do not read responses, or cancel early.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use crate::client::{Connection, Response, post};
use crate::gateway::{Gateway, Setup};
use crate::stub::{Answer, Stub, json};

const NAMES: &str = r#"{"query":"{ locations { id name } }"}"#;
/// More time than any step here takes, unless it hangs.
const PATIENCE: Duration = Duration::from_secs(20);

fn address(gateway: &Gateway) -> String {
    gateway.client().address().to_owned()
}

fn silent(gateway: &Gateway, count: usize) -> Vec<TcpStream> {
    let address = address(gateway);
    let open = (0..count).map(|_| TcpStream::connect(&address));
    open.collect::<Result<_, _>>().unwrap()
}

/// The response on a new connection. `None` if the gateway refuses the connection.
fn try_ask(gateway: &Gateway) -> Option<Response> {
    let mut connection = Connection::try_open(&address(gateway)).ok()?;
    // The gateway may close a refused connection before the request is written. This is not an error yet.
    connection.begin(&post(NAMES));
    connection.try_read(false).ok()
}

/// Waits until a metric of the gateway is at least `least`.
pub(crate) fn metric_reaches(gateway: &Gateway, series: &str, least: u64) {
    metric_is(gateway, series, |count| count >= least);
}

/// Waits until a metric of the gateway is at most `most`.
pub(crate) fn metric_falls_to(gateway: &Gateway, series: &str, most: u64) {
    metric_is(gateway, series, |count| count <= most);
}

fn metric_is(gateway: &Gateway, series: &str, wanted: impl Fn(u64) -> bool) {
    let end = test_client::now() + PATIENCE;
    loop {
        let text = gateway.ask_health("/metrics").text().to_owned();
        let line = text.lines().find_map(|line| line.strip_prefix(series));
        let count = line.map_or(0, |count| count.trim().parse().unwrap());
        if wanted(count) {
            return;
        }
        assert!(test_client::now() < end, "{series} is {count} in\n{text}");
        // Not a busy loop, because it would take processor time from the gateway.
        wait(Duration::from_millis(20));
    }
}

fn wait(time: Duration) {
    let (_sender, never) = std::sync::mpsc::channel::<()>();
    let _ = never.recv_timeout(time);
}

#[test]
fn silent_sockets_keep_nobody_out_by_default() {
    let planets = Stub::planets();
    let gateway = Setup::new(&planets.config("")).descriptors(256).start();
    let open = silent(&gateway, 300);
    for _ in 0..10 {
        assert_eq!(try_ask(&gateway).unwrap().status, 200);
    }
    metric_reaches(
        &gateway,
        "http_server_connections_closed_total{cause=\"made_room\"}",
        1,
    );
    drop(open);
}

#[test]
fn a_process_without_descriptors_gets_some_back() {
    let planets = Stub::planets();
    // More connections than file descriptors, so that `accept` fails.
    let config = planets.config("limits: {max_connections: 10000}");
    let mut gateway = Setup::new(&config).descriptors(128).start();
    let _open = silent(&gateway, 200);
    gateway.wait_for("a connection cannot be accepted");
    let end = test_client::now() + PATIENCE;
    let is_served = |answer: Option<Response>| {
        answer.is_some_and(|it| it.status == 200 && it.json()["errors"].is_null())
    };
    while !is_served(try_ask(&gateway)) {
        assert!(test_client::now() < end, "still refused");
    }
}

#[test]
fn health_answers_while_requests_take_all_places() {
    let subgraph = Stub::start(|_| Answer::Hang);
    let gateway = Gateway::start(&subgraph.config("limits: {max_connections: 2}"));
    let mut busy = Vec::new();
    for _ in 0..2 {
        let mut connection = gateway.connect();
        connection.begin(&post(NAMES));
        busy.push(connection);
        while subgraph.seen().len() < busy.len() {
            std::thread::yield_now();
        }
    }
    metric_reaches(&gateway, "http_server_connections ", 2);
    // A connection with a running request is not closed to make room.
    assert!(try_ask(&gateway).is_none());
    metric_reaches(
        &gateway,
        "http_server_connections_refused_total{limit=\"total\"}",
        1,
    );
    assert_eq!(gateway.ask_health("/health").status, 200);
}

#[test]
fn a_client_that_never_reads_is_hung_up_on() {
    let name = "x".repeat(16 << 20);
    let subgraph = Stub::start(move |_| {
        json(format!(
            r#"{{"data":{{"locations":[{{"id":"1","name":"{name}"}}]}}}}"#
        ))
    });
    let gateway = Gateway::start(&subgraph.config("server: {http: {write_timeout: 500ms}}"));
    let mut unread: Vec<Connection> = (0..3).map(|_| gateway.connect()).collect();
    for connection in &mut unread {
        connection.begin(&post(NAMES));
    }
    metric_reaches(
        &gateway,
        "http_server_connections_closed_total{cause=\"write_timeout\"}",
        3,
    );
}

#[test]
fn a_client_that_says_nothing_or_no_more_is_hung_up_on() {
    let planets = Stub::planets();
    let times = "server: {http: {header_read_timeout: 300ms, idle_timeout: 600ms}}";
    let gateway = Gateway::start(&planets.config(times));
    let mut said_nothing = gateway.connect();
    let mut half_a_preface = gateway.connect();
    half_a_preface.write(b"PRI * HTTP/2.0");
    let mut idle = gateway.connect();
    assert_eq!(idle.send(&post(NAMES)).status, 200);
    for connection in [&mut said_nothing, &mut half_a_preface, &mut idle] {
        assert!(connection.is_closed());
    }
    metric_reaches(
        &gateway,
        "http_server_connections_closed_total{cause=\"head_timeout\"}",
        2,
    );
    metric_reaches(
        &gateway,
        "http_server_connections_closed_total{cause=\"idle_timeout\"}",
        1,
    );
}

#[test]
fn limits_of_connections_change_with_a_reload() {
    let planets = Stub::planets();
    let mut gateway = Setup::new(&planets.config("")).start();
    let config = planets.config("server: {http: {idle_timeout: 300ms}}");
    std::fs::write(gateway.path("router.yaml"), config).unwrap();
    let mut idle = gateway.connect();
    assert_eq!(idle.send(&post(NAMES)).status, 200);
    gateway.signal(rustix::process::Signal::HUP);
    gateway.wait_for("reloaded: SIGHUP");
    assert!(idle.is_closed());
}

#[test]
fn a_client_that_leaves_keeps_its_place_until_the_work_for_it_ends() {
    let subgraph = Stub::start(|_| Answer::Hang);
    let more = "supergraph: {early_cancel: false}\nlimits: {max_connections: 8}";
    let gateway = Gateway::start(&subgraph.config(more));
    for _ in 0..40 {
        let before = subgraph.seen().len();
        if let Ok(mut connection) = Connection::try_open(&address(&gateway)) {
            connection.begin(&post(NAMES));
            // A client that leaves before the gateway reads its request causes no work. After the limit, no
            // further request reaches the subgraph.
            let end = test_client::now() + Duration::from_millis(100);
            while subgraph.seen().len() == before && test_client::now() < end {
                wait(Duration::from_millis(1));
            }
        }
    }
    metric_reaches(
        &gateway,
        "http_server_connections_refused_total{limit=\"total\"}",
        20,
    );
    assert!(subgraph.seen().len() <= 8, "{}", subgraph.seen().len());
}

/// HTTP/2 frames as bytes, so that a test can send frames that a library refuses to send.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut frame = length[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// A POST of `NAMES` as a stream, with uncompressed headers.
fn stream_of(stream: u32) -> Vec<u8> {
    let mut block = vec![0x83, 0x86, 0x84];
    for (name, value) in [(":authority", "t"), ("content-type", "application/json")] {
        block.extend([0x00, u8::try_from(name.len()).unwrap()]);
        block.extend(name.as_bytes());
        block.push(u8::try_from(value.len()).unwrap());
        block.extend(value.as_bytes());
    }
    let mut bytes = frame(1, 4, stream, &block);
    bytes.extend(frame(0, 1, stream, NAMES.as_bytes()));
    bytes
}

/// An HTTP/2 client that has sent only its preface and settings.
fn http2(gateway: &Gateway) -> TcpStream {
    let mut client = TcpStream::connect(address(gateway)).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    let settings = frame(4, 0, 0, &[]);
    client.write_all(&[preface, settings].concat()).unwrap();
    client
}

#[test]
fn a_client_of_http2_that_gives_no_sign_of_life_is_hung_up_on() {
    let subgraph = Stub::start(|_| Answer::Hang);
    let times = "server: {http: {http2_keep_alive_interval: 200ms, http2_keep_alive_timeout: 300ms}}\ntraffic_shaping: {router: {timeout: 1h}, all: {timeout: 1h}}\nsupergraph: {early_cancel: true}";
    let gateway = Gateway::start(&subgraph.config(times));
    let mut client = http2(&gateway);
    client.write_all(&stream_of(1)).unwrap();
    // The client reads pings and never answers them. A reset also counts as the end.
    let mut said = Vec::new();
    let end = client.read_to_end(&mut said);
    let is_open = matches!(
        &end,
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock
            || error.kind() == std::io::ErrorKind::TimedOut
    );
    assert!(!is_open, "still open: {end:?}");
    // The missing pong ended the connection, because the request had reached the subgraph.
    assert_eq!(subgraph.seen().len(), 1);
    let is_ping = |window: &[u8]| window == [0, 0, 8, 6, 0];
    assert!(said.windows(5).any(is_ping), "no ping in {said:?}");
    metric_falls_to(&gateway, "http_server_connections ", 0);
}

#[test]
fn cancelled_requests_do_not_multiply() {
    let subgraph = Stub::start(|_| Answer::Hang);
    let gateway = Gateway::start(&subgraph.config("supergraph: {early_cancel: false}"));
    let mut client = http2(&gateway);
    for number in 0..600 {
        let stream = 2 * number + 1;
        let sent = client.write_all(&stream_of(stream));
        // Time for the gateway to send its own request, before the client cancels.
        let before = subgraph.seen().len();
        let end = test_client::now() + Duration::from_millis(20);
        while subgraph.seen().len() == before && test_client::now() < end {
            std::thread::yield_now();
        }
        let cancelled = client.write_all(&frame(3, 0, stream, &8_u32.to_be_bytes()));
        if sent.and(cancelled).is_err() {
            // The gateway has closed the connection.
            break;
        }
    }
    // The maximum of concurrent requests on one connection. Without this limit, all would reach the subgraph.
    let seen = subgraph.seen().len();
    assert!(
        (50..=100).contains(&seen),
        "{seen} requests reached the subgraph"
    );
    // Other clients are served meanwhile.
    assert_eq!(gateway.ask_health("/health").status, 200);
}
