//! One connection: a TCP or unix socket, with or without TLS.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::counters::{Open, Traffic};
use crate::endpoint::{Endpoint, Transport};
use crate::error::SendError;
use crate::unix_socket::UnixSocket;

/// An open connection.
pub(crate) struct Stream {
    socket: Socket,
    _open: Open,
}

enum Socket {
    Tcp(TcpStream),
    Unix(UnixSocket),
    // Boxed, because a TLS stream is many times larger than a socket, and every `Stream` would have
    // its size.
    Tls(Box<TlsStream<TcpStream>>),
}

impl Stream {
    /// Connects; `tls` is asked for only when the endpoint needs it.
    pub(crate) async fn connect(
        endpoint: &Endpoint,
        tls: impl FnOnce() -> TlsConnector,
        traffic: &Arc<Traffic>,
    ) -> Result<Self, SendError> {
        // Counted while it is set up, too: its socket is there.
        let _open = traffic.opened();
        let socket = Socket::connect(endpoint, tls).await?;
        Ok(Self { socket, _open })
    }

    /// Whether the other side agreed to HTTP/2 while TLS was set up.
    pub(crate) fn agreed_to_http2(&self) -> bool {
        match &self.socket {
            Socket::Tls(stream) => stream.get_ref().1.alpn_protocol() == Some(b"h2"),
            Socket::Tcp(_) | Socket::Unix(_) => false,
        }
    }

    /// Whether an idle connection is still open and silent. Costs no system
    /// call in the usual case: tokio knows that nothing has arrived.
    pub(crate) fn is_quiet(&mut self) -> bool {
        // One byte is enough: data on an idle connection, or its end, means that it cannot be
        // reused.
        let mut space = [0_u8; 1];
        let mut buffer = ReadBuf::new(&mut space);
        let mut no_waker = Context::from_waker(Waker::noop());
        Pin::new(self)
            .poll_read(&mut no_waker, &mut buffer)
            .is_pending()
    }
}

impl Socket {
    async fn connect(
        endpoint: &Endpoint,
        tls: impl FnOnce() -> TlsConnector,
    ) -> Result<Self, SendError> {
        match endpoint.transport() {
            Transport::Tcp { host, port } => tcp(host, *port).await.map(Self::Tcp),
            Transport::Unix { socket } => UnixSocket::connect(socket)
                .await
                .map(Self::Unix)
                .map_err(|source| SendError::Unreachable {
                    origin: socket.display().to_string(),
                    source,
                }),
            Transport::Tls { host, port } => {
                let origin = || format!("{host}:{port}");
                let name =
                    ServerName::try_from(host.to_string()).map_err(|error| SendError::Tls {
                        origin: origin(),
                        source: io::Error::new(io::ErrorKind::InvalidInput, error),
                    })?;
                let socket = tcp(host, *port).await?;
                let stream = tls().connect(name, socket).await;
                stream
                    .map(|stream| Self::Tls(Box::new(stream)))
                    .map_err(|source| SendError::Tls {
                        origin: origin(),
                        source,
                    })
            }
        }
    }
}

async fn tcp(host: &str, port: u16) -> Result<TcpStream, SendError> {
    let unreachable = |source| SendError::Unreachable {
        origin: format!("{host}:{port}"),
        source,
    };
    let stream = TcpStream::connect((host, port))
        .await
        .map_err(unreachable)?;
    // A request is one write; waiting for more of it would only delay it.
    stream.set_nodelay(true).map_err(unreachable)?;
    Ok(stream)
}

macro_rules! each {
    ($self:ident, $stream:ident => $call:expr) => {
        match &mut $self.get_mut().socket {
            Socket::Tcp(stream) => {
                let $stream = Pin::new(stream);
                $call
            }
            Socket::Unix(stream) => {
                let $stream = Pin::new(stream);
                $call
            }
            Socket::Tls(stream) => {
                let $stream = Pin::new(stream.as_mut());
                $call
            }
        }
    };
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        each!(self, stream => stream.poll_read(context, buffer))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        each!(self, stream => stream.poll_write(context, bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, stream => stream.poll_flush(context))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, stream => stream.poll_shutdown(context))
    }
}
