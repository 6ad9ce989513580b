//! One connection of a generator thread, and the slot it carries.

use std::os::fd::OwnedFd;

use crate::check::Findings;
use crate::job::Bounds;
use crate::parser::Parser;
use crate::recorder::{EXCERPT_BYTES, Times};

/// What a connection is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// There is no socket.
    Vacant,
    /// There is no socket, and no new one before `wake_ns`.
    Pausing,
    /// The connect is under way.
    Connecting,
    /// The listener's queue was full; the connect is tried again at `wake_ns`.
    Queueing,
    /// Ready for a request.
    Idle,
    /// Between two steps of a pass, with or without a socket.
    Resting,
    /// The request is partly written.
    Sending,
    /// The request is written, the answer is not complete.
    Receiving,
}

/// A place for one connection. It outlives its sockets, so its buffers are allocated once.
pub(crate) struct Connection {
    pub(crate) socket: Option<OwnedFd>,
    /// Counts sockets, so that an event of a closed one is not taken for one of its successor.
    pub(crate) generation: u32,
    pub(crate) phase: Phase,
    /// When to look at it although nothing happened.
    pub(crate) wake_ns: u64,
    /// A slot is under way.
    pub(crate) has_slot: bool,
    /// The socket has carried an answer.
    pub(crate) is_used: bool,
    /// The slot under way needed a new socket.
    pub(crate) is_fresh: bool,
    /// Which request of the rotation, or which step of the pass.
    pub(crate) request: usize,
    /// Position of the pass in the whole load.
    pub(crate) pass: u64,
    /// What the pass has captured so far.
    pub(crate) captured: Vec<String>,
    /// From a plan, or set when the request leaves.
    pub(crate) due_ns: Option<u64>,
    pub(crate) sent_ns: u64,
    /// 0 until something came.
    pub(crate) first_byte_ns: u64,
    pub(crate) connect_ns: u64,
    /// Bytes of the request that were written.
    pub(crate) written: usize,
    pub(crate) refusals: u32,
    pub(crate) parser: Parser,
    pub(crate) findings: Findings,
    /// What the slot sends, where its request is filled in.
    pub(crate) filled: Vec<u8>,
    /// The begin of an answer that took more than one read, as evidence.
    pub(crate) kept: Vec<u8>,
}

impl Connection {
    pub(crate) fn new(bounds: Bounds) -> Connection {
        Connection {
            socket: None,
            generation: 0,
            phase: Phase::Vacant,
            wake_ns: u64::MAX,
            has_slot: false,
            is_used: false,
            is_fresh: false,
            request: 0,
            pass: 0,
            captured: Vec::new(),
            due_ns: None,
            sent_ns: 0,
            first_byte_ns: 0,
            connect_ns: 0,
            written: 0,
            refusals: 0,
            parser: Parser::new(bounds),
            findings: Findings::default(),
            filled: Vec::new(),
            kept: Vec::new(),
        }
    }

    /// Makes ready for the answer to a request that leaves now.
    #[inline]
    pub(crate) fn expect_answer(&mut self, sent_ns: u64, bodiless: bool) {
        self.sent_ns = sent_ns;
        self.first_byte_ns = 0;
        self.written = 0;
        self.kept.clear();
        self.parser.start(bodiless);
        self.findings.start();
    }

    /// The times of an answer that is complete now.
    #[inline]
    pub(crate) fn times(&self, done_ns: u64) -> Times {
        Times {
            due_ns: self.due_ns.unwrap_or(self.sent_ns),
            sent_ns: self.sent_ns,
            first_byte_ns: match self.first_byte_ns {
                // An answer that is complete by the end of the connection alone.
                0 => done_ns,
                first_byte_ns => first_byte_ns,
            },
            done_ns,
        }
    }

    /// Keeps the begin of an answer in case it turns out to be wrong.
    pub(crate) fn keep(&mut self, bytes: &[u8]) {
        let room = EXCERPT_BYTES - self.kept.len();
        self.kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    /// Closes the socket, if there is one.
    pub(crate) fn close(&mut self) {
        self.socket = None;
        self.phase = Phase::Vacant;
        self.wake_ns = u64::MAX;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_due_of_the_plan_goes_into_the_latency_and_none_means_the_send() {
        let mut connection = Connection::new(Bounds::default());
        connection.expect_answer(500, false);
        connection.first_byte_ns = 600;
        assert_eq!(connection.times(700).due_ns, 500);
        connection.due_ns = Some(100);
        let times = connection.times(700);
        assert_eq!(
            (times.due_ns, times.sent_ns, times.first_byte_ns),
            (100, 500, 600)
        );
    }
}
