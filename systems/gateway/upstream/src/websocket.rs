//! A WebSocket to a service (RFC 6455), over a connection of its own, which has its places among all.
//!
//! The library answers pings of the protocol, checks the handshake and the subprotocol, and bounds
//! messages; what is said over it is the caller's.

use std::net::IpAddr;
use std::rc::Rc;

use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use http::uri::{Scheme, Uri};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::error::Error;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Message, WebSocketConfig};

use crate::client::{Client, Held, Lasting, LastingPlace};
use crate::connection::Stream;
use crate::endpoint::Endpoint;
use crate::error::SendError;
use crate::http1::is_ours;

/// Bytes that are read at a time. The library's 128 KiB would be held by each idle connection.
const READ_BYTES: usize = 8 * 1024;
/// Bytes that may wait to be written; what is written here are a few short messages.
const WRITE_BYTES_MAX: usize = 4 << 20;

/// What a handshake asks for.
#[derive(Debug)]
pub struct Upgrade<'a> {
    /// What is to be spoken; a service that does not agree is an error.
    pub subprotocol: &'static str,
    /// Headers. Those about the connection, the host and the handshake are ignored.
    pub headers: &'a HeaderMap,
    /// A longer message of the service is an error, in bytes.
    pub message_bytes_max: usize,
    /// The address of the clients it is for, who get as many as are left for others; `None` where that
    /// does not count.
    pub address: Option<IpAddr>,
}

/// Why there is no WebSocket, or no longer one.
#[derive(Debug, thiserror::Error)]
pub enum WebSocketError {
    /// No connection.
    #[error(transparent)]
    Connect(#[from] SendError),
    /// The service answered the handshake with something else.
    #[error("expected the service to agree to a WebSocket (status 101), found status {}", .0.as_u16())]
    Refused(StatusCode),
    /// A message is longer than allowed.
    #[error("a message is longer than allowed: {0}")]
    TooLarge(String),
    /// The connection broke, or something else than the protocol came.
    #[error("{0}")]
    Broken(String),
}

/// What a service sent.
#[derive(Debug)]
pub enum Received {
    /// A message, as text or not.
    Message(Bytes),
    /// A sign that it is there.
    Alive,
    /// The end, with its code (1000 is the usual one) and reason.
    Closed {
        /// Nothing when the service gave none.
        code: Option<u16>,
        /// What it said.
        reason: String,
    },
}

/// An open WebSocket. Dropping it closes the connection without a word.
pub struct WebSocket {
    socket: WebSocketStream<Stream>,
    /// Given back when the connection is closed.
    held: Rc<Held>,
}

impl Client {
    /// Opens a WebSocket. The caller bounds the time.
    ///
    /// # Errors
    /// When there is no connection, or the service does not agree.
    pub async fn websocket(
        &self,
        endpoint: &Endpoint,
        upgrade: Upgrade<'_>,
    ) -> Result<WebSocket, WebSocketError> {
        let request = request(endpoint, &upgrade)?;
        let Lasting { stream, held } = self.own_connection(endpoint, upgrade.address).await?;
        let most = Some(upgrade.message_bytes_max);
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_BYTES)
            .write_buffer_size(0)
            .max_write_buffer_size(WRITE_BYTES_MAX)
            .max_message_size(most)
            .max_frame_size(most);
        let opened =
            tokio_tungstenite::client_async_with_config(request, stream, Some(config)).await;
        let (socket, _) = opened.map_err(failed)?;
        Ok(WebSocket { socket, held })
    }
}

fn request(
    endpoint: &Endpoint,
    upgrade: &Upgrade<'_>,
) -> Result<http::Request<()>, WebSocketError> {
    let mut parts = endpoint.uri().clone().into_parts();
    // The library takes these schemes only; whether there is TLS has been decided by the endpoint.
    let is_tls = parts.scheme == Some(Scheme::HTTPS);
    let scheme = if is_tls { "wss" } else { "ws" };
    parts.scheme = Some(scheme.parse().expect("`ws` and `wss` are schemes"));
    let uri = Uri::from_parts(parts).map_err(|error| WebSocketError::Broken(error.to_string()))?;
    let mut request = uri.into_client_request().map_err(failed)?;
    let headers = request.headers_mut();
    for (name, value) in upgrade.headers {
        if !is_ours(name) && !is_of_handshake(name) {
            headers.append(name.clone(), value.clone());
        }
    }
    let subprotocol = HeaderValue::from_static(upgrade.subprotocol);
    headers.insert(header::SEC_WEBSOCKET_PROTOCOL, subprotocol);
    Ok(request)
}

fn is_of_handshake(name: &HeaderName) -> bool {
    name.as_str().starts_with("sec-websocket-")
}

impl WebSocket {
    /// Its place, which ends with it.
    #[must_use]
    pub fn place(&self) -> LastingPlace {
        LastingPlace(Rc::downgrade(&self.held))
    }

    /// The next thing that the service sends; nothing after the end of the connection. May be dropped
    /// and called again.
    ///
    /// # Errors
    /// When the connection breaks, or a message is too long.
    pub async fn next(&mut self) -> Result<Option<Received>, WebSocketError> {
        let Some(message) = self.socket.next().await else {
            return Ok(None);
        };
        Ok(Some(match message.map_err(failed)? {
            Message::Text(text) => Received::Message(text.into()),
            Message::Binary(bytes) => Received::Message(bytes),
            Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => Received::Alive,
            Message::Close(frame) => Received::Closed {
                code: frame.as_ref().map(|frame| frame.code.into()),
                reason: frame.map_or_else(String::new, |frame| frame.reason.to_string()),
            },
        }))
    }

    /// Sends a message. The caller bounds the time: a service may take nothing.
    ///
    /// # Errors
    /// When the connection breaks.
    pub async fn send(&mut self, text: String) -> Result<(), WebSocketError> {
        self.socket.send(Message::text(text)).await.map_err(failed)
    }

    /// Asks the service for a sign that it is there. The caller bounds the time.
    ///
    /// # Errors
    /// When the connection breaks.
    pub async fn ping(&mut self) -> Result<(), WebSocketError> {
        let ping = Message::Ping(Bytes::new());
        self.socket.send(ping).await.map_err(failed)
    }

    /// Tells the service that this is the end, and why. The caller bounds the time.
    ///
    /// # Errors
    /// When the connection breaks.
    pub async fn close(&mut self, code: u16, reason: &'static str) -> Result<(), WebSocketError> {
        let frame = CloseFrame {
            code: CloseCode::from(code),
            reason: reason.into(),
        };
        self.socket.close(Some(frame)).await.map_err(failed)
    }
}

fn failed(error: Error) -> WebSocketError {
    match error {
        Error::Http(response) => WebSocketError::Refused(response.status()),
        Error::Capacity(excess) => WebSocketError::TooLarge(excess.to_string()),
        other => WebSocketError::Broken(other.to_string()),
    }
}
