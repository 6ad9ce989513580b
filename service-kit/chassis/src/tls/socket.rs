//! A client's socket, with or without TLS.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::{FallibleAccept, TlsStream};

/// Maximum of bytes that are read from a client after a failed handshake.
const DRAINED_MAX: usize = 64 * 1024;

/// The first byte of a handshake.
const HANDSHAKE: u8 = 22;

/// A client's socket. With TLS, its first read or write performs the handshake. So every limit for the head of
/// a request holds for the handshake, too.
#[derive(Debug)]
pub struct ServerSocket(Phase);

enum Phase {
    Plain(TcpStream),
    Handshake(Box<FallibleAccept<TcpStream>>),
    Secured(Box<TlsStream<TcpStream>>),
    /// The handshake failed. The rest of the client's bytes is read first: closing a socket with unread bytes
    /// resets the connection, and the client may then lose the alert.
    Refused {
        stream: TcpStream,
        error: io::Error,
        drained: usize,
    },
    Ended,
}

impl std::fmt::Debug for Phase {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Plain(_) => "Plain",
            Self::Handshake(_) => "Handshake",
            Self::Secured(_) => "Secured",
            Self::Refused { .. } => "Refused",
            Self::Ended => "Ended",
        })
    }
}

impl ServerSocket {
    /// A socket without TLS.
    #[must_use]
    pub fn plain(stream: TcpStream) -> Self {
        Self(Phase::Plain(stream))
    }

    /// A socket that begins with a handshake.
    #[must_use]
    pub fn secured(stream: TcpStream, config: Arc<ServerConfig>) -> Self {
        let accept = TlsAcceptor::from(config).accept(stream).into_fallible();
        Self(Phase::Handshake(Box::new(accept)))
    }

    /// Performs the handshake now. It has no time limit of its own.
    ///
    /// # Errors
    /// Fails if the client does not use TLS, or not as the settings require.
    pub async fn handshake(&mut self) -> io::Result<()> {
        poll_fn(|task| self.open(task).map_ok(drop)).await
    }

    /// The open stream, after the handshake.
    fn open(&mut self, task: &mut Context<'_>) -> Poll<io::Result<Pin<&mut dyn Stream>>> {
        loop {
            match &mut self.0 {
                Phase::Handshake(accept) => {
                    self.0 = match ready!(Pin::new(accept.as_mut()).poll(task)) {
                        Ok(stream) => Phase::Secured(Box::new(stream)),
                        Err((error, stream)) => {
                            // Any client can cause it, so it is not a warning.
                            tracing::debug!(%error, "no TLS with a client");
                            Phase::Refused {
                                stream,
                                error,
                                drained: 0,
                            }
                        }
                    };
                }
                Phase::Refused {
                    stream, drained, ..
                } => {
                    ready!(drain(stream, drained, task));
                    if let Phase::Refused { error, .. } = mem::replace(&mut self.0, Phase::Ended) {
                        return Poll::Ready(Err(error));
                    }
                }
                Phase::Ended => return Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
                Phase::Plain(_) | Phase::Secured(_) => break,
            }
        }
        Poll::Ready(Ok(match &mut self.0 {
            Phase::Plain(stream) => Pin::new(stream),
            Phase::Secured(stream) => Pin::new(stream.as_mut()),
            _ => unreachable!("the loop ends with an open stream"),
        }))
    }
}

/// Waits for the first byte of a client. Returns the socket if it begins a handshake of TLS, for libraries
/// that perform handshakes themselves. Otherwise the client is let go without a reset.
///
/// # Errors
/// Fails if the client leaves, or if the system has no more file descriptors.
pub async fn beginning_tls(stream: std::net::TcpStream) -> io::Result<Option<std::net::TcpStream>> {
    let mut stream = TcpStream::from_std(stream)?;
    let mut first = [0];
    if stream.peek(&mut first).await? == 1 && first[0] == HANDSHAKE {
        return stream.into_std().map(Some);
    }
    let mut drained = 0;
    poll_fn(|task| drain(&mut stream, &mut drained, task)).await;
    Ok(None)
}

/// A stream of tokio.
trait Stream: AsyncRead + AsyncWrite + Unpin {}

impl<S: AsyncRead + AsyncWrite + Unpin> Stream for S {}

/// Ends the stream, and reads until the client has ended it too, or has sent too much.
fn drain(stream: &mut TcpStream, drained: &mut usize, task: &mut Context<'_>) -> Poll<()> {
    // An error means that the client has left.
    let _ = Pin::new(&mut *stream).poll_shutdown(task);
    let mut bytes = [0; 4096];
    while *drained < DRAINED_MAX {
        let mut buffer = ReadBuf::new(&mut bytes);
        let read = ready!(Pin::new(&mut *stream).poll_read(task, &mut buffer));
        if read.is_err() || buffer.filled().is_empty() {
            break;
        }
        *drained += buffer.filled().len();
    }
    Poll::Ready(())
}

impl AsyncRead for ServerSocket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(self.open(task))?.poll_read(task, into)
    }
}

impl AsyncWrite for ServerSocket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.open(task))?.poll_write(task, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.open(task))?.poll_write_vectored(task, slices)
    }

    fn is_write_vectored(&self) -> bool {
        // Both kinds of streams do.
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.0 {
            Phase::Plain(stream) => Pin::new(stream).poll_flush(task),
            Phase::Secured(stream) => Pin::new(stream.as_mut()).poll_flush(task),
            // There are no written bytes yet.
            _ => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.0 {
            Phase::Plain(stream) => Pin::new(stream).poll_shutdown(task),
            Phase::Secured(stream) => Pin::new(stream.as_mut()).poll_shutdown(task),
            // Without a handshake there is no session to end.
            _ => Poll::Ready(Ok(())),
        }
    }
}
