//! One exchange of HTTP/1.1 over a stream, with the parser of the fast path.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::ReadBuf;

use super::progress::{ExchangeError, ResponseProgress};
use super::stream::Stream;
use crate::answer::{CLOSED_IDLE, is_line_end, leftover};
use crate::check::stream::STREAM_END;
use crate::clock::Clock;
use crate::measurement::FailureKind;
use crate::parser::{End, Parsed, Parser, Sink};

/// The state of an idle connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Idle {
    /// Ready for a request.
    Ready,
    /// The target had closed it.
    Ended,
    /// The target had sent bytes although no request was under way.
    Spoke,
}

/// Checks a connection that was idle, without waiting.
pub(super) async fn probe(stream: &mut dyn Stream) -> Idle {
    let mut room = [0; 64];
    // `Ready` in any case, because the probe does not wait for bytes.
    std::future::poll_fn(|context| {
        let mut was_pending = false;
        loop {
            let mut buffer = ReadBuf::new(&mut room);
            let polled = Pin::new(&mut *stream).poll_read(context, &mut buffer);
            return Poll::Ready(match polled {
                // A socket that has just delivered much data yields once. Only then is its state correct.
                Poll::Pending if !was_pending => {
                    was_pending = true;
                    continue;
                }
                Poll::Pending => Idle::Ready,
                Poll::Ready(Ok(())) if is_line_end(buffer.filled()) => continue,
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() => Idle::Spoke,
                Poll::Ready(_) => Idle::Ended,
            });
        }
    })
    .await
}

/// A request that is being sent, and its response.
pub(super) struct Exchange<'a, S> {
    pub(super) clock: Clock,
    pub(super) stream: &'a mut dyn Stream,
    pub(super) request: &'a [u8],
    /// Number of request bytes that were written.
    pub(super) written: usize,
    /// True if all bytes are written, or the target no longer reads.
    pub(super) is_sent: bool,
    /// True if the connection has carried a response.
    pub(super) is_used: bool,
    pub(super) buffer: &'a RefCell<Vec<u8>>,
    pub(super) parser: &'a mut Parser,
    pub(super) progress: &'a mut ResponseProgress,
    pub(super) sink: S,
}

impl<S: Sink> Exchange<'_, S> {
    /// Writes as much as possible at once. The request then counts as sent.
    ///
    /// # Errors
    ///
    /// If no byte could leave.
    pub(super) async fn begin(&mut self) -> Result<(), ExchangeError> {
        let begun = std::future::poll_fn(|context| Poll::Ready(self.poll_send(context))).await;
        match begun {
            Poll::Ready(Err(error)) if self.written == 0 => {
                Err(ExchangeError::Stale(error.to_string()))
            }
            // If a part has left, the response decides: the server may have read enough of it.
            _ => Ok(()),
        }
    }

    /// Sends the rest and receives the response. Returns `true` if the connection can carry another request.
    pub(super) async fn finish(&mut self) -> Result<bool, ExchangeError> {
        let received = std::future::poll_fn(|context| {
            // A server may respond before it has read everything, and close. Its response counts.
            let _ = self.poll_send(context);
            match self.poll_receive(context) {
                Poll::Pending if self.sink.is_ended() => Poll::Ready(None),
                polled => polled.map(Some),
            }
        })
        .await;
        match received {
            Some(received) => received,
            None => Ok(self.end_of_stream().await),
        }
    }

    /// Awaits the end of a response whose stream has ended. Returns `true` if the connection can carry another
    /// request.
    async fn end_of_stream(&mut self) -> bool {
        let rest = std::future::poll_fn(|context| self.poll_receive(context));
        let ended = tokio::time::timeout(STREAM_END, rest).await;
        matches!(ended, Ok(Ok(true)))
    }

    fn poll_send(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.is_sent {
            let rest = &self.request[self.written..];
            let moved = if rest.is_empty() {
                // TLS holds back the end of a request until it is flushed.
                ready!(Pin::new(&mut *self.stream).poll_flush(context)).map(|()| 0)
            } else {
                ready!(Pin::new(&mut *self.stream).poll_write(context, rest))
            };
            match moved {
                Ok(0) => self.is_sent = true,
                Ok(written) => self.written += written,
                Err(error) => {
                    self.is_sent = true;
                    return Poll::Ready(Err(error));
                }
            }
        }
        Poll::Ready(Ok(()))
    }

    fn poll_receive(&mut self, context: &mut Context<'_>) -> Poll<Result<bool, ExchangeError>> {
        // All connections of the thread share the buffer, so it is borrowed for one poll and never
        // across a wait.
        let mut bytes = self.buffer.borrow_mut();
        loop {
            let mut buffer = ReadBuf::new(&mut bytes);
            let read = ready!(Pin::new(&mut *self.stream).poll_read(context, &mut buffer));
            let piece = buffer.filled();
            match read {
                Err(error) => return Poll::Ready(Err(self.on_error(&error))),
                Ok(()) if piece.is_empty() => return Poll::Ready(self.on_end()),
                Ok(()) => {}
            }
            self.progress.keep(piece, self.clock.now_ns());
            match self.parser.feed(piece, &mut self.sink) {
                Ok(Parsed::More) => {}
                Ok(Parsed::Complete { used, .. })
                    if used < piece.len() && !is_line_end(&piece[used..]) =>
                {
                    let reason = leftover(piece.len() - used);
                    return Poll::Ready(Err(ExchangeError::failed(FailureKind::Protocol, reason)));
                }
                Ok(Parsed::Complete { reusable, .. }) => {
                    // A response may arrive before the whole request has left. The rest of the request must
                    // not become the beginning of the next request.
                    let is_whole = self.is_sent && self.written == self.request.len();
                    return Poll::Ready(Ok(reusable && is_whole));
                }
                Err(error) => {
                    let reason = error.to_string();
                    return Poll::Ready(Err(ExchangeError::failed(error.kind(), reason)));
                }
            }
        }
    }

    fn on_end(&self) -> Result<bool, ExchangeError> {
        let when = match self.parser.end() {
            End::Complete => return Ok(false),
            End::Nothing if self.was_kept() => {
                return Err(ExchangeError::failed(FailureKind::ClosedIdle, CLOSED_IDLE));
            }
            End::Nothing => "before",
            End::Truncated => "during",
        };
        let reason = format!("the connection was closed {when} the answer");
        Err(ExchangeError::failed(FailureKind::Closed, reason))
    }

    /// True if the connection has carried an earlier response, and no byte of this response arrived.
    fn was_kept(&self) -> bool {
        self.is_used && self.progress.first_byte_ns == 0
    }

    fn on_error(&self, error: &io::Error) -> ExchangeError {
        let kind = match error.kind() {
            // TLS: an end without a closing alert may have cut the response.
            io::ErrorKind::UnexpectedEof => match self.on_end() {
                Err(error) => return error,
                Ok(_) => FailureKind::Closed,
            },
            io::ErrorKind::InvalidData => FailureKind::Protocol,
            // The usual error of an idle connection that the server has just closed.
            _ if self.was_kept() => {
                let reason = format!("{CLOSED_IDLE}: {error}");
                return ExchangeError::failed(FailureKind::ClosedIdle, reason);
            }
            _ => FailureKind::Reset,
        };
        ExchangeError::failed(kind, error.to_string())
    }
}
