//! Conversations over WebSocket (RFC 6455).

use std::time::Duration;

/// A conversation over WebSocket, instead of one response. Each message of the server is an event of its
/// stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebSocketCall {
    /// The meaning of the messages.
    pub dialect: WebSocketDialect,
    /// Further subprotocols in the request, such as a token. The server must not select them if the dialect has a
    /// subprotocol.
    pub offers: Vec<String>,
    /// Ends the conversation after this time. `None` if the stream, the replies or the server end it.
    pub hold: Option<Duration>,
    /// True if the connection carries further conversations.
    pub is_kept: bool,
}

/// The meaning of the messages of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WebSocketDialect {
    /// Messages without a known meaning.
    Raw {
        /// The subprotocol that the server must select. `None` requests no subprotocol.
        subprotocol: Option<String>,
        /// The messages to send, in order.
        messages: Vec<PlannedMessage>,
        /// The assignment of replies to messages.
        replies: ReplyRule,
    },
    /// A GraphQL subscription.
    Graphql {
        /// The protocol of the subscription.
        protocol: GraphqlProtocol,
        /// The payload of `connection_init`, as JSON. `None` for no payload.
        init: Option<String>,
        /// The operation, as the JSON of a GraphQL request.
        subscribe: String,
    },
}

/// A protocol of GraphQL over WebSocket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GraphqlProtocol {
    /// The protocol of the library graphql-ws, with `subscribe` and `next`.
    TransportWs,
    /// The older protocol of subscriptions-transport-ws, with `start` and `data`.
    LegacyWs,
}

/// A message that the generator sends, with its times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedMessage {
    /// The bytes of the message.
    pub content: MessageContent,
    /// The time from the open connection to the first send.
    pub after: Duration,
    /// The time between two sends. `None` for one send.
    pub every: Option<Duration>,
    /// The number of sends. `None` repeats it until the end of [`WebSocketCall::hold`].
    pub count: Option<u64>,
}

/// The content of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessageContent {
    /// A text message.
    Text(String),
    /// A binary message.
    Binary(Vec<u8>),
}

/// The assignment of replies to messages. Round trips count from the planned time of a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ReplyRule {
    /// Messages have no replies.
    #[default]
    None,
    /// Each message of the server is the reply to the oldest message without a reply.
    Order,
    /// A JSON pointer (RFC 6901) to an id in messages and replies. The generator writes the number of each
    /// message there.
    Id(String),
}

impl PlannedMessage {
    /// Returns a message with this text that is sent once and at once.
    #[must_use]
    pub fn of_text(text: impl Into<String>) -> PlannedMessage {
        PlannedMessage {
            content: MessageContent::Text(text.into()),
            after: Duration::ZERO,
            every: None,
            count: None,
        }
    }

    /// The text of the message. Empty for a binary message.
    #[must_use]
    pub fn text(&self) -> &str {
        match &self.content {
            MessageContent::Text(text) => text,
            MessageContent::Binary(_) => "",
        }
    }
}

impl WebSocketCall {
    /// The subprotocol that the server must select.
    #[must_use]
    pub fn subprotocol(&self) -> Option<&str> {
        match &self.dialect {
            WebSocketDialect::Raw { subprotocol, .. } => subprotocol.as_deref(),
            WebSocketDialect::Graphql { protocol, .. } => Some(protocol.word()),
        }
    }
}

impl WebSocketCall {
    /// The payload of `connection_init`.
    #[must_use]
    pub fn init(&self) -> Option<&str> {
        match &self.dialect {
            WebSocketDialect::Raw { .. } => None,
            WebSocketDialect::Graphql { init, .. } => init.as_deref(),
        }
    }

    /// The messages as lines of text, with binary messages as their number of bytes.
    #[must_use]
    pub fn text(&self) -> String {
        match &self.dialect {
            WebSocketDialect::Raw { messages, .. } => {
                let line = |message: &PlannedMessage| match &message.content {
                    MessageContent::Text(text) => text.clone(),
                    MessageContent::Binary(bytes) => format!("({} bytes)", bytes.len()),
                };
                let lines: Vec<String> = messages.iter().map(line).collect();
                lines.join("\n")
            }
            // Without the payload of `connection_init`, which often is a secret.
            WebSocketDialect::Graphql { subscribe, .. } => subscribe.clone(),
        }
    }
}

impl GraphqlProtocol {
    /// The name of the subprotocol in the upgrade.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            GraphqlProtocol::TransportWs => "graphql-transport-ws",
            GraphqlProtocol::LegacyWs => "graphql-ws",
        }
    }

    /// The protocol with this name.
    #[must_use]
    pub fn named(word: &str) -> Option<GraphqlProtocol> {
        [GraphqlProtocol::TransportWs, GraphqlProtocol::LegacyWs]
            .into_iter()
            .find(|protocol| protocol.word() == word)
    }
}
