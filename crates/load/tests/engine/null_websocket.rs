//! The delays of the null server of WebSocket, as the engine measures them.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use load::null::{Seen, SocketBehavior, serve_websocket};
use load::{Address, EventCheck, Framing, Job, Request, StreamRule, Target, WebSocketCall};
use model::{GraphqlProtocol, MessageContent, PlannedMessage, ReplyRule, WebSocketDialect};

use crate::{closed, job, measure};

/// A null server that runs until it is dropped.
struct Null {
    target: Target,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Seen>>,
}

impl Null {
    fn start(behavior: SocketBehavior) -> Null {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = Address::Tcp(listener.local_addr().unwrap());
        let stop = Arc::new(AtomicBool::new(false));
        let own = Arc::clone(&stop);
        let serve = move || serve_websocket(listener, behavior, &own).unwrap();
        Null {
            target: Target {
                address,
                host: "null.test".to_owned(),
                protocol: load::Protocol::default(),
            },
            stop,
            thread: Some(std::thread::spawn(serve)),
        }
    }

    fn seen(mut self) -> Seen {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap()
    }
}

impl Drop for Null {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn job_of(null: &Null, connections: u32, call: WebSocketCall, rule: StreamRule) -> Job {
    let mut request = Request::get("/");
    request.websocket = Some(call);
    request.expect.stream = Some(rule);
    let mut job = job(&null.target, closed(connections, u64::from(connections)));
    job.requests[0] = request;
    job
}

fn raw(messages: Vec<PlannedMessage>) -> WebSocketCall {
    WebSocketCall {
        dialect: WebSocketDialect::Raw {
            subprotocol: None,
            replies: match messages.is_empty() {
                true => ReplyRule::None,
                false => ReplyRule::Order,
            },
            messages,
        },
        offers: Vec::new(),
        hold: None,
        is_kept: false,
    }
}

#[test]
fn a_planted_delay_of_replies_is_in_every_round_trip() {
    let delay = Duration::from_millis(20);
    let null = Null::start(SocketBehavior::Echo { delay });
    let message = PlannedMessage {
        content: MessageContent::Text("hello".to_owned()),
        after: Duration::ZERO,
        every: Some(Duration::from_millis(5)),
        count: Some(10),
    };
    let call = raw(vec![message]);
    let measurement = measure(&job_of(&null, 2, call, StreamRule::of(Framing::Messages)));
    assert_eq!(measurement.outcomes.passed, 2, "{:?}", measurement.failures);
    let trips = measurement.events.unwrap().round_trips.times;
    assert_eq!(trips.len(), 20);
    // Never earlier. A busy machine may be later, but the second message does not wait for the first reply.
    assert!(trips.min_ns() >= Some(20_000_000), "{:?}", trips.min_ns());
    assert!(measurement.latency.min_ns() >= Some(65_000_000));
    // The counts are there before the end, too.
    let told = counts(&null);
    for count in ["\"requests\":20,", "\"answered\":20,"] {
        assert!(told.contains(count), "{told}");
    }
    let seen = null.seen();
    assert_eq!((seen.requests, seen.answered, seen.malformed), (20, 20, 0));
}

/// Requests the counts without an upgrade.
fn counts(null: &Null) -> String {
    let Address::Tcp(address) = &null.target.address else {
        panic!("the server listens on TCP");
    };
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    let request = b"GET /seen HTTP/1.1\r\nHost: null.test\r\n\r\n";
    stream.write_all(request).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    answer
}

#[test]
fn a_publisher_sends_each_event_to_all_clients_with_its_time() {
    let null = Null::start(SocketBehavior::Publish {
        events: 5,
        first: Duration::from_millis(30),
        gap: Duration::from_millis(10),
        deliver_after: Duration::from_millis(15),
    });
    let rule = StreamRule {
        events: Some(5),
        each: EventCheck::Json,
        sent_at: Some("/at".to_owned()),
        ..StreamRule::of(Framing::Messages)
    };
    let measurement = measure(&job_of(&null, 8, raw(Vec::new()), rule));
    assert_eq!(measurement.outcomes.passed, 8, "{:?}", measurement.failures);
    let events = measurement.events.unwrap();
    assert_eq!((events.streams, events.events), (8, 40));
    let delivery = events.delivery.times;
    assert_eq!(delivery.len(), 40);
    assert!(
        delivery.min_ns() >= Some(15_000_000),
        "{:?}",
        delivery.min_ns()
    );
    // The first event of a client has the first time stamp after 30 ms, and leaves 15 ms later.
    assert!(
        events.first.min_ns() >= Some(45_000_000),
        "{:?}",
        events.first.min_ns()
    );
}

#[test]
fn a_publisher_serves_both_protocols_of_graphql() {
    for protocol in [GraphqlProtocol::TransportWs, GraphqlProtocol::LegacyWs] {
        let null = Null::start(SocketBehavior::Publish {
            events: 3,
            first: Duration::ZERO,
            gap: Duration::from_millis(2),
            deliver_after: Duration::ZERO,
        });
        let call = WebSocketCall {
            dialect: WebSocketDialect::Graphql {
                protocol,
                init: None,
                subscribe: r#"{"query":"subscription { price }"}"#.to_owned(),
            },
            offers: Vec::new(),
            hold: None,
            is_kept: true,
        };
        let rule = StreamRule {
            events: Some(3),
            each: EventCheck::Graphql,
            sent_at: Some("/data/at".to_owned()),
            ..StreamRule::of(Framing::Messages)
        };
        let mut job = job_of(&null, 1, call, rule);
        job.load = closed(1, 4);
        let measurement = measure(&job);
        assert_eq!(measurement.outcomes.passed, 4, "{:?}", measurement.failures);
        let events = measurement.events.unwrap();
        assert_eq!((events.streams, events.delivery.times.len()), (4, 12));
        assert_eq!(null.seen().connections, 1, "{protocol:?}");
    }
}

#[test]
fn a_held_subscription_ends_by_itself() {
    let null = Null::start(SocketBehavior::Publish {
        events: 1_000_000,
        first: Duration::ZERO,
        gap: Duration::from_millis(5),
        deliver_after: Duration::ZERO,
    });
    let mut call = raw(Vec::new());
    call.hold = Some(Duration::from_millis(100));
    let measurement = measure(&job_of(&null, 20, call, StreamRule::of(Framing::Messages)));
    assert_eq!(
        measurement.outcomes.passed, 20,
        "{:?}",
        measurement.failures
    );
    assert!(measurement.latency.min_ns() >= Some(100_000_000));
    let seen = null.seen();
    assert_eq!((seen.connections, seen.malformed), (20, 0));
}
