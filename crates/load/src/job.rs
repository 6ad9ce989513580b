//! What to send, where to, how fast, and what a right answer looks like.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::scenario::Step;
use crate::slices::Slice;

/// One load on one target, from the first send to the last answer.
#[derive(Clone, Debug)]
pub struct Job {
    /// Who gets the load.
    pub target: Target,
    /// What is sent, in weighted rotation. At least one.
    pub requests: Vec<Request>,
    /// Makes the requests a scenario: one step for each, sent in order as one pass, again and again.
    /// A slot is then a pass, and its weights count for nothing. Empty for a rotation.
    ///
    /// The latency of the first step counts from the pass's `due`, that of a later one from the
    /// moment the answer before it was complete plus its pause. A step that does not pass ends its
    /// pass. In a closed loop that ends by time, no step is due after the end.
    pub steps: Vec<Step>,
    /// What `{{…}}` in requests stand for; without it they are text like any other.
    pub data: Option<Data>,
    /// When requests leave and when the load ends.
    pub load: schedule::Load,
    /// Open loop: how many connections may be open at once, over all threads. At least 1.
    /// A slot that finds all of them (and all their streams) busy waits, and the wait is part of its
    /// latency.
    pub connections_max: u32,
    /// Generator threads, one event loop each. At least 1; never more than there are connections.
    pub threads: u32,
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
    /// time ([`Job::spin_share`] of 1): they would leave nothing to anybody.
    pub realtime: bool,
    /// Pins generator thread `i` to the CPU `cpus[i % cpus.len()]`.
    pub cpus: Option<Vec<usize>>,
    /// Open loop: where between the due times of the plan its slots stand; `None` leaves them there.
    pub seat: Option<schedule::Seat>,
    /// Keeps the times of every slot ([`Measurement::slots`](crate::Measurement::slots), 32 bytes
    /// each), at most so many: a plan with more is refused. Nothing is kept of a closed loop without
    /// a number of requests.
    pub keep_slots: Option<usize>,
    /// Closed loop of a rotation: when slots exist, in order and disjoint; empty for always.
    pub slices: Vec<Slice>,
}

impl Job {
    /// A job with what most loads have: at most 1,000 connections, one thread without a pin, 10
    /// seconds of timeout, keep-alive, three samples of each failure, real-time priority and
    /// [`Job::SPIN_SHARE`].
    #[must_use]
    pub fn new(target: Target, requests: Vec<Request>, load: schedule::Load) -> Job {
        Job {
            target,
            requests,
            steps: Vec::new(),
            data: None,
            load,
            connections_max: 1000,
            threads: 1,
            timeout: Duration::from_secs(10),
            keep_alive: true,
            failures_kept: 3,
            bound: Bounds::default(),
            spin_share: Job::SPIN_SHARE,
            realtime: true,
            cpus: None,
            seat: None,
            keep_slots: None,
            slices: Vec::new(),
        }
    }

    /// A quarter: enough for 1,000 slots a second on a machine that wakes a thread 200 microseconds
    /// late, and three quarters of the core are left.
    pub const SPIN_SHARE: f64 = 0.25;
}

/// What is filled into requests, in their paths, header values and bodies: `{{column}}` of a row,
/// `{{name}}` of a range, `{{index}}` of the slot (from 0), and `{{random:1..1000}}`, a whole number
/// from a range with both ends, drawn for this place alone. Values in a path are percent-encoded; elsewhere they stand as they are.
///
/// All places of one request take the same row. What a slot sends depends on nothing but its index
/// and this.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Data {
    /// Names of the columns. With columns, a place of any other name is a mistake; without, it is
    /// text.
    pub columns: Vec<String>,
    /// Rows, each with a value for every column. At least one when there are columns.
    pub rows: Vec<Vec<String>>,
    /// Numbers drawn once for each slot, by name.
    pub ranges: Vec<Range>,
    /// Which row a slot takes.
    pub order: RowOrder,
    /// For random rows and numbers.
    pub seed: u64,
}

/// Whole numbers, of which each slot draws one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Range {
    /// What places call it.
    pub name: String,
    /// The smallest.
    pub from: u64,
    /// The largest; not less than the smallest.
    pub to: u64,
}

/// Which row of the data a slot takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RowOrder {
    /// One after the other, and again from the first.
    #[default]
    Rotation,
    /// Any, drawn with the seed and put back.
    Random,
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

/// How requests travel. The default, HTTP/1.1 in the clear, is the fast path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Protocol {
    /// Which HTTP.
    pub version: Version,
    /// Whose certificates are good enough; `None` sends in the clear.
    pub tls: Option<Trust>,
}

impl Protocol {
    /// Is this what the fast path speaks?
    pub(crate) fn is_plain(&self) -> bool {
        *self == Protocol::default()
    }
}

/// The version of HTTP. It is agreed on beforehand and never negotiated down: a target that does not
/// speak it gives no connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Version {
    /// HTTP/1.1, one request at a time on a connection.
    #[default]
    Http1,
    /// HTTP/2: with TLS by ALPN, in the clear by prior knowledge (RFC 9113, sections 3.2 and 3.3).
    Http2 {
        /// Requests under way at once on one connection, fewer where the target allows fewer. At
        /// least 1; without keep-alive it is 1.
        streams: u32,
    },
}

impl Version {
    /// Requests that may be under way at once on one connection.
    #[must_use]
    pub fn streams(self) -> u32 {
        match self {
            Version::Http1 => 1,
            Version::Http2 { streams } => streams,
        }
    }
}

/// Whose certificates are good enough.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Those of the authorities that the system trusts.
    System,
    /// Those of the authorities in this PEM text, and of no other.
    Authorities(Vec<u8>),
    /// Any at all, even expired ones and those for other names.
    Anybody,
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

/// What every answer is checked against. The first rule that fails, in the order of the fields,
/// names the mismatch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expectation {
    /// The status line.
    pub status: StatusRule,
    /// The body is a JSON object without a top-level `errors` member (`null` and `[]` count as
    /// none).
    pub graphql: bool,
    /// The body.
    pub body: BodyRule,
    /// Headers that must be there with exactly this value; names in any case.
    pub headers: Vec<(String, String)>,
}

/// Which status is right.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StatusRule {
    /// 200 to 299.
    #[default]
    Success,
    /// This one.
    Exactly(u16),
    /// All are.
    Any,
}

/// Which body is right.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum BodyRule {
    /// All are.
    #[default]
    Any,
    /// The same bytes as these.
    Equals(Arc<[u8]>),
    /// The same bytes as these, or the same JSON value but for what is ignored.
    Alike {
        /// A right body.
        body: Arc<[u8]>,
        /// JSON pointers (RFC 6901) to what differs by nature; it may also be missing.
        ignore: Vec<String>,
    },
}

impl BodyRule {
    /// The rule for a known body, and for what in it differs by nature.
    #[must_use]
    pub fn known(body: &[u8], ignore: &[String]) -> BodyRule {
        let body = Arc::from(body);
        if ignore.is_empty() {
            BodyRule::Equals(body)
        } else {
            let ignore = ignore.to_vec();
            BodyRule::Alike { body, ignore }
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
