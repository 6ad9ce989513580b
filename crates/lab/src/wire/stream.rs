//! Streamed answers, as they are written.

use schemars::JsonSchema;
use serde::Deserialize;
use yaml_with_places::At;

use crate::fields::TextOr;
use crate::formats::{Pointer, Written};

/// The framing of a stream, or a stream with more keys.
pub(crate) type StreamEntry = TextOr<FramingFile, StreamFile>;

/// The boundary between two events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub(crate) enum FramingFile {
    /// Server-sent events.
    Sse,
    /// Lines that are not empty.
    Lines,
    /// Pieces of the body as they arrive. A proxy may join or split them.
    Chunks,
    /// Parts of a multipart body, such as the answers to `@defer`.
    Multipart,
    /// Messages of WebSocket. It is the only framing with `websocket`.
    Messages,
}

/// An answer that is a stream of events.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "stream")]
pub(crate) struct StreamFile {
    /// The boundary between two events: `sse`, `lines`, `chunks` or `multipart`. By default `messages` with
    /// `websocket`, and otherwise required.
    pub(crate) framing: Option<FramingFile>,
    /// The end of the stream, if the answer may continue after it. By default the stream ends with the
    /// answer.
    pub(crate) ends: Option<At<StreamEndsFile>>,
    /// The number of events that every answer must have. The event of `ends.data` or `ends.type` does not
    /// count. By default at least one.
    pub(crate) events: Option<At<u64>>,
    /// The requirement on the data of each event: a JSON value, or a GraphQL result without `errors`.
    pub(crate) each: Option<EachFile>,
    /// The JSON pointer to the time in each event at which its publisher sent it. The report then contains
    /// the delivery time of events. The time is a number since 1970 in seconds, milliseconds, microseconds
    /// or nanoseconds. Its size shows the unit. The clocks of publisher and generator must agree.
    pub(crate) sent_at: Option<Written<Pointer>>,
}

/// The event that ends a stream. It has exactly one key.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "stream-ends")]
pub(crate) struct StreamEndsFile {
    /// The data of the last event, such as `[DONE]`.
    pub(crate) data: Option<At<String>>,
    /// The type of the last server-sent event, such as `complete`.
    #[serde(rename = "type")]
    pub(crate) kind: Option<At<String>>,
    /// The number of events after which the stream ends. The generator then reads no further events.
    #[schemars(range(min = 1))]
    pub(crate) count: Option<At<u64>>,
}

/// The requirement on the data of each event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub(crate) enum EachFile {
    /// A JSON value.
    Json,
    /// A GraphQL result without `errors`.
    Graphql,
}
