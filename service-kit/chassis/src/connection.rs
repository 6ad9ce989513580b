//! A client connection that needs few system calls.
//!
//! Most requests have arrived when their connection is accepted, and many connections carry only one request.
//! So a connection is read at once. It is registered with the runtime only if its task would have to wait.
//! The last response leaves in the same segment as the end of the connection.

use std::cell::{Cell, RefCell};
use std::io::{self, IoSlice};
use std::mem::{self, MaybeUninit};
use std::net::TcpStream;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper::{Request, Version};
use hyper_util::rt::TokioIo;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, Shutdown};

use crate::tls::{ListenerTls, ServerSocket};

/// Bytes of one read while a connection is not registered.
const READ_BYTES: usize = 8 * 1024;

/// A client's connection for hyper. [`ConnectionHandle::serve`] must drive the future that hyper creates from
/// it.
#[derive(Debug)]
pub struct ClientConnection(ConnectionHandle);

/// A handle on the state of a connection, without its bytes.
#[derive(Clone, Debug)]
pub struct ConnectionHandle(Rc<State>);

#[derive(Debug)]
struct State {
    socket: RefCell<Socket>,
    /// True if a reader waits and no waker is registered for it.
    is_awaited: Cell<bool>,
    /// True if all received bytes were read.
    is_drained: Cell<bool>,
    /// True if the next response is the last.
    is_ending: Cell<bool>,
}

#[derive(Debug)]
enum Socket {
    /// Not registered, because no read had to wait yet.
    Fresh(TcpStream),
    /// Registered with the runtime, which reports when it is ready.
    Watched(TokioIo<tokio::net::TcpStream>),
    /// With TLS, which needs more than the shortcuts of this file.
    Secured(TokioIo<ServerSocket>),
    /// The registration failed.
    Lost,
}

impl ClientConnection {
    /// Wraps a non-blocking socket.
    #[must_use]
    pub fn new(socket: TcpStream) -> Self {
        Self::of(Socket::Fresh(socket))
    }

    /// Wraps a non-blocking socket, with TLS if the service has a certificate. The first read performs the
    /// handshake.
    ///
    /// # Errors
    /// Fails if the system has no more file descriptors.
    pub fn accepted(socket: TcpStream, tls: Option<&ListenerTls>) -> io::Result<Self> {
        let Some(tls) = tls else {
            return Ok(Self::new(socket));
        };
        let socket = tls.socket(tokio::net::TcpStream::from_std(socket)?);
        Ok(Self::of(Socket::Secured(TokioIo::new(socket))))
    }

    fn of(socket: Socket) -> Self {
        Self(ConnectionHandle(Rc::new(State {
            socket: RefCell::new(socket),
            is_awaited: Cell::new(false),
            is_drained: Cell::new(false),
            is_ending: Cell::new(false),
        })))
    }

    /// A handle for the task that serves the connection.
    #[must_use]
    pub fn handle(&self) -> ConnectionHandle {
        self.0.clone()
    }

    fn flags(&self) -> SendFlags {
        let mut flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        // The system then keeps a partial segment until the connection ends.
        flags.set(SendFlags::MORE, self.0.0.is_ending.get());
        flags
    }
}

impl ConnectionHandle {
    /// Finds out from a request if its response is the last on the connection.
    ///
    /// A last response may be kept until the connection ends, so it must not be sent in pieces with pauses.
    pub fn learn<B>(&self, request: &Request<B>) {
        let is_last = is_last(request.version(), request.headers());
        self.0.is_ending.set(is_last);
    }

    /// Drives the server of the connection, and wakes it when bytes have arrived.
    pub async fn serve<F: Future>(self, work: F) -> F::Output {
        let mut work = std::pin::pin!(work);
        std::future::poll_fn(|task| {
            let done = work.as_mut().poll(task);
            // After the poll, because hyper may find other work before it really waits.
            if done.is_pending() && self.0.is_awaited.take() {
                self.0.socket.borrow_mut().wait(task);
            }
            done
        })
        .await
    }
}

/// True if the response to this request is the last on its connection (RFC 9112, 9.3).
fn is_last(version: Version, headers: &HeaderMap) -> bool {
    let says = |option: &str| {
        let mut values = headers.get_all(header::CONNECTION).iter();
        values.any(|value| has(value, option))
    };
    match version {
        Version::HTTP_09 | Version::HTTP_10 => !says("keep-alive"),
        Version::HTTP_11 => says("close"),
        _ => false,
    }
}

fn has(value: &HeaderValue, option: &str) -> bool {
    let mut options = value.as_bytes().split(|byte| *byte == b',');
    options.any(|it| it.trim_ascii().eq_ignore_ascii_case(option.as_bytes()))
}

impl Socket {
    fn descriptor(&self) -> io::Result<BorrowedFd<'_>> {
        match self {
            Socket::Fresh(socket) => Ok(socket.as_fd()),
            Socket::Watched(socket) => Ok(socket.inner().as_fd()),
            // TLS takes no bytes past its stream.
            Socket::Secured(_) | Socket::Lost => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    /// The stream with TLS, if the connection has it.
    fn secured(&mut self) -> Option<Pin<&mut TokioIo<ServerSocket>>> {
        match self {
            Socket::Secured(socket) => Some(Pin::new(socket)),
            _ => None,
        }
    }

    /// Registers the socket with the runtime if it is not registered yet.
    fn watched(&mut self) -> io::Result<Pin<&mut TokioIo<tokio::net::TcpStream>>> {
        *self = match mem::replace(self, Socket::Lost) {
            Socket::Fresh(socket) => {
                let socket = tokio::net::TcpStream::from_std(socket)?;
                Socket::Watched(TokioIo::new(socket))
            }
            other => other,
        };
        match self {
            Socket::Watched(socket) => Ok(Pin::new(socket)),
            // An earlier attempt to register it has failed.
            _ => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    /// Wakes the task when bytes have arrived, or at once if reading has failed.
    fn wait(&mut self, task: &mut Context<'_>) {
        let is_there = match self.watched() {
            Ok(socket) => socket.inner().poll_read_ready(task).is_ready(),
            // The next read reports it.
            Err(_) => true,
        };
        if is_there {
            task.waker().wake_by_ref();
        }
    }
}

impl Read for ClientConnection {
    fn poll_read(
        self: Pin<&mut Self>,
        task: &mut Context<'_>,
        mut into: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let state = &self.0.0;
        let mut socket = state.socket.borrow_mut();
        if let Some(secured) = socket.secured() {
            return secured.poll_read(task, into);
        }
        // Once registered, tokio's reads handle waiting.
        let Socket::Fresh(fresh) = &*socket else {
            return socket.watched()?.poll_read(task, into);
        };
        if !state.is_drained.get() {
            // On the stack, because handing hyper's buffer to the system requires `unsafe`. A copy of at most
            // 8 KiB costs less than an early registration.
            let mut bytes = [MaybeUninit::<u8>::uninit(); READ_BYTES];
            let room = into.remaining().min(READ_BYTES);
            match rustix::net::recv(fresh, &mut bytes[..room], RecvFlags::DONTWAIT) {
                Ok(((read, _), _)) => {
                    into.put_slice(read);
                    // A short read emptied the socket. An empty read is the end of the stream, which repeats.
                    state.is_drained.set(!read.is_empty() && read.len() < room);
                    return Poll::Ready(Ok(()));
                }
                Err(error) => or_wait(error)?,
            }
        }
        // The waker is not stored here: `serve` registers the socket once hyper has no other work.
        state.is_awaited.set(true);
        Poll::Pending
    }
}

impl Write for ClientConnection {
    fn poll_write(
        self: Pin<&mut Self>,
        task: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut socket = self.0.0.socket.borrow_mut();
        if let Some(secured) = socket.secured() {
            return secured.poll_write(task, bytes);
        }
        // Directly to the system: a response nearly always fits into the socket's buffer, so no registration
        // is needed.
        match rustix::net::send(socket.descriptor()?, bytes, self.flags()) {
            Ok(count) => Poll::Ready(Ok(count)),
            Err(error) => {
                or_wait(error)?;
                socket.watched()?.poll_write(task, bytes)
            }
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        task: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut socket = self.0.0.socket.borrow_mut();
        if let Some(secured) = socket.secured() {
            return secured.poll_write_vectored(task, slices);
        }
        let mut nothing = SendAncillaryBuffer::default();
        match rustix::net::sendmsg(socket.descriptor()?, slices, &mut nothing, self.flags()) {
            Ok(count) => Poll::Ready(Ok(count)),
            Err(error) => {
                or_wait(error)?;
                socket.watched()?.poll_write_vectored(task, slices)
            }
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut socket = self.0.0.socket.borrow_mut();
        let secured = socket.secured();
        secured.map_or(Poll::Ready(Ok(())), |secured| secured.poll_flush(task))
    }

    fn poll_shutdown(self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut socket = self.0.0.socket.borrow_mut();
        if let Some(secured) = socket.secured() {
            return secured.poll_shutdown(task);
        }
        rustix::net::shutdown(socket.descriptor()?, Shutdown::Write)?;
        Poll::Ready(Ok(()))
    }
}

/// Passes on every error except the errors that mean "wait" or "try again".
fn or_wait(error: Errno) -> io::Result<()> {
    match error {
        Errno::AGAIN | Errno::INTR => Ok(()),
        error => Err(error.into()),
    }
}

#[cfg(test)]
mod tests;
