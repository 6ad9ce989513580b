//! The messages of GraphQL over WebSocket: `graphql-transport-ws`, and the older `graphql-ws` of
//! subscriptions-transport-ws.

use std::collections::BTreeMap;

use model::GraphqlProtocol;
use serde_json::value::RawValue;

/// A message of a GraphQL server.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Heard<'a> {
    /// The connection is accepted.
    Acknowledged,
    /// The server wants an answer to show that the connection lives.
    Ping,
    /// The message has no meaning for the conversation: a sign of life, or another subscription.
    Nothing,
    /// A result of the subscription.
    Next(&'a [u8]),
    /// The subscription has failed.
    Error(&'a [u8]),
    /// The subscription is complete.
    Complete,
    /// The server refuses the connection.
    Refused(&'a [u8]),
}

/// Reads a message to the subscription with this id.
///
/// # Errors
///
/// The expected form, as text.
pub(super) fn heard<'a>(
    protocol: GraphqlProtocol,
    text: &'a [u8],
    id: u64,
) -> Result<Heard<'a>, String> {
    let members: BTreeMap<String, &RawValue> = serde_json::from_slice(text)
        .map_err(|_| "expected a JSON object as a message of GraphQL".to_owned())?;
    let word =
        |name: &str| -> Option<String> { serde_json::from_str(members.get(name)?.get()).ok() };
    let Some(kind) = word("type") else {
        return Err("expected a message of GraphQL with a `type`".to_owned());
    };
    let payload = members.get("payload");
    let payload = payload.map_or(&b"null"[..], |payload| payload.get().as_bytes());
    let is_own = word("id").is_some_and(|found| found == id.to_string());
    let is_new = protocol == GraphqlProtocol::TransportWs;
    Ok(match kind.as_str() {
        "connection_ack" => Heard::Acknowledged,
        "ping" if is_new => Heard::Ping,
        "pong" if is_new => Heard::Nothing,
        "ka" if !is_new => Heard::Nothing,
        "connection_error" if !is_new => Heard::Refused(payload),
        "next" if is_new && is_own => Heard::Next(payload),
        "data" if !is_new && is_own => Heard::Next(payload),
        "error" if is_own => Heard::Error(payload),
        "complete" if is_own => Heard::Complete,
        // A result of an earlier subscription may arrive after its end.
        "next" | "data" | "error" | "complete" if members.contains_key("id") => Heard::Nothing,
        other => {
            return Err(format!(
                "expected a message of `{}`, found the type `{}`",
                protocol.word(),
                other.escape_debug()
            ));
        }
    })
}

/// Returns the message that starts a subscription. `payload` is the JSON of the operation.
pub(super) fn subscribe(protocol: GraphqlProtocol, id: u64, payload: &str) -> String {
    let kind = match protocol {
        GraphqlProtocol::TransportWs => "subscribe",
        GraphqlProtocol::LegacyWs => "start",
    };
    format!(r#"{{"id":"{id}","type":"{kind}","payload":{payload}}}"#)
}

/// Returns the message that ends a subscription.
pub(super) fn stop(protocol: GraphqlProtocol, id: u64) -> String {
    let kind = match protocol {
        GraphqlProtocol::TransportWs => "complete",
        GraphqlProtocol::LegacyWs => "stop",
    };
    format!(r#"{{"id":"{id}","type":"{kind}"}}"#)
}

/// The type of a message with a result.
pub(super) fn result_type(protocol: GraphqlProtocol) -> &'static str {
    match protocol {
        GraphqlProtocol::TransportWs => "next",
        GraphqlProtocol::LegacyWs => "data",
    }
}

/// The answer to a ping of the newer protocol.
pub(super) const PONG: &str = r#"{"type":"pong"}"#;

#[cfg(test)]
mod tests {
    use super::*;

    const NEW: GraphqlProtocol = GraphqlProtocol::TransportWs;
    const OLD: GraphqlProtocol = GraphqlProtocol::LegacyWs;

    #[test]
    fn results_keep_their_bytes_and_other_subscriptions_are_nothing() {
        let text = br#"{"id":"7","type":"next","payload":{"data" : {"price": 1.50}}}"#;
        let found = heard(NEW, text, 7);
        assert_eq!(found, Ok(Heard::Next(br#"{"data" : {"price": 1.50}}"#)));
        assert_eq!(heard(NEW, text, 8), Ok(Heard::Nothing));
        let text = br#"{"type":"data","id":"7","payload":{"data":1}}"#;
        assert_eq!(heard(OLD, text, 7), Ok(Heard::Next(br#"{"data":1}"#)));
        assert_eq!(heard(OLD, br#"{"type":"ka"}"#, 7), Ok(Heard::Nothing));
        assert_eq!(heard(NEW, br#"{"type":"ping"}"#, 7), Ok(Heard::Ping));
        let text = br#"{"type":"error","id":"7","payload":[{"message":"no"}]}"#;
        assert_eq!(
            heard(NEW, text, 7),
            Ok(Heard::Error(br#"[{"message":"no"}]"#))
        );
        let text = br#"{"type":"complete","id":"7"}"#;
        assert_eq!(heard(NEW, text, 7), Ok(Heard::Complete));
    }

    #[test]
    fn what_is_no_message_is_refused_in_words() {
        for (text, words) in [
            (&b"[1]"[..], "a JSON object"),
            (b"{\"id\":\"1\"}", "`type`"),
            (b"{\"type\":\"ka\"}", "`ka`"),
            (b"{\"type\":\"next\"}", "`next`"),
            (b"\xff", "a JSON object"),
        ] {
            let error = heard(NEW, text, 1).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
    }
}
