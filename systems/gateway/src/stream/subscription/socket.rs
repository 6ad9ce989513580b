//! GraphQL over a WebSocket to a subgraph: the protocol of the library `graphql-ws`, and that of its
//! forerunner `subscriptions-transport-ws`. One operation for each connection.

use std::borrow::Cow;
use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{Either, select};
use gateway_config::WebSocketProtocol;
use gateway_extensions::EventRequest;
use gateway_federation::GraphqlError;
use gateway_upstream::{Client, LastingPlace, Received, Upgrade, WebSocket, WebSocketError};
use http::StatusCode;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::pin::pin;

use super::queue::Event;
use super::sharing::{CLIENTS_AT_ONCE, Source};

/// The longest message of a subgraph.
pub(crate) const MESSAGE_BYTES_MAX: usize = 4 << 20;
/// How long a subgraph may take to accept a connection, unless it has less time for any request.
pub(crate) const OPENING_MAX: Duration = Duration::from_secs(10);
/// How long writing a short message may take.
const WRITE_MAX: Duration = Duration::from_secs(5);
/// How long a goodbye may take.
const GOODBYE_MAX: Duration = Duration::from_secs(1);
/// Messages after which other work of the thread has its turn: a subgraph may send without a pause.
const MESSAGES_AT_ONCE: usize = 32;
/// The only operation of a connection.
const ID: &str = "1";
/// Longer words of a subgraph are not repeated.
const REASON_CHARS_MAX: usize = 200;

/// The code of what is refused because others have all connections, as for any request.
const CROWDED: &str = "REQUEST_CONCURRENCY_LIMITED";

/// The code of what ends with the token of its client.
pub(super) const EXPIRED: &str = "SUBSCRIPTION_JWT_EXPIRED";

/// Why there are no events, or no more.
#[derive(Debug, thiserror::Error)]
#[error("{reason}")]
pub(crate) struct Broken {
    code: &'static str,
    reason: String,
    is_passing: bool,
}

impl Broken {
    /// What would be the same the next time.
    fn new(code: &'static str, reason: impl Into<String>) -> Self {
        Self {
            code,
            reason: reason.into(),
            is_passing: false,
        }
    }

    /// What may be otherwise the next time.
    fn passing(self) -> Self {
        Self {
            is_passing: true,
            ..self
        }
    }

    /// Whether clients have lost the right to it.
    pub(crate) fn is_expiry(&self) -> bool {
        self.code == EXPIRED
    }

    /// Whether connecting again may help.
    pub(crate) fn is_passing(&self) -> bool {
        self.is_passing
    }

    fn connecting(reason: impl ToString) -> Self {
        Self::new("SUBREQUEST_WEBSOCKET_ERROR", reason.to_string())
    }

    /// It may not be opened again.
    pub(crate) fn expired() -> Self {
        let reason = "the tokens of all clients have expired, so it is not opened again";
        Self::new(EXPIRED, reason)
    }

    /// There is no WebSocket.
    fn unopened(error: WebSocketError) -> Self {
        match error {
            WebSocketError::Connect(error) if error.is_crowded() => {
                Self::new(CROWDED, error.to_string()).passing()
            }
            WebSocketError::Refused(status) if !may_change(status) => Self::connecting(error),
            other => Self::connecting(other).passing(),
        }
    }

    /// A subgraph that has not accepted a connection in time.
    pub(crate) fn silent(limit: Duration) -> Self {
        Self::connecting(format!("no WebSocket within {limit:?}")).passing()
    }

    /// It says what it must not.
    fn message(reason: impl ToString) -> Self {
        Self::new("WEBSOCKET_MESSAGE_ERROR", reason.to_string())
    }

    /// It can no longer be heard or spoken to.
    fn lost(error: WebSocketError) -> Self {
        match error {
            WebSocketError::TooLarge(_) => Self::message(error),
            other => Self::message(other).passing(),
        }
    }

    /// It ends the connection, with this code.
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
            // Of WebSocket: what is sent is wrong. Of the protocols: who sends it may not.
            1002 | 1003 | 1007..=1010 | 4400..=4499 => closed,
            _ => closed.passing(),
        }
    }

    /// As an error of the subgraph with this name.
    pub(crate) fn of_subgraph(&self, name: &str) -> GraphqlError {
        let message = match self.code {
            // Not the address, which the reason has for the log.
            CROWDED => format!("too many subscriptions and requests have a connection to '{name}'"),
            _ => format!("Websocket fetch failed from '{name}': {}", self.reason),
        };
        GraphqlError::new(message, self.code).with("service", name)
    }
}

/// Whether a handshake that was answered with this may go well the next time.
fn may_change(status: StatusCode) -> bool {
    let is_early = [
        StatusCode::REQUEST_TIMEOUT,
        StatusCode::TOO_EARLY,
        StatusCode::TOO_MANY_REQUESTS,
    ];
    status.is_server_error() || is_early.contains(&status)
}

/// How receiving has ended.
pub(crate) enum Ended {
    /// Nobody wants the events any more.
    Left,
    /// The subgraph has said that there are no more.
    Complete,
    /// It was not said.
    Broken {
        why: Broken,
        /// Whether there was an event over this connection.
        has_given: bool,
    },
}

/// What a subgraph says.
enum Said {
    /// An event: a response.
    Event(Bytes),
    /// The operation is refused, or ends with errors: a response, and the last.
    Refused(Bytes),
    /// There are no more events.
    Complete,
    /// That it is there.
    Alive,
    /// It asks whether the gateway is there.
    Ping,
    /// It accepts the connection.
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

/// An operation that a subgraph has accepted a connection for.
pub(crate) struct Link {
    socket: WebSocket,
    protocol: WebSocketProtocol,
    /// How often it is asked whether it is there.
    heartbeat: Option<Duration>,
}

impl Link {
    /// Connects and subscribes. The caller bounds the time.
    pub(crate) async fn open(
        client: &Client,
        (request, parameters): (&EventRequest, Option<&Value>),
        (protocol, heartbeat): (WebSocketProtocol, Option<Duration>),
        (message_bytes_max, address): (usize, Option<IpAddr>),
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

    /// Sends what belongs to the opening.
    async fn tell(&mut self, text: &str) -> Result<(), Broken> {
        let told = self.send(text).await;
        told.map_err(|broken| Broken::connecting(broken).passing())
    }

    async fn pong(&mut self) -> Result<(), Broken> {
        self.send(r#"{"type":"pong"}"#).await
    }

    /// What the subgraph says next. May be dropped and called again.
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

    /// Gives events to the clients until there are no more, or nobody wants them.
    pub(crate) async fn pump(&mut self, source: &Source) -> Ended {
        let mut has_given = false;
        let place = self.socket.place();
        let ended = {
            let events = pin!(self.events(source, &mut has_given));
            let left = pin!(counted(&place, source));
            match select(left, events).await {
                Either::Left(_) => return Ended::Left,
                Either::Right((ended, _)) => ended,
            }
        };
        match ended {
            Ok(()) => Ended::Complete,
            Err(why) => Ended::Broken { why, has_given },
        }
    }

    async fn events(&mut self, source: &Source, has_given: &mut bool) -> Result<(), Broken> {
        // Since the last turn of others.
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
            // The older protocol has no such message; that of WebSocket itself is answered by any.
            WebSocketProtocol::GraphqlTransportWs => {
                let asked = tokio::time::timeout(WRITE_MAX, self.socket.ping()).await;
                match asked {
                    Ok(asked) => asked.map_err(Broken::lost),
                    Err(_) => Err(Broken::message("the subgraph takes no bytes").passing()),
                }
            }
        }
    }

    /// Says that no more events are wanted. What is not taken by then is cut with the connection.
    pub(crate) async fn leave(mut self) {
        let _ = tokio::time::timeout(GOODBYE_MAX, self.goodbye()).await;
    }

    async fn goodbye(&mut self) {
        let kind = match self.protocol {
            WebSocketProtocol::GraphqlWs => "complete",
            WebSocketProtocol::GraphqlTransportWs => "stop",
        };
        let told = format!(r#"{{"id":"{ID}","type":"{kind}"}}"#);
        // The connection ends either way.
        let _ = self.send(&told).await;
        let _ = self.socket.close(1000, "").await;
    }
}

/// Counts the place for the client who has been there for longest, until all have left.
async fn counted(place: &LastingPlace, source: &Source) {
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
        // Of no operation of ours.
        "next" | "data" | "error" | "complete" if !is_ours => Ok(Said::Alive),
        "next" if is_modern => Ok(Said::Event(bytes.slice_ref(payload()?))),
        "data" if !is_modern => Ok(Said::Event(bytes.slice_ref(payload()?))),
        "error" => {
            let payload = payload()?;
            // One error in the older protocol, a list in the newer one.
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
