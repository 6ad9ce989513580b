//! Conversations over WebSocket against a server that writes frames byte by byte.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use load::{
    EventCheck, Failed, FailureKind, Framing, Job, Request, StreamEnd, StreamRule, WebSocketCall,
    exchange,
};
use model::{GraphqlProtocol, PlannedMessage, ReplyRule, WebSocketDialect};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use crate::modern::Identity;
use crate::server::{Client, PATIENCE, Server};
use crate::{closed, job, measure};

pub(crate) const TEXT: u8 = 0x81;
const BINARY: u8 = 0x82;
pub(crate) const CLOSE: u8 = 0x88;
const PING: u8 = 0x89;
const PONG: u8 = 0x8a;
const GRAPHQL: &str = "Sec-WebSocket-Protocol: graphql-transport-ws\r\n";

/// Accepts an upgrade with these further header lines. `None` if the client is gone.
pub(crate) fn accept(client: &mut Client, lines: &str) -> Option<String> {
    let (_, request) = client.request()?;
    upgrade(client, &request, lines)?;
    Some(request)
}

/// Accepts this upgrade with these further header lines. `None` if it is no upgrade.
pub(crate) fn upgrade(client: &mut Client, request: &str, lines: &str) -> Option<()> {
    let mut keys = request.lines();
    let key = keys.find_map(|line| line.strip_prefix("Sec-WebSocket-Key: "))?;
    client.send_bytes(
        format!(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: keep-alive, \
             Upgrade\r\nSec-WebSocket-Accept: {}\r\n{lines}\r\n",
            derive_accept_key(key.as_bytes())
        )
        .as_bytes(),
    );
    Some(())
}

/// Returns a frame of a server: the first byte, the length, and the payload.
pub(crate) fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![first];
    match payload.len() {
        short @ ..126 => bytes.push(u8::try_from(short).unwrap()),
        long @ ..65536 => {
            bytes.push(126);
            bytes.extend_from_slice(&u16::try_from(long).unwrap().to_be_bytes());
        }
        longest => {
            bytes.push(127);
            bytes.extend_from_slice(&(longest as u64).to_be_bytes());
        }
    }
    bytes.extend_from_slice(payload);
    bytes
}

/// Returns the next frame of the client, unmasked. `None` at the end.
pub(crate) fn next(client: &mut Client) -> Option<(u8, String)> {
    let head = client.bytes(2)?;
    assert_eq!(head[1] & 0x80, 0x80, "a client masks its frames");
    let length = match head[1] & 0x7f {
        126 => {
            let bytes = client.bytes(2)?;
            usize::from(u16::from_be_bytes([bytes[0], bytes[1]]))
        }
        short => usize::from(short),
    };
    let mask = client.bytes(4)?;
    let masked = client.bytes(length)?;
    let plain: Vec<u8> = masked
        .iter()
        .zip(mask.iter().cycle())
        .map(|(byte, mask)| byte ^ mask)
        .collect();
    Some((head[0], String::from_utf8_lossy(&plain).into_owned()))
}

fn raw(messages: Vec<PlannedMessage>, replies: ReplyRule) -> WebSocketCall {
    WebSocketCall {
        dialect: WebSocketDialect::Raw {
            subprotocol: None,
            messages,
            replies,
        },
        offers: Vec::new(),
        hold: None,
        is_kept: false,
    }
}

fn text(content: &str) -> PlannedMessage {
    PlannedMessage::of_text(content)
}

fn subscription() -> WebSocketCall {
    WebSocketCall {
        dialect: WebSocketDialect::Graphql {
            protocol: GraphqlProtocol::TransportWs,
            init: Some(r#"{"token":"t"}"#.to_owned()),
            subscribe: r#"{"query":"subscription { price }"}"#.to_owned(),
        },
        offers: Vec::new(),
        hold: None,
        is_kept: true,
    }
}

fn asked(call: WebSocketCall, rule: StreamRule) -> Request {
    let mut request = Request::get("/socket");
    request.websocket = Some(call);
    request.expect.stream = Some(rule);
    request
}

/// Returns the rule of a stream that ends with this number of events.
fn counted(events: u64) -> StreamRule {
    StreamRule {
        end: Some(StreamEnd::Count(events)),
        ..StreamRule::of(Framing::Messages)
    }
}

fn job_of(server: &Server, slots: u64, request: Request) -> Job {
    let mut job = job(&server.target, closed(1, slots));
    job.requests[0] = request;
    job
}

/// Returns the outcome of one conversation with a server that sends these bytes after the upgrade. It must
/// receive one event.
fn outcome(bytes: &[u8]) -> Result<String, (FailureKind, String)> {
    let bytes = bytes.to_vec();
    let server = Server::tcp(move |mut client| {
        if accept(&mut client, "").is_some() {
            client.send_bytes(&bytes);
            client.wait_for_end();
        }
    });
    let request = asked(raw(Vec::new(), ReplyRule::None), counted(1));
    let measurement = measure(&job_of(&server, 1, request.clone()));
    match measurement.failures.first() {
        Some(failure) => Err((failure.kind, failure.reason.clone())),
        None => {
            assert_eq!(measurement.outcomes.passed, 1);
            let answer = exchange(&server.target, &request, PATIENCE).unwrap();
            load::check(&request.expect, &answer).unwrap_err();
            let messages = answer.messages.unwrap();
            assert_eq!(messages.len(), 1);
            Ok(String::from_utf8_lossy(&messages[0].data).into_owned())
        }
    }
}

/// Checks a conversation that the server breaks.
fn breaks(bytes: &[u8], kind: FailureKind, words: &str) {
    let (found, reason) = outcome(bytes).unwrap_err();
    assert_eq!(found, kind, "{reason}");
    assert!(reason.contains(words), "{reason}");
}

#[test]
fn frames_of_every_length_are_events() {
    for length in [0, 1, 125, 126, 127, 128, 65535, 65536, 200_000] {
        let payload = "x".repeat(length);
        for kind in [TEXT, BINARY] {
            let found = outcome(&frame(kind, payload.as_bytes()));
            assert_eq!(found, Ok(payload.clone()), "{length}");
        }
    }
}

#[test]
fn fragments_are_one_event_and_pings_between_them_are_none() {
    let whole = "Hello-µ@ßöäüàá-UTF-8!!";
    // Every cut, also inside of a character.
    for cut in [0, 1, 7, 8, 9, whole.len()] {
        let (first, last) = whole.as_bytes().split_at(cut);
        let bytes = [
            frame(0x01, first),
            frame(PING, b"between"),
            frame(PONG, b"unsolicited"),
            frame(0x00, b""),
            frame(0x80, last),
        ]
        .concat();
        assert_eq!(outcome(&bytes), Ok(whole.to_owned()), "{cut}");
    }
}

#[test]
fn frames_against_the_rules_are_a_failure_of_the_protocol() {
    let masked = [&[TEXT, 0x82][..], &[1, 2, 3, 4], &[b'h' ^ 1, b'i' ^ 2]].concat();
    for (bytes, words) in [
        (frame(0xc1, b"hi"), "eserved"),
        (frame(0xa1, b"hi"), "eserved"),
        (frame(0x91, b"hi"), "eserved"),
        (frame(0xd9, b"hi"), "eserved"),
        (frame(0x83, b"hi"), "opcode"),
        (frame(0x87, b"hi"), "opcode"),
        (frame(0x8b, b"hi"), "opcode"),
        (frame(0x8f, b"hi"), "opcode"),
        (frame(0x80, b"hi"), "ontinu"),
        ([frame(0x01, b"a"), frame(0x01, b"b")].concat(), "fragments"),
        (frame(0x09, b"hi"), "ontrol frame"),
        (frame(PING, &[b'a'; 126]), "ontrol frame"),
        (
            frame(TEXT, b"\xce\xba\xe1\xbd\xb9\xcf\x83\xed\xa0\x80"),
            "UTF-8",
        ),
        (frame(TEXT, b"\xf4\x90\x80\x80"), "UTF-8"),
        ([frame(0x01, b"\xce"), frame(0x80, b"a")].concat(), "UTF-8"),
        (masked, "masked"),
        (frame(CLOSE, b"\x03"), "close"),
        (frame(CLOSE, b"\x03\xe8\xce\xff"), "UTF-8"),
    ] {
        breaks(&bytes, FailureKind::Protocol, words);
    }
}

#[test]
fn a_close_has_its_code_and_reason_in_the_failure() {
    for (bytes, words) in [
        (frame(CLOSE, b"\x03\xf3going down"), "1011 (going down)"),
        (frame(CLOSE, b"\x11\x31Unauthorized"), "4401 (Unauthorized)"),
        (frame(CLOSE, b""), "without a code"),
    ] {
        breaks(&bytes, FailureKind::Closed, words);
    }
    // A regular end, but too early.
    let words = "expected a stream of 1 events, found 0 events";
    breaks(&frame(CLOSE, b"\x03\xe8"), FailureKind::Event, words);
}

#[test]
fn endless_messages_are_too_large() {
    let declared = [&[BINARY, 127][..], &(1_u64 << 40).to_be_bytes()].concat();
    breaks(&declared, FailureKind::TooLarge, "too long");
    let server = Server::tcp(|mut client| {
        if accept(&mut client, "").is_some() {
            client.send_bytes(&frame(0x02, b"first"));
            client.flood(&frame(0x00, &[b'a'; 60_000]));
        }
    });
    let request = asked(raw(Vec::new(), ReplyRule::None), counted(1));
    let measurement = measure(&job_of(&server, 1, request));
    assert_eq!(measurement.failures[0].kind, FailureKind::TooLarge);
}

#[test]
fn empty_fragments_without_end_run_into_the_timeout() {
    let server = Server::tcp(|mut client| {
        if accept(&mut client, "").is_some() {
            client.send_bytes(&frame(0x02, b"first"));
            client.flood(&frame(0x00, b""));
        }
    });
    let request = asked(raw(Vec::new(), ReplyRule::None), counted(1));
    let mut job = job_of(&server, 1, request);
    job.timeout = Duration::from_millis(300);
    let measurement = measure(&job);
    assert_eq!(measurement.failures[0].kind, FailureKind::Timeout);
}

#[test]
fn a_connection_that_ends_in_the_middle_is_closed() {
    let server = Server::tcp(|mut client| {
        if accept(&mut client, "").is_some() {
            client.send_bytes(&[TEXT, 5, b'h', b'e']);
            client.close_write();
            client.wait_for_end();
        }
    });
    let request = asked(raw(Vec::new(), ReplyRule::None), counted(1));
    let measurement = measure(&job_of(&server, 2, request));
    assert_eq!(
        measurement.outcomes.failed,
        Failed {
            closed: 2,
            ..Failed::default()
        }
    );
    assert_eq!(
        server.connections(),
        2,
        "the next slot has a new connection"
    );
}

#[test]
fn an_upgrade_that_is_no_upgrade_is_no_conversation() {
    let upgrade = |head: &str| {
        let head = head.to_owned();
        let server = Server::tcp(move |mut client| {
            client.request();
            client.send(&head);
            client.wait_for_end();
        });
        let request = asked(raw(Vec::new(), ReplyRule::None), counted(1));
        let measurement = measure(&job_of(&server, 1, request));
        let failure = &measurement.failures[0];
        (failure.kind, failure.reason.clone())
    };
    let switched = "HTTP/1.1 101 Switching Protocols\nUpgrade: websocket\nConnection: Upgrade\n";
    for (head, kind, words) in [
        (
            "HTTP/1.1 404 Not Found\nContent-Length: 0\n\n".to_owned(),
            FailureKind::Status,
            "expected status 101, found 404",
        ),
        (
            format!("{switched}Sec-WebSocket-Accept: AAAA\n\n"),
            FailureKind::Protocol,
            "found `AAAA`",
        ),
        (
            "HTTP/1.1 101 Switching Protocols\nUpgrade: h2c\n\n".to_owned(),
            FailureKind::Protocol,
            "`Upgrade: websocket`",
        ),
        (
            "RTSP/1.0 200 OK\n\n".to_owned(),
            FailureKind::Protocol,
            "not HTTP",
        ),
        (
            format!("HTTP/1.1 101 A\nLong: {}", "a".repeat(70_000)),
            FailureKind::TooLarge,
            "65536 bytes",
        ),
    ] {
        let (found, reason) = upgrade(&head);
        assert_eq!(found, kind, "{reason}");
        assert!(reason.contains(words), "{reason}");
    }
    for (lines, words) in [
        (
            "Sec-WebSocket-Extensions: permessage-deflate\r\n",
            "no extension",
        ),
        ("Sec-WebSocket-Protocol: chat\r\n", "found `chat`"),
    ] {
        let server = Server::tcp(move |mut client| {
            accept(&mut client, lines);
            client.wait_for_end();
        });
        let request = asked(raw(Vec::new(), ReplyRule::None), counted(1));
        let measurement = measure(&job_of(&server, 1, request));
        assert_eq!(measurement.failures[0].kind, FailureKind::Protocol);
        let reason = &measurement.failures[0].reason;
        assert!(reason.contains(words), "{reason}");
    }
}

#[test]
fn pings_are_answered_with_their_own_bytes() {
    let server = Server::tcp(|mut client| {
        if accept(&mut client, "").is_none() {
            return;
        }
        client.send_bytes(&frame(PING, b"are you there"));
        // The event follows only if the pong is right, so another pong is a timeout.
        if next(&mut client) == Some((PONG, "are you there".to_owned())) {
            client.send_bytes(&frame(TEXT, b"yes"));
        }
        client.wait_for_end();
    });
    let request = asked(raw(Vec::new(), ReplyRule::None), counted(1));
    let measurement = measure(&job_of(&server, 1, request));
    assert_eq!(measurement.outcomes.passed, 1);
}

#[test]
fn a_server_that_closes_with_1000_ends_a_conversation_without_another_end() {
    let server = Server::tcp(|mut client| {
        if accept(&mut client, "").is_some() {
            client.send_bytes(&frame(TEXT, b"one"));
            client.send_bytes(&frame(TEXT, b"two"));
            client.send_bytes(&frame(CLOSE, b"\x03\xe8"));
            // The client answers with the same code.
            assert_eq!(next(&mut client).map(|it| it.0), Some(CLOSE));
        }
    });
    let request = asked(
        raw(Vec::new(), ReplyRule::None),
        StreamRule::of(Framing::Messages),
    );
    let measurement = measure(&job_of(&server, 3, request));
    assert_eq!(measurement.outcomes.passed, 3);
    let events = measurement.events.unwrap();
    assert_eq!((events.streams, events.events), (3, 6));
    assert_eq!(measurement.statuses.by_code[&101], 3);
    assert_eq!(measurement.connect.len(), 3);
}

/// Echoes text messages.
fn echo(mut client: Client) {
    if accept(&mut client, "").is_none() {
        return;
    }
    while let Some((kind, content)) = next(&mut client) {
        match kind {
            CLOSE => {
                client.send_bytes(&frame(CLOSE, b"\x03\xe8"));
                return;
            }
            kind => client.send_bytes(&frame(kind, content.as_bytes())),
        }
    }
}

#[test]
fn messages_leave_as_planned_and_each_reply_is_a_round_trip() {
    let server = Server::tcp(echo);
    let repeated = PlannedMessage {
        every: Some(Duration::from_millis(5)),
        count: Some(4),
        ..text(r#"{"id":0,"say":"hello"}"#)
    };
    let call = raw(
        vec![repeated, text("{\"id\":\"\"}")],
        ReplyRule::Id("/id".to_owned()),
    );
    let request = asked(call, StreamRule::of(Framing::Messages));
    let measurement = measure(&job_of(&server, 2, request.clone()));
    assert_eq!(measurement.outcomes.passed, 2, "{:?}", measurement.failures);
    let events = measurement.events.unwrap();
    assert_eq!((events.events, events.round_trips.times.len()), (10, 10));
    // The last message leaves 15 ms after the first.
    assert!(measurement.latency.min_ns() >= Some(15_000_000));
    let answer = exchange(&server.target, &request, PATIENCE).unwrap();
    let mut found: Vec<String> = answer
        .messages
        .unwrap()
        .iter()
        .map(|message| String::from_utf8_lossy(&message.data).into_owned())
        .collect();
    found.sort();
    assert_eq!(found[0], r#"{"id":"1"}"#);
    assert_eq!(found[1], r#"{"id":0,"say":"hello"}"#);
}

#[test]
fn a_round_trip_counts_from_the_planned_time_if_replies_are_late() {
    // The server answers all messages at once, after the last of them.
    let server = Server::tcp(|mut client| {
        if accept(&mut client, "").is_none() {
            return;
        }
        let held: Vec<_> = (0..4).map_while(|_| next(&mut client)).collect();
        for (kind, content) in held {
            client.send_bytes(&frame(kind, content.as_bytes()));
        }
        client.wait_for_end();
    });
    let repeated = PlannedMessage {
        every: Some(Duration::from_millis(20)),
        count: Some(4),
        ..text("hi")
    };
    let request = asked(
        raw(vec![repeated], ReplyRule::Order),
        StreamRule::of(Framing::Messages),
    );
    let measurement = measure(&job_of(&server, 1, request));
    assert_eq!(measurement.outcomes.passed, 1, "{:?}", measurement.failures);
    let trips = measurement.events.unwrap().round_trips;
    assert_eq!(trips.times.len(), 4);
    // 60, 40, 20 and 0 ms, each at least.
    assert!(trips.sum_ns >= 120_000_000, "{}", trips.sum_ns);
}

#[test]
fn a_held_conversation_sends_until_its_end_and_is_no_timeout() {
    let server = Server::tcp(echo);
    let repeated = PlannedMessage {
        every: Some(Duration::from_millis(10)),
        ..text("hi")
    };
    let mut call = raw(vec![repeated], ReplyRule::Order);
    call.hold = Some(Duration::from_millis(95));
    let mut job = job_of(&server, 1, asked(call, StreamRule::of(Framing::Messages)));
    job.timeout = Duration::from_secs(5);
    let measurement = measure(&job);
    assert_eq!(measurement.outcomes.passed, 1, "{:?}", measurement.failures);
    // Messages at 0, 10, …, 90 ms. A thread that is late sends them late, but sends them.
    let sent = measurement.events.unwrap().round_trips.times.len();
    assert!((1..=10).contains(&sent), "{sent}");
    assert!(measurement.latency.min_ns() >= Some(95_000_000));
}

#[test]
fn a_kept_conversation_uses_its_connection_again() {
    let server = Server::tcp(echo);
    let mut call = raw(vec![text("hi")], ReplyRule::Order);
    call.is_kept = true;
    let request = asked(call, StreamRule::of(Framing::Messages));
    let measurement = measure(&job_of(&server, 5, request));
    assert_eq!(measurement.outcomes.passed, 5, "{:?}", measurement.failures);
    assert_eq!(server.connections(), 1);
    assert_eq!(measurement.connect.len(), 1);
}

/// Serves subscriptions with two events each.
fn graphql(mut client: Client) {
    let Some(request) = accept(&mut client, GRAPHQL) else {
        return;
    };
    assert!(request.contains("Sec-WebSocket-Protocol: graphql-transport-ws"));
    while let Some((kind, content)) = next(&mut client) {
        if kind == CLOSE {
            return;
        }
        let message: serde_json::Value = serde_json::from_str(&content).unwrap();
        let send =
            |client: &mut Client, text: String| client.send_bytes(&frame(TEXT, text.as_bytes()));
        match message["type"].as_str().unwrap() {
            "connection_init" => {
                assert_eq!(message["payload"]["token"], "t");
                send(&mut client, r#"{"type":"ping"}"#.to_owned());
                send(&mut client, r#"{"type":"connection_ack"}"#.to_owned());
            }
            "pong" => {}
            "subscribe" => {
                let id = &message["id"];
                for price in [1, 2] {
                    let payload = format!(r#"{{"data":{{"price":{price}}}}}"#);
                    let next = format!(r#"{{"type":"next","id":{id},"payload":{payload}}}"#);
                    send(&mut client, next);
                }
                match message["payload"]["query"].as_str().unwrap() {
                    "fails" => {
                        let payload = r#"[{"message":"no such price"}]"#;
                        let error = format!(r#"{{"type":"error","id":{id},"payload":{payload}}}"#);
                        send(&mut client, error);
                    }
                    _ => send(&mut client, format!(r#"{{"type":"complete","id":{id}}}"#)),
                }
            }
            "complete" => {}
            other => panic!("{other}"),
        }
    }
}

#[test]
fn subscriptions_share_a_connection_and_each_result_is_an_event() {
    let server = Server::tcp(graphql);
    let rule = StreamRule {
        events: Some(2),
        each: EventCheck::Graphql,
        ..StreamRule::of(Framing::Messages)
    };
    let request = asked(subscription(), rule);
    let measurement = measure(&job_of(&server, 5, request.clone()));
    assert_eq!(measurement.outcomes.passed, 5, "{:?}", measurement.failures);
    assert_eq!(server.connections(), 1);
    let events = measurement.events.unwrap();
    assert_eq!((events.streams, events.events), (5, 10));
    let answer = exchange(&server.target, &request, PATIENCE).unwrap();
    let messages = answer.messages.unwrap();
    let names: Vec<_> = messages.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["next", "next", "complete"]);
    assert_eq!(messages[1].data, br#"{"data":{"price":2}}"#);
}

#[test]
fn a_subscription_may_end_by_its_events_or_by_its_message() {
    let server = Server::tcp(graphql);
    for end in [StreamEnd::Count(1), StreamEnd::Type("complete".to_owned())] {
        let rule = StreamRule {
            end: Some(end),
            ..StreamRule::of(Framing::Messages)
        };
        let request = asked(subscription(), rule);
        let measurement = measure(&job_of(&server, 3, request));
        assert_eq!(measurement.outcomes.passed, 3, "{:?}", measurement.failures);
    }
    let request = asked(subscription(), counted(3));
    let measurement = measure(&job_of(&server, 1, request));
    let reason = &measurement.failures[0].reason;
    assert_eq!(reason, "expected a stream of 3 events, found 2 events");
}

#[test]
fn an_error_of_a_subscription_is_a_mismatch() {
    let server = Server::tcp(graphql);
    let mut call = subscription();
    if let WebSocketDialect::Graphql { subscribe, .. } = &mut call.dialect {
        *subscribe = r#"{"query":"fails"}"#.to_owned();
    }
    let request = asked(call, StreamRule::of(Framing::Messages));
    let measurement = measure(&job_of(&server, 2, request.clone()));
    assert_eq!(measurement.outcomes.mismatched.total(), 2);
    let reason = &measurement.failures[0].reason;
    assert!(reason.contains("no such price"), "{reason}");
    let answer = exchange(&server.target, &request, PATIENCE).unwrap();
    let mut expect = request.expect.clone();
    expect.status = load::StatusRule::Exactly(101);
    let words = load::check(&expect, &answer).unwrap_err().to_string();
    assert!(words.contains("no such price"), "{words}");
}

#[test]
fn requests_of_http_and_of_websocket_are_not_mixed() {
    let server = Server::tcp(echo);
    let mut job = job_of(
        &server,
        1,
        asked(raw(Vec::new(), ReplyRule::None), counted(1)),
    );
    job.requests.push(Request::get("/"));
    let stop = std::sync::atomic::AtomicBool::new(false);
    let error = load::run(&job, &load::Live::new(), &stop).unwrap_err();
    assert!(error.to_string().contains("two loads"), "{error}");
}

/// Serves an echo over TLS, for one connection after another. Returns its address.
fn encrypted_echo(identity: &Identity) -> SocketAddr {
    let key = PrivateKeyDer::from_pem_slice(identity.key.as_bytes()).unwrap();
    let certificate = CertificateDer::from_pem_slice(identity.certificate.as_bytes()).unwrap();
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                let Ok(encrypted) = acceptor.accept(socket).await else {
                    continue;
                };
                let mut echo = tokio_tungstenite::accept_async(encrypted).await.unwrap();
                while let Some(Ok(message)) = echo.next().await {
                    if message.is_text() {
                        let _ = echo.send(message).await;
                    }
                }
            }
        });
    });
    address
}

#[test]
fn conversations_are_carried_over_tls() {
    let identity = Identity::new();
    let address = encrypted_echo(&identity);
    let target = load::Target {
        address: load::Address::Tcp(address),
        host: "server.test".to_owned(),
        protocol: load::Protocol {
            tls: Some(load::Trust::Authorities(identity.certificate.into_bytes())),
            ..load::Protocol::default()
        },
    };
    let request = asked(
        raw(vec![text("secret")], ReplyRule::Order),
        StreamRule::of(Framing::Messages),
    );
    let mut job = job(&target, closed(1, 2));
    job.requests[0] = request.clone();
    let measurement = measure(&job);
    assert_eq!(measurement.outcomes.passed, 2, "{:?}", measurement.failures);
    let answer = exchange(&target, &request, PATIENCE).unwrap();
    assert_eq!(answer.messages.unwrap()[0].data, b"secret");
}
