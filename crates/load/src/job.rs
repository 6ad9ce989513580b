//! The job of a load: requests, target, arrival and expected responses.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use model::{Shard, Step};

use crate::slices::Slice;
pub use model::{
    BodyRule, ClientIdentity, Data, EncodedBody, EventCheck, Expectation, Framing, GrpcCall,
    GrpcDescriptors, GrpcRule, Protocol, Range, Resumption, RowOrder, StatusRule, StreamEnd,
    StreamRule, Trust, Version, WebSocketCall,
};

/// One load on one target, from the first send to the last response.
#[derive(Clone, Debug)]
pub struct Job {
    /// The receiver of the load.
    pub target: Target,
    /// The requests, in weighted rotation. At least one.
    pub requests: Vec<Request>,
    /// The steps that turn the requests into a scenario, one for each request. All steps in order are one
    /// iteration, and iterations repeat. A slot is then an iteration, and weights have no effect. Empty for a
    /// rotation.
    ///
    /// The latency of the first step counts from the iteration's `due`. The latency of a later step counts
    /// from the moment when the previous response was complete, plus its pause. A step that does not pass
    /// ends its iteration. In a closed loop that ends by time, no step is due after the end.
    pub steps: Vec<Step>,
    /// The values of `{{…}}` in requests. Without data, `{{…}}` is ordinary text.
    pub data: Option<Data>,
    /// Arrival of requests and end of the load.
    pub load: model::Load,
    /// Generator threads, one event loop each. At least 1, and at most the number of connections.
    pub threads: u32,
    /// The part of `load` that this generator sends. The connections, requests and slots of `load` are the
    /// totals of all shards.
    pub shard: Shard,
    /// The start of the load, if its connections are open by then. `None` starts when they are open.
    /// Generators that send shards of one plan start together.
    pub start_at: Option<Instant>,
    /// True if the load stops within a fifth of a second of the first response 429 or 503, because overload
    /// is not allowed. The load then counts as interrupted.
    pub yields: bool,
    /// The longest time from the actual send to the last byte. If the request needed a new connection, the
    /// time starts with the connect. It is also the grace after the end of an open plan.
    pub timeout: Duration,
    /// If `false`, every request has a new connection and the request header `Connection: close`.
    pub keep_alive: bool,
    /// Number of failing request and response pairs to keep, per kind.
    pub failures_kept: usize,
    /// Size limits of a response.
    pub bound: Bounds,
    /// Open loop: the largest share of the time that a generator thread may poll the clock so that slots
    /// leave on time, 0 to 1. Use [`Job::SPIN_SHARE`] unless there is a reason.
    pub spin_share: f64,
    /// Open loop: true if generator threads request real-time priority, so that no ordinary program delays a
    /// send. If the system refuses, they stay ordinary, and
    /// [`GeneratorCost::realtime`](crate::GeneratorCost::realtime) reports it. Threads on shared cores have
    /// the priority while they use less than a fifth of their core, or up to 30 % if they already had it.
    /// Threads on cores of their own ([`Job::cpus`]) always have it. Threads that always spin
    /// ([`Job::spin_share`] of 1) do not request it, because other programs would get no time.
    pub realtime: bool,
    /// Pins generator thread `i` to the CPU `cpus[i % cpus.len()]`.
    pub cpus: Option<Vec<usize>>,
    /// Open loop: the offset of the slots between the due times of the plan. `None` for no offset.
    pub seat: Option<schedule::Seat>,
    /// Keeps the times of every slot ([`Measurement::slots`](crate::Measurement::slots), 32 bytes each), up
    /// to this number of slots. A plan with more slots is refused. A closed loop without a number of requests
    /// keeps no times if it has more slots.
    pub keep_slots: Option<usize>,
    /// True to also keep latency in 24 equal parts of the load
    /// ([`Measurement::blocks`](crate::Measurement::blocks)).
    pub keep_blocks: bool,
    /// Closed loop of a rotation: the stretches of time with slots, in order and disjoint. Empty for the
    /// whole load.
    pub slices: Vec<Slice>,
}

impl Job {
    /// Returns a job with the usual settings: one thread without a pin, 10 seconds of timeout, keep-alive,
    /// three samples of each failure, real-time priority and [`Job::SPIN_SHARE`].
    #[must_use]
    pub fn new(target: Target, requests: Vec<Request>, load: model::Load) -> Job {
        Job {
            target,
            requests,
            steps: Vec::new(),
            data: None,
            load,
            threads: 1,
            shard: Shard::WHOLE,
            start_at: None,
            yields: false,
            timeout: Duration::from_secs(10),
            keep_alive: true,
            failures_kept: 3,
            bound: Bounds::default(),
            spin_share: Job::SPIN_SHARE,
            realtime: true,
            cpus: None,
            seat: None,
            keep_slots: None,
            keep_blocks: false,
            slices: Vec::new(),
        }
    }

    /// True if the fast carrier can send it: HTTP/1.1 without TLS, and neither WebSocket nor calls.
    pub(crate) fn is_plain(&self) -> bool {
        let mut requests = self.requests.iter();
        let is_plain = |it: &Request| it.websocket.is_none() && it.grpc.is_none();
        self.target.protocol.is_plain() && requests.all(is_plain)
    }

    /// The usual share of the time for spinning. A quarter is enough for 1,000 slots a second on a machine
    /// that wakes a thread 200 microseconds late. Three quarters of the core remain.
    pub const SPIN_SHARE: f64 = 0.25;
}

/// The receiver of the load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The address of its listener.
    pub address: Address,
    /// The value of the `Host` header, unless a request has its own. With TLS it is also the name in the
    /// certificate.
    pub host: String,
    /// HTTP version and TLS settings.
    pub protocol: Protocol,
}

/// The address of a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// TCP over IPv4 or IPv6.
    Tcp(SocketAddr),
    /// Path of a Unix domain socket.
    Unix(PathBuf),
}

/// One request of the rotation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The method, such as `GET` or `POST`.
    pub method: String,
    /// Path and query, as in the request line.
    pub path: String,
    /// Headers, sent without change. `Content-Length` and `Host` are added if they are missing.
    pub headers: Vec<(String, String)>,
    /// The body, sent with its `Content-Length`. May be empty.
    pub body: Vec<u8>,
    /// The checks of its response.
    pub expect: Expectation,
    /// The conversation that the request opens. `None` for a request of HTTP.
    pub websocket: Option<WebSocketCall>,
    /// The call of gRPC that the request is. `None` for another request. Its method, path and headers are
    /// those of the call, and the body is empty.
    pub grpc: Option<GrpcCall>,
    /// Number of times in one cycle of the rotation. At least 1.
    pub weight: u32,
}

impl Request {
    /// Returns a `GET` request without headers and body. Its response may have any status from 200 to 299.
    #[must_use]
    pub fn get(path: impl Into<String>) -> Request {
        Request {
            method: "GET".to_owned(),
            path: path.into(),
            headers: Vec::new(),
            body: Vec::new(),
            expect: Expectation::default(),
            websocket: None,
            grpc: None,
            weight: 1,
        }
    }
}

/// Size limits of a response. A larger response is `failed: too-large`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes of status line and headers, and of trailers.
    pub head_bytes: usize,
    /// Bytes of body, without framing.
    pub body_bytes: u64,
}

impl Bounds {
    /// Returns the limits of a single exchange: 64 KiB of head and 64 MiB of body. The body stays in memory. A load
    /// keeps no body, so its limit is larger.
    #[must_use]
    pub fn of_one_exchange() -> Bounds {
        Bounds {
            body_bytes: 64 * 1024 * 1024,
            ..Bounds::default()
        }
    }
}

impl Default for Bounds {
    /// Returns the limits 64 KiB of head and 1 GiB of body.
    fn default() -> Bounds {
        Bounds {
            head_bytes: 64 * 1024,
            body_bytes: 1024 * 1024 * 1024,
        }
    }
}
