//! Opening connections.

use super::EpollEngine;
use crate::connection::Phase;
use crate::measurement::FailureKind;
use crate::socket::{self, Connect};

/// Time between two tries to enter a full listener queue.
const QUEUE_RETRY_NS: u64 = 1_000_000;

impl EpollEngine<'_> {
    /// Opens a new socket, for the slot under way or for later.
    pub(super) fn connect(&mut self, index: usize) {
        let now_ns = self.now();
        let connection = &mut self.connections[index];
        connection.connect_ns = now_ns;
        // A slot that needs a connection waits for it from here on, so its latency includes the connect.
        if connection.has_slot {
            connection.slot.due_ns.get_or_insert(now_ns);
        }
        self.try_connect(index);
    }

    pub(super) fn try_connect(&mut self, index: usize) {
        let connection = &mut self.connections[index];
        // It may wrap: an event is at most one list of events old, not 2^32 sockets.
        connection.generation = connection.generation.wrapping_add(1);
        let token = u64::from(connection.generation) << 32 | index as u64;
        let work = &self.lanes[connection.lane].work;
        let give_up_ns = connection.connect_ns + work.timeout_ns;
        let (socket, is_done) = match work.peer.connect() {
            Ok(Connect::Done(socket)) => (socket, true),
            Ok(Connect::Pending(socket)) => (socket, false),
            Ok(Connect::Full) => {
                connection.phase = Phase::Queueing;
                // Not later than the timeout, which ends the attempt.
                let retry_ns = self.now_ns + QUEUE_RETRY_NS;
                return self.wake_at(index, retry_ns.min(give_up_ns));
            }
            Err(error) => return self.refused(index, &error),
        };
        if let Err(error) = self.poll.add(&socket, token) {
            return self.fail(index, FailureKind::Connect, 0, &|| error.to_string());
        }
        connection.socket = Some(socket);
        connection.is_used = false;
        connection.idle_until_ns = u64::MAX;
        connection.phase = Phase::Connecting;
        // Also for a connected socket, because the time limit of a slot counts from here.
        self.wake_at(index, give_up_ns);
        // A Unix socket is connected at once, and its first edge contains no news.
        if is_done {
            self.connected(index);
        }
    }

    pub(super) fn connected(&mut self, index: usize) {
        let now_ns = self.now();
        let connection = &mut self.connections[index];
        let lane = &mut self.lanes[connection.lane];
        let connect = &mut lane.recorder.connect;
        connect.record_ns(now_ns - connection.connect_ns);
        connection.backoff.reset();
        if connection.has_slot {
            self.transmit(index);
        } else {
            connection.phase = Phase::Idle;
            connection.wake_ns = u64::MAX;
            lane.queue.places.park(index, true);
        }
    }

    pub(super) fn on_connect_event(&mut self, index: usize) {
        let connection = &self.connections[index];
        let Some(socket) = &connection.socket else {
            return;
        };
        match self.lanes[connection.lane].work.peer.connected(socket) {
            Ok(()) => self.connected(index),
            Err(error) => {
                // The failure has a time, and earlier events may have taken a while.
                self.now();
                self.refused(index, &error);
            }
        }
    }

    fn refused(&mut self, index: usize, error: &std::io::Error) {
        let (kind, reason) = socket::refusal(error);
        self.fail(index, kind, 0, &|| reason.clone());
    }
}
