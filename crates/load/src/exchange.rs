//! One request on a new connection, outside of a load. Readiness and proof read responses with the parser and
//! the protocol of the load.

use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

use crate::answer::{Answer, Failure, Gathering, is_line_end, leftover};
use crate::check::examine;
use crate::clock::{Clock, to_ns};
use crate::error::LoadError;
use crate::job::{Bounds, Job, Request, Target};
use crate::mismatch::Mismatch;
use crate::parser::{End, Parsed, Parser, Sink as _};
use crate::prepared::rendered;
use crate::rendered::Rendered;
use crate::scenario;
use crate::socket::{self, Connect, Moved, Peer};

/// Sends one request on a new connection and reads the whole response, within [`Bounds::of_one_exchange`].
/// The bytes sent equal the bytes of a load with keep-alive.
///
/// # Errors
/// If the request cannot be sent, or no complete response arrives within `timeout`.
pub fn exchange(target: &Target, request: &Request, timeout: Duration) -> Result<Answer, Failure> {
    let rendered = Rendered::new(target, request, true, None)?;
    converse(target, &rendered, rendered.bytes(&[]), timeout)
}

/// Opens one connection as a load does, and closes it.
///
/// # Errors
/// If there is no connection within `timeout`.
pub fn reach(target: &Target, timeout: Duration) -> Result<(), Failure> {
    crate::general::reach(target, timeout)
}

/// The reason that a walk through the requests of a job did not complete.
#[derive(Debug, thiserror::Error)]
pub enum WalkError {
    /// The job itself is wrong.
    #[error(transparent)]
    Job(#[from] LoadError),
    /// A request received no complete response.
    #[error("no answer: {failure}")]
    Failed {
        /// Index of the request, from 0.
        request: usize,
        /// The failure of the request.
        failure: Failure,
    },
    /// A request received a wrong response.
    #[error("{mismatch}")]
    Mismatched {
        /// Index of the request, from 0.
        request: usize,
        /// The first rule that was broken.
        mismatch: Mismatch,
        /// The wrong response.
        answer: Box<Answer>,
    },
}

/// Sends every request of a job once and in order, with the bytes of slot `slot`, each on a new connection
/// and without pauses. Returns their responses, which are all correct.
///
/// # Errors
/// If the job cannot begin, and at the first response that is missing or wrong.
pub fn walk(job: &Job, slot: u64) -> Result<Vec<Answer>, WalkError> {
    let mut captured = vec![scenario::CapturedValue::default(); scenario::names(&job.steps).len()];
    let mut answers = Vec::new();
    for (index, mut request) in rendered(job, 1)?.into_iter().enumerate() {
        let mut filled = Vec::new();
        request.fill(slot, &captured, &mut filled);
        let bytes = request.bytes(&filled);
        let answer = converse(&job.target, &request, bytes, job.timeout).map_err(|failure| {
            WalkError::Failed {
                request: index,
                failure,
            }
        })?;
        match examine(&mut request.rules, &answer) {
            Ok(values) => {
                for (place, value) in values {
                    captured[place] = value;
                }
            }
            Err(mismatch) => {
                return Err(WalkError::Mismatched {
                    request: index,
                    mismatch,
                    answer: Box::new(answer),
                });
            }
        }
        answers.push(answer);
    }
    Ok(answers)
}

/// Sends these bytes on a new connection and reads the response.
fn converse(
    target: &Target,
    request: &Rendered,
    bytes: &[u8],
    timeout: Duration,
) -> Result<Answer, Failure> {
    // TLS, HTTP/2, WebSocket and calls exist only in the general carrier, which a load would also use.
    let is_more = request.conversation.is_some() || request.calling.is_some();
    if !target.protocol.is_plain() || is_more {
        return crate::general::exchange(target, request, bytes, timeout);
    }
    let deadline = Deadline {
        clock: Clock::start(),
        limit: timeout,
        found_bytes: 0,
    };
    let peer = Peer::new(&target.address).map_err(|error| Failure::Connect(error.to_string()))?;
    let socket = connect(&peer, &deadline)?;
    let mut conversation = Conversation {
        socket,
        deadline,
        parser: Parser::new(Bounds::of_one_exchange()),
        gathering: Gathering::new(request.rules.stream.as_ref()),
    };
    conversation.parser.start(request.bodiless);
    conversation.send(bytes)?;
    conversation.receive()?;
    Ok(conversation.gathering.answer)
}

fn connect(peer: &Peer, deadline: &Deadline) -> Result<OwnedFd, Failure> {
    let failed = |error: std::io::Error| Failure::Connect(socket::refusal(&error).1);
    match peer.connect().map_err(failed)? {
        Connect::Done(socket) => Ok(socket),
        Connect::Pending(socket) => {
            deadline.wait(&socket, PollFlags::OUT).map_err(|_| {
                Failure::Connect(format!("no connection within {:?}", deadline.limit))
            })?;
            peer.connected(&socket).map_err(failed)?;
            Ok(socket)
        }
        Connect::Full => Err(Failure::Connect(
            "the queue of the listener is full".to_owned(),
        )),
    }
}

struct Deadline {
    clock: Clock,
    limit: Duration,
    found_bytes: usize,
}

impl Deadline {
    /// Waits until the socket is ready.
    fn wait(&self, socket: &OwnedFd, flags: PollFlags) -> Result<(), Failure> {
        loop {
            let left = to_ns(self.limit).saturating_sub(self.clock.now_ns());
            let timeout = Timespec::try_from(Duration::from_nanos(left))
                .expect("64 bits of nanoseconds are 584 years");
            let mut polled = [PollFd::new(socket, flags)];
            match rustix::event::poll(&mut polled, Some(&timeout)) {
                // Only the clock decides that the time is over, because `poll` may return a little early.
                Ok(0) if left == 0 => {
                    return Err(Failure::Timeout {
                        limit: self.limit,
                        found_bytes: self.found_bytes,
                    });
                }
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => return Ok(()),
                Err(error) => return Err(Failure::Connect(error.to_string())),
            }
        }
    }
}

struct Conversation {
    socket: OwnedFd,
    deadline: Deadline,
    parser: Parser,
    gathering: Gathering,
}

impl Conversation {
    fn send(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let mut rest = bytes;
        while !rest.is_empty() {
            match socket::send(&self.socket, rest) {
                Ok(Moved::Bytes(sent)) => rest = &rest[sent..],
                Ok(Moved::Later) => self.deadline.wait(&self.socket, PollFlags::OUT)?,
                // A server may respond before it has read everything, and close. Its response counts.
                Err(Errno::PIPE | Errno::CONNRESET) => return Ok(()),
                Err(error) => return Err(self.reset(error)),
            }
        }
        Ok(())
    }

    fn receive(&mut self) -> Result<(), Failure> {
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let bytes = match socket::receive(&self.socket, &mut buffer) {
                Ok(Moved::Later) => {
                    self.deadline.wait(&self.socket, PollFlags::IN)?;
                    continue;
                }
                Ok(Moved::Bytes(0)) => {
                    return match self.parser.end() {
                        End::Complete => Ok(()),
                        End::Truncated if self.gathering.is_ended() => Ok(()),
                        End::Nothing | End::Truncated => Err(Failure::Closed {
                            found_bytes: self.deadline.found_bytes,
                        }),
                    };
                }
                Ok(Moved::Bytes(bytes)) => bytes,
                Err(error) => return Err(self.reset(error)),
            };
            self.deadline.found_bytes += bytes;
            match self.parser.feed(&buffer[..bytes], &mut self.gathering)? {
                // As in a load, bytes after the response mean that it is longer than its head declares.
                Parsed::Complete { used, .. }
                    if used < bytes && !is_line_end(&buffer[used..bytes]) =>
                {
                    return Err(Failure::Protocol(leftover(bytes - used)));
                }
                Parsed::Complete { .. } => return Ok(()),
                Parsed::More if self.gathering.is_ended() => return Ok(()),
                Parsed::More => {}
            }
        }
    }

    fn reset(&self, error: Errno) -> Failure {
        Failure::Reset {
            found_bytes: self.deadline.found_bytes,
            reason: error.to_string(),
        }
    }
}
