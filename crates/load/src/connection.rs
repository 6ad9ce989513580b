//! One connection of a generator thread, and its slot.

use std::os::fd::OwnedFd;

use crate::backoff::Backoff;
use crate::job::Bounds;
use crate::parser::Parser;
use crate::recorder::EXCERPT_BYTES;
use crate::script::SlotState;

/// The current activity of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// There is no socket.
    Vacant,
    /// There is no socket, and no new one before `wake_ns`.
    Pausing,
    /// The connect is under way.
    Connecting,
    /// The listener's queue was full. The next try of the connect is at `wake_ns`.
    Queueing,
    /// Ready for a request.
    Idle,
    /// In think time between two steps of an iteration, with or without a socket.
    Waiting,
    /// The request is partly written.
    Sending,
    /// The request is written, the response is not complete.
    Receiving,
}

/// A place for one connection. It outlives its sockets, so its buffers are allocated once.
pub(crate) struct Connection {
    /// Index of its lane.
    pub(crate) lane: usize,
    pub(crate) socket: Option<OwnedFd>,
    /// Number of sockets until now, so that an event of a closed socket is not assigned to its successor.
    pub(crate) generation: u32,
    pub(crate) phase: Phase,
    /// The time at which the connection needs attention without an event.
    pub(crate) wake_ns: u64,
    /// True if a slot is under way.
    pub(crate) has_slot: bool,
    /// True if the socket has carried a response.
    pub(crate) is_used: bool,
    /// The time at which the server will close it without a further request. `u64::MAX` if the server set no
    /// time.
    pub(crate) idle_until_ns: u64,
    /// True if the slot under way needed a new socket.
    pub(crate) is_fresh: bool,
    pub(crate) connect_ns: u64,
    /// Number of request bytes that were written.
    pub(crate) written: usize,
    pub(crate) backoff: Backoff,
    pub(crate) parser: Parser,
    pub(crate) slot: SlotState,
    /// The beginning of a response that took more than one read, as evidence.
    pub(crate) kept: Vec<u8>,
}

impl Connection {
    pub(crate) fn new(lane: usize, bounds: Bounds) -> Connection {
        Connection {
            lane,
            socket: None,
            generation: 0,
            phase: Phase::Vacant,
            wake_ns: u64::MAX,
            has_slot: false,
            is_used: false,
            idle_until_ns: u64::MAX,
            is_fresh: false,
            connect_ns: 0,
            written: 0,
            backoff: Backoff::default(),
            parser: Parser::new(bounds),
            slot: SlotState::default(),
            kept: Vec::new(),
        }
    }

    /// Prepares for the response to a request that leaves now.
    #[inline]
    pub(crate) fn expect_answer(&mut self, sent_ns: u64, bodiless: bool) {
        self.slot.sent_ns = sent_ns;
        self.slot.first_byte_ns = 0;
        self.written = 0;
        self.kept.clear();
        self.parser.start(bodiless);
        self.slot.findings.start();
    }

    /// Keeps the beginning of a response in case it is wrong.
    pub(crate) fn keep(&mut self, bytes: &[u8]) {
        // `kept` never exceeds the limit, because each piece is cut to the remaining room.
        let room = EXCERPT_BYTES - self.kept.len();
        self.kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    /// Closes the socket, if there is one.
    pub(crate) fn close(&mut self) {
        self.socket = None;
        self.idle_until_ns = u64::MAX;
        self.phase = Phase::Vacant;
        self.wake_ns = u64::MAX;
    }
}
