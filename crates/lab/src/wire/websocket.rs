//! Conversations over WebSocket, as they are written.

use schemars::JsonSchema;
use serde::Deserialize;
use yaml_with_places::{At, Json, OneOrMany};

use super::parts::Switch;
use crate::formats::Written;
use crate::quantities::LongerThanZero;

/// A conversation over WebSocket, instead of a request of HTTP. Every message of the target is an event of its
/// stream.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "websocket")]
pub(crate) struct WebSocketFile {
    /// The subprotocol. `graphql-transport-ws` and `graphql-ws` (the older protocol of
    /// subscriptions-transport-ws) are GraphQL subscriptions. With another name or none, messages have no
    /// known meaning.
    pub(crate) protocol: Option<At<String>>,
    /// Further subprotocols in the request of the upgrade, such as `bearer.{{token}}`. With `protocol`, the server
    /// must select that protocol. Without it, the server may select one of these, or no protocol.
    #[serde(default)]
    pub(crate) offers: OneOrMany<At<String>>,
    /// The payload of `connection_init`, such as a token. Only for GraphQL.
    pub(crate) init: Option<At<Json>>,
    /// The subscription. Only for GraphQL.
    pub(crate) subscribe: Option<At<SubscribeFile>>,
    /// The messages that the generator sends. Only without GraphQL.
    #[serde(default)]
    pub(crate) messages: OneOrMany<At<MessageFile>>,
    /// Every message has a reply: `order` or the JSON pointer to an id. With `order`, each message of the
    /// target is the reply to the oldest message without a reply. With a pointer, the generator writes the
    /// number of each message at the pointer, and the reply has the same number there. A round trip counts
    /// from the planned time of the message. The conversation ends with its last reply.
    pub(crate) replies: Option<At<String>>,
    /// Holds the conversation for this time, which then is its end. The proof holds it until its first event.
    pub(crate) hold: Option<At<Written<LongerThanZero>>>,
    /// The next conversation uses the same connection. By default `on` for GraphQL, and `off` otherwise.
    pub(crate) keep: Option<Switch>,
}

/// A GraphQL subscription.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "subscribe")]
pub(crate) struct SubscribeFile {
    /// The operation.
    pub(crate) query: At<String>,
    /// The variables of the operation.
    pub(crate) variables: Option<At<Json>>,
    /// The name of the operation, if `query` contains several.
    pub(crate) operation_name: Option<At<String>>,
}

/// A message of the generator. It has exactly one of `text`, `json` and `file`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "message")]
pub(crate) struct MessageFile {
    /// A text message.
    pub(crate) text: Option<At<String>>,
    /// A text message in JSON, written as YAML.
    pub(crate) json: Option<At<Json>>,
    /// A file with the bytes of a binary message.
    pub(crate) file: Option<At<String>>,
    /// The time from the open connection to the first send. By default the message leaves at once.
    pub(crate) after: Option<Written<LongerThanZero>>,
    /// The planned time between two sends. By default the message is sent once.
    pub(crate) every: Option<Written<LongerThanZero>>,
    /// The number of sends of a message with `every`. By default it is sent until the end of `hold`.
    #[schemars(range(min = 1))]
    pub(crate) count: Option<At<u64>>,
}
