//! A complete response that is read outside of the send loop, or the reason that there is no response.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use model::StreamRule;

use crate::check::stream::{Arrival, Part, StreamFindings};
use crate::coding::{self, CodingError};
use crate::error::RequestError;
use crate::measurement::FailureKind;
use crate::parser::{Head, ParseError, Sink};
use crate::websocket::{Listener, Received, ReceivedMessage};

/// A complete response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// Names as sent, and values, in order. Bytes that are not UTF-8 are replaced.
    pub headers: Vec<(String, String)>,
    /// The body, without framing. Messages of WebSocket are lines of it.
    pub body: Vec<u8>,
    /// The messages of a conversation over WebSocket. `None` for a response of HTTP.
    pub messages: Option<Vec<ReceivedMessage>>,
    /// The trailers of a response over HTTP/2, like `headers`. Otherwise empty.
    pub trailers: Vec<(String, String)>,
}

impl Answer {
    /// Returns a response without any received part.
    pub(crate) fn empty() -> Answer {
        Answer {
            status: 0,
            headers: Vec::new(),
            body: Vec::new(),
            messages: None,
            trailers: Vec::new(),
        }
    }

    /// Returns the value of the first header of this name, in any case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(candidate, _)| candidate.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// Returns the content coding of its body, in lower case. `None` for a plain body.
    #[must_use]
    pub fn coding(&self) -> Option<String> {
        let headers = self.headers.iter();
        let own = headers.filter(|(name, _)| name.eq_ignore_ascii_case("content-encoding"));
        coding::joined(own.map(|(_, value)| value.as_bytes()))
    }

    /// Returns its body without content codings, at most `most` bytes.
    ///
    /// # Errors
    /// If the body cannot be decoded, or has more bytes.
    pub fn content(&self, most: usize) -> Result<Cow<'_, [u8]>, CodingError> {
        match self.coding() {
            None => Ok(Cow::Borrowed(&self.body)),
            Some(coding) => coding::decoded(&coding, &self.body, most).map(Cow::Owned),
        }
    }
}

/// The reason that there is no complete response.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The request itself is wrong.
    #[error("the request cannot be sent: {0}")]
    Request(#[from] RequestError),
    /// No connection, for the reason in the text.
    #[error("cannot connect: {0}")]
    Connect(String),
    /// There was no complete response in time.
    #[error("expected an answer within {limit:?}, found {found_bytes} bytes of it")]
    Timeout {
        /// The time limit.
        limit: Duration,
        /// Number of response bytes at the end of the time.
        found_bytes: usize,
    },
    /// The connection was reset.
    #[error("the connection was reset after {found_bytes} bytes of the answer: {reason}")]
    Reset {
        /// Number of response bytes before the reset.
        found_bytes: usize,
        /// The error of the system.
        reason: String,
    },
    /// The connection was closed.
    #[error("the connection was closed after {found_bytes} bytes of the answer")]
    Closed {
        /// Number of response bytes before the close.
        found_bytes: usize,
    },
    /// The received bytes are not an HTTP response. The text contains the reason.
    #[error("{0}")]
    Protocol(String),
    /// The response exceeds a bound, named in the text.
    #[error("{0}")]
    TooLarge(String),
}

impl Failure {
    /// Returns its outcome. `None` for an invalid request that was never sent.
    #[must_use]
    pub fn kind(&self) -> Option<FailureKind> {
        match self {
            Failure::Request(_) => None,
            Failure::Connect(_) => Some(FailureKind::Connect),
            Failure::Timeout { .. } => Some(FailureKind::Timeout),
            Failure::Reset { .. } => Some(FailureKind::Reset),
            Failure::Closed { .. } => Some(FailureKind::Closed),
            Failure::Protocol(_) => Some(FailureKind::Protocol),
            Failure::TooLarge(_) => Some(FailureKind::TooLarge),
        }
    }
}

impl From<ParseError> for Failure {
    fn from(error: ParseError) -> Failure {
        match error {
            ParseError::Malformed(_) => Failure::Protocol(error.to_string()),
            ParseError::TooLarge { .. } | ParseError::TooLargeToCapture { .. } => {
                Failure::TooLarge(error.to_string())
            }
        }
    }
}

/// Returns names and values as text.
fn lines(head: &Head<'_>) -> Vec<(String, String)> {
    head.headers()
        .map(|(name, value)| (name.to_owned(), String::from_utf8_lossy(value).into_owned()))
        .collect()
}

impl Sink for Answer {
    fn head(&mut self, head: &Head<'_>) {
        self.status = head.status;
        self.headers = lines(head);
    }

    fn trailers(&mut self, trailers: &Head<'_>) {
        self.trailers = lines(trailers);
    }

    fn body(&mut self, part: &[u8]) {
        self.body.extend_from_slice(part);
    }
}

/// A response that is being read outside of the send loop, and the state of its stream.
pub(crate) struct Gathering {
    pub(crate) answer: Answer,
    stream: Option<(Arc<StreamRule>, StreamFindings)>,
}

impl Gathering {
    /// Returns the state without any received part. With a rule, the end of its stream ends the response.
    pub(crate) fn new(stream: Option<&Arc<StreamRule>>) -> Gathering {
        Gathering {
            answer: Answer::empty(),
            stream: stream.map(|rule| (Arc::clone(rule), StreamFindings::default())),
        }
    }

    /// The state of the stream. `None` if the response is no stream.
    fn findings(&self) -> Option<&StreamFindings> {
        self.stream.as_ref().map(|(_, findings)| findings)
    }

    /// True if the rule of the stream contains a number of events.
    pub(crate) fn counts_events(&self) -> bool {
        let rule = self.stream.as_ref().map(|(rule, _)| rule);
        rule.is_some_and(|rule| rule.events.is_some())
    }
}

impl Sink for Gathering {
    fn head(&mut self, head: &Head<'_>) {
        self.answer.head(head);
        if let Some((rule, findings)) = &mut self.stream {
            findings.head(rule, head);
        }
    }

    fn body(&mut self, part: &[u8]) {
        self.answer.body(part);
        if let Some((rule, findings)) = &mut self.stream {
            findings.body(rule, part, &mut Arrival::untimed());
        }
    }

    fn trailers(&mut self, trailers: &Head<'_>) {
        self.answer.trailers(trailers);
    }

    fn is_over(&self) -> bool {
        self.findings().is_some_and(StreamFindings::is_over)
    }

    fn is_ended(&self) -> bool {
        self.findings().is_some_and(StreamFindings::is_ended)
    }
}

impl Listener for Gathering {
    fn message(&mut self, message: &Received<'_>) {
        let lines = self.answer.messages.get_or_insert_default();
        lines.push(ReceivedMessage::of(message));
        if let Some((rule, findings)) = &mut self.stream {
            match *message {
                Received::Event { name, data } => {
                    findings.event(rule, &Part { name, data }, &mut Arrival::untimed());
                }
                Received::Complete => findings.complete(rule, 0),
                Received::Error { .. } => {}
            }
        }
        if *message != Received::Complete {
            self.answer.body(message.data());
            self.answer.body(b"\n");
        }
    }

    fn replied(&mut self, _took_ns: u64) {}

    fn finish(&mut self, _now_ns: u64) {
        // A conversation without a message has an empty list, and a response of HTTP has none.
        self.answer.messages.get_or_insert_default();
    }
}

/// The message for a kept connection that ended under a request.
pub(crate) const CLOSED_IDLE: &str = "the server closed the kept connection before it answered";

/// True for the line end that some servers send after a body. It belongs to no response and is skipped.
#[inline]
pub(crate) fn is_line_end(rest: &[u8]) -> bool {
    rest == b"\r\n"
}

/// Returns the message for a response that is longer than its declared length.
pub(crate) fn leftover(bytes: usize) -> String {
    format!("expected the end of the answer, found {bytes} more bytes")
}
