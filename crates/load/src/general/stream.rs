//! Sockets as byte streams that tokio can wait for, with counts of their bytes.

use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use model::{Handshakes, Packets};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

use crate::socket::Peer;

/// Bytes that a task reads before it yields to other tasks.
const AT_ONCE_MAX: usize = 64 * 1024;

/// Bytes that moved through the sockets of one generator thread, TLS and framing included.
#[derive(Debug, Default)]
pub(super) struct Traffic {
    pub(super) bytes_in: Cell<u64>,
    pub(super) bytes_out: Cell<u64>,
    /// Packets of HTTP/3.
    pub(super) packets: Cell<Packets>,
    /// Completed handshakes of TLS.
    pub(super) handshakes: Cell<Handshakes>,
}

impl Traffic {
    /// Resets the counts to 0, except for the handshakes. Connections that open before the load count, like their
    /// connect times.
    pub(super) fn reset(&self) {
        self.bytes_in.set(0);
        self.bytes_out.set(0);
        self.packets.set(Packets::default());
    }

    /// Counts a completed handshake.
    pub(super) fn shaken(&self, is_resumed: bool, is_early_accepted: Option<bool>) {
        let mut handshakes = self.handshakes.get();
        handshakes.count(is_resumed, is_early_accepted);
        self.handshakes.set(handshakes);
    }
}

fn count(total: &Cell<u64>, bytes: usize) {
    total.set(total.get() + bytes as u64);
}

/// A connection, encrypted or not.
pub(super) trait Stream: AsyncRead + AsyncWrite + Unpin {}
impl<T: AsyncRead + AsyncWrite + Unpin> Stream for T {}

/// A socket that is connecting or connected to a target.
pub(super) struct Socket {
    kind: Kind,
    /// Bytes that were read since a read had to wait.
    at_once: usize,
    traffic: Rc<Traffic>,
}

enum Kind {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    /// Creates a non-blocking socket of the peer's family. Must be called within a runtime.
    pub(super) fn new(socket: OwnedFd, peer: &Peer, traffic: &Rc<Traffic>) -> io::Result<Socket> {
        let kind = match peer {
            Peer::Tcp(_) => Kind::Tcp(TcpStream::from_std(socket.into())?),
            Peer::Unix(_) => Kind::Unix(UnixStream::from_std(socket.into())?),
        };
        Ok(Socket {
            kind,
            at_once: 0,
            traffic: Rc::clone(traffic),
        })
    }

    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        match &self.kind {
            Kind::Tcp(stream) => stream.as_fd(),
            Kind::Unix(stream) => stream.as_fd(),
        }
    }

    /// Waits until a connect is decided.
    pub(super) async fn decided(&self) -> io::Result<()> {
        match &self.kind {
            Kind::Tcp(stream) => stream.writable().await,
            Kind::Unix(stream) => stream.writable().await,
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        // The server may send faster than responses are parsed. The task then yields to other tasks, timeouts
        // and the stop flag.
        if self.at_once >= AT_ONCE_MAX {
            self.at_once = 0;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let before = buffer.filled().len();
        let polled = match &mut self.kind {
            Kind::Tcp(stream) => Pin::new(stream).poll_read(context, buffer),
            Kind::Unix(stream) => Pin::new(stream).poll_read(context, buffer),
        };
        if polled.is_pending() {
            self.at_once = 0;
        }
        ready!(polled)?;
        let bytes = buffer.filled().len() - before;
        self.at_once += bytes;
        count(&self.traffic.bytes_in, bytes);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(match &mut self.kind {
            Kind::Tcp(stream) => Pin::new(stream).poll_write(context, bytes),
            Kind::Unix(stream) => Pin::new(stream).poll_write(context, bytes),
        })?;
        count(&self.traffic.bytes_out, written);
        Poll::Ready(Ok(written))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(match &mut self.kind {
            Kind::Tcp(stream) => Pin::new(stream).poll_write_vectored(context, parts),
            Kind::Unix(stream) => Pin::new(stream).poll_write_vectored(context, parts),
        })?;
        count(&self.traffic.bytes_out, written);
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.kind {
            Kind::Tcp(stream) => Pin::new(stream).poll_shutdown(context),
            Kind::Unix(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
