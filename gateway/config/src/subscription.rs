//! `subscription`: operations with endless responses, and the transport of subgraph events.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::time::Duration;

use http::HeaderName;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::report::Report;
use crate::surface::Supergraph;
use crate::written::{ByteSize, Form, Listen, PlainPath, ServiceAddress, Written};

/// Operations with a stream of events. Clients receive events as multipart or as server-sent events.
/// Subgraphs send events over WebSockets or with HTTP callbacks.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Subscription {
    /// True if the gateway accepts subscriptions. The default is true, as in Apollo Router, so
    /// `subscription: {}` turns them on.
    pub enabled: bool,
    /// The transports of events from subgraphs. A subgraph without a transport has no subscriptions.
    pub mode: SubscriptionMode,
    /// Maximum number of open subscriptions of all clients. Further subscriptions get 429. The default is
    /// 10000, and `null` removes the limit. Apollo Router has no limit by default.
    /// `limits.max_upstream_connections` limits the WebSockets to subgraphs. One address may use as many of
    /// them as are left for other addresses.
    pub max_opened_subscriptions: Option<NonZeroUsize>,
    /// Maximum number of open subscriptions of clients at one address. Further subscriptions get 429. An IPv6
    /// network of 64 bits is one address, and loopback addresses are not counted. By default an address may
    /// have as many as are left for other addresses. This is half of `max_opened_subscriptions` for a single
    /// address. Behind a proxy, all clients have one address. Not in Apollo Router.
    pub max_opened_subscriptions_per_address: Option<NonZeroUsize>,
    /// Maximum size of the requests of open subscriptions. The gateway stores each request as it arrived and
    /// as it was sent. One address may use as much as is left for other addresses. Further subscriptions get
    /// 429. Not in Apollo Router.
    pub requests_max_bytes: Written<ByteSize>,
    /// The rules for sharing one subgraph subscription among clients.
    pub deduplication: Deduplication,
    /// Maximum number of events that wait for a client. A new event replaces the oldest.
    pub queue_capacity: NonZeroUsize,
    /// Maximum lifetime of a subscription. Not in Apollo Router.
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

/// The rules for sharing one subgraph subscription among clients.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Deduplication {
    /// The rule for all subgraphs.
    pub all: DeduplicationRule,
    /// The rule for one subgraph, by its name. Missing keys have their defaults instead of the values of
    /// `all`, as in Apollo Router.
    pub subgraphs: BTreeMap<String, DeduplicationRule>,
}

/// The rule for identical subscriptions. They are identical if the gateway sends the same request to the
/// subgraph.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DeduplicationRule {
    /// True if clients with identical subscriptions share one. The default is true, as in Apollo Router.
    pub enabled: bool,
    /// Headers that may differ. The subgraph receives the headers of the first client.
    pub ignored_headers: Vec<Written<HeaderName>>,
    /// True if the claims of the clients' tokens may differ. The gateway does not send claims, but rules and
    /// stages can derive parts of the request from them.
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

/// The transports of events from subgraphs.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SubscriptionMode {
    /// Events over a WebSocket. A subgraph with both transports uses this one.
    pub passthrough: Option<Passthrough>,
    /// Events in HTTP requests from the subgraph to the gateway.
    pub callback: Option<Callback>,
}

/// Subgraphs that send events over a WebSocket.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Passthrough {
    /// The settings for all subgraphs.
    pub all: Option<WebSocketMode>,
    /// The settings for one subgraph, by its name. Missing keys have their defaults instead of the values of
    /// `all`, as in Apollo Router.
    pub subgraphs: BTreeMap<String, WebSocketMode>,
}

/// The settings of WebSockets to a subgraph.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WebSocketMode {
    /// The path, instead of the path of the subgraph's URL.
    pub path: Option<Written<PlainPath>>,
    /// The protocol over the WebSocket.
    pub protocol: WebSocketProtocol,
    /// Interval between pings to the subgraph. `disabled` sends no pings, and `enabled` means 5s.
    pub heartbeat_interval: Written<HeartbeatInterval>,
    /// Maximum number of attempts to open a lost connection again before clients get an error. An event
    /// resets the count. The default is 0, as in Apollo Router.
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

/// The protocol over a WebSocket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WebSocketProtocol {
    /// The protocol of the library `graphql-ws`, with the subprotocol `graphql-transport-ws`.
    #[default]
    GraphqlWs,
    /// The protocol of the library `subscriptions-transport-ws`, with the subprotocol `graphql-ws`. The
    /// library is no longer maintained.
    GraphqlTransportWs,
}

/// Subgraphs that send events in HTTP requests to the gateway, with version 1.0 of Apollo's protocol.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Callback {
    /// The URL that subgraphs use for `path` at `listen`. The gateway appends the id of each subscription.
    pub public_url: Written<ServiceAddress>,
    /// The address for callbacks. The default is the address of the GraphQL endpoint.
    pub listen: Option<Written<Listen>>,
    /// The path for callbacks.
    #[serde(default = "callback_path")]
    pub path: Written<PlainPath>,
    /// Interval of the heartbeats that a subgraph must send. The default is 5s, and `disabled` turns
    /// them off.
    #[serde(default = "callback_heartbeat")]
    pub heartbeat_interval: Written<HeartbeatInterval>,
    /// The subgraphs with callbacks. An empty list means all subgraphs.
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
    if matches!(callback.public_url.0, ServiceAddress::Unix { .. }) {
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
