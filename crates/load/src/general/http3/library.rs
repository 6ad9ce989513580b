//! The streams of quinn in the form that the library for HTTP/3 takes.
//!
//! The library writes and reads heads, and interprets the control stream. Frames of responses are separated
//! earlier ([`Frames`](super::frames::Frames)), so it receives only whole frames with heads.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use h3::error::Code;
use h3::quic::{self, ConnectionErrorIncoming, StreamErrorIncoming, StreamId, WriteBuf};
use quinn::{Connection, ConnectionError, ReadError, RecvStream, SendStream, VarInt, WriteError};

use super::Shared;
use super::frames::Watch;

/// The largest number of bytes of a control stream. Servers send fewer than 100.
const CONTROL_MAX: usize = 64 * 1024;

/// Bytes of a read of a control stream.
const READ_MAX: usize = 4096;

/// The sending half of a stream, for the library and for the body.
pub(super) type Writer = Rc<RefCell<SendStream>>;

/// Whole frames with heads, for the library.
#[derive(Clone, Default)]
pub(super) struct Heads(Rc<RefCell<VecDeque<Bytes>>>);

impl Heads {
    pub(super) fn push(&self, frame: Bytes) {
        self.0.borrow_mut().push_back(frame);
    }
}

/// The stream that the next request uses, already open.
pub(super) type NextStream = Rc<Cell<Option<RequestStream>>>;

type Accepting<T> = Option<Pin<Box<dyn Future<Output = Result<T, ConnectionError>>>>>;

/// A connection.
pub(super) struct Library {
    opener: Opener,
    accepting: Accepting<RecvStream>,
    accepting_both: Accepting<(SendStream, RecvStream)>,
    opening: Accepting<SendStream>,
    shared: Rc<Shared>,
}

impl Library {
    pub(super) fn new(connection: Connection, shared: Rc<Shared>, next: NextStream) -> Library {
        Library {
            opener: Opener {
                connection,
                next,
                shared: Rc::clone(&shared),
            },
            accepting: None,
            accepting_both: None,
            opening: None,
            shared,
        }
    }

    fn connection(&self) -> Connection {
        self.opener.connection.clone()
    }
}

/// Polls a future that is created when it is needed.
fn poll_kept<T>(
    kept: &mut Accepting<T>,
    create: impl FnOnce() -> Pin<Box<dyn Future<Output = Result<T, ConnectionError>>>>,
    context: &mut Context<'_>,
) -> Poll<Result<T, ConnectionError>> {
    let polled = kept.get_or_insert_with(create).as_mut().poll(context);
    if polled.is_ready() {
        *kept = None;
    }
    polled
}

impl quic::Connection<Bytes> for Library {
    type RecvStream = ControlStream;
    type OpenStreams = Opener;

    fn poll_accept_recv(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<ControlStream, ConnectionErrorIncoming>> {
        let connection = self.connection();
        let accept = || Box::pin(async move { connection.accept_uni().await }) as Pin<Box<_>>;
        let stream = ready!(poll_kept(&mut self.accepting, accept, context)).map_err(incoming)?;
        Poll::Ready(Ok(ControlStream {
            stream,
            bytes: 0,
            watch: Watch::default(),
            shared: Rc::clone(&self.shared),
        }))
    }

    fn poll_accept_bidi(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<RequestStream, ConnectionErrorIncoming>> {
        let connection = self.connection();
        let accept = || Box::pin(async move { connection.accept_bi().await }) as Pin<Box<_>>;
        let accepted = ready!(poll_kept(&mut self.accepting_both, accept, context));
        let (send, receive) = accepted.map_err(incoming)?;
        let stream = RequestStream::new(Rc::new(RefCell::new(send)), &receive, Heads::default());
        Poll::Ready(Ok(stream))
    }

    fn opener(&self) -> Opener {
        self.opener.clone()
    }
}

impl quic::OpenStreams<Bytes> for Library {
    type BidiStream = RequestStream;
    type SendStream = OwnStream;

    fn poll_open_bidi(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<RequestStream, StreamErrorIncoming>> {
        self.opener.poll_open_bidi(context)
    }

    fn poll_open_send(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<OwnStream, StreamErrorIncoming>> {
        let connection = self.connection();
        let open = || Box::pin(async move { connection.open_uni().await }) as Pin<Box<_>>;
        let opened = ready!(poll_kept(&mut self.opening, open, context));
        let stream = opened.map_err(lost)?;
        Poll::Ready(Ok(OwnStream::new(Rc::new(RefCell::new(stream)))))
    }

    fn close(&mut self, code: Code, reason: &[u8]) {
        self.opener
            .shared
            .close(&self.opener.connection, code, reason);
    }
}

/// A source of streams for requests.
#[derive(Clone)]
pub(super) struct Opener {
    connection: Connection,
    next: NextStream,
    shared: Rc<Shared>,
}

impl quic::OpenStreams<Bytes> for Opener {
    type BidiStream = RequestStream;
    type SendStream = OwnStream;

    fn poll_open_bidi(
        &mut self,
        _: &mut Context<'_>,
    ) -> Poll<Result<RequestStream, StreamErrorIncoming>> {
        let stream = self.next.take();
        Poll::Ready(Ok(stream.expect("a request has an open stream")))
    }

    fn poll_open_send(
        &mut self,
        _: &mut Context<'_>,
    ) -> Poll<Result<OwnStream, StreamErrorIncoming>> {
        unreachable!("a client opens streams of its own with the connection")
    }

    fn close(&mut self, code: Code, reason: &[u8]) {
        self.shared.close(&self.connection, code, reason);
    }
}

/// The stream of a request, as far as the library uses it.
pub(super) struct RequestStream {
    own: OwnStream,
    id: u64,
    heads: Heads,
}

impl RequestStream {
    pub(super) fn new(writer: Writer, receive: &RecvStream, heads: Heads) -> RequestStream {
        RequestStream {
            own: OwnStream::new(writer),
            id: receive.id().into(),
            heads,
        }
    }
}

impl quic::RecvStream for RequestStream {
    type Buf = Bytes;

    fn poll_data(
        &mut self,
        _: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        // The library is only asked for a head that has arrived.
        Poll::Ready(Ok(self.heads.0.borrow_mut().pop_front()))
    }

    /// [`Frames`](super::frames::Frames) stops the stream.
    fn stop_sending(&mut self, _: u64) {}

    fn recv_id(&self) -> StreamId {
        identity(self.id)
    }
}

impl quic::SendStream<Bytes> for RequestStream {
    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.own.poll_ready(context)
    }

    fn send_data<T: Into<WriteBuf<Bytes>>>(&mut self, data: T) -> Result<(), StreamErrorIncoming> {
        self.own.send_data(data)
    }

    fn poll_finish(&mut self, context: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.own.poll_finish(context)
    }

    fn reset(&mut self, code: u64) {
        self.own.reset(code);
    }

    fn send_id(&self) -> StreamId {
        identity(self.id)
    }
}

/// A stream that we send on.
pub(super) struct OwnStream {
    writer: Writer,
    writing: Option<WriteBuf<Bytes>>,
    marker: PhantomData<Bytes>,
}

impl OwnStream {
    fn new(writer: Writer) -> OwnStream {
        OwnStream {
            writer,
            writing: None,
            marker: PhantomData,
        }
    }
}

impl quic::SendStream<Bytes> for OwnStream {
    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        while let Some(data) = self.writing.as_mut().filter(|data| data.has_remaining()) {
            let mut writer = self.writer.borrow_mut();
            let written = ready!(Pin::new(&mut *writer).poll_write(context, data.chunk()));
            data.advance(written.map_err(|error| match error {
                WriteError::ConnectionLost(error) => lost(error),
                WriteError::Stopped(code) => StreamErrorIncoming::StreamTerminated {
                    error_code: code.into_inner(),
                },
                error => StreamErrorIncoming::Unknown(Box::new(error)),
            })?);
        }
        self.writing = None;
        Poll::Ready(Ok(()))
    }

    fn send_data<T: Into<WriteBuf<Bytes>>>(&mut self, data: T) -> Result<(), StreamErrorIncoming> {
        self.writing = Some(data.into());
        Ok(())
    }

    fn poll_finish(&mut self, _: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        // A stream that the server stopped is finished, too.
        let _ = self.writer.borrow_mut().finish();
        Poll::Ready(Ok(()))
    }

    fn reset(&mut self, code: u64) {
        if let Ok(code) = VarInt::from_u64(code) {
            let _ = self.writer.borrow_mut().reset(code);
        }
    }

    fn send_id(&self) -> StreamId {
        identity(self.writer.borrow().id().into())
    }
}

/// A stream that only the server sends on.
pub(super) struct ControlStream {
    stream: RecvStream,
    bytes: usize,
    watch: Watch,
    shared: Rc<Shared>,
}

impl quic::RecvStream for ControlStream {
    type Buf = Bytes;

    fn poll_data(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        let chunk = ready!(pin!(self.stream.read_chunk(READ_MAX, true)).poll(context));
        let chunk = chunk.map_err(|error| match error {
            ReadError::ConnectionLost(error) => lost(error),
            ReadError::Reset(code) => StreamErrorIncoming::StreamTerminated {
                error_code: code.into_inner(),
            },
            error => StreamErrorIncoming::Unknown(Box::new(error)),
        })?;
        let Some(chunk) = chunk else {
            return Poll::Ready(Ok(None));
        };
        self.bytes += chunk.bytes.len();
        if self.bytes > CONTROL_MAX {
            let words = format!("expected at most {CONTROL_MAX} bytes, found more");
            return Poll::Ready(Err(StreamErrorIncoming::Unknown(words.into())));
        }
        if let Some(id) = self.watch.read(&chunk.bytes) {
            self.shared.announced.set(Some(id));
        }
        Poll::Ready(Ok(Some(chunk.bytes)))
    }

    fn stop_sending(&mut self, code: u64) {
        if let Ok(code) = VarInt::from_u64(code) {
            let _ = self.stream.stop(code);
        }
    }

    fn recv_id(&self) -> StreamId {
        identity(self.stream.id().into())
    }
}

fn identity(id: u64) -> StreamId {
    id.try_into().expect("QUIC numbers streams with 62 bits")
}

fn lost(error: ConnectionError) -> StreamErrorIncoming {
    StreamErrorIncoming::ConnectionErrorIncoming {
        connection_error: incoming(error),
    }
}

fn incoming(error: ConnectionError) -> ConnectionErrorIncoming {
    match error {
        ConnectionError::ApplicationClosed(close) => ConnectionErrorIncoming::ApplicationClose {
            error_code: close.error_code.into_inner(),
        },
        ConnectionError::TimedOut => ConnectionErrorIncoming::Timeout,
        error => ConnectionErrorIncoming::Undefined(std::sync::Arc::new(error)),
    }
}
