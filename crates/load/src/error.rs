//! The reasons that a load cannot start, or that a request cannot be sent.

use schedule::PlanError;

/// The reason that a load could not start. Later failures are outcomes.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The job has no request.
    #[error("expected at least one request, found none")]
    NoRequests,
    /// A request of the job cannot be sent.
    #[error("request {} (`{method} {path}`): {reason}", index + 1)]
    Request {
        /// Position of the request in the job, from 0.
        index: usize,
        /// Method of the request.
        method: String,
        /// Path of the request.
        path: String,
        /// The error of the request.
        reason: RequestError,
    },
    /// The data has columns and no row.
    #[error("expected at least one row of data, found none")]
    NoRows,
    /// A row of the data has too few values, or too many.
    #[error("row {} of the data: expected {expected} values, found {found}", row + 1)]
    Row {
        /// Position of the row, from 0.
        row: usize,
        /// Number of columns of the data.
        expected: usize,
        /// Number of values of the row.
        found: usize,
    },
    /// The weights have no common cycle of a practical length.
    #[error(
        "the weights need a cycle of more than 65,536 requests. Use smaller weights, or weights with a common divisor"
    )]
    Weights,
    /// The number of steps differs from the number of requests.
    #[error("expected a step for each of {requests} requests, found {steps}")]
    Steps {
        /// Number of requests of the job.
        requests: usize,
        /// Number of steps of the job.
        steps: usize,
    },
    /// A number of the job is 0 and must be at least 1. The text contains its name, as in "connection".
    #[error("expected at least one {0}, found 0")]
    Zero(&'static str),
    /// The closed loop has no end: neither a number of requests nor a time.
    #[error("expected a number of requests or a duration for the end of the load, found neither")]
    Endless,
    /// The phases of the open loop make no plan.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The system does not allow that number of connections.
    #[error(
        "{connections} connections need {needed} open files, but the system allows {allowed}. Raise the limit with `ulimit -n`"
    )]
    OpenFiles {
        /// Number of requested connections.
        connections: u32,
        /// Number of open files that they need.
        needed: u64,
        /// Number of open files that the system allows.
        allowed: u64,
    },
    /// The path of a Unix socket cannot be one, for example because it is too long.
    #[error("not an address: {0}")]
    Address(std::io::Error),
    /// TLS with the target is impossible.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The system provides no event loop for TLS or HTTP/2.
    #[error("cannot create an event loop: {0}")]
    Runtime(std::io::Error),
    /// The system provides no event loop for HTTP/1.1 without TLS.
    #[error("cannot create an epoll instance: {0}")]
    Poll(rustix::io::Errno),
    /// A generator thread cannot be pinned to a CPU that is absent or not allowed.
    #[error("cannot pin a generator thread to CPU {cpu}: {reason}")]
    Pin {
        /// Number of the requested CPU.
        cpu: usize,
        /// The error of the system.
        reason: rustix::io::Errno,
    },
    /// Jobs that run together differ in a shared setting. The text contains its name, as in "spin share".
    #[error("expected the same {0} in all jobs that run together")]
    Unlike(&'static str),
    /// Slices that overlap or are empty, or that a load cannot have.
    #[error(
        "expected slices of a closed loop without steps, in order, disjoint and not empty, found other slices"
    )]
    Slices,
    /// The plan has more slots than the limit for kept times.
    #[error("expected a plan of at most {kept} slots with recorded times, found {planned}")]
    SlotsKept {
        /// Number of slots of the plan.
        planned: u64,
        /// The limit of [`Job::keep_slots`](crate::Job::keep_slots), at most 2^32.
        kept: usize,
    },
}

/// The reason that a request cannot be sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The method is not a token.
    #[error("expected a method such as `GET`, found `{0}`")]
    Method(String),
    /// The path cannot be part of a request line.
    #[error(
        "expected a path that starts with `/` and has no spaces or control characters, found `{0}`. \
         Encode such characters, for example as %20"
    )]
    Path(String),
    /// A raw value of the data cannot stand in a path.
    #[error(
        "column `{name}` for `{{{{raw:{name}}}}}`: expected a part of a path, found {found}. `{{{{{name}}}}}` encodes it"
    )]
    RawValue {
        /// Name of the column.
        name: String,
        /// The value, with the reason.
        found: String,
    },
    /// A header name is not a token.
    #[error("expected a header name such as `Content-Type`, found `{0}`")]
    HeaderName(String),
    /// A header value would break the head.
    #[error("header `{name}`: expected a value on one line, found `{value}`")]
    HeaderValue {
        /// Name of the header.
        name: String,
        /// Value of the header.
        value: String,
    },
    /// The request has a `Content-Length` that differs from the length of its body.
    #[error(
        "header `Content-Length`: the body has {body_bytes} bytes, found `{value}`. Remove the header"
    )]
    ContentLength {
        /// Length of the body in bytes.
        body_bytes: usize,
        /// Value of the header `Content-Length`.
        value: String,
    },
    /// The request has a `Content-Length`, but its body has a different length in each slot.
    #[error("header `Content-Length`: the body differs from slot to slot. Remove the header")]
    LengthOfTemplate,
    /// The request has a `Transfer-Encoding`. The generator frames bodies itself.
    #[error("header `Transfer-Encoding`: bodies are sent with their length. Remove the header")]
    TransferEncoding,
    /// A `{{random:…}}` of the request has no range.
    #[error("expected a range such as `1..1000`, found `{0}`")]
    Range(String),
    /// A `{{name}}` of the request is not in the data.
    #[error(
        "no column `{name}`. The data has `{columns}`, and `{{{{index}}}}` and `{{{{random:1..1000}}}}` always exist. A captured value is known only to later steps"
    )]
    Place {
        /// The name in braces.
        name: String,
        /// The available names.
        columns: String,
    },
    /// The pattern of a capture is not a regular expression.
    #[error("expected a regular expression, found `{pattern}`: {reason}")]
    Pattern {
        /// The pattern of the capture.
        pattern: String,
        /// The error of the pattern.
        reason: String,
    },
    /// HTTP/2 cannot carry it, for the reason in the text.
    #[error("over HTTP/2: {0}")]
    Http2(String),
    /// HTTP/3 cannot carry it, for the reason in the text.
    #[error("over HTTP/3: {0}")]
    Http3(String),
    /// No conversation over WebSocket can begin, for the reason in the text.
    #[error("over WebSocket: {0}")]
    WebSocket(String),
    /// No call of gRPC can be sent, for the reason in the text.
    #[error("as a call of gRPC: {0}")]
    Grpc(String),
    /// The weight is 0, so the request would never be sent.
    #[error("expected a weight of at least 1, found 0. Remove the request instead")]
    Weight,
}

/// The reason that TLS with a target is impossible, found before the first connection.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TlsError {
    /// No certificate can be for the name of the target.
    #[error("expected a host name or an address that a certificate can contain, found `{0}`")]
    Name(String),
    /// The text of trusted authorities is not PEM, or contains no certificate.
    #[error("expected certificates of authorities in PEM form, found {0}")]
    Authorities(String),
    /// The client's own certificate or key is not PEM, or they do not belong together.
    #[error("expected a certificate of the client and its key in PEM form, found {0}")]
    Identity(String),
    /// The system has no trusted authorities.
    #[error(
        "the system has no list of trusted authorities{0}. Name your own authorities, or skip the verification of certificates"
    )]
    System(String),
    /// HTTP/3 is impossible with the target, for the reason in the text.
    #[error("HTTP/3: {0}")]
    Http3(&'static str),
    /// Requests cannot leave before the handshake over this version of HTTP.
    #[error("0-RTT needs HTTP/3, found {0}. Use HTTP/3, or only the resumption of connections")]
    EarlyData(&'static str),
    /// The TLS library refused for another reason, given in the text.
    #[error("TLS cannot be prepared: {0}")]
    Library(String),
}
