//! Tests the limits for connections: their number, and the time that a client may let them wait.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use test_client::{Connection, Process, now};

use crate::http::{get, post};
use crate::server::{PROGRAMS, start, start_with_descriptors};

const QUERY: &str = r#"{"query":"{ total }"}"#;

/// Another client. The tests themselves connect from 127.0.0.1.
const STRANGER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// Longer than anything in these tests that does not hang, and shorter than the unchanged timeouts.
const PATIENCE: Duration = Duration::from_secs(30);

fn count(server: &Process, series: &str) -> u64 {
    let page = server.send(&get("/metrics")).body;
    let mut lines = page.lines();
    let line = lines.find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    let line = line.unwrap_or_else(|| panic!("no {series} in\n{page}"));
    line.parse().unwrap()
}

fn wait_for(server: &Process, series: &str, least: u64) {
    let start = now();
    while count(server, series) < least {
        assert!(start.elapsed() < PATIENCE, "{}", count(server, series));
    }
}

/// Waits until at most `most` connections are open. The server notices some time after the client that the
/// client has left.
fn wait_for_open(server: &Process, most: u64) {
    let start = now();
    loop {
        let open = count(server, "http_server_connections");
        if open <= most {
            return;
        }
        assert!(start.elapsed() < PATIENCE, "{open} are open");
    }
}

fn closed(cause: &str) -> String {
    format!("http_server_connections_closed_total{{cause=\"{cause}\"}}")
}

/// True if the server closes the connection soon, and not because of another timeout.
fn is_hung_up_soon(connection: &mut Connection) -> bool {
    let start = now();
    connection.is_hung_up() && start.elapsed() < PATIENCE
}

#[test]
fn one_address_cannot_take_all_connections() {
    for program in PROGRAMS {
        let server = start(program, &["--max-connections=20", "--workers=2"]);
        let _open: Vec<Connection> = (0..60).map(|_| server.connect_from(STRANGER)).collect();
        for _ in 0..20 {
            assert_eq!(server.send(&post(QUERY)).status, 200);
        }
        let refused = r#"http_server_connections_refused_total{limit="address"}"#;
        wait_for(&server, refused, 50);
        // The stranger's half of the places, and this connection.
        wait_for_open(&server, 11);
    }
}

#[test]
fn a_client_with_many_connections_is_served_in_turn_with_others() {
    const CONNECTIONS: usize = 20;
    const EACH: usize = 4;
    let large = post(r#"{"query":"{ items(count: 10000) { id name } }"}"#).to_bytes();
    let served = r#"http_requests_total{status="200"}"#;
    for program in PROGRAMS {
        let server = start(program, &[]);
        let mut many: Vec<_> = (0..CONNECTIONS)
            .map(|_| server.connect_from(STRANGER))
            .collect();
        for connection in &mut many {
            connection.write(&large.repeat(EACH));
        }
        assert_eq!(server.send(&post(QUERY)).status, 200);
        let meanwhile = count(&server, served);
        // Both requests open a new connection, which takes several steps. Without turns, nearly all other
        // requests would be served first.
        assert!(meanwhile < 40, "{program}: {meanwhile} were served before");
        // The other requests had arrived.
        wait_for(&server, served, 20);
    }
}

#[test]
fn a_crowd_that_comes_again_and_again_keeps_nobody_waiting() {
    // More than the server has descriptors. If too many wait to be accepted, the system drops a client's
    // first packet, and the client tries again after a whole second.
    const STRANGERS: usize = 6;
    const EACH: usize = 100;
    const NOTICED: Duration = Duration::from_millis(900);
    for program in PROGRAMS {
        let server = start_with_descriptors(program, 512);
        let is_over = AtomicBool::new(false);
        let slowest = thread::scope(|scope| {
            for _ in 0..STRANGERS {
                scope.spawn(|| {
                    while !is_over.load(Ordering::Relaxed) {
                        let crowd = (0..EACH).map(|_| server.connect_from(STRANGER));
                        drop(crowd.collect::<Vec<_>>());
                    }
                });
            }
            let slowest = (0..50).map(|_| {
                let start = now();
                assert_eq!(server.send(&post(QUERY)).status, 200);
                let took = start.elapsed();
                pause(Duration::from_millis(20));
                took
            });
            let slowest = slowest.max();
            is_over.store(true, Ordering::Relaxed);
            slowest
        });
        assert!(slowest < Some(NOTICED), "{program}: {slowest:?}");
        let refused = r#"http_server_connections_refused_total{limit="address"}"#;
        assert!(count(&server, refused) > 0, "there was no crowd");
    }
}

#[test]
fn the_limit_of_an_address_is_its_own_setting() {
    for program in PROGRAMS {
        let server = start(program, &["--max-connections-per-address=1"]);
        let mut first = server.connect_from(STRANGER);
        assert_eq!(first.send(&post(QUERY)).status, 200);
        assert!(server.connect_from(STRANGER).is_hung_up());
        drop(first);
        // The place is free as soon as the server has noticed the end.
        let start = now();
        loop {
            let mut next = server.connect_from(STRANGER);
            next.begin(&post(QUERY));
            if next
                .try_read(false)
                .is_ok_and(|answer| answer.status == 200)
            {
                break;
            }
            assert!(start.elapsed() < PATIENCE);
        }
    }
}

#[test]
fn silent_clients_do_not_keep_others_out() {
    for program in PROGRAMS {
        let server = start(program, &["--max-connections=32"]);
        let mut silent = Vec::new();
        for _ in 0..30 {
            silent.extend((0..10).map(|_| server.connect()));
            assert_eq!(server.send(&post(QUERY)).status, 200);
        }
        assert!(count(&server, &closed("made_room")) > 0);
    }
}

#[test]
fn a_request_under_way_makes_no_room() {
    for program in PROGRAMS {
        let server = start(program, &["--max-connections=16"]);
        let head = "POST /graphql HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\n";
        let mut busy: Vec<Connection> = (0..8).map(|_| server.connect()).collect();
        for connection in &mut busy {
            connection.write_text(&format!(
                "{head}Expect: 100-continue\r\nContent-Length: {}\r\n\r\n",
                QUERY.len()
            ));
            assert_eq!(connection.read(false).status, 100);
        }
        let _silent: Vec<Connection> = (0..50).map(|_| server.connect()).collect();
        assert_eq!(server.send(&get("/health")).status, 200);
        for connection in &mut busy {
            connection.write_text(QUERY);
            assert_eq!(connection.read(false).status, 200);
        }
    }
}

#[test]
fn a_client_that_sends_no_head_is_hung_up_on() {
    for program in PROGRAMS {
        let server = start(program, &["--request-timeout=1s"]);
        for begun in ["", "G", "POST /graphql HTTP/1.1\r\nHost: t\r\n"] {
            let mut connection = server.connect();
            connection.write_text(begun);
            assert!(is_hung_up_soon(&mut connection), "{begun:?}");
        }
        // A second head has the same timeout as the first.
        let mut connection = server.connect();
        assert_eq!(connection.send(&post(QUERY)).status, 200);
        connection.write_text("POST /gra");
        assert!(is_hung_up_soon(&mut connection));
    }
}

#[test]
fn a_client_that_asks_nothing_more_is_hung_up_on() {
    for program in PROGRAMS {
        let server = start(program, &["--idle-timeout=500ms"]);
        let mut connection = server.connect();
        assert_eq!(connection.send(&post(QUERY)).status, 200);
        assert!(is_hung_up_soon(&mut connection));
        assert_eq!(count(&server, &closed("idle_timeout")), 1);
    }
}

#[test]
fn a_client_that_does_not_read_is_hung_up_on() {
    let large = r#"{"query":"{ items(count: 10000) { id name } }"}"#;
    for program in PROGRAMS {
        let server = start(program, &["--write-timeout=1s"]);
        let mut connection = server.connect();
        for _ in 0..20 {
            connection.begin(&post(large));
        }
        wait_for(&server, &closed("write_timeout"), 1);
        // The remaining connection is the request for the page itself.
        wait_for_one(&server);
    }
}

#[test]
fn a_client_that_reads_slowly_gets_all_of_its_answer() {
    let large = r#"{"query":"{ items(count: 10000) { id name quantity inStock note } }"}"#;
    for program in PROGRAMS {
        let server = start(program, &["--write-timeout=1s"]);
        let mut stream = TcpStream::connect(&server.address).unwrap();
        stream.write_all(&post(large).to_bytes()).unwrap();
        let (mut answer, mut piece) = (Vec::new(), vec![0; 16 << 10]);
        let start = now();
        while !answer.ends_with(b"]}}") {
            let length = stream.read(&mut piece).unwrap();
            assert!(length > 0, "closed after {} bytes", answer.len());
            answer.extend_from_slice(&piece[..length]);
            pause(Duration::from_millis(50));
        }
        assert!(start.elapsed() > Duration::from_millis(1_500));
        assert_eq!(count(&server, &closed("write_timeout")), 0);
    }
}

/// Waits for time to pass, in tests about time.
fn pause(time: Duration) {
    let (_sender, receiver) = mpsc::channel::<()>();
    let _ = receiver.recv_timeout(time);
}

fn wait_for_one(server: &Process) {
    let start = now();
    while count(server, "http_server_connections") > 1 {
        assert!(start.elapsed() < PATIENCE, "a place is not free again");
    }
}
