//! HTTP/3 over QUIC, with the quinn library, and with the h3 library for heads.
//!
//! A connection has a socket of its own, like a client that is somewhere else. Its handshake includes TLS.
//! Senders wait here until the target has room for one more stream, as over HTTP/2.

use std::cell::{Cell, RefCell};
use std::future::{Future as _, poll_fn};
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf as _, Bytes};
use futures_util::future::{Either, select};
use h3::client::{RequestStream, SendRequest};
use h3::error::{Code, StreamError};
use http::{Method, StatusCode};
use model::Packets;
use quinn::{ClientConfig, Connection, Endpoint, EndpointConfig, SendStream, TokioRuntime, VarInt};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::http2::{Limits, head_bytes, lines, too_large};
use super::message::Message;
use super::progress::{ExchangeError, ResponseProgress};
use super::stream::Traffic;
use crate::check::stream::STREAM_END;
use crate::measurement::FailureKind;
use crate::parser::{Head, Sink};
use crate::socket::{Peer, refusal};

mod datagrams;
mod fault;
mod frames;
mod library;

use datagrams::{Datagrams, SocketFault};
use fault::{Stage, broken, of_connection, of_handshake, of_part, of_request};
use frames::{Frames, Part, data_head};
use library::{Heads, Library, NextStream, Opener, RequestStream as LibraryStream, Writer};

/// Bytes that the target may send on one stream before it must wait for us, as over HTTP/2.
const STREAM_WINDOW: u32 = 16 * 1024 * 1024;

/// The limit for all streams of a connection together.
const CONNECTION_WINDOW: u32 = 1024 * 1024 * 1024;

/// Streams that the target may open: its control stream, two for its compression of heads, and a few that
/// have no meaning for us.
const TARGET_STREAMS_MAX: u8 = 8;

/// Time between two signs of life. Servers end a connection without one after 5 seconds or later, even while
/// they work on a request.
const SIGN_OF_LIFE: Duration = Duration::from_secs(4);

/// The largest head that the library decodes. The limit of a load is smaller.
const DECODED_MAX: u64 = 1024 * 1024;

/// The name of HTTP/3 in handshakes.
pub(crate) const ALPN: &[u8] = b"h3";

/// Returns the settings of connections with these certificates.
///
/// # Errors
///
/// A message, if the certificates cannot be used with QUIC.
pub(super) fn settings(tls: Arc<quinn::rustls::ClientConfig>) -> Result<ClientConfig, String> {
    let tls = quinn::crypto::rustls::QuicClientConfig::try_from(tls);
    let mut config = ClientConfig::new(Arc::new(tls.map_err(|error| error.to_string())?));
    let mut transport = quinn::TransportConfig::default();
    transport
        .max_concurrent_bidi_streams(0_u8.into())
        .max_concurrent_uni_streams(TARGET_STREAMS_MAX.into())
        .stream_receive_window(STREAM_WINDOW.into())
        .receive_window(CONNECTION_WINDOW.into())
        .datagram_receive_buffer_size(None)
        .keep_alive_interval(Some(SIGN_OF_LIFE));
    config.transport_config(Arc::new(transport));
    Ok(config)
}

/// What a connection, its library and its streams share.
#[derive(Default)]
pub(super) struct Shared {
    /// The stream in the last GOAWAY, before the library has judged the frame.
    announced: Cell<Option<u64>>,
    /// The first stream that the target does not process, after it announced its end.
    leaving: Cell<Option<u64>>,
    /// The rule that the target broke.
    broken: RefCell<Option<(Code, String)>>,
    /// Notified with each of the above.
    changed: Notify,
    fault: SocketFault,
}

impl Shared {
    /// Handles the end that the target announced with a valid frame.
    fn leave(&self) {
        if let Some(first) = self.announced.take() {
            self.leaving.set(Some(first));
            self.changed.notify_waiters();
        }
    }

    /// Closes the connection, because the target broke a rule.
    fn close(&self, connection: &Connection, code: Code, reason: &[u8]) {
        if code != Code::H3_NO_ERROR {
            let words = String::from_utf8_lossy(reason).into_owned();
            self.broken.borrow_mut().get_or_insert((code, words));
        }
        connection.close(number(code), reason);
    }
}

fn number(code: Code) -> VarInt {
    VarInt::from_u64(code.value()).expect("a code has 62 bits")
}

/// An open connection.
pub(super) struct Session {
    connection: Connection,
    sender: SendRequest<Opener, Bytes>,
    next: NextStream,
    shared: Rc<Shared>,
    task: JoinHandle<()>,
    under_way: Cell<usize>,
    /// True if the target has granted a stream.
    has_let_in: Cell<bool>,
    /// True if it has carried a response.
    pub(super) is_used: Cell<bool>,
    traffic: Rc<Traffic>,
    /// The part of the connection's own counts that the traffic contains.
    counted: Cell<Counted>,
}

#[derive(Clone, Copy, Default)]
struct Counted {
    bytes_in: u64,
    bytes_out: u64,
    packets: Packets,
}

impl Session {
    /// Connects, and sends our settings. The target may respond to them later.
    ///
    /// # Errors
    ///
    /// The reason that there is no connection, as a message.
    pub(super) async fn open(
        config: &ClientConfig,
        name: &str,
        peer: &Peer,
        traffic: &Rc<Traffic>,
    ) -> Result<Session, (FailureKind, String)> {
        let Peer::Tcp(address) = peer else {
            unreachable!("a route of HTTP/3 has an address with a port")
        };
        let shared = Rc::new(Shared::default());
        let connection = handshake(config, name, *address, &shared.fault).await?;
        let next = NextStream::default();
        let library = Library::new(connection.clone(), Rc::clone(&shared), Rc::clone(&next));
        let built = h3::client::builder()
            .max_field_section_size(DECODED_MAX)
            .send_grease(false)
            .build(library)
            .await;
        let refused = |_| (FailureKind::Connect, of_connection(&connection, &shared).1);
        let (mut driver, sender) = built.map_err(refused)?;
        let (own, held) = (Rc::clone(&shared), connection.clone());
        let task = tokio::task::spawn_local(async move {
            let ended = pin!(poll_fn(|context| {
                let polled = driver.poll_close(context);
                if polled.is_pending() {
                    own.leave();
                }
                polled
            }));
            let fault = pin!(own.fault.raised());
            if let Either::Right(_) = select(ended, fault).await {
                held.close(number(Code::H3_NO_ERROR), b"");
            }
            own.changed.notify_waiters();
        });
        Ok(Session {
            connection,
            sender,
            next,
            shared,
            task,
            under_way: Cell::new(0),
            has_let_in: Cell::new(false),
            is_used: Cell::new(false),
            traffic: Rc::clone(traffic),
            counted: Cell::default(),
        })
    }

    /// True if it may carry another request. The target may already have closed it.
    pub(super) fn is_open(&self) -> bool {
        self.shared.leaving.get().is_none() && self.connection.close_reason().is_none()
    }

    /// True if only one request is under way.
    pub(super) fn is_alone(&self) -> bool {
        self.under_way.get() == 1
    }

    /// True if the target has granted no stream at all.
    pub(super) fn grants_no_stream(&self) -> bool {
        self.is_open() && !self.has_let_in.get()
    }

    /// Waits until the target accepts one more stream.
    ///
    /// # Errors
    ///
    /// If the connection cannot carry the request, of which no byte has left.
    pub(super) async fn enter(self: &Rc<Session>) -> Result<Room, ExchangeError> {
        let opened = {
            let opening = pin!(self.connection.open_bi());
            let gone = pin!(self.gone(u64::MAX));
            match select(opening, gone).await {
                Either::Left((opened, _)) => opened.ok(),
                Either::Right(_) => None,
            }
        };
        let Some((send, receive)) = opened else {
            return Err(ExchangeError::Stale(
                of_connection(&self.connection, &self.shared).1,
            ));
        };
        self.has_let_in.set(true);
        self.under_way.set(self.under_way.get() + 1);
        Ok(Room {
            under_way: UnderWay(Rc::clone(self)),
            send,
            receive,
        })
    }

    /// Waits until the target announces that it does not process this stream.
    async fn gone(&self, stream: u64) {
        loop {
            let mut changed = pin!(self.shared.changed.notified());
            changed.as_mut().enable();
            if self
                .shared
                .leaving
                .get()
                .is_some_and(|first| first <= stream)
            {
                return;
            }
            changed.await;
        }
    }

    /// Passes the head of a request to the library, and as much of the body as there is room for.
    pub(super) async fn send(
        self: &Rc<Session>,
        message: Message,
        room: Room,
    ) -> Result<Sending, ExchangeError> {
        let Message { head, body, .. } = message;
        let Room {
            under_way,
            send,
            receive,
        } = room;
        let is_bodiless = head.method() == Method::HEAD;
        let id = receive.id().into();
        let (heads, writer) = (Heads::default(), Rc::new(RefCell::new(send)));
        // The library takes the stream in its first step, before another request can replace it.
        let stream = LibraryStream::new(Rc::clone(&writer), &receive, heads.clone());
        self.next.set(Some(stream));
        let sent = self.sender.clone().send_request(head).await;
        let stream = sent.map_err(|error| {
            self.next.take();
            of_request(&error, &self.connection, &self.shared)
        })?;
        let parts = match body.len() as u64 {
            0 => Vec::new(),
            length => vec![body, data_head(length)],
        };
        let mut sending = Sending {
            under_way,
            id,
            stream,
            heads,
            writer,
            upload: Some(parts),
            frames: Frames::new(receive),
            is_bodiless,
            is_complete: false,
        };
        // Most bodies fit into the first window and leave with the head.
        poll_fn(|context| {
            sending.poll_upload(context);
            Poll::Ready(())
        })
        .await;
        Ok(sending)
    }

    /// Adds the connection's own counts since the last call to the traffic.
    pub(super) fn settle(&self) {
        let stats = self.connection.stats();
        let now = Counted {
            bytes_in: stats.udp_rx.bytes,
            bytes_out: stats.udp_tx.bytes,
            packets: Packets {
                sent: stats.path.sent_packets,
                lost: stats.path.lost_packets,
            },
        };
        let before = self.counted.replace(now);
        let add = |total: &Cell<u64>, now: u64, before: u64| total.set(total.get() + now - before);
        add(&self.traffic.bytes_in, now.bytes_in, before.bytes_in);
        add(&self.traffic.bytes_out, now.bytes_out, before.bytes_out);
        let mut packets = self.traffic.packets.get();
        packets.sent += now.packets.sent - before.packets.sent;
        packets.lost += now.packets.lost - before.packets.lost;
        self.traffic.packets.set(packets);
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.settle();
        self.task.abort();
        self.connection.close(number(Code::H3_NO_ERROR), b"");
    }
}

async fn handshake(
    config: &ClientConfig,
    name: &str,
    peer: SocketAddr,
    fault: &SocketFault,
) -> Result<Connection, (FailureKind, String)> {
    let refuse = |reason: String| (FailureKind::Connect, reason);
    let socket = Datagrams::new(peer, fault).map_err(|error| refusal(&error))?;
    let endpoint = Endpoint::new_with_abstract_socket(
        EndpointConfig::default(),
        None,
        Arc::new(socket),
        Arc::new(TokioRuntime),
    );
    let endpoint = endpoint.map_err(|error| refusal(&error))?;
    let connecting = endpoint.connect_with(config.clone(), peer, name);
    let connecting = connecting.map_err(|error| refuse(error.to_string()))?;
    let shaken = match select(pin!(connecting), pin!(fault.raised())).await {
        Either::Left((shaken, _)) => Some(shaken),
        Either::Right(_) => None,
    };
    // The socket knows better than the library why it could not be used.
    if let Some(error) = fault.get() {
        return Err(refusal(error));
    }
    shaken
        .expect("the socket has no fault")
        .map_err(|error| refuse(of_handshake(&error)))
}

/// Counts one request for as long as it is kept.
struct UnderWay(Rc<Session>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.under_way.set(self.0.under_way.get() - 1);
    }
}

/// An open stream for one request.
pub(super) struct Room {
    under_way: UnderWay,
    send: SendStream,
    receive: quinn::RecvStream,
}

/// A request that was passed to the library. Dropping it cancels its stream.
pub(super) struct Sending {
    under_way: UnderWay,
    id: u64,
    stream: RequestStream<LibraryStream, Bytes>,
    heads: Heads,
    writer: Writer,
    /// The parts of the body that have not left, the last part first. `None` after the end of the request.
    upload: Option<Vec<Bytes>>,
    frames: Frames,
    /// True if the response has no body, whatever its `content-length`.
    is_bodiless: bool,
    is_complete: bool,
}

impl Drop for Sending {
    fn drop(&mut self) {
        if !self.is_complete {
            self.frames.stop();
        }
        if self.upload.is_some() {
            // A stream that has ended needs no reset.
            let _ = self
                .writer
                .borrow_mut()
                .reset(number(Code::H3_REQUEST_CANCELLED));
        }
    }
}

impl Sending {
    /// Sends the rest of the body, as far as there is room for it.
    fn poll_upload(&mut self, context: &mut Context<'_>) {
        if let Some(parts) = &mut self.upload
            && poll_write(&mut self.writer.borrow_mut(), parts, context).is_ready()
        {
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
        self.frames.limit_heads(limits.bounds.head_bytes);
        progress.spoken = "HTTP/3";
        let (status, length) = self.head(limits, progress, sink).await?;
        let stage = Stage::Body;
        let mut body_bytes = 0;
        let trailers = loop {
            let part = match sink.is_ended() {
                false => self.part(stage).await?,
                // The stream has ended. If the response does not end soon, it is complete without that.
                true => match tokio::time::timeout(STREAM_END, self.part(stage)).await {
                    Ok(part) => part?,
                    Err(_) => return Ok(()),
                },
            };
            let piece = match part {
                None => break None,
                Some(Part::Head(frame)) => break Some(frame),
                Some(Part::Body(piece)) => piece,
            };
            progress.keep(&piece, limits.clock.now_ns());
            body_bytes += piece.len() as u64;
            if body_bytes > limits.bounds.body_bytes {
                return Err(too_large("body", limits.bounds.body_bytes));
            }
            if length.is_some_and(|length| body_bytes > length) {
                return Err(wrong_length(length));
            }
            sink.body(&piece);
            if sink.is_over() {
                // The stream is stopped when it is dropped.
                return Ok(());
            }
            if let Some(refusal) = sink.refusal() {
                return Err(ExchangeError::failed(refusal.kind(), refusal.to_string()));
            }
        };
        if length.is_some_and(|length| body_bytes != length) {
            return Err(wrong_length(length));
        }
        if let Some(frame) = trailers {
            self.trailers(frame, status, limits, sink).await?;
        }
        self.is_complete = true;
        Ok(())
    }

    /// Receives the head. Returns its status, and the length of the body that it announces.
    async fn head(
        &mut self,
        limits: Limits,
        progress: &mut ResponseProgress,
        sink: &mut impl Sink,
    ) -> Result<(u16, Option<u64>), ExchangeError> {
        let stage = Stage::Head {
            was_idle: limits.was_idle,
        };
        let head = loop {
            let frame = match self.part(stage).await? {
                Some(Part::Head(frame)) => frame,
                Some(Part::Body(_)) => {
                    return Err(broken(Code::H3_FRAME_UNEXPECTED, "a body before its head"));
                }
                None => {
                    return Err(broken(
                        Code::H3_MESSAGE_ERROR,
                        "the stream ended before the head of the answer",
                    ));
                }
            };
            progress.keep(&[], limits.clock.now_ns());
            self.heads.push(frame);
            let received = self.stream.recv_response().await;
            let head = match received {
                Ok(head) => head.into_parts().0,
                Err(error) => return Err(self.refused(&error, limits).await),
            };
            // Heads before the head, such as 103.
            if !head.status.is_informational() {
                break head;
            }
        };
        let is_empty = self.is_bodiless
            || matches!(
                head.status,
                StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED
            );
        let length = head.headers.get(http::header::CONTENT_LENGTH);
        let length = length.and_then(|length| length.to_str().ok()?.parse().ok());
        let is_small = head_bytes(&head.headers) <= limits.bounds.head_bytes;
        let (status, headers) = progress.head.insert((head.status, head.headers));
        if !is_small {
            return Err(too_large("head", limits.bounds.head_bytes as u64));
        }
        let status = status.as_u16();
        sink.head(&Head::new(status, &lines(headers)));
        Ok((status, length.filter(|_| !is_empty)))
    }

    /// Receives the end of a response with trailers.
    async fn trailers(
        &mut self,
        frame: Bytes,
        status: u16,
        limits: Limits,
        sink: &mut impl Sink,
    ) -> Result<(), ExchangeError> {
        // The library is asked once the stream has ended, because it reads to the end.
        if self.part(Stage::Body).await?.is_some() {
            return Err(broken(
                Code::H3_FRAME_UNEXPECTED,
                "a frame after the trailers",
            ));
        }
        self.heads.push(frame);
        let trailers = match self.stream.recv_trailers().await {
            Ok(trailers) => trailers,
            Err(error) => return Err(self.refused(&error, limits).await),
        };
        if let Some(trailers) = trailers {
            if head_bytes(&trailers) > limits.bounds.head_bytes {
                return Err(too_large("trailers", limits.bounds.head_bytes as u64));
            }
            sink.trailers(&Head::new(status, &lines(&trailers)));
        }
        Ok(())
    }

    /// Returns the failure of a head that the library did not accept.
    async fn refused(&self, error: &StreamError, limits: Limits) -> ExchangeError {
        let Session {
            connection, shared, ..
        } = &*self.under_way.0;
        if let Some(failure) = of_part(error, limits.bounds) {
            return failure;
        }
        // The task of the connection closes it, with the reason.
        connection.closed().await;
        let (kind, reason) = of_connection(connection, shared);
        ExchangeError::failed(kind, reason)
    }

    /// Returns the next part of the response. `None` at its end.
    async fn part(&mut self, stage: Stage) -> Result<Option<Part>, ExchangeError> {
        let session = Rc::clone(&self.under_way.0);
        let mut gone = pin!(session.gone(self.id));
        poll_fn(|context| {
            self.poll_upload(context);
            if matches!(stage, Stage::Head { .. }) && gone.as_mut().poll(context).is_ready() {
                return Poll::Ready(Err(ExchangeError::Unprocessed {
                    is_leaving: true,
                    reason: "the server ended the connection (GOAWAY)".to_owned(),
                }));
            }
            self.frames.poll(context).map_err(|error| {
                fault::of_frames(error, stage, &session.connection, &session.shared)
            })
        })
        .await
    }
}

fn wrong_length(length: Option<u64>) -> ExchangeError {
    let length = length.unwrap_or_default();
    ExchangeError::failed(
        FailureKind::Protocol,
        format!("the length of the body differs from the {length} bytes of its `content-length`"),
    )
}

/// Writes parts, the last part first, and ends the stream after them.
fn poll_write(
    writer: &mut SendStream,
    parts: &mut Vec<Bytes>,
    context: &mut Context<'_>,
) -> Poll<()> {
    while let Some(part) = parts.last_mut() {
        match ready!(Pin::new(&mut *writer).poll_write(context, part)) {
            Ok(written) => part.advance(written),
            // The target no longer reads this body. The response shows if that matters.
            Err(_) => return Poll::Ready(()),
        }
        if part.is_empty() {
            parts.pop();
        }
    }
    // A stream that the server stopped has ended, too.
    let _ = writer.finish();
    Poll::Ready(())
}

/// Gives the connections that were closed the time to say so.
pub(super) async fn leave() {
    // A step for the connection, one for its socket, and some in case that others run first.
    for _ in 0..16 {
        tokio::task::yield_now().await;
    }
}
