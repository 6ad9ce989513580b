//! Why a load could not be begun.

use schedule::PlanError;

use crate::general::TlsError;
use crate::rendered::RequestError;

/// Why a load could not be begun. What goes wrong later is an outcome.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// There is nothing to send.
    #[error("expected at least one request, found none")]
    NoRequests,
    /// A request cannot be sent.
    #[error("request {} (`{method} {path}`): {reason}", index + 1)]
    Request {
        /// Its position in the job, from 0.
        index: usize,
        /// Its method.
        method: String,
        /// Its path.
        path: String,
        /// What is wrong with it.
        reason: RequestError,
    },
    /// There are columns and nothing in them.
    #[error("expected at least one row of data, found none")]
    NoRows,
    /// A row of the data with too few or too many values.
    #[error("row {} of the data: expected {expected} values, found {found}", row + 1)]
    Row {
        /// Its position, from 0.
        row: usize,
        /// Number of columns.
        expected: usize,
        /// Number of values.
        found: usize,
    },
    /// The weights have no common turn of sensible length.
    #[error(
        "the weights need a turn of more than 65,536 requests; use smaller weights, or ones with a common divisor"
    )]
    Weights,
    /// Steps that are not those of the requests.
    #[error("expected a step for each of {requests} requests, found {steps}")]
    Steps {
        /// Number of requests.
        requests: usize,
        /// Number of steps.
        steps: usize,
    },
    /// Nothing to send with.
    #[error("expected at least one {0}, found 0")]
    Zero(&'static str),
    /// A closed loop that never ends.
    #[error("expected a number of requests or a duration after which to stop, found neither")]
    Endless,
    /// The plan.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The system does not allow so many connections.
    #[error(
        "{connections} connections need {needed} open files and the system allows {allowed}; raise it with `ulimit -n`"
    )]
    OpenFiles {
        /// Connections asked for.
        connections: u32,
        /// Files they need.
        needed: u64,
        /// Files allowed.
        allowed: u64,
    },
    /// The path of a Unix socket.
    #[error("not an address: {0}")]
    Address(std::io::Error),
    /// TLS with the target.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The event loop of TLS and HTTP/2.
    #[error("cannot create an event loop: {0}")]
    Runtime(std::io::Error),
    /// The event loop.
    #[error("cannot create an epoll instance: {0}")]
    Poll(rustix::io::Errno),
    /// A pin to a CPU that is not there.
    #[error("cannot pin a generator thread to CPU {cpu}: {reason}")]
    Pin {
        /// The CPU asked for.
        cpu: usize,
        /// The system's words.
        reason: rustix::io::Errno,
    },
    /// Jobs that share generator threads and ask for different ones.
    #[error("expected the same {0} in all jobs that run together")]
    Unlike(&'static str),
    /// Slices that overlap or are empty, or that a load cannot have.
    #[error(
        "expected slices of a closed loop without steps, in order, disjoint and not empty, found others"
    )]
    Slices,
    /// More slots than there is room for their times.
    #[error("expected at most {kept} slots, whose times are kept, found a plan of {planned}")]
    SlotsKept {
        /// Slots of the plan.
        planned: u64,
        /// What [`Job::keep_slots`](crate::Job::keep_slots) allows; at most 2^32.
        kept: usize,
    },
}
