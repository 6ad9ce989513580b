//! The engine over each carrier, with a planted time: the time that it finds, and the punctuality of its sends.
//!
//! The null servers have one thread each and the same core. A server of HTTP/1.1 sends from its own event
//! loop, and the servers of gRPC and HTTP/3 send through tokio. So a part of each difference is the server's.

use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::time::Duration;

use load::null::{
    Behavior, GrpcBehavior, NullCertificate, NullStream, Pace, SocketBehavior, serve, serve_grpc,
    serve_http3, serve_websocket,
};
use load::{
    Framing, Job, Measurement, Protocol, Request, StreamRule, Trust, Version, WebSocketCall,
    keep_cores_awake,
};
use model::{
    Arrival, GrpcRule, Load, MessageContent, PlannedMessage, ReplyRule, Resumption,
    WebSocketDialect,
};
use stats::Histogram;

use crate::{Course, Manner, in_turn, job, late_us, open, quantile_us, relay, say, served, spread};

/// The planted time of each row.
const PLANTED: Duration = Duration::from_millis(1);

/// Number of events of each stream.
const EVENTS: u64 = 3;

/// Requests in flight on each connection of HTTP/2 and HTTP/3.
const STREAMS: u32 = 10;

/// A carrier, with the protocol of its messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Carrier {
    Http1,
    Tls,
    Http3,
    Events,
    Messages,
    Calls,
}

impl Carrier {
    const ALL: [Carrier; 6] = [
        Carrier::Http1,
        Carrier::Tls,
        Carrier::Http3,
        Carrier::Events,
        Carrier::Messages,
        Carrier::Calls,
    ];

    fn name(self) -> &'static str {
        match self {
            Carrier::Http1 => "HTTP/1.1",
            Carrier::Tls => "HTTP/1.1 over TLS, through a relay",
            Carrier::Http3 => "HTTP/3",
            Carrier::Events => "server-sent events over HTTP/1.1",
            Carrier::Messages => "WebSocket, kept connections",
            Carrier::Calls => "gRPC over HTTP/2",
        }
    }

    /// The figure that contains the planted time.
    fn figure(self) -> &'static str {
        match self {
            Carrier::Http1 | Carrier::Tls | Carrier::Http3 => "response",
            Carrier::Events => "first event",
            Carrier::Messages => "round trip",
            Carrier::Calls => "call",
        }
    }

    fn protocol(self) -> Protocol {
        Protocol {
            version: match self {
                Carrier::Http3 => Version::Http3 { streams: STREAMS },
                Carrier::Calls => Version::Http2 { streams: STREAMS },
                _ => Version::Http1,
            },
            tls: matches!(self, Carrier::Tls | Carrier::Http3).then_some(Trust::SkipVerification),
            identity: None,
            resumption: Resumption::Off,
        }
    }

    fn request(self) -> Request {
        let mut request = Request::get("/");
        let expect = &mut request.expect;
        match self {
            Carrier::Http1 | Carrier::Tls | Carrier::Http3 => expect.graphql = true,
            Carrier::Events => {
                expect.stream = Some(StreamRule {
                    events: Some(EVENTS),
                    ..StreamRule::of(Framing::ServerSent)
                });
            }
            Carrier::Messages => {
                expect.stream = Some(StreamRule::of(Framing::Messages));
                request.websocket = Some(message());
            }
            Carrier::Calls => {
                expect.grpc = Some(GrpcRule::of_status(0));
                request.method = "POST".to_owned();
                request.path = "/null.Echo/Say".to_owned();
                request.headers = vec![
                    ("Content-Type".to_owned(), "application/grpc".to_owned()),
                    ("TE".to_owned(), "trailers".to_owned()),
                ];
                // An empty message: the byte without compression, and the length 0.
                request.body = vec![0; 5];
            }
        }
        request
    }

    /// Runs a load on the null server of this carrier.
    fn measure(self, load: Load) -> Measurement {
        match self {
            Carrier::Http3 => {
                let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
                let address = socket.local_addr().expect("a bound socket");
                let names = vec!["localhost".to_owned()];
                let certificate = NullCertificate::new(names).expect("a name");
                served(
                    |stop| serve_http3(socket, &certificate, &self.behavior(), None, stop),
                    &self.job(address, load),
                )
                .0
            }
            _ => self.measure_over_tcp(load),
        }
    }

    fn measure_over_tcp(self, load: Load) -> Measurement {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("a bound socket");
        let job = self.job(address, load);
        match self {
            Carrier::Messages => {
                let echo = SocketBehavior::Echo { delay: PLANTED };
                served(|stop| serve_websocket(listener, echo, stop), &job).0
            }
            Carrier::Calls => {
                let behavior = GrpcBehavior {
                    delay: PLANTED,
                    events: None,
                    gap: Duration::ZERO,
                    status: 0,
                };
                served(|stop| serve_grpc(listener, &behavior, stop), &job).0
            }
            Carrier::Tls => served(|stop| relay::serve(listener, &self.behavior(), stop), &job).0,
            Carrier::Http1 | Carrier::Events | Carrier::Http3 => {
                served(|stop| serve(listener, &self.behavior(), stop), &job).0
            }
        }
    }

    /// The behavior of a server of HTTP.
    fn behavior(self) -> Behavior {
        let stream = NullStream {
            is_server_sent: true,
            events: EVENTS,
            first: PLANTED,
            gap: PLANTED,
            marker: None,
            stays_open: false,
        };
        match self {
            Carrier::Events => Behavior {
                stream: Some(stream),
                ..Behavior::default()
            },
            _ => Behavior {
                pace: Pace::Delay(PLANTED),
                ..Behavior::default()
            },
        }
    }

    fn job(self, address: SocketAddr, load: Load) -> Job {
        job(
            Manner::default(),
            address,
            self.protocol(),
            self.request(),
            load,
        )
    }

    /// The times with the planted time.
    fn times(self, found: &Measurement) -> &Histogram {
        match (&found.events, self) {
            (Some(events), Carrier::Events) => &events.first,
            (Some(events), Carrier::Messages) => &events.round_trips.times,
            _ => &found.latency,
        }
    }
}

/// A conversation of one message and its reply.
fn message() -> WebSocketCall {
    WebSocketCall {
        is_kept: true,
        offers: Vec::new(),
        dialect: WebSocketDialect::Raw {
            subprotocol: None,
            messages: vec![PlannedMessage {
                content: MessageContent::Text("hello".to_owned()),
                after: Duration::ZERO,
                every: None,
                count: Some(1),
            }],
            replies: ReplyRule::Order,
        },
        hold: None,
    }
}

/// The results of one carrier in one turn.
struct Finding {
    found_us: f64,
    late_us: [f64; 4],
    cpu_us_per_slot: f64,
    not_passed: u64,
}

/// Measures each carrier at each rate, in turn, and repeats that.
pub(crate) fn carriers(course: &Course) {
    let Course { turns, length, .. } = course;
    say(&format!(
        "{turns} turns of {length:?} each. The planted time is {PLANTED:?}. Cells show the median, with the \
         lowest and highest values in brackets.\n"
    ));
    say(
        "| rate | carrier | figure | found us p50 | more than planted us | lateness us p50 | p99 | p99.9 | CPU us/slot | not passed | steal ms/s | others ms/s | tries |",
    );
    say("|---:|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|");
    for rate in [1000.0, 5000.0] {
        let found = in_turn(Carrier::ALL.len(), course, |index| {
            find(Carrier::ALL[index], rate, *length)
        });
        for (carrier, turns) in Carrier::ALL.iter().zip(&found) {
            let cell = |figure: fn(&Finding) -> f64, digits| {
                spread(turns, |turn| figure(&turn.found), digits)
            };
            say(&format!(
                "| {rate} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
                carrier.name(),
                carrier.figure(),
                cell(|turn| turn.found_us, 0),
                cell(|turn| turn.found_us - PLANTED.as_secs_f64() * 1e6, 0),
                cell(|turn| turn.late_us[0], 1),
                cell(|turn| turn.late_us[1], 0),
                cell(|turn| turn.late_us[2], 0),
                cell(|turn| turn.cpu_us_per_slot, 0),
                cell(|turn| turn.not_passed as f64, 0),
                spread(turns, |turn| turn.steal_ms_per_s, 0),
                spread(turns, |turn| turn.others_ms_per_s, 0),
                spread(turns, |turn| turn.tries.into(), 0),
            ));
        }
    }
}

/// Runs one turn of one carrier.
fn find(carrier: Carrier, rate: f64, length: Duration) -> Finding {
    let _awake = keep_cores_awake();
    let mut load = open(rate, length.as_secs_f64(), Arrival::Uniform);
    load.limit_connections(100);
    let found = carrier.measure(load);
    Finding {
        found_us: quantile_us(carrier.times(&found), 0.5),
        late_us: late_us(&found.lateness),
        cpu_us_per_slot: found.generator.cpu.as_secs_f64() * 1e6 / found.sent as f64,
        not_passed: found.outcomes.total() - found.outcomes.passed,
    }
}
