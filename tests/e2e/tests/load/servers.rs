//! `weigh load` on servers that misbehave. Each has its outcome, and no socket is left open.

use std::fs;
use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use e2e::{PATIENCE, Run, wait_until, weigh_command};
use serde_json::Value;

/// Largest number of connections that `weigh load` may have open at once.
const CONNECTIONS: usize = 4;

const ANSWER: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// A server that behaves the same on each connection until the test ends.
struct Odd {
    address: String,
    connections: Arc<AtomicU64>,
}

impl Odd {
    fn serving(on_connection: fn(TcpStream) -> Option<()>) -> Odd {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it listens").to_string();
        let connections = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&connections);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                count.fetch_add(1, Ordering::SeqCst);
                thread::spawn(move || on_connection(stream));
            }
        });
        Odd {
            address,
            connections,
        }
    }

    /// Runs `weigh load` on it and counts its sockets. Returns the outcomes and the slowest response in
    /// milliseconds.
    fn load(&self, flags: &[&str]) -> (Value, f64) {
        let mut child = weigh_command()
            .arg("load")
            .arg(format!("http://{}/", self.address))
            .args(["-c", &CONNECTIONS.to_string(), "--format", "json"])
            .args(flags)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("weigh starts");
        let (pid, mut most) = (child.id(), 0);
        wait_until("weigh ends", PATIENCE, || {
            most = most.max(sockets(pid));
            child.try_wait().expect("it can be waited for").is_some()
        });
        assert!(most <= CONNECTIONS, "{most} sockets at once");
        let run = Run::of(child.wait_with_output().expect("it has ended"));
        let result: Value = serde_json::from_str(&run.answer())
            .unwrap_or_else(|error| panic!("{error}\n{}\n{}", run.answer(), run.talk()));
        let variant = &result["summary"]["variants"][0];
        let slowest = variant["metrics"]["latency_us_max"]["value"].as_f64();
        (variant["outcomes"].clone(), slowest.unwrap_or(0.0) / 1e3)
    }

    fn connections(&self) -> u64 {
        self.connections.load(Ordering::SeqCst)
    }
}

/// Number of open sockets of a process. 0 if it has ended.
fn sockets(pid: u32) -> usize {
    let files = fs::read_dir(format!("/proc/{pid}/fd"))
        .into_iter()
        .flatten();
    let links = files
        .flatten()
        .filter_map(|file| fs::read_link(file.path()).ok());
    let of_tcp = |link: &std::path::PathBuf| link.to_string_lossy().starts_with("socket:");
    links.filter(of_tcp).count()
}

/// Reads one request without a body. `None` if the client is gone.
fn request(stream: &TcpStream) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    while line != "\r\n" {
        line.clear();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
    }
    Some(())
}

/// Waits for the client to hang up.
fn until_gone(mut stream: TcpStream) -> Option<()> {
    let _ = stream.read_to_end(&mut Vec::new());
    None
}

#[test]
fn a_server_that_closes_after_each_answer_is_connected_to_anew() {
    let server = Odd::serving(|mut stream| {
        request(&stream)?;
        let head = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok";
        stream.write_all(head.as_bytes()).ok()
    });
    let (outcomes, _) = server.load(&["-n", "400"]);
    assert_eq!(outcomes["passed"], 400, "{outcomes:#}");
    assert_eq!(server.connections(), 400);
}

#[test]
fn a_slow_answer_passes_with_its_time_unless_it_is_slower_than_allowed() {
    let serve = |mut stream: TcpStream| loop {
        request(&stream)?;
        let late = TcpListener::bind("127.0.0.1:0").ok()?;
        // No client connects, so this waits until the timeout without a sleep.
        let _ = rustix::event::poll(
            &mut [rustix::event::PollFd::new(
                &late,
                rustix::event::PollFlags::IN,
            )],
            Some(&rustix::time::Timespec {
                tv_sec: 0,
                tv_nsec: 200_000_000,
            }),
        );
        stream.write_all(ANSWER.as_bytes()).ok()?;
    };
    let (outcomes, slowest_ms) = Odd::serving(serve).load(&["-n", "8"]);
    assert_eq!(outcomes["passed"], 8, "{outcomes:#}");
    assert!(slowest_ms >= 200.0, "{slowest_ms}");
    let (outcomes, _) = Odd::serving(serve).load(&["-n", "8", "--timeout", "50ms"]);
    assert_eq!(outcomes["failed"]["timeout"], 8, "{outcomes:#}");
}

#[test]
fn a_body_longer_than_promised_is_no_http() {
    let server = Odd::serving(|mut stream| {
        request(&stream)?;
        stream
            .write_all(format!("{ANSWER} and more").as_bytes())
            .ok()?;
        until_gone(stream)
    });
    let (outcomes, _) = server.load(&["-n", "40"]);
    assert_eq!(outcomes["failed"]["protocol"], 40, "{outcomes:#}");
    assert_eq!(server.connections(), 40);
}

#[test]
fn a_reset_is_a_reset() {
    let server = Odd::serving(|stream| {
        // Unread data makes the kernel reset the connection.
        let mut byte = [0];
        (&stream).read_exact(&mut byte).ok()
    });
    let (outcomes, _) = server.load(&["-n", "40"]);
    assert_eq!(outcomes["failed"]["reset"], 40, "{outcomes:#}");
    assert_eq!(server.connections(), 40);
}

#[test]
fn a_server_that_never_answers_is_given_up_and_left() {
    let server = Odd::serving(until_gone);
    let (outcomes, _) = server.load(&["-n", "12", "--timeout", "100ms"]);
    assert_eq!(outcomes["failed"]["timeout"], 12, "{outcomes:#}");
    assert_eq!(server.connections(), 12);
    // In an open loop, a slot without a free connection counts as missed.
    let flags = ["-r", "100", "-z", "200ms", "--timeout", "100ms"];
    let (outcomes, _) = Odd::serving(until_gone).load(&flags);
    let count = |value: &Value| value.as_u64().expect("a count");
    let timeouts = count(&outcomes["failed"]["timeout"]);
    assert_eq!(timeouts + count(&outcomes["missed"]), 20, "{outcomes:#}");
    assert!(timeouts >= 4, "{outcomes:#}");
}

#[test]
fn a_connection_is_patient_only_as_long_as_it_may() {
    // The listen queue accepts connections, but no thread serves them.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let server = Odd {
        address: listener.local_addr().expect("it listens").to_string(),
        connections: Arc::default(),
    };
    let (outcomes, _) = server.load(&["-n", "4", "--timeout", "100ms"]);
    assert_eq!(outcomes["failed"]["timeout"], 4, "{outcomes:#}");
    drop(listener);
}
