//! The rule that a response broke, as text.

use model::CaptureFrom;

use crate::check::graphql::GraphqlFault;
use crate::coding::CodingError;
use crate::job::StatusRule;
use crate::measurement::FailureKind;
use crate::parser::ParseError;

/// The first rule that a response broke.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    /// The status is wrong.
    #[error("expected status {expected}, found {found}{}", leading(location.as_deref()))]
    Status {
        /// The expected status.
        expected: StatusRule,
        /// The status of the response.
        found: u16,
        /// The target of a redirect.
        location: Option<Box<str>>,
    },
    /// The body has GraphQL errors, or is no GraphQL response.
    #[error("expected a GraphQL answer without errors, found {0}")]
    Graphql(GraphqlFault),
    /// The body differs from the expected body.
    #[error(
        "expected the known body of {expected_bytes} bytes, found {found_bytes} bytes that differ \
         at byte {at}"
    )]
    Body {
        /// The position of the first difference, from 0.
        at: usize,
        /// Length of the correct body.
        expected_bytes: usize,
        /// Length of the received body.
        found_bytes: u64,
    },
    /// A part of the body differs that is not ignored.
    #[error("expected {expected} at `{pointer}` of the body, found {found}")]
    Member {
        /// JSON pointer to the part. Empty for the whole body.
        pointer: String,
        /// The expected value, as text.
        expected: String,
        /// The received value, as text.
        found: String,
    },
    /// The content of an encoded body breaks a rule.
    #[error("{mismatch} (decoded from `Content-Encoding: {coding}`)")]
    Decoded {
        /// The value of the header.
        coding: String,
        /// The rule that the content broke.
        mismatch: Box<Mismatch>,
    },
    /// An encoded body cannot be decoded for the checks.
    #[error("{0}")]
    Coding(CodingError),
    /// An encoded body is longer than the limit for kept bodies.
    #[error("expected an encoded body of at most {most} bytes, found a longer body")]
    EncodedTooLarge {
        /// The limit in bytes.
        most: usize,
    },
    /// A header is absent or has another value.
    #[error("expected header `{name}: {expected}`, found {}", describe(found.as_deref()))]
    Header {
        /// Name of the header.
        name: String,
        /// Expected value of the header.
        expected: String,
        /// Received value of the header. `None` if it was absent.
        found: Option<String>,
    },
    /// An event of a stream is wrong.
    #[error("expected {expected} in event {position} of the stream, found {found}")]
    Event {
        /// The position of the event, from 1.
        position: u64,
        /// The expected content, as text.
        expected: String,
        /// The received content, as text.
        found: String,
    },
    /// The stream has a wrong number of events.
    #[error("expected {expected}, found {found}")]
    Events {
        /// The expected number or end, as text.
        expected: String,
        /// The received number of events, as text.
        found: String,
    },
    /// The status of a gRPC call is wrong.
    #[error(
        "expected grpc-status {}, found {}{}",
        grpc_schema::named(*expected),
        found.map_or_else(|| "none".to_owned(), grpc_schema::named),
        message.as_deref().map_or_else(String::new, |text| format!(": {text}"))
    )]
    GrpcStatus {
        /// The expected status.
        expected: u32,
        /// The received status. `None` if the response ended without one.
        found: Option<u32>,
        /// The message of the server.
        message: Option<Box<str>>,
    },
    /// A message of a gRPC call is wrong.
    #[error("expected {expected} in message {position}, found {found}")]
    Message {
        /// The position of the message, from 1.
        position: u64,
        /// The expected content, as text.
        expected: String,
        /// The received content, as text.
        found: String,
    },
    /// A larger part of the body is needed than the limit allows.
    #[error(transparent)]
    Refused(ParseError),
    /// The response does not contain a value that later steps need.
    #[error(
        "expected a value {from}{} to capture as `{name}`, found {found}",
        matching(pattern.as_deref())
    )]
    Capture {
        /// Name of the value in placeholders.
        name: String,
        /// Expected source of the value.
        from: CaptureFrom,
        /// The pattern for a part of it.
        pattern: Option<String>,
        /// The received value, as text.
        found: String,
    },
}

impl Mismatch {
    /// Returns its outcome.
    #[must_use]
    pub fn kind(&self) -> FailureKind {
        match self {
            Mismatch::Status { .. } | Mismatch::GrpcStatus { .. } => FailureKind::Status,
            Mismatch::Graphql(_) => FailureKind::Graphql,
            Mismatch::Body { .. }
            | Mismatch::Member { .. }
            | Mismatch::Message { .. }
            | Mismatch::Coding(_)
            | Mismatch::EncodedTooLarge { .. } => FailureKind::Body,
            Mismatch::Decoded { mismatch, .. } => mismatch.kind(),
            Mismatch::Header { .. } => FailureKind::Header,
            Mismatch::Event { .. } | Mismatch::Events { .. } => FailureKind::Event,
            Mismatch::Refused(refusal) => refusal.kind(),
            Mismatch::Capture { from, .. } => match from {
                CaptureFrom::Header(_) => FailureKind::Header,
                CaptureFrom::Json(_) | CaptureFrom::Body => FailureKind::Body,
            },
        }
    }
}

fn leading(location: Option<&str>) -> String {
    location.map_or_else(String::new, |to| format!(" with `Location: {to}`"))
}

fn matching(pattern: Option<&str>) -> String {
    pattern.map_or_else(String::new, |pattern| format!(" that matches `{pattern}`"))
}

fn describe(found: Option<&str>) -> String {
    found.map_or_else(|| "none".to_owned(), |value| format!("`{value}`"))
}
