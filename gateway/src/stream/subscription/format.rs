//! Formats for the events of a subscription.

use bytes::Bytes;
use gateway_federation::{GraphqlError, errors_body};
use graphql_http::EventFormat;
use http::HeaderValue;

use crate::stream::parts::Multipart;

/// The body of the reply that opens a subscription, as stages see it.
pub(crate) const OPENING: &[u8] = b"{\"data\":null}";

/// The event name of a server-sent event.
const NEXT: &[u8] = b"event: next\n";
const COMPLETE: &[u8] = b"event: complete\ndata: \n\n";
/// A comment of server-sent events. Clients ignore it.
const COMMENT: &[u8] = b":\n\n";

/// The `content-type` of a body of events.
pub(crate) const fn content_type(format: EventFormat) -> HeaderValue {
    HeaderValue::from_static(match format {
        EventFormat::Multipart => "multipart/mixed;boundary=\"graphql\";subscriptionSpec=1.0",
        EventFormat::ServerSent => "text/event-stream",
    })
}

/// Writes the beginning of a body from the opening reply after the stages.
pub(crate) const fn opener(format: EventFormat) -> fn(&[u8]) -> Bytes {
    match format {
        EventFormat::Multipart => |body| {
            if body == OPENING {
                return Multipart::first(b"{}");
            }
            Multipart::first(&payload(body))
        },
        EventFormat::ServerSent => |body| {
            if body == OPENING {
                return Bytes::from_static(COMMENT);
            }
            event(body).into()
        },
    }
}

/// Writes a complete body: one response and the end.
pub(crate) const fn whole(format: EventFormat) -> fn(&[u8]) -> Bytes {
    match format {
        EventFormat::Multipart => |body| {
            let first = Multipart::first(&payload(body));
            [&*first, Multipart::END].concat().into()
        },
        EventFormat::ServerSent => |body| [event(body).as_slice(), COMPLETE].concat().into(),
    }
}

/// Writes a response to an event.
pub(crate) fn next(format: EventFormat, body: &[u8]) -> Bytes {
    match format {
        EventFormat::Multipart => Multipart::next(&payload(body), false),
        EventFormat::ServerSent => event(body).into(),
    }
}

/// Writes a heartbeat.
pub(crate) fn heartbeat(format: EventFormat) -> Bytes {
    match format {
        EventFormat::Multipart => Multipart::next(b"{}", false),
        EventFormat::ServerSent => Bytes::from_static(COMMENT),
    }
}

/// Writes the normal end of the events.
pub(crate) fn complete(format: EventFormat) -> Bytes {
    Bytes::from_static(match format {
        EventFormat::Multipart => Multipart::END,
        EventFormat::ServerSent => COMPLETE,
    })
}

/// Writes the end with an error of the gateway.
pub(crate) fn fatal(format: EventFormat, error: &GraphqlError) -> Bytes {
    let errors = errors_body(std::slice::from_ref(error));
    match format {
        EventFormat::Multipart => {
            // `{"errors":…}` with `payload` as first member.
            let json = [b"{\"payload\":null,", &errors[1..]].concat();
            Multipart::next(&json, true)
        }
        EventFormat::ServerSent => [event(&errors).as_slice(), COMPLETE].concat().into(),
    }
}

fn payload(body: &[u8]) -> Vec<u8> {
    [b"{\"payload\":", body, b"}"].concat()
}

/// Writes a `next` event. Stages may return JSON with several lines. Each line needs the field name.
fn event(body: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(NEXT.len() + body.len() + 16);
    out.extend_from_slice(NEXT);
    for line in body.split(|byte| matches!(byte, b'\n' | b'\r')) {
        out.extend_from_slice(b"data: ");
        out.extend_from_slice(line);
        out.push(b'\n');
    }
    out.push(b'\n');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_of_several_lines_stays_one_event() {
        let written = next(
            EventFormat::ServerSent,
            b"{\r\n\"data\": 1}\nevent: complete",
        );
        let text = std::str::from_utf8(&written).unwrap();
        assert_eq!(
            text,
            "event: next\ndata: {\ndata: \ndata: \"data\": 1}\ndata: event: complete\n\n"
        );
    }

    #[test]
    fn the_end_for_a_reason_has_no_payload() {
        let error = GraphqlError::new("over", "OVER");
        let written = fatal(EventFormat::Multipart, &error);
        let text = std::str::from_utf8(&written).unwrap();
        assert!(
            text.contains(
                r#"{"payload":null,"errors":[{"message":"over","extensions":{"code":"OVER"}}]}"#
            ),
            "{text}"
        );
        assert!(text.ends_with("\r\n--graphql--\r\n"), "{text}");
    }
}
