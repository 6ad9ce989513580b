//! The hot path: sending requests and reading responses.

use rustix::io::Errno;

use super::{EpollEngine, Unread};
use crate::answer::{CLOSED_IDLE, is_line_end, leftover};
use crate::check::stream::STREAM_END;
use crate::clock::to_ns;
use crate::connection::Phase;
use crate::lane::Fault;
use crate::measurement::FailureKind;
use crate::parser::{End, Parsed};
use crate::socket::{self, Moved};

/// Time after which a response that fills every read yields to other work.
const TURN_NS: u64 = 1_000_000;

impl EpollEngine<'_> {
    /// Sends the request of the slot on its open connection.
    #[inline]
    pub(super) fn transmit(&mut self, index: usize) {
        // Read before the write, because the time of the system call belongs to the request.
        let now_ns = self.now();
        let connection = &mut self.connections[index];
        let lane = &mut self.lanes[connection.lane];
        let request = &lane.work.rotation.requests[connection.slot.request];
        connection.expect_answer(now_ns, request.bodiless);
        let Some(socket) = &connection.socket else {
            unreachable!("a request is only sent where a socket is");
        };
        let bytes = request.bytes(&connection.slot.filled);
        match socket::send(socket, bytes) {
            Ok(moved) => {
                let written = match moved {
                    Moved::Bytes(written) => written,
                    Moved::Later => 0,
                };
                connection.written = written;
                connection.phase = if written == bytes.len() {
                    Phase::Receiving
                } else {
                    Phase::Sending
                };
                lane.recorder.bytes_out += written as u64;
                lane.sent(&mut connection.slot);
                // On a new connection the time limit has counted since the connect.
                if !connection.is_fresh {
                    let wake_ns = now_ns + lane.work.timeout_ns;
                    self.wake_at(index, wake_ns);
                }
            }
            // The server had closed the idle connection, and no byte of the request has left. That is no
            // failure of the request, which needs a new connection.
            Err(_) if !connection.is_fresh => {
                connection.close();
                connection.is_fresh = true;
                self.connect(index);
            }
            Err(error) => self.fail(index, FailureKind::Reset, 0, &|| error.to_string()),
        }
    }

    pub(super) fn send_rest(&mut self, index: usize) {
        let connection = &mut self.connections[index];
        let lane = &mut self.lanes[connection.lane];
        let request = &lane.work.rotation.requests[connection.slot.request];
        let Some(socket) = &connection.socket else {
            return;
        };
        let bytes = request.bytes(&connection.slot.filled);
        match socket::send(socket, &bytes[connection.written..]) {
            Ok(Moved::Later) => {}
            Ok(Moved::Bytes(written)) => {
                lane.recorder.bytes_out += written as u64;
                connection.written += written;
                if connection.written == bytes.len() {
                    connection.phase = Phase::Receiving;
                }
            }
            // The server closed its side early. Its response may be waiting in the socket.
            Err(_) => self.read(index, true),
        }
    }

    /// Reads and judges the received bytes, for at most one turn. A server may send faster than responses are
    /// parsed, and timeouts, the stop flag and other connections must not wait for its end.
    pub(super) fn read(&mut self, index: usize, is_hangup: bool) {
        let turn_end_ns = self.now_ns + TURN_NS;
        loop {
            let connection = &mut self.connections[index];
            let Some(socket) = &connection.socket else {
                return;
            };
            let received = socket::receive(socket, &mut self.buffer);
            // Once for each read, for its first and its last byte. Not by `now`, which borrows the whole
            // engine.
            self.now_ns = self.pacer.controls.clock.now_ns();
            let bytes = match received {
                Ok(Moved::Later) => return,
                Ok(Moved::Bytes(0)) => return self.on_end(index),
                Ok(Moved::Bytes(bytes)) => bytes,
                Err(error) => return self.on_reset(index, error),
            };
            let lane = &mut self.lanes[connection.lane];
            lane.recorder.bytes_in += bytes as u64;
            let slot = &mut connection.slot;
            if slot.first_byte_ns == 0 {
                slot.first_byte_ns = self.now_ns;
            }
            let piece = &self.buffer[..bytes];
            let mut judge = lane.judge(slot, self.now_ns);
            match connection.parser.feed(piece, &mut judge) {
                Ok(Parsed::Complete { used, reusable })
                    if used == bytes || is_line_end(&piece[used..]) =>
                {
                    return self.complete(index, reusable, is_hangup, bytes);
                }
                // Requests never overlap on a connection, so more bytes belong to no request.
                Ok(Parsed::Complete { used, .. }) => {
                    return self.fail(index, FailureKind::Protocol, bytes, &|| {
                        leftover(bytes - used)
                    });
                }
                Ok(Parsed::More) => {
                    connection.keep(piece);
                    // A server ends the response after the end of its stream. If it does not, the response is
                    // complete without that.
                    if let Some(ended_ns) = connection.slot.findings.stream.ended_ns() {
                        let limit_ns = ended_ns + to_ns(STREAM_END);
                        let wake_ns = limit_ns.min(connection.wake_ns);
                        self.wake_at(index, wake_ns);
                    }
                    let connection = &mut self.connections[index];
                    // A read that left room took all available bytes. A new edge announces more. The end of
                    // the connection may be part of the current edge.
                    if bytes < self.buffer.len() && !is_hangup {
                        return;
                    }
                    // This uses the time that was read after the receive, so a turn ends one read late.
                    if self.now_ns >= turn_end_ns {
                        let token = u64::from(connection.generation) << 32 | index as u64;
                        return self.unread.push(Unread { token, is_hangup });
                    }
                }
                Err(error) => {
                    return self.fail(index, error.kind(), bytes, &|| error.to_string());
                }
            }
        }
    }

    /// Ends a complete response. Its last `bytes` are in the buffer.
    #[inline]
    pub(super) fn complete(&mut self, index: usize, reusable: bool, is_hangup: bool, bytes: usize) {
        let connection = &mut self.connections[index];
        let done_ns = connection.slot.findings.stream.ended_ns();
        let done_ns = done_ns.unwrap_or(self.now_ns);
        // The connection ended with this response, and there will be no other edge. Bytes after it must be
        // found now.
        if is_hangup
            && let Some(socket) = &connection.socket
            && let Ok(Moved::Bytes(more @ 1..)) = socket::receive(socket, &mut self.buffer)
            && !is_line_end(&self.buffer[..more])
        {
            return self.fail(index, FailureKind::Protocol, 0, &|| leftover(more));
        }
        let lane = &mut self.lanes[connection.lane];
        let mismatch = lane.answered(&mut connection.slot, done_ns);
        let passed = mismatch.is_none();
        if let Some(mismatch) = mismatch {
            let fault = Fault {
                kind: mismatch.kind(),
                at_ns: done_ns,
                answer: [&connection.kept, &self.buffer[..bytes]],
            };
            lane.failed(&connection.slot, fault, || mismatch.to_string());
        }
        // The response came before the whole request had left. The rest must not become the beginning of the
        // next request.
        let is_unsent = connection.phase == Phase::Sending;
        if is_hangup || !reusable || !lane.work.keep_alive || is_unsent {
            connection.close();
        }
        connection.is_used = true;
        connection.idle_until_ns = connection.parser.idle_until_ns(done_ns);
        // Before `proceed`, which may begin the next slot on this connection.
        connection.has_slot = false;
        let next = lane.next(&mut connection.slot, passed, done_ns);
        self.proceed(index, next);
    }

    /// Handles a connection that the server closed.
    fn on_end(&mut self, index: usize) {
        match self.connections[index].parser.end() {
            End::Complete => self.complete(index, false, true, 0),
            End::Truncated if self.is_stream_ended(index) => self.complete(index, false, true, 0),
            End::Nothing if self.was_kept(index) => {
                self.fail(index, FailureKind::ClosedIdle, 0, &|| {
                    CLOSED_IDLE.to_owned()
                });
            }
            End::Nothing => self.fail(index, FailureKind::Closed, 0, &|| {
                "the connection was closed before the answer".to_owned()
            }),
            End::Truncated => self.fail(index, FailureKind::Closed, 0, &|| {
                "the connection was closed during the answer".to_owned()
            }),
        }
    }

    /// Handles a reset. A reset under a request on a used connection, before any byte arrived, usually means
    /// that the server has just closed an idle connection.
    fn on_reset(&mut self, index: usize, error: Errno) {
        if self.was_kept(index) {
            self.fail(index, FailureKind::ClosedIdle, 0, &|| {
                format!("{CLOSED_IDLE}: {error}")
            });
        } else {
            self.fail(index, FailureKind::Reset, 0, &|| error.to_string());
        }
    }

    /// True if an event has ended the stream of a response.
    fn is_stream_ended(&self, index: usize) -> bool {
        self.connections[index].slot.findings.stream.is_ended()
    }

    /// True if the connection has carried an earlier response, and no byte of the awaited response arrived.
    fn was_kept(&self, index: usize) -> bool {
        let connection = &self.connections[index];
        connection.is_used && connection.slot.first_byte_ns == 0
    }
}
