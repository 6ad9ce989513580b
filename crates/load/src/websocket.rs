//! Conversations over WebSocket as they are rendered, and as they are received.
//!
//! A conversation is rendered like a request: the head of the upgrade, and the texts of its messages in place
//! of a body. Templates therefore serve both. `general/websocket.rs` is the carrier.

use std::fmt::Write as _;

use model::{Framing, MessageContent, ReplyRule, StreamRule, WebSocketCall, WebSocketDialect};

use crate::error::RequestError;
use crate::job::{Expectation, Protocol, Request, StatusRule, Version};
use crate::parser::Sink;

/// The character between two messages of a rendered conversation (record separator).
const SEPARATOR: u8 = 0x1e;

/// Headers that the upgrade writes itself.
const OWN_HEADERS: [&str; 6] = [
    "connection",
    "upgrade",
    "sec-websocket-key",
    "sec-websocket-version",
    "sec-websocket-protocol",
    "sec-websocket-extensions",
];

/// A message of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Received<'a> {
    /// An event with its type.
    Event { name: &'a [u8], data: &'a [u8] },
    /// An error of the protocol instead of an event.
    Error { data: &'a [u8] },
    /// The end of the stream, in protocols that have a message for it.
    Complete,
}

/// A message of the server, outside of a load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceivedMessage {
    /// The type of the message, such as `next`.
    pub name: String,
    /// The content of the message.
    pub data: Vec<u8>,
    /// Its part in the conversation.
    pub kind: ReceivedKind,
}

/// The part of a message of the server in a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceivedKind {
    /// An event.
    Event,
    /// An error of the protocol instead of an event.
    Error,
    /// The end of the stream.
    Complete,
}

/// A receiver of a conversation: the response to the upgrade as a head, and messages.
pub(crate) trait Listener: Sink {
    /// Takes a message.
    fn message(&mut self, message: &Received<'_>);

    /// Takes the time from the planned time of a message to its reply.
    fn replied(&mut self, took_ns: u64);

    /// Takes the end of the conversation.
    fn finish(&mut self, now_ns: u64);
}

impl<'a> Received<'a> {
    /// Returns the content.
    pub(crate) fn data(&self) -> &'a [u8] {
        match *self {
            Received::Event { data, .. } | Received::Error { data } => data,
            Received::Complete => b"",
        }
    }
}

impl ReceivedMessage {
    pub(crate) fn of(message: &Received<'_>) -> ReceivedMessage {
        let (name, kind): (&[u8], _) = match *message {
            Received::Event { name, .. } => (name, ReceivedKind::Event),
            Received::Error { .. } => (b"error", ReceivedKind::Error),
            Received::Complete => (b"complete", ReceivedKind::Complete),
        };
        ReceivedMessage {
            name: String::from_utf8_lossy(name).into_owned(),
            data: message.data().to_vec(),
            kind,
        }
    }

    pub(crate) fn received(&self) -> Received<'_> {
        match self.kind {
            ReceivedKind::Complete => Received::Complete,
            ReceivedKind::Error => Received::Error { data: &self.data },
            ReceivedKind::Event => Received::Event {
                name: self.name.as_bytes(),
                data: &self.data,
            },
        }
    }
}

/// Returns the headers that request the upgrade, without the key. Each connection has its own key.
pub(crate) fn headers(call: &WebSocketCall) -> Vec<(&'static str, String)> {
    let mut headers = vec![
        ("Connection", "Upgrade".to_owned()),
        ("Upgrade", "websocket".to_owned()),
        ("Sec-WebSocket-Version", "13".to_owned()),
    ];
    let offers = call.offers.iter().map(String::as_str);
    let words: Vec<&str> = call.subprotocol().into_iter().chain(offers).collect();
    if !words.is_empty() {
        headers.push(("Sec-WebSocket-Protocol", words.join(", ")));
    }
    headers
}

/// Returns the texts of the messages, as the body of a template.
pub(crate) fn rendered(call: &WebSocketCall) -> Vec<u8> {
    let parts: Vec<Vec<u8>> = match &call.dialect {
        WebSocketDialect::Raw { messages, .. } => messages
            .iter()
            .map(|message| match &message.content {
                MessageContent::Text(text) => text.clone().into_bytes(),
                MessageContent::Binary(bytes) => hex(bytes).into_bytes(),
            })
            .collect(),
        WebSocketDialect::Graphql {
            init, subscribe, ..
        } => {
            let init = match init {
                Some(payload) => format!(r#"{{"type":"connection_init","payload":{payload}}}"#),
                None => r#"{"type":"connection_init"}"#.to_owned(),
            };
            vec![init.into_bytes(), subscribe.clone().into_bytes()]
        }
    };
    parts.join(&SEPARATOR)
}

/// Splits the filled-in texts of the messages. `None` if a value contains the separator.
pub(crate) fn parts<'a>(call: &WebSocketCall, body: &'a [u8]) -> Option<Vec<&'a [u8]>> {
    let expected = match &call.dialect {
        WebSocketDialect::Raw { messages, .. } if messages.is_empty() => return Some(Vec::new()),
        WebSocketDialect::Raw { messages, .. } => messages.len(),
        WebSocketDialect::Graphql { .. } => 2,
    };
    let parts: Vec<&[u8]> = body.split(|byte| *byte == SEPARATOR).collect();
    (parts.len() == expected).then_some(parts)
}

/// Returns the bytes of a binary message that was rendered. `None` if the text is not hexadecimal.
pub(crate) fn binary(text: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(text).ok()?;
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(text.get(at..at + 2)?, 16).ok())
        .collect()
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in bytes {
        // Writing to a text cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Returns the expectation of the response to the upgrade and of the messages.
pub(crate) fn expectation(written: &Expectation) -> Expectation {
    Expectation {
        status: match written.status {
            StatusRule::Success => StatusRule::Exactly(101),
            other => other,
        },
        stream: written
            .stream
            .clone()
            .or_else(|| Some(StreamRule::of(Framing::Messages))),
        ..written.clone()
    }
}

/// Refuses a conversation that cannot begin or cannot end.
pub(crate) fn verify(
    call: &WebSocketCall,
    request: &Request,
    protocol: &Protocol,
) -> Result<(), RequestError> {
    let refuse = |reason: String| Err(RequestError::WebSocket(reason));
    if protocol.version != Version::Http1 {
        let found = protocol.version.name();
        return refuse(format!("expected HTTP/1.1, found {found}"));
    }
    if request.method != "GET" || !request.body.is_empty() {
        return refuse("expected the method GET and no body".to_owned());
    }
    let own = request
        .headers
        .iter()
        .find(|(name, _)| OWN_HEADERS.iter().any(|own| name.eq_ignore_ascii_case(own)));
    if let Some((name, _)) = own {
        return refuse(format!(
            "the generator itself writes `{name}`. Remove the header"
        ));
    }
    let stream = request.expect.stream.as_ref();
    if let Some(rule) = stream.filter(|rule| rule.framing != Framing::Messages) {
        return refuse(format!(
            "expected the framing `messages`, found `{}`",
            rule.framing.word()
        ));
    }
    let ends_by_event = stream.is_some_and(|rule| rule.end.is_some());
    if ends_by_event && call.hold.is_some() {
        return refuse(
            "expected one end of the conversation, found a hold and an event".to_owned(),
        );
    }
    if let WebSocketDialect::Raw {
        messages, replies, ..
    } = &call.dialect
    {
        let is_endless = |message: &model::PlannedMessage| {
            message.every.is_some() && message.count.is_none() && call.hold.is_none()
        };
        if messages.iter().any(is_endless) && !ends_by_event {
            return refuse("a repeated message needs a count, or a hold as its end".to_owned());
        }
        if *replies != ReplyRule::None && messages.is_empty() {
            return refuse("expected a message that is replied to, found none".to_owned());
        }
        if *replies != ReplyRule::None && ends_by_event {
            return refuse(
                "the conversation ends with its last reply, so the stream has no end of its own"
                    .to_owned(),
            );
        }
        let separates = |message: &model::PlannedMessage| match &message.content {
            MessageContent::Text(text) => text.as_bytes().contains(&SEPARATOR),
            MessageContent::Binary(_) => false,
        };
        if messages.iter().any(separates) {
            return refuse("a text message contains the character U+001E".to_owned());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use model::{GraphqlProtocol, PlannedMessage};

    use super::*;

    fn raw(contents: Vec<MessageContent>) -> WebSocketCall {
        let message = |content| PlannedMessage {
            content,
            after: Duration::ZERO,
            every: None,
            count: None,
        };
        WebSocketCall {
            dialect: WebSocketDialect::Raw {
                subprotocol: None,
                messages: contents.into_iter().map(message).collect(),
                replies: ReplyRule::None,
            },
            offers: Vec::new(),
            hold: None,
            is_kept: false,
        }
    }

    #[test]
    fn rendered_messages_are_found_again() {
        let bytes = vec![0x1e, 0, 0xff, b'a'];
        let call = raw(vec![
            MessageContent::Text("one\ntwo".to_owned()),
            MessageContent::Binary(bytes.clone()),
        ]);
        let body = rendered(&call);
        let found = parts(&call, &body).unwrap();
        assert_eq!(found[0], b"one\ntwo");
        assert_eq!(binary(found[1]), Some(bytes));
        assert_eq!(parts(&call, b"one\x1etwo\x1ethree"), None);
        assert_eq!(parts(&raw(Vec::new()), b""), Some(Vec::new()));
        assert_eq!(binary(b"0"), None);
    }

    #[test]
    fn a_subscription_has_two_texts() {
        let call = WebSocketCall {
            dialect: WebSocketDialect::Graphql {
                protocol: GraphqlProtocol::TransportWs,
                init: Some(r#"{"token":"a"}"#.to_owned()),
                subscribe: r#"{"query":"subscription{a}"}"#.to_owned(),
            },
            offers: Vec::new(),
            hold: None,
            is_kept: true,
        };
        let body = rendered(&call);
        let found = parts(&call, &body).unwrap();
        assert_eq!(
            found[0],
            br#"{"type":"connection_init","payload":{"token":"a"}}"#
        );
        assert_eq!(found[1], br#"{"query":"subscription{a}"}"#);
        assert_eq!(headers(&call)[3].1, "graphql-transport-ws");
    }

    #[test]
    fn a_conversation_without_an_end_is_refused_in_words() {
        let mut call = raw(vec![MessageContent::Text("a".to_owned())]);
        let refused = |call: &WebSocketCall, request: &Request| {
            verify(call, request, &Protocol::default()).map_err(|error| error.to_string())
        };
        let mut request = Request::get("/");
        assert_eq!(refused(&call, &request), Ok(()));
        if let WebSocketDialect::Raw { messages, .. } = &mut call.dialect {
            messages[0].every = Some(Duration::from_millis(1));
        }
        assert!(refused(&call, &request).unwrap_err().contains("a count"));
        call.hold = Some(Duration::from_secs(1));
        assert_eq!(refused(&call, &request), Ok(()));
        request
            .headers
            .push(("Sec-WebSocket-Key".to_owned(), "a".to_owned()));
        let words = refused(&call, &request).unwrap_err();
        assert!(words.contains("`Sec-WebSocket-Key`"), "{words}");
    }
}
