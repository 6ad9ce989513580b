//! The state of a response that is arriving, over any protocol.

use std::cell::RefCell;

use http::{HeaderMap, StatusCode};

use crate::check::stream::Arrival;
use crate::check::{Findings, Judge};
use crate::clock::Clock;
use crate::lane::Lane;
use crate::measurement::FailureKind;
use crate::parser::{Head, ParseError, Sink};
use crate::recorder::EXCERPT_BYTES;
use crate::websocket::{Listener, Received};

/// The reason that there is no complete response.
#[derive(Debug)]
pub(super) enum ExchangeError {
    /// No byte of the request has left, because the target had closed the connection while it was idle.
    Stale(String),
    /// The target has declared that it did not process the request, so it can be sent again. The declaration
    /// covers the whole connection, or this request alone.
    Unprocessed { is_leaving: bool, reason: String },
    /// The slot has failed.
    Failed(FailureKind, String),
}

impl ExchangeError {
    pub(super) fn failed(kind: FailureKind, reason: impl Into<String>) -> ExchangeError {
        ExchangeError::Failed(kind, reason.into())
    }
}

/// The received part of a response.
#[derive(Debug, Default)]
pub(super) struct ResponseProgress {
    /// Time of the first byte. 0 until a byte arrived.
    pub(super) first_byte_ns: u64,
    /// Received bytes: of the response over HTTP/1.1, of its body over HTTP/2 and HTTP/3.
    pub(super) bytes: usize,
    /// The version of HTTP of `head`.
    pub(super) spoken: &'static str,
    /// The head of a response over HTTP/2 or HTTP/3.
    pub(super) head: Option<(StatusCode, HeaderMap)>,
    kept: Vec<u8>,
}

impl ResponseProgress {
    /// Resets the state for the next response.
    pub(super) fn start(&mut self) {
        self.first_byte_ns = 0;
        self.bytes = 0;
        self.head = None;
        self.kept.clear();
    }

    /// Keeps the beginning of the response in case it is wrong.
    pub(super) fn keep(&mut self, part: &[u8], now_ns: u64) {
        if self.first_byte_ns == 0 {
            self.first_byte_ns = now_ns;
        }
        self.bytes += part.len();
        let room = EXCERPT_BYTES - self.kept.len();
        self.kept.extend_from_slice(&part[..part.len().min(room)]);
    }

    /// Returns the received part as evidence: a head of HTTP/2 or HTTP/3, which does not travel as text, and bytes.
    pub(super) fn excerpt(&self) -> [Vec<u8>; 2] {
        let mut head = Vec::new();
        if let Some((status, headers)) = &self.head {
            head.extend_from_slice(format!("{} {}\r\n", self.spoken, status.as_u16()).as_bytes());
            for (name, value) in headers {
                head.extend_from_slice(name.as_str().as_bytes());
                head.extend_from_slice(b": ");
                head.extend_from_slice(value.as_bytes());
                head.extend_from_slice(b"\r\n");
            }
            head.extend_from_slice(b"\r\n");
        }
        [head, self.kept.clone()]
    }
}

/// Judges a response while other responses to the same request may be arriving. The rules are borrowed for
/// one piece at a time.
pub(super) struct Judging<'a> {
    pub(super) lanes: &'a RefCell<Vec<Lane>>,
    pub(super) lane: usize,
    pub(super) request: usize,
    pub(super) findings: &'a mut Findings,
    pub(super) clock: Clock,
    /// The due time of the request, for its events.
    pub(super) due_ns: u64,
    /// True if events are not recorded, because the slot does not count.
    pub(super) is_discarded: bool,
}

impl Judging<'_> {
    /// Number of messages of a gRPC call until now.
    pub(super) fn messages(&self) -> u64 {
        self.findings.grpc.messages()
    }

    fn judge(&mut self, feed: impl FnOnce(&mut Judge<'_>)) {
        let lane = &mut self.lanes.borrow_mut()[self.lane];
        let events = lane.recorder.events.as_deref_mut();
        feed(&mut Judge {
            rules: &lane.work.rotation.requests[self.request].rules,
            findings: self.findings,
            at: Arrival::now(
                self.clock,
                self.due_ns,
                events.filter(|_| !self.is_discarded),
            ),
        });
    }
}

impl Sink for Judging<'_> {
    fn head(&mut self, head: &Head<'_>) {
        self.judge(|judge| judge.head(head));
    }

    fn body(&mut self, part: &[u8]) {
        self.judge(|judge| judge.body(part));
    }

    fn refusal(&self) -> Option<ParseError> {
        self.findings.refusal()
    }

    fn trailers(&mut self, trailers: &Head<'_>) {
        self.judge(|judge| judge.trailers(trailers));
    }

    fn is_over(&self) -> bool {
        self.findings.stream.is_over()
    }

    fn is_ended(&self) -> bool {
        self.findings.stream.is_ended()
    }
}

impl Listener for Judging<'_> {
    fn message(&mut self, message: &Received<'_>) {
        self.judge(|judge| judge.message(message));
    }

    fn replied(&mut self, took_ns: u64) {
        let lane = &mut self.lanes.borrow_mut()[self.lane];
        if let Some(events) = lane.recorder.events.as_deref_mut()
            && !self.is_discarded
        {
            events.replied(took_ns);
        }
    }

    fn finish(&mut self, now_ns: u64) {
        self.findings.stream.finish(now_ns);
    }
}
