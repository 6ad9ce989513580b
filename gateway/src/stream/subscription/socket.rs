//! GraphQL over a WebSocket to a subgraph. Supports the protocol of the library `graphql-ws` and its
//! predecessor `subscriptions-transport-ws`. Each connection has one operation.

use std::borrow::Cow;
use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{Either, select};
use gateway_config::WebSocketProtocol;
use gateway_extensions::EventRequest;
use gateway_federation::GraphqlError;
use gateway_upstream::{Client, ConnectionPlace, Received, Upgrade, WebSocket, WebSocketError};
use http::StatusCode;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::pin::pin;

use super::queue::Event;
use super::sharing::{CLIENTS_AT_ONCE, Source};

/// Maximum length of a subgraph's message.
pub(crate) const MESSAGE_BYTES_MAX: usize = 4 << 20;
/// Time limit for a subgraph to accept a connection, unless its request timeout is shorter.
pub(crate) const OPENING_MAX: Duration = Duration::from_secs(10);
/// Time limit for writing a short message.
const WRITE_MAX: Duration = Duration::from_secs(5);
/// Time limit for the closing messages.
const GOODBYE_MAX: Duration = Duration::from_secs(1);
/// Messages before other tasks of the thread run, because a subgraph may send without a pause.
const MESSAGES_AT_ONCE: usize = 32;
/// The id of the only operation of a connection.
const ID: &str = "1";
/// Maximum number of characters of a subgraph's text in a message. Longer texts are truncated.
const REASON_CHARS_MAX: usize = 200;

/// Error code if other subscriptions and requests use all connections, as for any request.
const CROWDED: &str = "REQUEST_CONCURRENCY_LIMITED";

/// Error code if the client's token has expired.
pub(super) const EXPIRED: &str = "SUBSCRIPTION_JWT_EXPIRED";

/// The reason why there are no events, or no more events.
#[derive(Debug, thiserror::Error)]
#[error("{reason}")]
pub(crate) struct Broken {
    code: &'static str,
    reason: String,
    is_passing: bool,
}

impl Broken {
    /// A permanent failure. The next attempt would fail, too.
    fn new(code: &'static str, reason: impl Into<String>) -> Self {
        Self {
            code,
            reason: reason.into(),
            is_passing: false,
        }
    }

    /// Marks the failure as temporary. The next attempt may succeed.
    fn passing(self) -> Self {
        Self {
            is_passing: true,
            ..self
        }
    }

    /// True if the tokens of the clients have expired.
    pub(crate) fn is_expiry(&self) -> bool {
        self.code == EXPIRED
    }

    /// True if a new connection may succeed.
    pub(crate) fn is_passing(&self) -> bool {
        self.is_passing
    }

    fn connecting(reason: impl ToString) -> Self {
        Self::new("SUBREQUEST_WEBSOCKET_ERROR", reason.to_string())
    }

    /// The tokens expired, so the subscription must not be opened again.
    pub(crate) fn expired() -> Self {
        let reason = "the tokens of all clients have expired, so it is not opened again";
        Self::new(EXPIRED, reason)
    }

    /// The WebSocket could not be opened.
    fn unopened(error: WebSocketError) -> Self {
        match error {
            WebSocketError::Connect(error) if error.is_crowded() => {
                Self::new(CROWDED, error.to_string()).passing()
            }
            WebSocketError::Refused(status) if !may_change(status) => Self::connecting(error),
            other => Self::connecting(other).passing(),
        }
    }

    /// The subgraph did not accept a connection in time.
    pub(crate) fn silent(limit: Duration) -> Self {
        Self::connecting(format!("no WebSocket within {limit:?}")).passing()
    }

    /// The subgraph violated the protocol.
    fn message(reason: impl ToString) -> Self {
        Self::new("WEBSOCKET_MESSAGE_ERROR", reason.to_string())
    }

    /// The connection was lost while reading or writing.
    fn lost(error: WebSocketError) -> Self {
        match error {
            WebSocketError::TooLarge(_) => Self::message(error),
            other => Self::message(other).passing(),
        }
    }

    /// The subgraph closed the connection with this code.
    fn closed(code: u16, reason: &str) -> Self {
        let reason: String = reason.chars().take(REASON_CHARS_MAX).collect();
        let closed = Self::new(
            "WEBSOCKET_CLOSE_ERROR",
            format!(
                "websocket connection has been closed with error code '{code}' and reason '{reason}'"
            ),
        );
        match code {
            // The gateway was too slow.
            4408 => closed.passing(),
            // WebSocket codes for invalid messages, and protocol codes for missing rights.
            1002 | 1003 | 1007..=1010 | 4400..=4499 => closed,
            _ => closed.passing(),
        }
    }

    /// The failure as a GraphQL error of the subgraph with this name.
    pub(crate) fn of_subgraph(&self, name: &str) -> GraphqlError {
        let message = match self.code {
            // Without the address, which only the log may contain.
            CROWDED => format!("too many subscriptions and requests have a connection to '{name}'"),
            _ => format!("Websocket fetch failed from '{name}': {}", self.reason),
        };
        GraphqlError::new(message, self.code).with("service", name)
    }
}

/// True if a handshake that failed with this status may succeed the next time.
fn may_change(status: StatusCode) -> bool {
    let is_early = [
        StatusCode::REQUEST_TIMEOUT,
        StatusCode::TOO_EARLY,
        StatusCode::TOO_MANY_REQUESTS,
    ];
    status.is_server_error() || is_early.contains(&status)
}

/// The result of receiving events.
pub(crate) enum StreamEnd {
    /// All clients have left.
    Left,
    /// The subgraph reported that there are no more events.
    Complete,
    /// The connection ended without a report of the subgraph.
    Broken {
        why: Broken,
        /// True if at least one event arrived over this connection.
        has_given: bool,
    },
}

/// A message of a subgraph.
enum Said {
    /// An event. The payload is a GraphQL response.
    Event(Bytes),
    /// The subgraph rejected the operation or ended it with errors. The payload is the last response.
    Refused(Bytes),
    /// There are no more events.
    Complete,
    /// A sign of life without content.
    Alive,
    /// The subgraph requires a pong.
    Ping,
    /// The subgraph accepts the connection.
    Accepted,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    payload: Option<&'a RawValue>,
}

/// An operation on a connection that the subgraph has accepted.
pub(crate) struct Link {
    socket: WebSocket,
    protocol: WebSocketProtocol,
    /// Interval between pings to the subgraph.
    heartbeat: Option<Duration>,
}

impl Link {
    /// Connects and subscribes. The caller must set a time limit.
    pub(crate) async fn open(
        client: &Client,
        request: &EventRequest,
        parameters: Option<&Value>,
        protocol: WebSocketProtocol,
        heartbeat: Option<Duration>,
        message_bytes_max: usize,
        address: Option<IpAddr>,
    ) -> Result<Self, Broken> {
        let body = std::str::from_utf8(&request.body);
        let body = body.map_err(|_| Broken::connecting("the request is not UTF-8"))?;
        let upgrade = Upgrade {
            subprotocol: subprotocol(protocol),
            headers: &request.headers,
            message_bytes_max,
            address,
        };
        let socket = client.websocket(&request.endpoint, upgrade).await;
        let mut link = Self {
            socket: socket.map_err(Broken::unopened)?,
            protocol,
            heartbeat,
        };
        let nothing = json!({});
        let parameters = parameters.unwrap_or(&nothing);
        let begin = json!({"type": "connection_init", "payload": parameters}).to_string();
        link.tell(&begin).await?;
        loop {
            match link.next().await? {
                Said::Accepted => break,
                Said::Alive => {}
                Said::Ping => link.pong().await?,
                _ => {
                    return Err(Broken::connecting(
                        "the subgraph spoke before it accepted the connection",
                    ));
                }
            }
        }
        let kind = match protocol {
            WebSocketProtocol::GraphqlWs => "subscribe",
            WebSocketProtocol::GraphqlTransportWs => "start",
        };
        let subscribe = format!(r#"{{"id":"{ID}","type":"{kind}","payload":{body}}}"#);
        link.tell(&subscribe).await?;
        Ok(link)
    }

    async fn send(&mut self, text: &str) -> Result<(), Broken> {
        let sent = self.socket.send(text.to_owned());
        match tokio::time::timeout(WRITE_MAX, sent).await {
            Ok(sent) => sent.map_err(Broken::lost),
            Err(_) => Err(Broken::message("the subgraph takes no bytes").passing()),
        }
    }

    /// Sends a message of the opening phase. Failures then count as temporary connection failures.
    async fn tell(&mut self, text: &str) -> Result<(), Broken> {
        let told = self.send(text).await;
        told.map_err(|broken| Broken::connecting(broken).passing())
    }

    async fn pong(&mut self) -> Result<(), Broken> {
        self.send(r#"{"type":"pong"}"#).await
    }

    /// The next message of the subgraph. Dropping the future before its end loses no message.
    async fn next(&mut self) -> Result<Said, Broken> {
        let received = self.socket.next().await.map_err(Broken::lost)?;
        match received {
            Some(Received::Message(bytes)) => read(self.protocol, &bytes),
            Some(Received::Alive) => Ok(Said::Alive),
            Some(Received::Closed { code, reason }) => {
                Err(Broken::closed(code.unwrap_or(1005), &reason))
            }
            None => {
                let reason = "the connection ended before the subscription";
                Err(Broken::new("WEBSOCKET_CLOSE_ERROR", reason).passing())
            }
        }
    }

    /// Passes events to the clients until there are no more events or no more clients.
    pub(crate) async fn pump(&mut self, source: &Source) -> StreamEnd {
        let mut has_given = false;
        let place = self.socket.place();
        let ended = {
            let events = pin!(self.events(source, &mut has_given));
            let left = pin!(counted(&place, source));
            match select(left, events).await {
                Either::Left(_) => return StreamEnd::Left,
                Either::Right((ended, _)) => ended,
            }
        };
        match ended {
            Ok(()) => StreamEnd::Complete,
            Err(why) => StreamEnd::Broken { why, has_given },
        }
    }

    async fn events(&mut self, source: &Source, has_given: &mut bool) -> Result<(), Broken> {
        // Counts since other tasks of the thread last ran.
        let (mut messages, mut given) = (0_usize, 0_usize);
        let mut is_asked = false;
        loop {
            let said = match self.heartbeat {
                None => self.next().await?,
                Some(interval) => match tokio::time::timeout(interval, self.next()).await {
                    Ok(said) => said?,
                    Err(_) if is_asked => {
                        return Err(Broken::message("the subgraph is silent").passing());
                    }
                    Err(_) => {
                        is_asked = true;
                        self.ask().await?;
                        continue;
                    }
                },
            };
            is_asked = false;
            match said {
                Said::Event(body) => {
                    *has_given = true;
                    given += source.push(Event::Response(body)).await;
                }
                Said::Refused(body) => {
                    source.push(Event::Response(body)).await;
                    return Ok(());
                }
                Said::Complete => return Ok(()),
                Said::Alive => {}
                Said::Ping => self.pong().await?,
                Said::Accepted => return Err(Broken::message("a connection was accepted twice")),
            }
            messages += 1;
            if messages >= MESSAGES_AT_ONCE || given >= CLIENTS_AT_ONCE {
                (messages, given) = (0, 0);
                tokio::task::yield_now().await;
            }
        }
    }

    async fn ask(&mut self) -> Result<(), Broken> {
        match self.protocol {
            WebSocketProtocol::GraphqlWs => self.send(r#"{"type":"ping"}"#).await,
            // The older protocol has no ping message. A WebSocket ping works too, because every peer responds
            // to it.
            WebSocketProtocol::GraphqlTransportWs => {
                let asked = tokio::time::timeout(WRITE_MAX, self.socket.ping()).await;
                match asked {
                    Ok(asked) => asked.map_err(Broken::lost),
                    Err(_) => Err(Broken::message("the subgraph takes no bytes").passing()),
                }
            }
        }
    }

    /// Ends the subscription. Data that the subgraph does not read in time is lost with the connection.
    pub(crate) async fn leave(mut self) {
        let _ = tokio::time::timeout(GOODBYE_MAX, self.goodbye()).await;
    }

    async fn goodbye(&mut self) {
        let kind = match self.protocol {
            WebSocketProtocol::GraphqlWs => "complete",
            WebSocketProtocol::GraphqlTransportWs => "stop",
        };
        let told = format!(r#"{{"id":"{ID}","type":"{kind}"}}"#);
        // The connection ends in any case.
        let _ = self.send(&told).await;
        let _ = self.socket.close(1000, "").await;
    }
}

/// Counts the connection for the oldest client, until all clients have left.
async fn counted(place: &ConnectionPlace, source: &Source) {
    let mut left = pin!(source.left());
    loop {
        place.count_for(source.address());
        match select(left.as_mut(), pin!(source.first_left())).await {
            Either::Left(_) => return,
            Either::Right(_) => {}
        }
    }
}

const fn subprotocol(protocol: WebSocketProtocol) -> &'static str {
    match protocol {
        WebSocketProtocol::GraphqlWs => "graphql-transport-ws",
        WebSocketProtocol::GraphqlTransportWs => "graphql-ws",
    }
}

fn read(protocol: WebSocketProtocol, bytes: &Bytes) -> Result<Said, Broken> {
    let message: Message<'_> = serde_json::from_slice(bytes)
        .map_err(|error| Broken::message(format!("a message is malformed: {error}")))?;
    let is_modern = protocol == WebSocketProtocol::GraphqlWs;
    let is_ours = message.id.as_deref() == Some(ID);
    let payload = || {
        let payload = message.payload.map(|raw| raw.get().as_bytes());
        payload.ok_or_else(|| Broken::message("a message lacks its payload"))
    };
    match &*message.kind {
        "connection_ack" => Ok(Said::Accepted),
        "ping" if is_modern => Ok(Said::Ping),
        "pong" if is_modern => Ok(Said::Alive),
        "ka" if !is_modern => Ok(Said::Alive),
        "connection_error" if !is_modern => {
            Err(Broken::connecting("the subgraph refused the connection"))
        }
        // A message for an operation that the gateway did not start.
        "next" | "data" | "error" | "complete" if !is_ours => Ok(Said::Alive),
        "next" if is_modern => Ok(Said::Event(bytes.slice_ref(payload()?))),
        "data" if !is_modern => Ok(Said::Event(bytes.slice_ref(payload()?))),
        "error" => {
            let payload = payload()?;
            // The older protocol sends one error, the newer one a list.
            let (open, close): (&[u8], &[u8]) = match payload.first() {
                Some(b'[') => (b"", b""),
                _ => (b"[", b"]"),
            };
            let body = [b"{\"data\":null,\"errors\":", open, payload, close, b"}"];
            Ok(Said::Refused(body.concat().into()))
        }
        "complete" => Ok(Said::Complete),
        other => {
            let other: String = other.chars().take(REASON_CHARS_MAX).collect();
            Err(Broken::message(format!(
                "unknown kind of message `{other}`"
            )))
        }
    }
}
