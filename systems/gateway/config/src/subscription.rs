//! `subscription`: operations with endless responses, and the transport of subgraph events.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::time::Duration;

use http::HeaderName;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::report::Report;
use crate::surface::Supergraph;
use crate::written::{ByteSize, Endpoint, Form, Listen, PlainPath, Written};

/// Subscriptions: clients get their events by multipart or server-sent events, subgraphs send them by
/// WebSocket or by HTTP callbacks.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Subscription {
    /// Whether they are served; true when left out, as in the original, so that `subscription: {}` turns
    /// them on.
    pub enabled: bool,
    /// How events come from subgraphs. One that neither mode is for has no subscriptions.
    pub mode: SubscriptionMode,
    /// Most subscriptions of clients at a time, 10000 when left out; `null` for any. More are answered
    /// with 429. The original has no limit when it is left out. WebSockets to subgraphs are bounded by
    /// `limits.max_upstream_connections`, of which one address has as many as are left for others.
    pub max_opened_subscriptions: Option<NonZeroUsize>,
    /// Most subscriptions of the clients of one address at a time, for IPv6 of one network of 64 bits;
    /// this machine's own are not counted. As many as are left for others when left out: half of
    /// `max_opened_subscriptions` for one alone. More are answered with 429. Behind a proxy all clients
    /// are one address. Not known to the original.
    pub max_opened_subscriptions_per_address: Option<NonZeroUsize>,
    /// Bytes of the requests of open subscriptions, which are kept as they came and as they were sent;
    /// one address may have as many as are left for others. Those beyond are answered with 429. Not known
    /// to the original.
    pub requests_max_bytes: Written<ByteSize>,
    /// Which subscriptions are the same at a subgraph, so that one there is for all clients.
    pub deduplication: Deduplication,
    /// Most events that wait for a client; the oldest gives way to a new one.
    pub queue_capacity: NonZeroUsize,
    /// How long a subscription lasts at most. Not known to the original.
    pub max_lifetime: Option<Written<Duration>>,
}

impl Default for Subscription {
    fn default() -> Self {
        Self {
            enabled: true,
            mode: SubscriptionMode::default(),
            deduplication: Deduplication::default(),
            max_opened_subscriptions: NonZeroUsize::new(10_000),
            max_opened_subscriptions_per_address: None,
            requests_max_bytes: Written(ByteSize(64 << 20)),
            queue_capacity: NonZeroUsize::new(128).expect("128 is not zero"),
            max_lifetime: None,
        }
    }
}

/// Which subscriptions are the same at a subgraph.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Deduplication {
    /// At all subgraphs.
    pub all: DeduplicationRule,
    /// At one subgraph, by its name; what it leaves out is not taken from `all`, as in the original.
    pub subgraphs: BTreeMap<String, DeduplicationRule>,
}

/// When subscriptions at a subgraph are the same: all that is sent to it is.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DeduplicationRule {
    /// Whether one at the subgraph is for all clients; true when left out, as in the original.
    pub enabled: bool,
    /// Headers that may differ. The subgraph gets those of the client who came first.
    pub ignored_headers: Vec<Written<HeaderName>>,
    /// Whether the claims of the clients' tokens may differ. They are not sent, but rules and stages may
    /// make of them what is.
    pub ignore_auth_context: bool,
}

impl Default for DeduplicationRule {
    fn default() -> Self {
        Self {
            enabled: true,
            ignored_headers: Vec::new(),
            ignore_auth_context: false,
        }
    }
}

impl Deduplication {
    /// The deduplication settings of a subgraph.
    #[must_use]
    pub fn of_subgraph(&self, name: &str) -> &DeduplicationRule {
        self.subgraphs.get(name).unwrap_or(&self.all)
    }
}

/// How events come from subgraphs.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SubscriptionMode {
    /// By WebSocket; goes before `callback` for a subgraph that both are for.
    pub passthrough: Option<Passthrough>,
    /// By requests of the subgraph to the gateway.
    pub callback: Option<Callback>,
}

/// Subgraphs that send events by WebSocket.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Passthrough {
    /// All subgraphs.
    pub all: Option<WebSocketMode>,
    /// One subgraph, by its name; what it leaves out is not taken from `all`, as in the original.
    pub subgraphs: BTreeMap<String, WebSocketMode>,
}

/// How a subgraph is reached by WebSocket.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WebSocketMode {
    /// The path, in place of that of the subgraph's URL.
    pub path: Option<Written<PlainPath>>,
    /// What is spoken over it.
    pub protocol: WebSocketProtocol,
    /// How often the subgraph is asked whether it is still there: `disabled`, `enabled` for 5s, or a
    /// time.
    pub heartbeat_interval: Written<HeartbeatInterval>,
    /// How often a connection that was lost is opened again before clients are told; it is counted anew
    /// after an event. Never when left out, as in the original.
    pub max_reconnect_attempts: u32,
    /// The pause before each attempt.
    pub reconnect_delay: Written<Duration>,
}

impl Default for WebSocketMode {
    fn default() -> Self {
        Self {
            path: None,
            protocol: WebSocketProtocol::default(),
            heartbeat_interval: Written::default(),
            max_reconnect_attempts: 0,
            reconnect_delay: Written(Duration::from_secs(1)),
        }
    }
}

/// What is spoken over a WebSocket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WebSocketProtocol {
    /// That of the library `graphql-ws`, whose subprotocol is `graphql-transport-ws`.
    #[default]
    GraphqlWs,
    /// That of the library `subscriptions-transport-ws`, which is no longer maintained, and whose
    /// subprotocol is `graphql-ws`.
    GraphqlTransportWs,
}

/// Subgraphs that send events by HTTP requests to the gateway, by version 1.0 of Apollo's protocol.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Callback {
    /// The URL under which subgraphs reach `path` at `listen`; the id of each subscription is added.
    pub public_url: Written<Endpoint>,
    /// The address; that of GraphQL when left out.
    pub listen: Option<Written<Listen>>,
    /// On which path.
    #[serde(default = "callback_path")]
    pub path: Written<PlainPath>,
    /// How often a subgraph has to say that it is still there, 5s when left out; `disabled` for never.
    #[serde(default = "callback_heartbeat")]
    pub heartbeat_interval: Written<HeartbeatInterval>,
    /// The subgraphs; all when empty.
    #[serde(default)]
    pub subgraphs: BTreeSet<String>,
}

fn callback_path() -> Written<PlainPath> {
    Written(PlainPath("/callback".to_owned()))
}

fn callback_heartbeat() -> Written<HeartbeatInterval> {
    Written(HeartbeatInterval(Some(USUAL_HEARTBEAT)))
}

const USUAL_HEARTBEAT: Duration = Duration::from_secs(5);

/// Interval between two signs of life. `None` turns them off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeartbeatInterval(pub Option<Duration>);

impl Form for HeartbeatInterval {
    const NAME: &'static str = "heartbeat-interval";

    fn read(text: &str) -> Result<Self, String> {
        match text {
            "disabled" => Ok(Self(None)),
            "enabled" => Ok(Self(Some(USUAL_HEARTBEAT))),
            _ => match Duration::read(text) {
                Ok(time) if time.is_zero() => {
                    Err("expected a time above zero, or `disabled`".to_owned())
                }
                Ok(time) => Ok(Self(Some(time))),
                Err(_) => Err(format!(
                    "expected `disabled`, `enabled` or a time such as `10s`, found `{text}`"
                )),
            },
        }
    }

    fn write(&self) -> String {
        self.0
            .map_or_else(|| "disabled".to_owned(), |time| time.write())
    }
}

/// The transport of one subgraph's events.
#[derive(Clone, Copy, Debug)]
pub enum EventSource<'a> {
    /// A WebSocket from the gateway to the subgraph.
    WebSocket(&'a WebSocketMode),
    /// HTTP requests of the subgraph to the gateway.
    Callback(&'a Callback),
}

impl Subscription {
    /// The names of all subgraphs in this section.
    #[must_use]
    pub fn named(&self) -> Vec<&String> {
        let sockets = self.mode.passthrough.iter();
        let callbacks = self.mode.callback.iter();
        let sockets = sockets.flat_map(|it| it.subgraphs.keys());
        sockets
            .chain(callbacks.flat_map(|it| &it.subgraphs))
            .collect()
    }

    /// The transport of a subgraph's events. `None` if it has no subscriptions.
    #[must_use]
    pub fn of_subgraph(&self, name: &str) -> Option<EventSource<'_>> {
        let passthrough = self.mode.passthrough.as_ref();
        let socket = passthrough.and_then(|mode| mode.subgraphs.get(name).or(mode.all.as_ref()));
        if let Some(socket) = socket {
            return Some(EventSource::WebSocket(socket));
        }
        let callback = self.mode.callback.as_ref();
        callback
            .filter(|it| it.subgraphs.is_empty() || it.subgraphs.contains(name))
            .map(EventSource::Callback)
    }
}

/// Reports subscription settings that cannot work.
pub(crate) fn check(subscription: &Subscription, supergraph: &Supergraph, report: &mut Report<'_>) {
    let mode = &subscription.mode;
    let has_socket = mode
        .passthrough
        .as_ref()
        .is_some_and(|it| it.all.is_some() || !it.subgraphs.is_empty());
    if !has_socket && mode.callback.is_none() {
        report(
            &["subscription", "mode"],
            "no subgraph has a way to send events, and every subscription would fail: write `mode: {passthrough: {all: {path: /ws}}}`, or set `subscription.enabled: false`".to_owned(),
        );
    }
    if let Some(callback) = &mode.callback {
        check_callback(callback, supergraph, report);
    }
}

fn check_callback(callback: &Callback, supergraph: &Supergraph, report: &mut Report<'_>) {
    if matches!(callback.public_url.0, Endpoint::Unix { .. }) {
        report(
            &["subscription", "mode", "callback", "public_url"],
            "expected a URL that subgraphs can call, `http://host:port/callback`".to_owned(),
        );
    }
    // Two services cannot share one path, because the first one would hide the other.
    let listen = callback.listen.as_ref();
    let is_beside = listen.is_none_or(|listen| listen.0 == supergraph.listen.0);
    let path = &supergraph.path.0.0;
    let is_same = is_beside && (*path == callback.path.0.0 || path.contains(['*', ':']));
    if is_same {
        report(
            &["subscription", "mode", "callback", "path"],
            "callbacks and GraphQL cannot have the same address and path: write another `listen`"
                .to_owned(),
        );
    }
}
