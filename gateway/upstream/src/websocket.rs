//! A WebSocket to a service (RFC 6455), over a separate connection with its own places.
//!
//! The library answers protocol pings, checks the handshake and the subprotocol, and limits the size of
//! messages. The caller defines the content of messages.

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

use crate::client::{Client, ConnectionPlace, HeldPlaces, OwnConnection};
use crate::connection::Stream;
use crate::endpoint::UpstreamEndpoint;
use crate::error::SendError;
use crate::http1::is_ours;

/// Bytes per read. With the library's 128 KiB, each idle connection would hold this memory.
const READ_BYTES: usize = 8 * 1024;
/// Maximum bytes that wait to be written. The gateway writes only a few short messages.
const WRITE_BYTES_MAX: usize = 4 << 20;

/// Settings of a handshake.
#[derive(Debug)]
pub struct Upgrade<'a> {
    /// The required subprotocol. It is an error if the service does not select it.
    pub subprotocol: &'static str,
    /// The request headers. Headers about the connection, the host and the handshake are ignored.
    pub headers: &'a HeaderMap,
    /// Maximum bytes of a message from the service. A longer message is an error.
    pub message_bytes_max: usize,
    /// The address of the clients that it serves. They get at most as many WebSockets as they leave for
    /// others. `None` for no such limit.
    pub address: Option<IpAddr>,
}

/// Reason for a failed or lost WebSocket.
#[derive(Debug, thiserror::Error)]
pub enum WebSocketError {
    /// The connection could not be opened.
    #[error(transparent)]
    Connect(#[from] SendError),
    /// The service responded to the handshake with another status.
    #[error("expected the service to agree to a WebSocket (status 101), found status {}", .0.as_u16())]
    Refused(StatusCode),
    /// A message is longer than the limit.
    #[error("a message is longer than allowed: {0}")]
    TooLarge(String),
    /// The connection failed, or the service violated the protocol.
    #[error("{0}")]
    Broken(String),
}

/// A frame from the service.
#[derive(Debug)]
pub enum Received {
    /// A text or binary message.
    Message(Bytes),
    /// A ping or pong, as a sign of life.
    Alive,
    /// The end, with its code (usually 1000) and reason.
    Closed {
        /// The close code. Can be missing.
        code: Option<u16>,
        /// The reason text of the service.
        reason: String,
    },
}

/// An open WebSocket. Dropping it closes the connection without a close frame.
pub struct WebSocket {
    socket: WebSocketStream<Stream>,
    /// The places of the connection, returned when it is closed.
    held: Rc<HeldPlaces>,
}

impl Client {
    /// Opens a WebSocket. The caller limits the time.
    ///
    /// # Errors
    /// If the connection fails, or if the service refuses the handshake.
    pub async fn websocket(
        &self,
        endpoint: &UpstreamEndpoint,
        upgrade: Upgrade<'_>,
    ) -> Result<WebSocket, WebSocketError> {
        let request = request(endpoint, &upgrade)?;
        let OwnConnection { stream, held } = self.own_connection(endpoint, upgrade.address).await?;
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
    endpoint: &UpstreamEndpoint,
    upgrade: &Upgrade<'_>,
) -> Result<http::Request<()>, WebSocketError> {
    let mut parts = endpoint.uri().clone().into_parts();
    // The library accepts only these schemes. The endpoint has already decided about TLS.
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
    /// The place of this WebSocket, which ends with it.
    #[must_use]
    pub fn place(&self) -> ConnectionPlace {
        ConnectionPlace(Rc::downgrade(&self.held))
    }

    /// Waits for the next frame of the service. `None` after the end of the connection. The future may be
    /// dropped and called again.
    ///
    /// # Errors
    /// If the connection fails, or if a message is too long.
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

    /// Sends a message. The caller limits the time, because a service may stop reading.
    ///
    /// # Errors
    /// If the connection fails.
    pub async fn send(&mut self, text: String) -> Result<(), WebSocketError> {
        self.socket.send(Message::text(text)).await.map_err(failed)
    }

    /// Sends a ping, to check that the service is alive. The caller limits the time.
    ///
    /// # Errors
    /// If the connection fails.
    pub async fn ping(&mut self) -> Result<(), WebSocketError> {
        let ping = Message::Ping(Bytes::new());
        self.socket.send(ping).await.map_err(failed)
    }

    /// Sends a close frame with a reason. The caller limits the time.
    ///
    /// # Errors
    /// If the connection fails.
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
