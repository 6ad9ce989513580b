//! How the events of a subscription are written for a client.

use bytes::Bytes;
use gateway_federation::{GraphqlError, errors_body};
use graphql_http::EventFormat;
use http::HeaderValue;

use crate::stream::parts::Multipart;

/// The body of the reply that opens a subscription, as stages see it.
pub(crate) const OPENING: &[u8] = b"{\"data\":null}";

/// What an event of the stream is named.
const NEXT: &[u8] = b"event: next\n";
const COMPLETE: &[u8] = b"event: complete\ndata: \n\n";
/// A comment, which clients skip.
const COMMENT: &[u8] = b":\n\n";

/// The `content-type` of a body of events.
pub(crate) const fn content_type(format: EventFormat) -> HeaderValue {
    HeaderValue::from_static(match format {
        EventFormat::Multipart => "multipart/mixed;boundary=\"graphql\";subscriptionSpec=1.0",
        EventFormat::ServerSent => "text/event-stream",
    })
}

/// The begin of a body: what the stages have left of the opening reply.
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

/// A whole body: one response and the end.
pub(crate) const fn whole(format: EventFormat) -> fn(&[u8]) -> Bytes {
    match format {
        EventFormat::Multipart => |body| {
            let first = Multipart::first(&payload(body));
            [&*first, Multipart::END].concat().into()
        },
        EventFormat::ServerSent => |body| [event(body).as_slice(), COMPLETE].concat().into(),
    }
}

/// A response to an event.
pub(crate) fn next(format: EventFormat, body: &[u8]) -> Bytes {
    match format {
        EventFormat::Multipart => Multipart::next(&payload(body), false),
        EventFormat::ServerSent => event(body).into(),
    }
}

/// A sign that the subscription is there.
pub(crate) fn heartbeat(format: EventFormat) -> Bytes {
    match format {
        EventFormat::Multipart => Multipart::next(b"{}", false),
        EventFormat::ServerSent => Bytes::from_static(COMMENT),
    }
}

/// The end, when there are no more events.
pub(crate) fn complete(format: EventFormat) -> Bytes {
    Bytes::from_static(match format {
        EventFormat::Multipart => Multipart::END,
        EventFormat::ServerSent => COMPLETE,
    })
}

/// The end for a reason of the gateway.
pub(crate) fn fatal(format: EventFormat, error: &GraphqlError) -> Bytes {
    let errors = errors_body(std::slice::from_ref(error));
    match format {
        EventFormat::Multipart => {
            // `{"errors":…}` with a member in front.
            let json = [b"{\"payload\":null,", &errors[1..]].concat();
            Multipart::next(&json, true)
        }
        EventFormat::ServerSent => [event(&errors).as_slice(), COMPLETE].concat().into(),
    }
}

fn payload(body: &[u8]) -> Vec<u8> {
    [b"{\"payload\":", body, b"}"].concat()
}

/// An event `next`. Stages may leave JSON of several lines, each of which needs the name of the field.
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
