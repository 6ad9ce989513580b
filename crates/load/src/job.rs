//! What to send, where to, how fast, and what a right answer looks like.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use model::{Shard, Step};

use crate::slices::Slice;
pub use model::{
    BodyRule, Data, EncodedBody, Expectation, Protocol, Range, RowOrder, StatusRule, Trust, Version,
};

/// One load on one target, from the first send to the last answer.
#[derive(Clone, Debug)]
pub struct Job {
    /// Who gets the load.
    pub target: Target,
    /// What is sent, in weighted rotation. At least one.
    pub requests: Vec<Request>,
    /// Makes the requests a scenario: one step for each, sent in order, again and again, each time as one iteration.
    /// A slot is then an iteration, and its weights count for nothing. Empty for a rotation.
    ///
    /// The latency of the first step counts from the iteration's `due`, that of a later one from the
    /// moment the answer before it was complete plus its pause. A step that does not pass ends its
    /// iteration. In a closed loop that ends by time, no step is due after the end.
    pub steps: Vec<Step>,
    /// What `{{…}}` in requests stand for; without it they are text like any other.
    pub data: Option<Data>,
    /// When requests leave and when the load ends.
    pub load: model::Load,
    /// Generator threads, one event loop each. At least 1; never more than there are connections.
    pub threads: u32,
    /// The part of `load` that is sent from here: its connections, requests and slots are those of all
    /// shards together.
    pub shard: Shard,
    /// When the load begins, where its connections are open by then; as soon as they are when absent.
    /// Generators that send shards of one plan begin together.
    pub start_at: Option<Instant>,
    /// Whether the load ends within a fifth of a second of the first answer 429 or 503: the target is
    /// not the user's to overload. It is then interrupted.
    pub yields: bool,
    /// The longest time from the actual send (or from the connect, where the request needed one)
    /// to the last byte. It is the grace after the end of an open plan as well.
    pub timeout: Duration,
    /// `false`: every request travels on a connection of its own and says `Connection: close`.
    pub keep_alive: bool,
    /// How many failing request and answer pairs of each kind are kept.
    pub failures_kept: usize,
    /// What an answer may cost at most.
    pub bound: Bounds,
    /// Open loop: the share of the time that a generator thread may spend looking at the clock so
    /// that slots leave on time, 0 to 1; [`Job::SPIN_SHARE`] unless there is a reason.
    pub spin_share: f64,
    /// Open loop: whether generator threads ask for real-time priority, so that no ordinary program
    /// delays a send. Where it is refused they stay ordinary, and
    /// [`GeneratorCost::realtime`](crate::GeneratorCost::realtime) says so. On cores that they share
    /// they have it while they use less than a fifth of their core, or up to 30 % when they had it
    /// before, and on cores of their own ([`Job::cpus`]) always. Not asked for when they spin all the
    /// time ([`Job::spin_share`] of 1): they would leave nothing to other programs.
    pub realtime: bool,
    /// Pins generator thread `i` to the CPU `cpus[i % cpus.len()]`.
    pub cpus: Option<Vec<usize>>,
    /// Open loop: where between the due times of the plan its slots stand; `None` leaves them there.
    pub seat: Option<schedule::Seat>,
    /// Keeps the times of every slot ([`Measurement::slots`](crate::Measurement::slots), 32 bytes
    /// each), at most so many: a plan with more is refused. A closed loop without a number of requests
    /// that turns out to have more keeps none.
    pub keep_slots: Option<usize>,
    /// Keeps latency in 24 equal parts of the load as well ([`Measurement::blocks`](crate::Measurement::blocks)).
    pub keep_blocks: bool,
    /// Closed loop of a rotation: when slots exist, in order and disjoint; empty for always.
    pub slices: Vec<Slice>,
}

impl Job {
    /// A job with what most loads have: one thread without a pin, 10 seconds of timeout, keep-alive,
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

    /// A quarter: enough for 1,000 slots a second on a machine that wakes a thread 200 microseconds
    /// late, and three quarters of the core are left.
    pub const SPIN_SHARE: f64 = 0.25;
}

/// The receiver of the load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Where to connect.
    pub address: Address,
    /// The value of the `Host` header, unless a request brings its own. With TLS it is also the name
    /// that the certificate must be for.
    pub host: String,
    /// How to speak with it.
    pub protocol: Protocol,
}

/// Where a target listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// TCP over IPv4 or IPv6.
    Tcp(SocketAddr),
    /// A Unix domain socket.
    Unix(PathBuf),
}

/// One request of the rotation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// `GET`, `POST`, …
    pub method: String,
    /// Path and query, as it goes into the request line.
    pub path: String,
    /// Sent as they are. `Content-Length` and `Host` are added where they are missing.
    pub headers: Vec<(String, String)>,
    /// Sent with its `Content-Length`; may be empty.
    pub body: Vec<u8>,
    /// What a right answer looks like.
    pub expect: Expectation,
    /// How often in a turn of the rotation. At least 1.
    pub weight: u32,
}

impl Request {
    /// A `GET` without headers and body, whose answer may have any status from 200 to 299.
    #[must_use]
    pub fn get(path: impl Into<String>) -> Request {
        Request {
            method: "GET".to_owned(),
            path: path.into(),
            headers: Vec::new(),
            body: Vec::new(),
            expect: Expectation::default(),
            weight: 1,
        }
    }
}

/// What an answer may cost at most; beyond it is `failed: too-large`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes of status line and headers, and of trailers.
    pub head_bytes: usize,
    /// Bytes of body, without framing.
    pub body_bytes: u64,
}

impl Default for Bounds {
    /// 64 KiB of head, 1 GiB of body.
    fn default() -> Bounds {
        Bounds {
            head_bytes: 64 * 1024,
            body_bytes: 1024 * 1024 * 1024,
        }
    }
}
