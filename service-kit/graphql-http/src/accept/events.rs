//! Negotiates the format of an event stream, if the client accepts one.

use super::liked_best;

/// Formats of the events of a subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventFormat {
    /// `multipart/mixed;subscriptionSpec=1.0`: each part contains a response as its `payload`.
    Multipart,
    /// `text/event-stream`: the events `next` and `complete` of GraphQL over server-sent events, with one
    /// connection per operation.
    ServerSent,
}

/// The format that the client prefers, the first of equals. `None` if it names no format.
///
/// `accept` are the lines of the `Accept` header. They count as one list.
pub fn event_format<'a>(accept: impl Iterator<Item = &'a [u8]>) -> Option<EventFormat> {
    liked_best(accept, |media, mut parameters| {
        if media.eq_ignore_ascii_case("text/event-stream") {
            return Some(EventFormat::ServerSent);
        }
        let is_multipart = media.eq_ignore_ascii_case("multipart/mixed");
        (is_multipart && parameters.any(is_specification)).then_some(EventFormat::Multipart)
    })
}

fn is_specification(parameter: &str) -> bool {
    parameter.split_once('=').is_some_and(|(name, value)| {
        let value = value.trim().trim_matches('"');
        name.trim().eq_ignore_ascii_case("subscriptionSpec") && value == "1.0"
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(accept: &str) -> Option<EventFormat> {
        event_format([accept.as_bytes()].into_iter())
    }

    #[test]
    fn only_a_client_that_names_a_format_gets_events() {
        for none in [
            "*/*",
            "text/*",
            "application/json",
            "multipart/mixed",
            "multipart/mixed;deferSpec=20220824, application/json",
            "multipart/mixed;subscriptionSpec=2.0, application/json",
            "multipart/mixed;subscriptionSpec=1.0;q=0, application/json",
            "text/event-stream;q=0",
        ] {
            assert_eq!(of(none), None, "{none}");
        }
        let multipart = Some(EventFormat::Multipart);
        let server_sent = Some(EventFormat::ServerSent);
        for (accept, format) in [
            (
                "multipart/mixed;boundary=\"graphql\";subscriptionSpec=1.0,application/json",
                multipart,
            ),
            (
                "application/json, Multipart/Mixed; subscriptionspec=\"1.0\"",
                multipart,
            ),
            ("text/event-stream", server_sent),
            ("application/json;q=0.9, Text/Event-Stream", server_sent),
            (
                "multipart/mixed;subscriptionSpec=1.0;q=0.5, text/event-stream",
                server_sent,
            ),
            (
                "multipart/mixed;subscriptionSpec=1.0, text/event-stream",
                multipart,
            ),
        ] {
            assert_eq!(of(accept), format, "{accept}");
        }
    }
}
