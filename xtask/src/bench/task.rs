//! The tasks that generators are compared at.

use super::Setting;

/// Task that generators are compared at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Task {
    /// Small responses over HTTP/1.1.
    Small,
    /// Responses of 8 KB over HTTP/1.1.
    Large,
    /// Small responses over HTTP/1.1 with TLS.
    Tls,
    /// Small responses over HTTP/2 without TLS.
    Http2,
    /// Small responses over HTTP/2 with TLS.
    Http2Tls,
    /// Small responses over HTTP/3.
    Http3,
    /// Streams of server-sent events over HTTP/1.1.
    Sse,
    /// Messages and their replies over WebSocket.
    Websocket,
    /// Unary calls of gRPC with empty messages.
    Grpc,
}

/// The protocol of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wire {
    /// HTTP/1.1 without TLS.
    Plain,
    /// HTTP/1.1 over TLS.
    Tls,
    /// HTTP/2 by prior knowledge.
    Http2,
    /// HTTP/2 over TLS.
    Http2Tls,
    /// HTTP/3, always with TLS.
    Http3,
    /// WebSocket without TLS.
    Websocket,
}

/// Number of requests in flight on each connection with streams.
const STREAMS: u32 = 10;

/// Number of events of each stream.
pub(super) const EVENTS: u32 = 50;

/// Time between two messages of a connection.
pub(super) const MESSAGE_GAP_MS: u32 = 10;

impl Task {
    pub(super) const ALL: [Task; 9] = [
        Task::Small,
        Task::Large,
        Task::Tls,
        Task::Http2,
        Task::Http2Tls,
        Task::Http3,
        Task::Sse,
        Task::Websocket,
        Task::Grpc,
    ];

    pub(super) fn title(self) -> &'static str {
        match self {
            Task::Small => "Small responses",
            Task::Large => "Responses of 8 KB",
            Task::Tls => "Small responses over TLS 1.3",
            Task::Http2 => "Small responses over HTTP/2",
            Task::Http2Tls => "Small responses over HTTP/2 with TLS 1.3",
            Task::Http3 => "Small responses over HTTP/3",
            Task::Sse => "Streams of server-sent events",
            Task::Websocket => "Messages over WebSocket",
            Task::Grpc => "Unary calls of gRPC",
        }
    }

    /// The value for `--task`.
    pub(super) fn word(self) -> String {
        use clap::ValueEnum as _;
        self.to_possible_value()
            .map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// The unit of work, which the server counts.
    pub(super) fn unit(self) -> &'static str {
        match self {
            Task::Sse => "stream",
            Task::Websocket => "message",
            _ => "request",
        }
    }

    pub(super) fn wire(self) -> Wire {
        match self {
            Task::Small | Task::Large | Task::Sse => Wire::Plain,
            Task::Tls => Wire::Tls,
            Task::Http2 | Task::Grpc => Wire::Http2,
            Task::Http2Tls => Wire::Http2Tls,
            Task::Http3 => Wire::Http3,
            Task::Websocket => Wire::Websocket,
        }
    }

    pub(super) fn path(self) -> &'static str {
        match self {
            Task::Large => "/large.json",
            Task::Sse => "/stream",
            Task::Websocket => "/",
            Task::Grpc => "/bench.Bench/Get",
            _ => "/small.json",
        }
    }

    /// Number of connections, and of requests in flight on each.
    pub(super) fn shape(self, setting: Setting) -> (u32, u32) {
        match self.wire() {
            Wire::Http2 | Wire::Http2Tls | Wire::Http3 => {
                ((setting.connections / STREAMS).max(1), STREAMS)
            }
            Wire::Plain | Wire::Tls | Wire::Websocket => (setting.connections, 1),
        }
    }

    /// Number of messages that each connection sends. `None` if a generator sends as fast as it can.
    pub(super) fn messages_each(self, setting: Setting) -> Option<u32> {
        (self == Task::Websocket).then_some(setting.seconds * 1000 / MESSAGE_GAP_MS)
    }

    /// Description of the load of all generators.
    pub(super) fn load(self, setting: Setting) -> String {
        let (connections, streams) = self.shape(setting);
        match (self, streams) {
            (Task::Websocket, _) => format!(
                "{connections} connections, each with a message every {MESSAGE_GAP_MS} ms and its reply"
            ),
            (Task::Sse, _) => format!(
                "closed loop, {connections} connections, keep-alive, {EVENTS} events in each stream"
            ),
            (_, 1) => format!("closed loop, {connections} connections, keep-alive"),
            _ => format!(
                "closed loop, {connections} connections with {streams} concurrent requests on each, \
                 keep-alive"
            ),
        }
    }
}
