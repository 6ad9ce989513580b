//! HTTP/3 with Caddy, which has another library for QUIC.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use load::null::{Behavior, NullStream, Pace, serve};
use load::{
    Address, BodyRule, EventCheck, Framing, Protocol, Resumption, StatusRule, StreamEnd,
    StreamRule, Target, Trust, Version, exchange, reach,
};

use crate::modern::Identity;
use crate::server::PATIENCE;
use crate::{closed, get, job, measure, open};

/// Tries to reach Caddy, which are 10 seconds or more.
const TRIES_MAX: u32 = 100;

/// Bytes of the file that Caddy serves.
const FILE_BYTES: usize = 3_000_000;

/// Caddy before a null server, until it is dropped.
struct Caddy {
    process: Child,
    target: Target,
    _folder: tempfile::TempDir,
}

impl Drop for Caddy {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Caddy {
    fn start(upstream: SocketAddr) -> Caddy {
        let folder = tempfile::tempdir().unwrap();
        let own = |name: &str| folder.path().join(name);
        let identity = Identity::new();
        fs::write(own("cert.pem"), &identity.certificate).unwrap();
        fs::write(own("key.pem"), &identity.key).unwrap();
        fs::write(own("file"), vec![b'f'; FILE_BYTES]).unwrap();
        // Free for TCP, and almost certainly for UDP.
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let place = folder.path().display();
        let config = format!(
            "{{\n admin off\n auto_https disable_redirects\n storage file_system {place}/storage\n}}\n\
             https://server.test:{port} {{\n bind 127.0.0.1\n tls {place}/cert.pem {place}/key.pem\n \
             handle /hello {{\n  respond hello\n }}\n \
             handle /file {{\n  root * {place}\n  file_server\n }}\n \
             handle /none {{\n  respond 404\n }}\n \
             handle {{\n  reverse_proxy {upstream} {{\n   flush_interval -1\n  }}\n }}\n}}\n",
            port = address.port(),
        );
        fs::write(own("Caddyfile"), config).unwrap();
        let process = Command::new("caddy")
            .args(["run", "--adapter", "caddyfile", "--config"])
            .arg(own("Caddyfile"))
            .env("HOME", folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let target = Target {
            address: Address::Tcp(address),
            // Caddy selects a certificate by name.
            host: format!("server.test:{}", address.port()),
            protocol: Protocol {
                version: Version::Http3 { streams: 8 },
                tls: Some(Trust::Authorities(identity.certificate.into_bytes())),
                ..Protocol::default()
            },
        };
        let caddy = Caddy {
            process,
            target,
            _folder: folder,
        };
        for _ in 0..TRIES_MAX {
            if reach(&caddy.target, Duration::from_millis(200)).is_ok() {
                return caddy;
            }
            // A port without a listener refuses at once.
            thread::park_timeout(Duration::from_millis(100));
        }
        panic!("caddy does not listen");
    }
}

/// Runs `work` with Caddy before this null server.
fn before(behavior: &Behavior, work: impl FnOnce(&Target)) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let upstream = listener.local_addr().unwrap();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| serve(listener, behavior, &stop).unwrap());
        // Dropped on a panic, too. The scope waits for the server.
        let _stops = Stops(&stop);
        work(&Caddy::start(upstream).target);
    });
}

struct Stops<'a>(&'a AtomicBool);

impl Drop for Stops<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn caddy_is_loaded_over_http_3() {
    if !judged::is_installed("caddy") {
        return;
    }
    before(&Behavior::default(), |target| {
        let mut small = job(target, closed(2, 400));
        small.requests[0].path = "/hello".to_owned();
        small.requests[0].expect.body = BodyRule::known(b"hello", &[]);
        let measurement = measure(&small);
        assert_eq!(measurement.outcomes.passed, 400, "{measurement:?}");
        assert_eq!(measurement.connect.len(), 2);
        assert!(measurement.packets.unwrap().sent > 100);

        let mut planned = job(target, open(200.0, Duration::from_millis(500)));
        planned.requests[0].expect.graphql = true;
        let measurement = measure(&planned);
        assert_eq!(measurement.outcomes.passed, 100, "{measurement:?}");

        let mut both_ways = job(target, closed(1, 4));
        both_ways.requests[0].path = "/file".to_owned();
        let measurement = measure(&both_ways);
        assert_eq!(measurement.outcomes.passed, 4, "{measurement:?}");
        assert_eq!(measurement.bytes_in_bodies, 4 * FILE_BYTES as u64);

        let mut missing = job(target, closed(1, 3));
        missing.requests[0].path = "/none".to_owned();
        missing.requests[0].expect.status = StatusRule::Exactly(200);
        assert_eq!(measure(&missing).outcomes.mismatched.status, 3);

        let mut alone = job(target, closed(2, 6));
        alone.keep_alive = false;
        let measurement = measure(&alone);
        assert_eq!(measurement.outcomes.passed, 6, "{measurement:?}");
        assert_eq!(measurement.connect.len(), 6);
        assert_eq!(
            exchange(target, &get("/hello"), PATIENCE).unwrap().body,
            b"hello"
        );
    });
}

#[test]
fn caddy_resumes_connections_and_accepts_early_requests() {
    if !judged::is_installed("caddy") {
        return;
    }
    before(&Behavior::default(), |target| {
        for resumption in [Resumption::On, Resumption::EarlyData] {
            let mut alone = job(target, closed(1, 20));
            alone.requests[0].path = "/hello".to_owned();
            alone.requests[0].expect.body = BodyRule::known(b"hello", &[]);
            alone.target.protocol.version = Version::Http3 { streams: 1 };
            alone.target.protocol.resumption = resumption;
            alone.keep_alive = false;
            let measurement = measure(&alone);
            assert_eq!(measurement.outcomes.passed, 20, "{measurement:?}");
            let found = measurement.handshakes.unwrap();
            assert_eq!(found.full + found.resumed, 20, "{found:?}");
            assert!(found.resumed >= 10, "{found:?}");
            match resumption {
                Resumption::EarlyData => assert!(found.early_accepted >= 10, "{found:?}"),
                _ => assert_eq!(found.early_accepted + found.early_rejected, 0),
            }
        }
        // The same over TCP.
        let mut alone = job(target, closed(1, 10));
        alone.requests[0].path = "/hello".to_owned();
        alone.target.protocol.version = Version::Http1;
        alone.target.protocol.resumption = Resumption::On;
        alone.keep_alive = false;
        let found = measure(&alone).handshakes.unwrap();
        assert!(found.resumed >= 8, "{found:?}");
    });
}

#[test]
fn caddy_passes_streams_and_late_answers_on_over_http_3() {
    if !judged::is_installed("caddy") {
        return;
    }
    let stream = NullStream {
        is_server_sent: true,
        events: 5,
        first: Duration::from_millis(3),
        gap: Duration::from_millis(2),
        marker: Some("[DONE]".to_owned()),
        stays_open: true,
    };
    let behavior = Behavior {
        stream: Some(stream),
        ..Behavior::default()
    };
    before(&behavior, |target| {
        let mut job = job(target, closed(2, 40));
        job.requests[0].expect.stream = Some(StreamRule {
            framing: Framing::ServerSent,
            end: Some(StreamEnd::Data(b"[DONE]".to_vec())),
            events: Some(5),
            each: EventCheck::Json,
            sent_at: Some("/at".to_owned()),
        });
        let measurement = measure(&job);
        assert_eq!(measurement.outcomes.passed, 40, "{measurement:?}");
        let first_ns = measurement.events.unwrap().first.min_ns().unwrap();
        assert!(first_ns >= 2_970_000, "{first_ns}");
        assert_eq!(
            measurement.connect.len(),
            2,
            "streams end, connections go on"
        );
    });
    let behavior = Behavior {
        pace: Pace::Delay(Duration::from_secs(1)),
        ..Behavior::default()
    };
    before(&behavior, |target| {
        let mut job = job(target, closed(1, 2));
        job.timeout = Duration::from_millis(100);
        assert_eq!(measure(&job).outcomes.failed.timeout, 2);
    });
}
