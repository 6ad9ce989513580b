//! One connection: a TCP or Unix socket, with or without TLS.

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
use crate::endpoint::{Transport, UpstreamEndpoint};
use crate::error::SendError;
use crate::unix_socket::UnixSocket;

/// An open connection, counted in [`Traffic`].
pub(crate) struct Stream {
    socket: Socket,
    _open: Open,
}

enum Socket {
    Tcp(TcpStream),
    Unix(UnixSocket),
    // Boxed, because a TLS stream is many times larger than a socket. Otherwise every `Stream` would have its
    // size.
    Tls(Box<TlsStream<TcpStream>>),
}

impl Stream {
    /// Connects to an endpoint. Calls `tls` only if the endpoint needs it.
    pub(crate) async fn connect(
        endpoint: &UpstreamEndpoint,
        tls: impl FnOnce() -> TlsConnector,
        traffic: &Arc<Traffic>,
    ) -> Result<Self, SendError> {
        // Counted from the start of the setup, because its socket already exists.
        let _open = traffic.opened();
        let socket = Socket::connect(endpoint, tls).await?;
        Ok(Self { socket, _open })
    }

    /// True if the other side selected HTTP/2 during the TLS handshake.
    pub(crate) fn agreed_to_http2(&self) -> bool {
        match &self.socket {
            Socket::Tls(stream) => stream.get_ref().1.alpn_protocol() == Some(b"h2"),
            Socket::Tcp(_) | Socket::Unix(_) => false,
        }
    }

    /// True if an idle connection is still open and has received no data. This normally costs no system call,
    /// because tokio tracks arriving data.
    pub(crate) fn is_quiet(&mut self) -> bool {
        // One byte is enough. An idle connection with data or an end cannot be reused.
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
        endpoint: &UpstreamEndpoint,
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
    // A request is one write. Waiting for more data would only delay it.
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
