//! HTTP/2 over a stream, with the h2 library.
//!
//! One task drives a connection. Senders wait here until the target has room for one more stream. A request
//! therefore counts as sent when the library receives it, and not while it queues.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::mem::replace;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::client::{Builder, ResponseFuture, SendRequest};
use h2::{RecvStream, SendStream};
use http::HeaderMap;
use httparse::Header;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::fault::{Stage, failure, words};
use super::feed::Feed;
use super::message::Message;
use super::progress::{ExchangeError, ResponseProgress};
use super::stream::Stream;
use crate::check::stream::STREAM_END;
use crate::clock::Clock;
use crate::job::Bounds;
use crate::measurement::FailureKind;
use crate::parser::{Head, ParseError, Sink};

/// Bytes that the target may send on one stream before it must wait for us. Bodies up to this size arrive
/// without a pause. Larger bodies are acknowledged half a window ahead.
const STREAM_WINDOW: u32 = 16 * 1024 * 1024;

/// The limit for all streams of a connection together.
const CONNECTION_WINDOW: u32 = 1024 * 1024 * 1024;

/// Size of a header in addition to its name and value (RFC 9113, section 6.5.2).
const HEADER_OVERHEAD: usize = 32;

/// An open connection.
pub(super) struct Session {
    sender: SendRequest<Bytes>,
    task: JoinHandle<()>,
    under_way: Cell<usize>,
    /// True if it has carried a response.
    pub(super) is_used: Cell<bool>,
    /// Notified when there may be room for one more stream, or when the connection has ended.
    freed: Rc<Notify>,
}

impl Session {
    /// Sends the connection preface. The target may respond later.
    pub(super) async fn new(stream: Box<dyn Stream>) -> Result<Session, h2::Error> {
        let (sender, connection) = Builder::new()
            .enable_push(false)
            .initial_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            // No request leaves before the target has sent its stream limit. Streams beyond the limit would
            // be refused.
            .initial_max_send_streams(0)
            .handshake(stream)
            .await?;
        let freed = Rc::new(Notify::new());
        let changed = Rc::clone(&freed);
        let task = tokio::task::spawn_local(async move {
            let mut connection = std::pin::pin!(connection);
            let mut limit = connection.max_concurrent_send_streams();
            poll_fn(|context| {
                // Every stream that the connection ends receives its error.
                let polled = connection.as_mut().poll(context).map(drop);
                let limit_before = replace(&mut limit, connection.max_concurrent_send_streams());
                if limit != limit_before || polled.is_ready() {
                    changed.notify_waiters();
                }
                polled
            })
            .await;
        });
        Ok(Session {
            sender,
            task,
            under_way: Cell::new(0),
            is_used: Cell::new(false),
            freed,
        })
    }

    /// True if it may carry another request. The target may already have closed it.
    pub(super) fn is_open(&self) -> bool {
        !self.task.is_finished()
    }

    /// True if only one request is under way.
    pub(super) fn is_alone(&self) -> bool {
        self.under_way.get() == 1
    }

    /// True if the target accepts no request: it has not sent its settings, or it grants no stream.
    pub(super) fn grants_no_stream(&self) -> bool {
        self.is_open() && self.sender.current_max_send_streams() == 0
    }

    /// Waits until the target accepts one more stream.
    pub(super) async fn enter(self: &Rc<Session>) -> Room {
        while self.is_open() && self.under_way.get() >= self.sender.current_max_send_streams() {
            // Checked again after a wake-up, because another place may have taken the room.
            self.freed.notified().await;
        }
        self.under_way.set(self.under_way.get() + 1);
        Room(Rc::clone(self))
    }

    /// Passes a request to the library. With a feed, its messages are the body.
    pub(super) async fn send<'a>(
        &self,
        message: Message,
        feed: Option<Feed<'a>>,
    ) -> Result<Sending<'a>, ExchangeError> {
        // Waiting for room needs a separate handle. A clone shares the connection.
        let mut sender = self.sender.clone();
        let stale = |error: h2::Error| ExchangeError::Stale(words(&error));
        poll_fn(|context| sender.poll_ready(context))
            .await
            .map_err(stale)?;
        let Message { head, body, .. } = message;
        let has_body = !body.is_empty() || feed.is_some();
        let (response, stream) = sender.send_request(head, !has_body).map_err(stale)?;
        let upload = Upload {
            stream,
            rest: body,
            feed,
        };
        let mut sending = Sending {
            response,
            upload: has_body.then_some(upload),
        };
        // Most bodies fit into the first window and leave with the head.
        poll_fn(|context| {
            sending.poll_upload(context);
            Poll::Ready(())
        })
        .await;
        Ok(sending)
    }
}

/// One of the streams that a connection has room for, until it is dropped.
pub(super) struct Room(Rc<Session>);

impl Drop for Room {
    fn drop(&mut self) {
        self.0.under_way.set(self.0.under_way.get() - 1);
        // One stream became free, so one place can continue.
        self.0.freed.notify_one();
    }
}

/// The body of a request.
struct Upload<'a> {
    stream: SendStream<Bytes>,
    rest: Bytes,
    /// The source of further parts.
    feed: Option<Feed<'a>>,
}

impl Upload<'_> {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<(), h2::Error>> {
        loop {
            ready!(self.poll_rest(context))?;
            let Some(feed) = &mut self.feed else {
                return Poll::Ready(Ok(()));
            };
            match ready!(feed.poll_next(context)) {
                Some(part) => self.rest = part,
                None => return Poll::Ready(self.stream.send_data(Bytes::new(), true)),
            }
        }
    }

    fn poll_rest(&mut self, context: &mut Context<'_>) -> Poll<Result<(), h2::Error>> {
        while !self.rest.is_empty() {
            self.stream.reserve_capacity(self.rest.len());
            let room = match self.stream.capacity() {
                0 => match ready!(self.stream.poll_capacity(context)) {
                    Some(room) => room?,
                    None => return Poll::Ready(Ok(())),
                },
                room => room,
            };
            let part = self.rest.split_to(room.min(self.rest.len()));
            let is_last = self.rest.is_empty() && self.feed.is_none();
            self.stream.send_data(part, is_last)?;
        }
        Poll::Ready(Ok(()))
    }
}

/// A request that was passed to the library. Dropping it cancels its stream.
pub(super) struct Sending<'a> {
    response: ResponseFuture,
    upload: Option<Upload<'a>>,
}

/// Size limits and timing of a response.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    pub(super) clock: Clock,
    pub(super) bounds: Bounds,
    /// True if the connection has carried a response and was idle when the request left.
    pub(super) was_idle: bool,
}

impl Sending<'_> {
    fn poll_upload(&mut self, context: &mut Context<'_>) {
        if let Some(upload) = &mut self.upload
            && upload.poll(context).is_ready()
        {
            // The target no longer reads this body. The response shows if that matters.
            self.upload = None;
        }
    }

    /// Receives the response, while the rest of the request leaves.
    pub(super) async fn receive(
        mut self,
        limits: Limits,
        progress: &mut ResponseProgress,
        sink: &mut impl Sink,
    ) -> Result<(), ExchangeError> {
        let response = poll_fn(|context| {
            self.poll_upload(context);
            Pin::new(&mut self.response).poll(context)
        })
        .await
        .map_err(|error| {
            failure(
                &error,
                Stage::Head {
                    was_idle: limits.was_idle,
                },
            )
        })?;
        let (parts, mut body) = response.into_parts();
        progress.keep(&[], limits.clock.now_ns());
        let length = parts.headers.get(http::header::CONTENT_LENGTH);
        let length = length.and_then(|length| length.to_str().ok()?.parse().ok());
        let stage = Stage::Body { length };
        // The library has its own limit for heads. This limit is the limit of HTTP/1.1, so that both
        // protocols accept the same responses.
        let is_small = head_bytes(&parts.headers) <= limits.bounds.head_bytes;
        progress.spoken = "HTTP/2";
        let (status, headers) = progress.head.insert((parts.status, parts.headers));
        if !is_small {
            return Err(too_large("head", limits.bounds.head_bytes as u64));
        }
        let status_code = status.as_u16();
        sink.head(&Head::new(status_code, &lines(headers)));
        let mut body_bytes = 0;
        while let Some(part) = match sink.is_ended() {
            false => self.part(&mut body).await,
            // The stream has ended. If the response does not end soon, it is complete without that.
            true => {
                let rest = tokio::time::timeout(STREAM_END, self.part(&mut body)).await;
                match rest {
                    Ok(part) => part,
                    Err(_) => return Ok(()),
                }
            }
        } {
            let part = part.map_err(|error| failure(&error, stage))?;
            progress.keep(&part, limits.clock.now_ns());
            body_bytes += part.len() as u64;
            if body_bytes > limits.bounds.body_bytes {
                return Err(too_large("body", limits.bounds.body_bytes));
            }
            sink.body(&part);
            if sink.is_over() {
                // The stream is reset when it is dropped.
                return Ok(());
            }
            if let Some(refusal) = sink.refusal() {
                return Err(ExchangeError::failed(refusal.kind(), refusal.to_string()));
            }
            // At once, because the rules have read the bytes. We never close the window.
            body.flow_control()
                .release_capacity(part.len())
                .map_err(|error| failure(&error, stage))?;
        }
        let trailers = poll_fn(|context| body.poll_trailers(context)).await;
        let trailers = trailers.map_err(|error| failure(&error, stage))?;
        if let Some(trailers) = trailers {
            if head_bytes(&trailers) > limits.bounds.head_bytes {
                return Err(too_large("trailers", limits.bounds.head_bytes as u64));
            }
            sink.trailers(&Head::new(status_code, &lines(&trailers)));
        }
        Ok(())
    }

    async fn part(&mut self, body: &mut RecvStream) -> Option<Result<Bytes, h2::Error>> {
        poll_fn(|context| {
            self.poll_upload(context);
            body.poll_data(context)
        })
        .await
    }
}

/// Returns header lines in the form of the parser.
pub(super) fn lines(headers: &HeaderMap) -> Vec<Header<'_>> {
    headers
        .iter()
        .map(|(name, value)| Header {
            name: name.as_str(),
            value: value.as_bytes(),
        })
        .collect()
}

pub(super) fn head_bytes(headers: &HeaderMap) -> usize {
    headers
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len() + HEADER_OVERHEAD)
        .sum()
}

pub(super) fn too_large(part: &'static str, limit: u64) -> ExchangeError {
    let error = ParseError::TooLarge {
        part,
        limit,
        unit: "bytes",
    };
    ExchangeError::failed(FailureKind::TooLarge, error.to_string())
}
