//! Why a load could not be started, or one of its requests not be sent.

use schedule::PlanError;

/// Why a load could not be started. Later failures are outcomes.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The job has no request.
    #[error("expected at least one request, found none")]
    NoRequests,
    /// A request of the job cannot be sent.
    #[error("request {} (`{method} {path}`): {reason}", index + 1)]
    Request {
        /// Its position in the job, from 0.
        index: usize,
        /// Its method.
        method: String,
        /// Its path.
        path: String,
        /// The reason.
        reason: RequestError,
    },
    /// The data has columns and no row.
    #[error("expected at least one row of data, found none")]
    NoRows,
    /// A row of the data has too few values, or too many.
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
        "the weights need a cycle of more than 65,536 requests. Use smaller weights, or weights with a common divisor"
    )]
    Weights,
    /// The job has steps, and not one for each request.
    #[error("expected a step for each of {requests} requests, found {steps}")]
    Steps {
        /// Number of requests.
        requests: usize,
        /// Number of steps.
        steps: usize,
    },
    /// A number of the job is 0 and must be at least 1. The text names it, as in "connection".
    #[error("expected at least one {0}, found 0")]
    Zero(&'static str),
    /// The closed loop has no end: neither a number of requests nor a time.
    #[error("expected a number of requests or a duration for the end of the load, found neither")]
    Endless,
    /// The phases of the open loop make no plan.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The system does not allow so many connections.
    #[error(
        "{connections} connections need {needed} open files, but the system allows {allowed}. Raise the limit with `ulimit -n`"
    )]
    OpenFiles {
        /// Connections asked for.
        connections: u32,
        /// Files they need.
        needed: u64,
        /// Files allowed.
        allowed: u64,
    },
    /// The path of a Unix socket cannot be one, for example because it is too long.
    #[error("not an address: {0}")]
    Address(std::io::Error),
    /// TLS cannot be spoken with the target.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The system gives no event loop for TLS or HTTP/2.
    #[error("cannot create an event loop: {0}")]
    Runtime(std::io::Error),
    /// The system gives no event loop for HTTP/1.1 in the clear.
    #[error("cannot create an epoll instance: {0}")]
    Poll(rustix::io::Errno),
    /// A generator thread cannot be pinned to a CPU: it is not there, or not allowed.
    #[error("cannot pin a generator thread to CPU {cpu}: {reason}")]
    Pin {
        /// The CPU asked for.
        cpu: usize,
        /// The system's words.
        reason: rustix::io::Errno,
    },
    /// Jobs that run together differ in a shared setting. The text names it, as in "spin share".
    #[error("expected the same {0} in all jobs that run together")]
    Unlike(&'static str),
    /// Slices that overlap or are empty, or that a load cannot have.
    #[error(
        "expected slices of a closed loop without steps, in order, disjoint and not empty, found other slices"
    )]
    Slices,
    /// The plan has more slots than times may be kept.
    #[error("expected a plan of at most {kept} slots with recorded times, found {planned}")]
    SlotsKept {
        /// Slots of the plan.
        planned: u64,
        /// The limit of [`Job::keep_slots`](crate::Job::keep_slots), at most 2^32.
        kept: usize,
    },
}

/// Why a request cannot be sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The method is not a token.
    #[error("expected a method such as `GET`, found `{0}`")]
    Method(String),
    /// The path cannot stand in a request line.
    #[error(
        "expected a path that starts with `/` and has no spaces or control characters, found `{0}`. \
         Encode such characters, for example as %20"
    )]
    Path(String),
    /// A header name is not a token.
    #[error("expected a header name such as `Content-Type`, found `{0}`")]
    HeaderName(String),
    /// A header value would break the head.
    #[error("header `{name}`: expected a value on one line, found `{value}`")]
    HeaderValue {
        /// The header.
        name: String,
        /// Its value.
        value: String,
    },
    /// It brings a `Content-Length` that is not the length of its body.
    #[error(
        "header `Content-Length`: the body has {body_bytes} bytes, found `{value}`. Remove the header"
    )]
    ContentLength {
        /// Length of the body.
        body_bytes: usize,
        /// The value given.
        value: String,
    },
    /// It brings a `Content-Length`, and its body has another length in each slot.
    #[error("header `Content-Length`: the body differs from slot to slot. Remove the header")]
    LengthOfTemplate,
    /// It brings a `Transfer-Encoding`; bodies are framed by the generator.
    #[error("header `Transfer-Encoding`: bodies are sent with their length. Remove the header")]
    TransferEncoding,
    /// `{{random:…}}` in it names no range.
    #[error("expected a range such as `1..1000`, found `{0}`")]
    Range(String),
    /// `{{name}}` in it is not in the data.
    #[error(
        "no column `{name}`. The data has `{columns}`, and `{{{{index}}}}` and `{{{{random:1..1000}}}}` always exist. A captured value is known only to later steps"
    )]
    Place {
        /// The name in braces.
        name: String,
        /// The names there are.
        columns: String,
    },
    /// The pattern of a capture is not a regular expression.
    #[error("expected a regular expression, found `{pattern}`: {reason}")]
    Pattern {
        /// The pattern.
        pattern: String,
        /// The reason.
        reason: String,
    },
    /// HTTP/2 cannot carry it, for the reason in the text.
    #[error("over HTTP/2: {0}")]
    Http2(String),
    /// Its weight is 0, so it would never be sent.
    #[error("expected a weight of at least 1, found 0. Remove the request instead")]
    Weight,
}

/// Why TLS cannot be spoken with a target, known before the first connection.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TlsError {
    /// The name of the target is one that no certificate can be for.
    #[error("expected a host name or an address that a certificate can contain, found `{0}`")]
    Name(String),
    /// The text of trusted authorities is not PEM, or holds no certificate.
    #[error("expected certificates of authorities in PEM form, found {0}")]
    Authorities(String),
    /// The system has no trusted authorities.
    #[error(
        "the system has no list of trusted authorities{0}. Name your own authorities, or skip the verification of certificates"
    )]
    System(String),
    /// The TLS library refused for another reason, in its words.
    #[error("TLS cannot be prepared: {0}")]
    Library(String),
}
