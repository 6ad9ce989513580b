//! Unusual behavior of servers on HTTP/3 connections, frame by frame and packet by packet.

use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use load::{
    Address, Failed, Failure, FailureKind, GrpcCall, GrpcDescriptors, Job, Live, Measurement,
    Protocol, Target, Trust, Version, exchange, run,
};
use model::RpcProtocol;
use quinn::{Connection, Endpoint, EndpointConfig, RecvStream, SendStream, TokioRuntime, VarInt};
use tokio::task::LocalSet;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{self, ServerConfig};

use crate::connect::{HI, call, flagged};
use crate::general::{HTTP3, speech, target};
use crate::modern::{Act, Identity, Modern};
use crate::server::PATIENCE;
use crate::{closed, get, job, measure, open};

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const PUSH_PROMISE: u8 = 5;
const GOAWAY: u8 = 7;
/// A reserved frame without a meaning (RFC 9114, section 7.2.8).
const GREASE: u8 = 0x21;

const H3_NO_ERROR: u32 = 0x100;
const H3_INTERNAL_ERROR: u32 = 0x102;
const H3_REQUEST_REJECTED: u32 = 0x10b;

/// `:status: 200` as an index in the static table of QPACK, after an empty prefix.
const STATUS_200: [u8; 3] = [0, 0, 0xc0 | 25];

/// An integer of four bytes.
fn integer(value: usize) -> [u8; 4] {
    (u32::try_from(value).unwrap() | 0x8000_0000).to_be_bytes()
}

fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    [&[kind], &integer(payload.len())[..], payload].concat()
}

/// Returns a field line without any table.
fn literal(name: &str, value: &str) -> Vec<u8> {
    let short = |length: usize| u8::try_from(length).unwrap();
    let mut line = match name.len() {
        length @ 0..7 => vec![0x20 | short(length)],
        length => vec![0x27, short(length - 7)],
    };
    line.extend_from_slice(name.as_bytes());
    match value.len() {
        length @ 0..127 => line.push(short(length)),
        length => line.extend_from_slice(&[127, short(length - 127)]),
    }
    line.extend_from_slice(value.as_bytes());
    line
}

fn head(lines: &[Vec<u8>]) -> Vec<u8> {
    frame(HEADERS, &[&STATUS_200[..], &lines.concat()].concat())
}

/// The server's side of a connection.
struct Frames {
    connection: Connection,
    control: SendStream,
}

impl Frames {
    /// Opens the control stream of the server.
    async fn new(connection: Connection) -> Option<Frames> {
        let mut control = connection.open_uni().await.ok()?;
        control
            .write_all(&[&[0][..], &frame(SETTINGS, &[])].concat())
            .await
            .ok()?;
        Some(Frames {
            connection,
            control,
        })
    }

    /// Returns the stream of the next whole request.
    async fn request(&self) -> Option<SendStream> {
        let (answers, mut asked): (SendStream, RecvStream) =
            self.connection.accept_bi().await.ok()?;
        asked.read_to_end(1 << 20).await.ok()?;
        Some(answers)
    }

    async fn go_away(&mut self, first: u8) {
        self.control
            .write_all(&frame(GOAWAY, &[first]))
            .await
            .unwrap();
    }

    async fn wait_for_end(&self) {
        self.connection.closed().await;
    }
}

/// Sends these bytes and the end of the stream, and waits until they have arrived.
async fn answer(stream: &mut SendStream, bytes: &[u8]) {
    // The client may be gone. The test judges that.
    if stream.write_all(bytes).await.is_ok() && stream.finish().is_ok() {
        let _ = stream.stopped().await;
    }
}

/// A server that runs until it is dropped.
struct Server {
    target: Target,
    connections: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
    }
}

impl Server {
    /// Returns a server that runs `speak` on each connection.
    fn start<F: Future<Output = ()> + 'static>(
        streams_max: u32,
        speak: impl Fn(Connection) -> F + Send + 'static,
    ) -> Server {
        let (is_over, connections) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
        let (over, count) = (Arc::clone(&is_over), Arc::clone(&connections));
        let (listening, address) = mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            LocalSet::new().block_on(&runtime, async {
                let endpoint = listen(streams_max);
                listening.send(endpoint.local_addr().unwrap()).unwrap();
                let speak = Rc::new(speak);
                while !over.load(Ordering::SeqCst) {
                    let look = Duration::from_millis(20);
                    let accepted = tokio::time::timeout(look, endpoint.accept()).await;
                    if let Ok(Some(incoming)) = accepted {
                        let (speak, count) = (Rc::clone(&speak), Arc::clone(&count));
                        tokio::task::spawn_local(async move {
                            if let Ok(connection) = incoming.await {
                                count.fetch_add(1, Ordering::SeqCst);
                                speak(connection).await;
                            }
                        });
                    }
                }
            });
        });
        Server {
            target: insecure(address.recv().unwrap(), 1),
            connections,
            is_over,
        }
    }

    /// Returns a server that runs `speak` on each connection with a control stream.
    fn framed<F: Future<Output = ()> + 'static>(
        speak: impl Fn(Frames) -> F + Clone + Send + 'static,
    ) -> Server {
        Server::start(100, move |connection| {
            let speak = speak.clone();
            async move {
                if let Some(frames) = Frames::new(connection).await {
                    speak(frames).await;
                }
            }
        })
    }

    fn with_streams(&self, streams: u32) -> Target {
        let mut target = self.target.clone();
        target.protocol.version = Version::Http3 { streams };
        target
    }
}

fn insecure(address: SocketAddr, streams: u32) -> Target {
    Target {
        address: Address::Tcp(address),
        host: "server.test".to_owned(),
        protocol: Protocol {
            version: Version::Http3 { streams },
            tls: Some(Trust::SkipVerification),
            ..Protocol::default()
        },
    }
}

fn listen(streams_max: u32) -> Endpoint {
    let identity = Identity::new();
    let key = PrivateKeyDer::from_pem_slice(identity.key.as_bytes()).unwrap();
    let certificate = CertificateDer::from_pem_slice(identity.certificate.as_bytes()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    config.alpn_protocols = vec![b"h3".to_vec()];
    let crypto = quinn::crypto::rustls::QuicServerConfig::try_from(config).unwrap();
    let mut config = quinn::ServerConfig::with_crypto(Arc::new(crypto));
    let mut transport = quinn::TransportConfig::default();
    transport.max_concurrent_bidi_streams(streams_max.into());
    config.transport_config(Arc::new(transport));
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let own = EndpointConfig::default();
    Endpoint::new(own, Some(config), socket, Arc::new(TokioRuntime)).unwrap()
}

fn failed(measurement: &Measurement) -> Failed {
    measurement.outcomes.failed
}

/// Returns the failure of a request that this server answers with these bytes.
fn failure_of(bytes: Vec<u8>) -> (FailureKind, String) {
    let server = Server::framed(move |frames| {
        let bytes = bytes.clone();
        async move {
            if let Some(mut stream) = frames.request().await {
                answer(&mut stream, &bytes).await;
                frames.wait_for_end().await;
            }
        }
    });
    failure_at(&server.target)
}

fn failure_at(target: &Target) -> (FailureKind, String) {
    let measurement = measure(&job(target, closed(1, 1)));
    let sample = measurement.failures.into_iter().next();
    let sample = sample.expect("the answer is wrong");
    (sample.kind, sample.reason)
}

#[test]
fn a_head_is_refused_by_its_length_before_it_arrives() {
    // The frame announces 2^30 - 1 bytes, and only a few of them ever arrive.
    let endless = [&[HEADERS, 0xbf, 0xff, 0xff, 0xff][..], &STATUS_200].concat();
    let too_large = "the head of the answer is larger than the 65536 bytes allowed";
    let found = failure_of(endless);
    assert_eq!(found, (FailureKind::TooLarge, too_large.to_owned()));
    // Small in the frame, and large after it: each byte is a field of the static table.
    let bomb = vec![0xc0 | 29; 10_000];
    let found = failure_of(head(&[bomb]));
    assert_eq!(found, (FailureKind::TooLarge, too_large.to_owned()));
    // The same length is fine for a frame without a meaning.
    let grease = [frame(GREASE, &[0; 70_000]), head(&[]), frame(DATA, b"x")].concat();
    let server = Server::framed(move |frames| {
        let grease = grease.clone();
        async move {
            while let Some(mut stream) = frames.request().await {
                answer(&mut stream, &grease).await;
            }
        }
    });
    let measurement = measure(&job(&server.target, closed(1, 2)));
    assert_eq!(measurement.outcomes.passed, 2, "{measurement:?}");
    assert_eq!(measurement.bytes_in_bodies, 2);
}

#[test]
fn trailers_are_refused_by_their_length_too() {
    let endless = [&head(&[])[..], &[HEADERS, 0xbf, 0xff, 0xff, 0xff]].concat();
    let (kind, reason) = failure_of(endless);
    assert_eq!(kind, FailureKind::TooLarge);
    assert!(reason.starts_with("the trailers of"), "{reason}");
}

#[test]
fn what_breaks_the_rules_of_http_3_is_said_in_words() {
    let length =
        |body: &[u8]| [head(&[literal("content-length", "5")]), frame(DATA, body)].concat();
    let differs = "the length of the body differs from the 5 bytes of its `content-length`";
    for body in [&b"hell"[..], b"hello!"] {
        let found = failure_of(length(body));
        assert_eq!(found, (FailureKind::Protocol, differs.to_owned()));
    }
    let cut = &head(&[])[..3];
    for (bytes, code, words) in [
        (frame(DATA, b"x"), "H3_FRAME_UNEXPECTED", "a body before"),
        (Vec::new(), "H3_MESSAGE_ERROR", "before the head"),
        (cut.to_vec(), "H3_FRAME_ERROR", "ended in a frame"),
        (
            frame(SETTINGS, &[]),
            "H3_FRAME_UNEXPECTED",
            "control stream",
        ),
        (frame(PUSH_PROMISE, &[0]), "H3_ID_ERROR", "a forbidden push"),
        (frame(0x6, &[]), "H3_FRAME_UNEXPECTED", "a frame of HTTP/2"),
        (
            frame(HEADERS, &[]),
            "QPACK_DECOMPRESSION_FAILED",
            "without a byte",
        ),
        // A reference to the dynamic table, which we do not have.
        (
            frame(HEADERS, &[2, 0, 0x80]),
            "QPACK_DECOMPRESSION_FAILED",
            "decode",
        ),
        (
            [head(&[]), head(&[]), head(&[])].concat(),
            "H3_FRAME_UNEXPECTED",
            "after the trailers",
        ),
        (frame(HEADERS, &[0, 0]), "H3_MESSAGE_ERROR", "malformed"),
        (
            head(&[literal("Content-Type", "a")]),
            "H3_MESSAGE_ERROR",
            "malformed",
        ),
    ] {
        let (kind, reason) = failure_of(bytes);
        assert_eq!(kind, FailureKind::Protocol, "{reason}");
        assert!(reason.contains(code) && reason.contains(words), "{reason}");
    }
}

#[test]
fn a_broken_control_stream_is_said_in_words() {
    let broken = |bytes: Vec<u8>| {
        let server = Server::start(100, move |connection| {
            let bytes = bytes.clone();
            async move {
                let _held = connection.accept_bi().await;
                for stream in [&bytes[..], &[]] {
                    if let Ok(mut control) = connection.open_uni().await {
                        let _ = control.write_all(stream).await;
                        connection.closed().await;
                    }
                }
            }
        });
        failure_at(&server.target)
    };
    let settings = [&[0][..], &frame(SETTINGS, &[])].concat();
    for (bytes, code) in [
        (
            [&[0][..], &frame(GOAWAY, &[0])].concat(),
            "H3_MISSING_SETTINGS",
        ),
        (
            [&settings[..], &frame(SETTINGS, &[])].concat(),
            "H3_FRAME_UNEXPECTED",
        ),
        (
            [&settings[..], &frame(GOAWAY, &[1])].concat(),
            "H3_ID_ERROR",
        ),
        // More bytes than any control stream has.
        (
            [&settings[..], &frame(GREASE, &[0; 70_000])].concat(),
            "H3_CLOSED_CRITICAL_STREAM",
        ),
    ] {
        let (kind, reason) = broken(bytes);
        assert_eq!(kind, FailureKind::Protocol, "{reason}");
        assert!(reason.contains(code), "{reason}");
    }
}

#[test]
fn heads_before_the_head_are_skipped_and_trailers_are_read() {
    let early = frame(
        HEADERS,
        &[&[0, 0, 0xc0 | 24][..], &literal("link", "</a>")].concat(),
    );
    let trailers = frame(HEADERS, &[&[0, 0][..], &literal("x-end", "yes")].concat());
    let bytes = [
        early,
        head(&[literal("x-one", "1")]),
        frame(DATA, b"hello"),
        trailers,
    ]
    .concat();
    let server = Server::framed(move |frames| {
        let bytes = bytes.clone();
        async move {
            while let Some(mut stream) = frames.request().await {
                answer(&mut stream, &bytes).await;
            }
        }
    });
    let found = exchange(&server.target, &get("/"), PATIENCE).unwrap();
    assert_eq!((found.status, &found.body[..]), (200, &b"hello"[..]));
    assert_eq!(found.header("x-one"), Some("1"));
    assert_eq!(found.header("link"), None);
    assert_eq!(found.trailers, [("x-end".to_owned(), "yes".to_owned())]);
    let mut asked = get("/");
    asked.method = "HEAD".to_owned();
    let head_only = head(&[literal("content-length", "5")]);
    let server = Server::framed(move |frames| {
        let bytes = head_only.clone();
        async move {
            while let Some(mut stream) = frames.request().await {
                answer(&mut stream, &bytes).await;
            }
        }
    });
    assert_eq!(
        exchange(&server.target, &asked, PATIENCE).unwrap().status,
        200
    );
}

#[test]
fn streams_from_the_first_one_of_a_goaway_on_are_sent_again() {
    let ignored = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&ignored);
    let server = Server::framed(move |mut frames| {
        let count = Arc::clone(&count);
        async move {
            for _ in 0..5 {
                let Some(mut stream) = frames.request().await else {
                    return;
                };
                answer(&mut stream, &head(&[])).await;
            }
            // Others may be on their way. The server awaits one, so that there is one.
            // Its stream is kept, because the library ends a stream that is dropped.
            let ignored = frames.request().await;
            if ignored.is_some() {
                count.fetch_add(1, Ordering::SeqCst);
            }
            frames.go_away(20).await;
            frames.wait_for_end().await;
        }
    });
    let measurement = measure(&job(&server.with_streams(4), closed(2, 100)));
    assert_eq!(measurement.outcomes.passed, 100, "{measurement:?}");
    assert_eq!(measurement.sent, 100, "a request counts as sent once");
    assert!(measurement.sent_again >= ignored.load(Ordering::SeqCst));
    assert!(measurement.sent_again > 0);
}

#[test]
fn a_rejected_request_is_sent_again_until_it_fails() {
    let rejecting = |every: u64| {
        Server::framed(move |frames| async move {
            let mut number = 0;
            while let Some(mut stream) = frames.request().await {
                number += 1;
                match number % every {
                    0 => stream.reset(VarInt::from_u32(H3_REQUEST_REJECTED)).unwrap(),
                    _ => answer(&mut stream, &head(&[])).await,
                }
            }
        })
    };
    let server = rejecting(3);
    let measurement = measure(&job(&server.target, closed(1, 8)));
    assert_eq!(measurement.outcomes.passed, 8, "{measurement:?}");
    assert_eq!(measurement.sent_again, 3);
    assert_eq!(
        server.connections.load(Ordering::SeqCst),
        1,
        "the others go on"
    );
    let server = rejecting(1);
    let measurement = measure(&job(&server.target, closed(1, 2)));
    assert_eq!(failed(&measurement).reset, 2);
    assert_eq!(measurement.sent_again, 20);
    assert_eq!(
        measurement.failures[0].reason,
        "the request was sent 11 times, but the server did not process it: the server reset the \
         stream (H3_REQUEST_REJECTED)"
    );
}

#[test]
fn a_storm_of_resets_fails_each_request_once_and_keeps_the_connection() {
    let server = Server::framed(|frames| async move {
        while let Some(mut stream) = frames.request().await {
            stream.reset(VarInt::from_u32(H3_INTERNAL_ERROR)).unwrap();
        }
    });
    let measurement = measure(&job(&server.with_streams(10), closed(2, 2_000)));
    assert_eq!(
        failed(&measurement).reset,
        2_000,
        "{:?}",
        measurement.outcomes
    );
    assert_eq!(server.connections.load(Ordering::SeqCst), 2);
    let reason = "the server reset the stream (H3_INTERNAL_ERROR)";
    assert_eq!(measurement.failures[0].reason, reason);
}

#[test]
fn a_connection_that_is_closed_is_told_from_a_reset() {
    let server = Server::framed(|frames| async move {
        if let Some(mut stream) = frames.request().await {
            stream.write_all(&head(&[])).await.unwrap();
            let code = VarInt::from_u32(H3_INTERNAL_ERROR);
            // After the head has arrived, so that the response has begun.
            tokio::time::sleep(Duration::from_millis(50)).await;
            frames.connection.close(code, b"out of order");
        }
    });
    let (kind, reason) = failure_at(&server.target);
    assert_eq!(kind, FailureKind::Closed);
    let expected =
        "the server closed the connection (CONNECTION_CLOSE, H3_INTERNAL_ERROR, `out of order`)";
    assert_eq!(reason, expected);
    // A kept connection that ends under a request.
    let server = Server::framed(|frames| async move {
        if let Some(mut stream) = frames.request().await {
            answer(&mut stream, &head(&[])).await;
        }
        frames.request().await;
        frames.connection.close(VarInt::from_u32(H3_NO_ERROR), b"");
    });
    let measurement = measure(&job(&server.target, closed(1, 6)));
    assert_eq!(measurement.outcomes.passed, 3, "{measurement:?}");
    assert_eq!(failed(&measurement).closed_idle, 3);
}

#[test]
fn a_server_that_lets_no_request_in_is_named() {
    let server = Server::start(0, |connection| async move {
        if let Some(frames) = Frames::new(connection).await {
            frames.wait_for_end().await;
        }
    });
    let mut job = job(&server.target, closed(1, 1));
    job.timeout = Duration::from_millis(200);
    let measurement = measure(&job);
    assert_eq!(failed(&measurement).timeout, 1);
    let reason = &measurement.failures[0].reason;
    assert!(
        reason.contains("the server allows no HTTP/3 stream"),
        "{reason}"
    );
    assert_eq!(measurement.sent, 0);
}

#[test]
fn a_port_without_an_answer_is_no_connection_in_time() {
    let silent = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let mut job = job(&insecure(silent.local_addr().unwrap(), 1), closed(1, 2));
    job.timeout = Duration::from_millis(100);
    let measurement = measure(&job);
    assert_eq!(failed(&measurement).connect, 2, "{measurement:?}");
    assert_eq!(measurement.failures[0].reason, "no connection within 100ms");
}

#[test]
fn an_endless_answer_ends_with_its_timeout_and_holds_up_no_other_connection() {
    // In whole frames of one byte each, so that frames are most of it.
    let number = Arc::new(AtomicU64::new(0));
    let server = Server::framed(move |frames| {
        let is_endless = number.fetch_add(1, Ordering::SeqCst) == 0;
        async move {
            while let Some(mut stream) = frames.request().await {
                if is_endless {
                    stream.write_all(&head(&[])).await.unwrap();
                    let tiny = [DATA, 1, b'a'].repeat(10_000);
                    while stream.write_all(&tiny).await.is_ok() {}
                    return;
                }
                answer(&mut stream, &head(&[])).await;
            }
        }
    });
    let mut job = job(&server.target, open(20.0, Duration::from_millis(500)));
    job.timeout = Duration::from_secs(1);
    job.bound.body_bytes = u64::MAX;
    let outcomes = measure(&job).outcomes;
    assert_eq!(outcomes.passed, 9, "{outcomes:?}");
    assert_eq!(outcomes.failed.timeout, 1, "{outcomes:?}");
}

#[test]
fn an_answer_before_the_end_of_the_request_counts() {
    let server = Server::framed(|frames| async move {
        // All of it, because a control stream must not end.
        let frames = frames;
        while let Ok((mut answers, mut asked)) = frames.connection.accept_bi().await {
            let _ = asked.read_chunk(100, true).await;
            asked.stop(VarInt::from_u32(H3_NO_ERROR)).unwrap();
            answer(&mut answers, &head(&[])).await;
        }
    });
    let mut job = job(&server.target, closed(1, 3));
    job.requests[0].method = "POST".to_owned();
    job.requests[0].body = vec![b'x'; 8 << 20];
    let measurement = measure(&job);
    assert_eq!(measurement.outcomes.passed, 3, "{measurement:?}");
    assert_eq!(
        server.connections.load(Ordering::SeqCst),
        1,
        "{measurement:?}"
    );
}

/// Passes datagrams between one server and its clients. Every `every`th datagram to the server is lost.
struct Lossy {
    address: SocketAddr,
    is_over: Arc<AtomicBool>,
    dropped: Arc<AtomicU64>,
}

impl Lossy {
    fn start(server: SocketAddr, every: u64) -> Lossy {
        let own = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = own.local_addr().unwrap();
        let (is_over, dropped) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
        let (over, count) = (Arc::clone(&is_over), Arc::clone(&dropped));
        let look = Some(Duration::from_millis(20));
        own.set_read_timeout(look).unwrap();
        let towards = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        towards.connect(server).unwrap();
        towards.set_read_timeout(look).unwrap();
        // One client, because it has one connection.
        let (back, home) = (towards.try_clone().unwrap(), own.try_clone().unwrap());
        let client = Arc::new(std::sync::Mutex::new(None));
        let known = Arc::clone(&client);
        let is_back_over = Arc::clone(&over);
        std::thread::spawn(move || {
            let (mut buffer, mut number) = ([0; 65_536], 0_u64);
            while !over.load(Ordering::SeqCst) {
                let Ok((bytes, from)) = own.recv_from(&mut buffer) else {
                    continue;
                };
                *client.lock().unwrap() = Some(from);
                number += 1;
                if number.is_multiple_of(every) {
                    count.fetch_add(1, Ordering::SeqCst);
                } else {
                    towards.send(&buffer[..bytes]).unwrap();
                }
            }
        });
        std::thread::spawn(move || {
            let mut buffer = [0; 65_536];
            while !is_back_over.load(Ordering::SeqCst) {
                let Ok(bytes) = back.recv(&mut buffer) else {
                    continue;
                };
                let to = known.lock().unwrap().unwrap();
                home.send_to(&buffer[..bytes], to).unwrap();
            }
        });
        Lossy {
            address,
            is_over,
            dropped,
        }
    }
}

impl Drop for Lossy {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
    }
}

#[test]
fn lost_packets_are_counted_and_their_requests_arrive_later() {
    let server = Modern::start(speech(HTTP3, true), |_| Act::answer("hello"));
    let lossy = Lossy::start(server.address, 10);
    let mut target = target(&server, HTTP3, true);
    target.address = Address::Tcp(lossy.address);
    let measurement = measure(&job(&target, closed(1, 200)));
    assert_eq!(measurement.outcomes.passed, 200, "{measurement:?}");
    let packets = measurement.packets.unwrap();
    assert!(packets.sent >= 200, "{packets:?}");
    // A tenth of at least 200 packets. The loss of an acknowledgment has no effect.
    assert!(lossy.dropped.load(Ordering::SeqCst) >= 20);
    assert!(packets.lost >= 5, "{packets:?}");
    assert!(packets.lost < packets.sent / 2, "{packets:?}");
    // Over TCP the kernel sends packets, and the generator counts none.
    let plain = Modern::start(speech(Version::Http1, true), |_| Act::answer("hello"));
    let measurement = measure(&job(
        &crate::general::target(&plain, Version::Http1, true),
        closed(1, 5),
    ));
    assert_eq!(measurement.packets, None);
}

#[test]
fn a_server_that_leaves_its_port_is_noticed_at_once() {
    let server = Modern::start(speech(HTTP3, true), |_| Act::answer("hello"));
    let lossy = Lossy::start(server.address, u64::MAX);
    let mut target = target(&server, HTTP3, true);
    target.address = Address::Tcp(lossy.address);
    let mut job = job(&target, open(20.0, Duration::from_secs(1)));
    job.timeout = PATIENCE;
    job.load.limit_connections(1);
    let live = Live::new();
    let measurement = std::thread::scope(|scope| {
        let load = scope.spawn(|| run(&job, &live, &AtomicBool::new(false)).unwrap());
        while live.read().passed < 5 {
            std::thread::yield_now();
        }
        // The port of the load is closed, and only the kernel reports it.
        drop(lossy);
        load.join().unwrap()
    });
    assert_eq!(measurement.outcomes.total(), 20);
    let failed = failed(&measurement);
    assert_eq!(failed.timeout, 0, "{:?}", measurement.outcomes);
    assert!(failed.connect > 0, "{:?}", measurement.outcomes);
}

#[test]
fn calls_of_connect_and_grpc_web_leave_over_http_3() {
    for (protocol, method, kind, body) in [
        (
            RpcProtocol::Connect,
            "Say",
            "application/proto",
            HI.to_vec(),
        ),
        (
            RpcProtocol::Connect,
            "Watch",
            "application/connect+proto",
            [flagged(0, HI), flagged(2, b"{}")].concat(),
        ),
        (
            RpcProtocol::GrpcWeb,
            "Say",
            "application/grpc-web+proto",
            [flagged(0, HI), flagged(0x80, b"grpc-status: 0")].concat(),
        ),
    ] {
        let response = [head(&[literal("content-type", kind)]), frame(DATA, &body)].concat();
        let is_whole = Arc::new(AtomicBool::new(true));
        let all_whole = Arc::clone(&is_whole);
        let server = Server::framed(move |frames| {
            let (response, is_whole) = (response.clone(), Arc::clone(&is_whole));
            async move {
                let frames = frames;
                while let Ok((mut answers, mut asked)) = frames.connection.accept_bi().await {
                    let request = asked.read_to_end(1 << 16).await.unwrap();
                    let has_message = request.windows(HI.len()).any(|part| part == HI);
                    is_whole.fetch_and(has_message, Ordering::SeqCst);
                    answer(&mut answers, &response).await;
                }
            }
        });
        let mut job = job(&server.target, closed(1, 5));
        job.requests = vec![call(protocol, method)];
        let proof = exchange(&server.target, &job.requests[0], PATIENCE).unwrap();
        load::check(&job.requests[0].expect, &proof).unwrap();
        let measurement = measure(&job);
        assert_eq!(measurement.outcomes.passed, 5, "{:?}", measurement.failures);
        assert!(
            all_whole.load(Ordering::SeqCst),
            "each call has its message"
        );
        job.requests[0].expect.grpc.as_mut().unwrap().status = 5;
        let wrong = measure(&job);
        assert_eq!(wrong.outcomes.mismatched.status, 5);
    }
}

#[test]
fn what_http_3_cannot_do_is_refused_by_name() {
    let refusal = |job: &Job| {
        run(job, &Live::new(), &AtomicBool::new(false))
            .unwrap_err()
            .to_string()
    };
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 9));
    let fine = || job(&insecure(address, 1), closed(1, 1));
    let mut plain = fine();
    plain.target.protocol.tls = None;
    assert!(
        refusal(&plain).contains("HTTP/3: it is always encrypted"),
        "{}",
        refusal(&plain)
    );
    let mut local = fine();
    local.target.address = Address::Unix("/tmp/none".into());
    assert!(refusal(&local).contains("HTTP/3: it has no Unix sockets"));
    let mut upgrade = fine();
    upgrade.requests[0].headers = vec![("Upgrade".to_owned(), "h2c".to_owned())];
    assert!(refusal(&upgrade).contains("over HTTP/3: header `Upgrade`"));
    let mut call = fine();
    let reflection = GrpcDescriptors::Reflection;
    call.requests[0].grpc = Some(GrpcCall::new("a.B/C".to_owned(), reflection, Vec::new()));
    assert!(refusal(&call).contains("expected HTTP/2, found HTTP/3"));
    let mut tunnel = fine();
    tunnel.requests[0].method = "CONNECT".to_owned();
    assert!(refusal(&tunnel).contains("over HTTP/3: CONNECT"));
    let failure = exchange(&plain.target, &get("/"), PATIENCE).unwrap_err();
    assert!(matches!(failure, Failure::Connect(_)), "{failure:?}");
}
