//! A connection over a Unix socket that waits for arriving data. It waits for room to write only after a
//! refused write.
//!
//! When the other side reads from a Unix socket, the kernel wakes every waiter for room, even if there was
//! room all the time. TCP wakes only after a refused write. tokio's own socket always waits for both. So a
//! worker that has sent a request would wake up twice: without need when the request is read, and again for
//! the response.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll};

use rustix::net::{SendFlags, Shutdown, send, shutdown};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::UnixStream;
use tokio::net::unix::pipe::Receiver;

/// An open, non-blocking Unix socket.
pub(crate) struct UnixSocket {
    // The only tokio type that waits only for arriving data. It reads a socket in the usual way.
    arriving: Receiver,
    /// The socket again, waiting for room. Set after a write was refused because of a full buffer.
    full: Option<UnixStream>,
}

impl UnixSocket {
    /// # Errors
    ///
    /// If there is no listener on this path.
    pub(crate) async fn connect(path: &Path) -> io::Result<Self> {
        // tokio connects without blocking the thread, and the socket stays non-blocking.
        let socket = UnixStream::connect(path).await?.into_std()?;
        Ok(Self {
            arriving: Receiver::from_owned_fd_unchecked(OwnedFd::from(socket))?,
            full: None,
        })
    }

    /// Starts to wait for room.
    fn wait_for_room(&mut self) -> io::Result<&mut UnixStream> {
        let same = self.arriving.as_fd().try_clone_to_owned()?;
        let socket = UnixStream::from_std(same.into())?;
        Ok(self.full.insert(socket))
    }
}

impl AsyncRead for UnixSocket {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().arriving).poll_read(context, buffer)
    }
}

impl AsyncWrite for UnixSocket {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let socket = match &mut this.full {
            Some(socket) => socket,
            None => {
                match rustix::io::retry_on_intr(|| send(&this.arriving, bytes, SendFlags::NOSIGNAL))
                {
                    Err(rustix::io::Errno::WOULDBLOCK) => this.wait_for_room()?,
                    done => return Poll::Ready(done.map_err(io::Error::from)),
                }
            }
        };
        Pin::new(socket).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Writes are not buffered.
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(shutdown(&self.arriving, Shutdown::Write).map_err(io::Error::from))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::UnixListener;

    use super::*;

    /// Both ends of a connection.
    async fn pair() -> (UnixSocket, UnixStream) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        let (client, server) = tokio::join!(UnixSocket::connect(&path), listener.accept());
        (client.unwrap(), server.unwrap().0)
    }

    #[tokio::test]
    async fn what_finds_room_is_sent_without_waiting_for_room() {
        let (mut client, mut server) = pair().await;
        for turn in 0..3_u8 {
            client.write_all(&[turn; 100]).await.unwrap();
            let mut question = [0; 100];
            server.read_exact(&mut question).await.unwrap();
            assert_eq!(question, [turn; 100]);
            server.write_all(&[turn, 1, 2]).await.unwrap();
            let mut answer = [0; 3];
            client.read_exact(&mut answer).await.unwrap();
            assert_eq!(answer, [turn, 1, 2]);
        }
        assert!(client.full.is_none());

        client.shutdown().await.unwrap();
        assert_eq!(server.read(&mut [0; 1]).await.unwrap(), 0);
        drop(server);
        assert_eq!(client.read(&mut [0; 1]).await.unwrap(), 0);
        assert!(client.write_all(b"anyone?").await.is_err());
    }

    #[tokio::test]
    async fn what_finds_no_room_is_sent_when_there_is_some_and_answers_still_arrive() {
        let (mut client, mut server) = pair().await;
        let sent: Vec<u8> = (0..4_000_000_u32).map(|at| (at % 251) as u8).collect();
        let send = async {
            client.write_all(&sent).await.unwrap();
            let mut answer = [0; 4];
            client.read_exact(&mut answer).await.unwrap();
            (answer, client.full.is_some())
        };
        let answer = async {
            let mut received = vec![0; sent.len()];
            server.read_exact(&mut received).await.unwrap();
            server.write_all(b"done").await.unwrap();
            received
        };
        let ((answer, waited), received) = tokio::join!(send, answer);
        assert_eq!((&answer, waited), (b"done", true));
        assert!(received == sent, "bytes were lost, doubled or reordered");
    }

    #[tokio::test]
    async fn where_nobody_listens_there_is_no_connection() {
        let folder = tempfile::tempdir().unwrap();
        let refused = UnixSocket::connect(&folder.path().join("socket")).await;
        assert!(refused.is_err());
    }
}
