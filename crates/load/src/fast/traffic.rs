//! Requests out, answers in: the hot path.

use rustix::io::Errno;

use super::{EpollEngine, Unread};
use crate::answer::{CLOSED_IDLE, is_line_end, leftover};
use crate::check::Judge;
use crate::connection::Phase;
use crate::lane::Fault;
use crate::measurement::FailureKind;
use crate::parser::{End, Parsed};
use crate::socket::{self, Moved};

/// An answer that fills every read gives way to other work after this time.
const TURN_NS: u64 = 1_000_000;

impl EpollEngine<'_> {
    /// Sends the request of the slot on the connection that is there.
    #[inline]
    pub(super) fn transmit(&mut self, index: usize) {
        // Before the write: the time that the system call takes belongs to the request.
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
                // On a fresh connection the time allowed has counted since the connect.
                if !connection.is_fresh {
                    let wake_ns = now_ns + lane.work.timeout_ns;
                    self.wake_at(index, wake_ns);
                }
            }
            // The server had closed the idle connection, and nothing of the request has left: this
            // is no failure of the request, which needs a new connection.
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
            // The server closed its side early: what it had to say may be waiting.
            Err(_) => self.read(index, true),
        }
    }

    /// Reads and judges what came, for a turn at most: a server may send faster than answers are
    /// parsed, and timeouts, the stop flag and other connections must not wait for its end.
    pub(super) fn read(&mut self, index: usize, is_hangup: bool) {
        let turn_end_ns = self.now_ns + TURN_NS;
        loop {
            let connection = &mut self.connections[index];
            let Some(socket) = &connection.socket else {
                return;
            };
            let received = socket::receive(socket, &mut self.buffer);
            // Once for each read, for its first and its last byte. Not by `now`, which borrows the
            // whole engine.
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
            let mut judge = Judge {
                rules: &lane.work.rotation.requests[slot.request].rules,
                findings: &mut slot.findings,
            };
            match connection.parser.feed(piece, &mut judge) {
                Ok(Parsed::Complete { used, reusable })
                    if used == bytes || is_line_end(&piece[used..]) =>
                {
                    return self.complete(index, reusable, is_hangup, bytes);
                }
                // Requests never overlap on a connection, so more bytes can answer nothing.
                Ok(Parsed::Complete { used, .. }) => {
                    return self.fail(index, FailureKind::Protocol, bytes, &|| {
                        leftover(bytes - used)
                    });
                }
                Ok(Parsed::More) => {
                    connection.keep(piece);
                    // A read that left room took all there was; a new edge tells of more. The end
                    // of the connection may be part of the edge that is being dealt with.
                    if bytes < self.buffer.len() && !is_hangup {
                        return;
                    }
                    // By the clock that was read after the receive: a turn ends one read late.
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

    /// The answer is complete, with the last `bytes` of it in the buffer.
    #[inline]
    fn complete(&mut self, index: usize, reusable: bool, is_hangup: bool, bytes: usize) {
        let done_ns = self.now_ns;
        let connection = &mut self.connections[index];
        // The connection ended with this answer, and there will be no other edge: bytes behind it
        // are noticed now or never.
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
        // An answer that came before the whole request had left: the rest must not become the begin
        // of the next one.
        let is_unsent = connection.phase == Phase::Sending;
        if is_hangup || !reusable || !lane.work.keep_alive || is_unsent {
            connection.close();
        }
        connection.is_used = true;
        connection.idle_until_ns = connection.parser.idle_until_ns(done_ns);
        // Before `proceed`, which may begin the next slot on this very connection.
        connection.has_slot = false;
        let next = lane.next(&mut connection.slot, passed, done_ns);
        self.proceed(index, next);
    }

    /// The server closed the connection.
    fn on_end(&mut self, index: usize) {
        match self.connections[index].parser.end() {
            End::Complete => self.complete(index, false, true, 0),
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

    /// A reset under a request on a used connection, before anything came, is how a server that has
    /// just closed an idle connection looks from here.
    fn on_reset(&mut self, index: usize, error: Errno) {
        if self.was_kept(index) {
            self.fail(index, FailureKind::ClosedIdle, 0, &|| {
                format!("{CLOSED_IDLE}: {error}")
            });
        } else {
            self.fail(index, FailureKind::Reset, 0, &|| error.to_string());
        }
    }

    /// True if the connection has carried an answer, and nothing came of the one that is awaited.
    fn was_kept(&self, index: usize) -> bool {
        let connection = &self.connections[index];
        connection.is_used && connection.slot.first_byte_ns == 0
    }
}
