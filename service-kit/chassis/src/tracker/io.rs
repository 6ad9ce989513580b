//! A socket that records the beginning of request heads and the progress of response bytes.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use hyper::rt::{Read, ReadBufCursor, Write};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{Protocol, State, Tracked};

/// Number of bytes that a client must take to make progress.
///
/// With a smaller number, a client that takes a byte from time to time could keep a response in memory
/// forever.
pub(super) const PROGRESS_BYTES: usize = 16 * 1024;

/// A socket that records its reads and writes, for hyper and for servers on tokio's traits.
#[derive(Debug)]
pub struct TrackedIo<I> {
    socket: I,
    state: Rc<State>,
}

impl<I> TrackedIo<I> {
    pub(super) fn new(socket: I, state: Rc<State>) -> Self {
        Self { socket, state }
    }

    /// A handle on the tracked connection.
    #[must_use]
    pub fn tracked(&self) -> Tracked {
        Tracked(Rc::clone(&self.state))
    }
}

impl State {
    /// Records that bytes, or the end, have arrived.
    fn has_read(&self) {
        // The first bytes after a pause begin a head. HTTP/2 also has frames that belong to no request.
        if self.protocol.get() == Protocol::Http1 && self.active.get() == 0 && !self.in_head.get() {
            self.in_head.set(true);
            self.begins();
        }
    }

    fn has_written(&self, result: &Poll<io::Result<usize>>) {
        if let Poll::Ready(Ok(count)) = result
            && self.held.get() > 0
        {
            // Heads were not counted, so the count may reach zero a little early.
            self.held.set(self.held.get().saturating_sub(*count));
            self.taken.set(self.registry.now());
        }
        match result {
            Poll::Pending if self.blocked.get().is_none() => {
                self.blocked.set(Some(self.registry.now()));
                self.credit.set(0);
            }
            Poll::Ready(Ok(count)) if self.blocked.get().is_some() => {
                let credit = self.credit.get() + count;
                if credit >= PROGRESS_BYTES {
                    self.blocked.set(Some(self.registry.now()));
                    self.credit.set(0);
                } else {
                    self.credit.set(credit);
                }
            }
            _ => {}
        }
    }

    fn has_flushed(&self, result: &Poll<io::Result<()>>) {
        if result.is_ready() {
            // hyper flushes a socket after it has written all its bytes.
            self.blocked.set(None);
        }
    }
}

impl<I: Read + Unpin> Read for TrackedIo<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
        into: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let done = Pin::new(&mut self.socket).poll_read(task, into);
        if done.is_ready() {
            self.state.has_read();
        }
        done
    }
}

impl<I: Write + Unpin> Write for TrackedIo<I> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.socket).poll_write(task, bytes);
        self.state.has_written(&done);
        done
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.socket).poll_write_vectored(task, slices);
        self.state.has_written(&done);
        done
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        let done = Pin::new(&mut self.socket).poll_flush(task);
        self.state.has_flushed(&done);
        done
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(task)
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for TrackedIo<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let done = Pin::new(&mut self.socket).poll_read(task, into);
        if done.is_ready() {
            self.state.has_read();
        }
        done
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for TrackedIo<I> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.socket).poll_write(task, bytes);
        self.state.has_written(&done);
        done
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.socket).poll_write_vectored(task, slices);
        self.state.has_written(&done);
        done
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        let done = Pin::new(&mut self.socket).poll_flush(task);
        self.state.has_flushed(&done);
        done
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(task)
    }
}
