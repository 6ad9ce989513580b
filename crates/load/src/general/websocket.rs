//! The carrier of WebSocket (RFC 6455): the upgrade of a connection, and the messages after it.
//!
//! `websocket/conversation.rs` holds one conversation, and `websocket/graphql.rs` reads and writes the
//! messages of GraphQL. Frames are the work of tungstenite. A message is bounded, and at most one is in memory.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use futures_util::{Sink as _, Stream as _};
use httparse::Header;
use tokio::io::{AsyncWrite, ReadBuf};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::ProtocolError;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};

use super::progress::{ExchangeError, ResponseProgress};
use super::stream::Stream;
use crate::check::KEPT_MAX;
use crate::check::stream::STREAM_END;
use crate::clock::Clock;
use crate::job::{Bounds, WebSocketCall};
use crate::measurement::FailureKind;
use crate::parser::Head;
use crate::websocket::Listener;
use offered::Offered;

mod carry;
#[cfg(test)]
mod conformance;
mod conversation;
mod graphql;
mod offered;

pub(super) use carry::once;

/// The largest number of header lines of the response to an upgrade.
const HEADERS_MAX: usize = 256;

/// Bytes of one read of a socket. Many connections may each have a buffer.
const READ_BYTES: usize = 8 * 1024;

/// Bytes of answers to pings that wait for a server that does not read.
const UNREAD_MAX: usize = 1024 * 1024;

/// The largest number of messages that a kept connection may have received while it was idle.
const IDLE_MESSAGES_MAX: u32 = 1024;

/// A connection after its upgrade.
pub(super) struct Upgraded {
    socket: WebSocketStream<Box<dyn Stream>>,
    /// The response to the upgrade, which every conversation on this connection checks.
    head: Vec<u8>,
    /// The request of the upgrade, and the first message of a GraphQL connection.
    opened_with: Vec<u8>,
    /// Number of subscriptions until now, for their ids.
    subscriptions: u64,
    /// True if the GraphQL server has accepted the connection.
    is_acknowledged: bool,
    /// True if it has carried a conversation.
    is_used: bool,
    /// True if it can carry no further message.
    is_gone: bool,
}

/// An upgrade that is requested.
pub(super) struct Upgrade<'a> {
    pub(super) call: &'a WebSocketCall,
    /// The request, without the key of the connection.
    pub(super) request: &'a [u8],
    pub(super) opened_with: &'a [u8],
    pub(super) bounds: Bounds,
    pub(super) clock: Clock,
}

impl Upgrade<'_> {
    /// Upgrades a connection. `None` if the server answered with another status, which the listener has.
    pub(super) async fn on(
        &self,
        mut stream: Box<dyn Stream>,
        progress: &mut ResponseProgress,
        listener: &mut impl Listener,
    ) -> Result<Option<Upgraded>, ExchangeError> {
        let offered = Offered::read(self.call, self.request)?;
        let key = generate_key();
        let end = self.request.len().saturating_sub(b"\r\n".len());
        let head = &self.request[..end];
        let bytes = [head, b"Sec-WebSocket-Key: ", key.as_bytes(), b"\r\n\r\n"].concat();
        write(&mut *stream, &bytes).await?;
        let (head, rest) = self.read_head(&mut *stream, progress).await?;
        let is_switched = with_head(&head, |head| {
            listener.head(head);
            match head.status {
                101 => verify(head, &key, &offered).map(|()| true),
                _ => Ok(false),
            }
        })?;
        if !is_switched {
            return Ok(None);
        }
        let most = usize::try_from(self.bounds.body_bytes).unwrap_or(KEPT_MAX);
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_BYTES)
            // Each message leaves at once.
            .write_buffer_size(0)
            .max_write_buffer_size(self.request.len() + UNREAD_MAX)
            .max_message_size(Some(most.min(KEPT_MAX)))
            .max_frame_size(Some(most.min(KEPT_MAX)));
        let socket =
            WebSocketStream::from_partially_read(stream, rest, Role::Client, Some(config)).await;
        Ok(Some(Upgraded {
            socket,
            head,
            opened_with: self.opened_with.to_vec(),
            subscriptions: 0,
            is_acknowledged: false,
            is_used: false,
            is_gone: false,
        }))
    }

    /// Reads the head of the response. Returns it, and the bytes of frames after it.
    async fn read_head(
        &self,
        stream: &mut dyn Stream,
        progress: &mut ResponseProgress,
    ) -> Result<(Vec<u8>, Vec<u8>), ExchangeError> {
        let mut head = Vec::new();
        let mut room = [0; 2048];
        loop {
            let mut buffer = ReadBuf::new(&mut room);
            let read = poll_fn(|context| Pin::new(&mut *stream).poll_read(context, &mut buffer));
            read.await
                .map_err(|error| ExchangeError::failed(FailureKind::Reset, error.to_string()))?;
            let piece = buffer.filled();
            if piece.is_empty() {
                let when = if head.is_empty() { "before" } else { "during" };
                let reason = format!("the connection was closed {when} the answer to the upgrade");
                return Err(ExchangeError::failed(FailureKind::Closed, reason));
            }
            progress.keep(piece, self.clock.now_ns());
            head.extend_from_slice(piece);
            let mut lines = [httparse::EMPTY_HEADER; HEADERS_MAX];
            match httparse::Response::new(&mut lines).parse(&head) {
                Ok(httparse::Status::Complete(bytes)) => {
                    let rest = head.split_off(bytes);
                    return Ok((head, rest));
                }
                Ok(httparse::Status::Partial) if head.len() > self.bounds.head_bytes => {
                    let reason = format!(
                        "expected a head of at most {} bytes, found a longer head",
                        self.bounds.head_bytes
                    );
                    return Err(ExchangeError::failed(FailureKind::TooLarge, reason));
                }
                Ok(httparse::Status::Partial) => {}
                Err(error) => {
                    let reason = format!("the answer to the upgrade is not HTTP: {error}");
                    return Err(ExchangeError::failed(FailureKind::Protocol, reason));
                }
            }
        }
    }
}

async fn write(stream: &mut dyn Stream, mut bytes: &[u8]) -> Result<(), ExchangeError> {
    let all = bytes.len();
    let stale = |left: usize, error: std::io::Error| match left == all {
        true => ExchangeError::Stale(error.to_string()),
        false => ExchangeError::failed(FailureKind::Reset, error.to_string()),
    };
    while !bytes.is_empty() {
        let written =
            poll_fn(|context| AsyncWrite::poll_write(Pin::new(&mut *stream), context, bytes));
        let written = written.await.map_err(|error| stale(bytes.len(), error))?;
        bytes = &bytes[written..];
    }
    // TLS holds back the end of a request until it is flushed.
    let flushed = poll_fn(|context| AsyncWrite::poll_flush(Pin::new(&mut *stream), context));
    flushed.await.map_err(|error| stale(0, error))
}

/// Parses a head that was parsed before.
fn with_head<T>(
    bytes: &[u8],
    take: impl FnOnce(&Head<'_>) -> Result<T, ExchangeError>,
) -> Result<T, ExchangeError> {
    let mut lines = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut response = httparse::Response::new(&mut lines);
    let parsed = response.parse(bytes);
    let (Ok(_), Some(status)) = (parsed, response.code) else {
        let reason = "the answer to the upgrade is not HTTP".to_owned();
        return Err(ExchangeError::failed(FailureKind::Protocol, reason));
    };
    let headers: &[Header<'_>] = response.headers;
    take(&Head::new(status, headers))
}

/// Refuses a response that does not belong to this upgrade (RFC 6455, section 4.1).
fn verify(head: &Head<'_>, key: &str, offered: &Offered) -> Result<(), ExchangeError> {
    let found = |name: &str| {
        let value = head.combined(name);
        value.map(|value| String::from_utf8_lossy(&value).into_owned())
    };
    let wrong = |name: &str, expected: &str| {
        let found = found(name).map_or_else(|| "none".to_owned(), |it| format!("`{it}`"));
        let reason =
            format!("expected `{name}: {expected}` in the answer to the upgrade, found {found}");
        Err(ExchangeError::failed(FailureKind::Protocol, reason))
    };
    let lists = |name: &str, word: &str| {
        found(name).is_some_and(|value| {
            let mut words = value.split(',');
            words.any(|it| it.trim().eq_ignore_ascii_case(word))
        })
    };
    let accept = derive_accept_key(key.as_bytes());
    if !lists("Upgrade", "websocket") {
        return wrong("Upgrade", "websocket");
    }
    if !lists("Connection", "upgrade") {
        return wrong("Connection", "Upgrade");
    }
    if found("Sec-WebSocket-Accept").as_deref() != Some(&accept) {
        return wrong("Sec-WebSocket-Accept", &accept);
    }
    if found("Sec-WebSocket-Extensions").is_some_and(|value| !value.trim().is_empty()) {
        return wrong("Sec-WebSocket-Extensions", "(no extension)");
    }
    match offered.accepts(found("Sec-WebSocket-Protocol").as_deref()) {
        true => Ok(()),
        false => wrong("Sec-WebSocket-Protocol", &offered.expected()),
    }
}

/// An occurrence on a connection.
enum Happening {
    Message(Message),
    Failed(Error),
    /// The socket has ended.
    Ended,
}

impl Upgraded {
    /// True if this request opened the connection, with this first message of a GraphQL connection.
    pub(super) fn was_opened_with(&self, bytes: &[u8]) -> bool {
        self.opened_with == bytes
    }

    /// Prepares a kept connection for a further conversation. Messages that arrived meanwhile belong to
    /// earlier subscriptions.
    ///
    /// # Errors
    ///
    /// If the connection cannot carry it.
    pub(super) async fn resume(&mut self, is_graphql: bool) -> Result<(), ExchangeError> {
        let stale = |reason: &str| Err(ExchangeError::Stale(reason.to_owned()));
        for _ in 0..IDLE_MESSAGES_MAX {
            match poll_fn(|context| Poll::Ready(self.poll_happening(context))).await {
                Poll::Pending => return Ok(()),
                Poll::Ready(Happening::Message(Message::Ping(_) | Message::Pong(_))) => {}
                Poll::Ready(Happening::Message(Message::Text(_))) if is_graphql => {}
                Poll::Ready(Happening::Message(Message::Close(_)) | Happening::Ended) => {
                    return stale("it was closed");
                }
                Poll::Ready(Happening::Failed(error)) => return stale(&error.to_string()),
                Poll::Ready(Happening::Message(_)) => {
                    return stale("it received unexpected data");
                }
            }
        }
        stale("it received too many messages while it was idle")
    }

    /// Gives the response to the upgrade to the listener of a further conversation.
    pub(super) fn repeat_head(&self, listener: &mut impl Listener) -> Result<(), ExchangeError> {
        with_head(&self.head, |head| {
            listener.head(head);
            Ok(())
        })
    }

    fn poll_happening(&mut self, context: &mut std::task::Context<'_>) -> Poll<Happening> {
        Pin::new(&mut self.socket)
            .poll_next(context)
            .map(|read| match read {
                Some(Ok(message)) => Happening::Message(message),
                Some(Err(error)) => Happening::Failed(error),
                None => Happening::Ended,
            })
    }

    /// True if it can carry a further conversation.
    pub(super) fn is_open(&self) -> bool {
        !self.is_gone
    }

    /// Hands a message to the socket, which must be flushed.
    fn start_send(&mut self, message: Message) -> Result<(), Error> {
        Pin::new(&mut self.socket).start_send(message)
    }

    /// Waits until the messages have left, but not for long.
    async fn flush(&mut self) {
        let flushed = poll_fn(|context| Pin::new(&mut self.socket).poll_flush(context));
        // A server that does not read loses the last message.
        let _ = tokio::time::timeout(STREAM_END, flushed).await;
    }

    /// Closes the connection with the code 1000, and waits a short time for the server to close it too.
    pub(super) async fn close(&mut self) {
        if self.is_gone {
            // The answer to the close message of the server.
            return self.flush().await;
        }
        let farewell = CloseFrame {
            code: CloseCode::Normal,
            reason: "".into(),
        };
        if self.start_send(Message::Close(Some(farewell))).is_err() {
            return;
        }
        let closed = async {
            let flushed = poll_fn(|context| Pin::new(&mut self.socket).poll_flush(context));
            if flushed.await.is_err() {
                return;
            }
            loop {
                match poll_fn(|context| self.poll_happening(context)).await {
                    Happening::Message(_) => {}
                    Happening::Failed(_) | Happening::Ended => return,
                }
            }
        };
        let _ = tokio::time::timeout(STREAM_END, closed).await;
    }
}

/// Returns the failure of a conversation.
fn failure(error: &Error) -> ExchangeError {
    let (kind, reason) = match error {
        Error::Capacity(_) => (FailureKind::TooLarge, error.to_string()),
        Error::ConnectionClosed
        | Error::AlreadyClosed
        | Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => (
            FailureKind::Closed,
            "the server ended the connection without a close message".to_owned(),
        ),
        Error::WriteBufferFull(_) => (
            FailureKind::Reset,
            "the server does not read the messages to it".to_owned(),
        ),
        Error::Io(io) => match io.kind() {
            std::io::ErrorKind::UnexpectedEof | std::io::ErrorKind::BrokenPipe => {
                (FailureKind::Closed, io.to_string())
            }
            std::io::ErrorKind::InvalidData => (FailureKind::Protocol, io.to_string()),
            _ => (FailureKind::Reset, io.to_string()),
        },
        _ => (
            FailureKind::Protocol,
            format!("the server broke a rule of WebSocket: {error}"),
        ),
    };
    ExchangeError::failed(kind, reason)
}

/// Returns the failure of a conversation that the server closed.
fn closed(frame: Option<&CloseFrame>) -> ExchangeError {
    let reason = match frame {
        None => "the server closed the connection without a code".to_owned(),
        Some(frame) if frame.reason.is_empty() => format!(
            "the server closed the connection with the code {}",
            u16::from(frame.code)
        ),
        Some(frame) => format!(
            "the server closed the connection with the code {} ({})",
            u16::from(frame.code),
            frame.reason.escape_debug()
        ),
    };
    ExchangeError::failed(FailureKind::Closed, reason)
}
