//! Streams: responses that consist of several events.

/// The rule for a response that arrives as a stream of events.
///
/// An event is one part of a streamed response: a server-sent event, a line, a chunk, a part of a multipart
/// body, or a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamRule {
    /// The boundary between two events.
    pub framing: Framing,
    /// The end of the stream. `None` if the stream ends with the response.
    pub end: Option<StreamEnd>,
    /// The correct number of events. The event that ends the stream by its content is not counted. `None` if
    /// every number from 1 is correct.
    pub events: Option<u64>,
    /// The check of the content of each event.
    pub each: EventCheck,
    /// A JSON pointer (RFC 6901) to the time at which the publisher sent the event. `None` without a time.
    pub sent_at: Option<String>,
}

/// The boundary between two events of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// Server-sent events, separated by empty lines (WHATWG HTML, section 9.2). Comments are no events.
    ServerSent,
    /// Lines, separated by a line feed. Empty lines are no events.
    Lines,
    /// Each piece of the body that one read of the socket returns. HTTP does not keep the boundaries of
    /// chunks, so a proxy may join or split them.
    Chunks,
    /// Parts of a multipart body (RFC 2046), separated by the boundary of the `Content-Type`.
    Multipart,
    /// Messages of gRPC, each with a prefix of five bytes.
    Grpc,
    /// Messages of WebSocket.
    Messages,
}

/// The event that ends a stream although the response continues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamEnd {
    /// The stream ends with this number of events. At least 1.
    Count(u64),
    /// The stream ends with an event with exactly these bytes as data, such as `[DONE]`.
    Data(Vec<u8>),
    /// The stream ends with a server-sent event of this type, such as `complete`.
    Type(String),
}

/// The check of the content of each event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EventCheck {
    /// Every content is correct.
    #[default]
    Any,
    /// The data is a JSON value.
    Json,
    /// The data is a GraphQL result without `errors`.
    Graphql,
}

impl StreamRule {
    /// Returns a rule with this framing and no other demand. Every number of events from 1 is correct.
    #[must_use]
    pub fn of(framing: Framing) -> StreamRule {
        StreamRule {
            framing,
            end: None,
            events: None,
            each: EventCheck::Any,
            sent_at: None,
        }
    }
}

impl Framing {
    /// The word for it in a lab.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Framing::ServerSent => "sse",
            Framing::Lines => "lines",
            Framing::Chunks => "chunks",
            Framing::Multipart => "multipart",
            Framing::Grpc => "grpc",
            Framing::Messages => "messages",
        }
    }

    /// The framing with this word. `None` if a lab cannot choose it.
    #[must_use]
    pub fn named(word: &str) -> Option<Framing> {
        [
            Framing::ServerSent,
            Framing::Lines,
            Framing::Chunks,
            Framing::Multipart,
            Framing::Messages,
        ]
        .into_iter()
        .find(|framing| framing.word() == word)
    }
}
