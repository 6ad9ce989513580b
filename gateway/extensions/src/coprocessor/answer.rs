//! Responses of a coprocessor.

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use serde::Deserialize;
use serde::de::{self, DeserializeOwned, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::CoprocessorError;
use crate::exchange::Response;
use crate::failure::{error_response, json_response};
use crate::json::ResponseParts;
use crate::observer::StageKind;

/// Continue with the request, or respond to the client at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Control {
    Continue,
    Break(StatusCode),
}

/// A response with a valid version and stage.
#[derive(Debug)]
pub(super) struct Answer<'a> {
    pub(super) control: Option<Control>,
    pub(super) body: Option<&'a RawValue>,
    pub(super) headers: Option<HeaderMap>,
    pub(super) context: Option<Map<String, Value>>,
    pub(super) uri: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Wire<'a> {
    version: Option<u8>,
    #[serde(borrow)]
    stage: Option<Cow<'a, str>>,
    #[serde(borrow)]
    control: Option<&'a RawValue>,
    #[serde(borrow)]
    body: Option<&'a RawValue>,
    #[serde(borrow)]
    headers: Option<&'a RawValue>,
    #[serde(borrow)]
    context: Option<&'a RawValue>,
    #[serde(borrow)]
    uri: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Entries {
    #[serde(default)]
    entries: Map<String, Value>,
}

struct Headers(HeaderMap);

impl<'a> Answer<'a> {
    pub(super) fn read(text: &'a [u8], kind: StageKind) -> Result<Self, CoprocessorError> {
        let wrong = |reason: String| CoprocessorError::Answer(reason);
        let wire: Wire<'a> =
            serde_json::from_slice(text).map_err(|error| wrong(error.to_string()))?;
        if wire.version != Some(1) {
            return Err(wrong(format!(
                "expected `version` 1, found {:?}",
                wire.version
            )));
        }
        if wire.stage.as_deref() != Some(kind.as_str()) {
            return Err(wrong(format!(
                "expected `stage` `{}`, found {:?}",
                kind.as_str(),
                wire.stage
            )));
        }
        let headers: Option<Headers> = part("headers", wire.headers)?;
        let context: Option<Entries> = part("context", wire.context)?;
        Ok(Self {
            control: wire.control.map(control).transpose()?,
            body: wire.body,
            headers: headers.map(|headers| headers.0),
            context: context.map(|context| context.entries),
            uri: wire.uri,
        })
    }

    pub(super) fn required_control(&self) -> Result<Control, CoprocessorError> {
        self.control.ok_or_else(|| {
            CoprocessorError::Answer("expected `control` at a request stage, found none".into())
        })
    }

    /// The client's response, if the coprocessor ended the request.
    pub(super) fn into_break(self, kind: StageKind, status: StatusCode) -> Response {
        let mut response = break_body(kind, status, self.body);
        if let Some(mut headers) = self.headers {
            // `host` describes the message to the gateway, not the response to the client.
            headers.remove(header::HOST);
            let is_typed = headers.contains_key(header::CONTENT_TYPE);
            // The gateway's own content type applies only if the coprocessor did not return a content type.
            let own = std::mem::replace(&mut response.headers, headers);
            if !is_typed {
                response.headers.extend(own);
            }
        }
        response
    }
}

/// Parses a part of a response. A key that occurs twice is an error.
fn part<T: DeserializeOwned>(
    name: &str,
    raw: Option<&RawValue>,
) -> Result<Option<T>, CoprocessorError> {
    let Some(raw) = raw else { return Ok(None) };
    check_unambiguous(name, raw)?;
    serde_json::from_str(raw.get())
        .map_err(|error| CoprocessorError::Answer(format!("{name}: {error}")))
}

/// Rejects duplicate keys, because the coprocessor may have passed on a text that it parsed differently.
fn check_unambiguous(name: &str, raw: &RawValue) -> Result<(), CoprocessorError> {
    json_text::check_unambiguous(raw.get())
        .map_err(|ambiguity| CoprocessorError::Answer(format!("{name}: {ambiguity}")))
}

fn control(raw: &RawValue) -> Result<Control, CoprocessorError> {
    #[derive(Deserialize)]
    struct Break {
        r#break: u16,
    }
    let text = raw.get();
    // A word or an object. An untagged enum would buffer the value, and its errors would not name the
    // expected type.
    if serde_json::from_str::<Cow<'_, str>>(text).is_ok_and(|word| word == "continue") {
        return Ok(Control::Continue);
    }
    serde_json::from_str::<Break>(text)
        .ok()
        .and_then(|wanted| StatusCode::from_u16(wanted.r#break).ok())
        .map(Control::Break)
        .ok_or_else(|| {
            CoprocessorError::Answer(format!(
                "expected `control` to be \"continue\" or {{\"break\": 100 to 999}}, found `{text}`"
            ))
        })
}

fn break_body(kind: StageKind, status: StatusCode, body: Option<&RawValue>) -> Response {
    let string = body.map(|body| serde_json::from_str::<String>(body.get()));
    match (kind, body, string) {
        (StageKind::RouterRequest, None, _) => error_response(status, "", "ERROR"),
        (StageKind::RouterRequest, _, Some(Ok(text))) => {
            // At the router, the protocol sends text. Text that is a JSON object is the body itself. Any
            // other text is an error message.
            if serde_json::from_str::<Map<String, Value>>(&text).is_ok() {
                json_response(status, text)
            } else {
                error_response(status, &text, "ERROR")
            }
        }
        (StageKind::SubgraphRequest, _, Some(Ok(text))) => error_response(status, &text, "ERROR"),
        (_, Some(body), Some(Err(_))) => {
            match ResponseParts::read(body.get().as_bytes())
                .map_err(|error| Cow::from(error.to_string()))
                .and_then(|parts| parts.check().map(|()| parts))
            {
                Ok(parts) => json_response(status, parts.write()),
                Err(reason) => undecodable(status, &reason),
            }
        }
        (_, Some(_), Some(Ok(_))) => undecodable(status, "expected an object, found a string"),
        _ => undecodable(status, "expected an object, found nothing"),
    }
}

fn undecodable(status: StatusCode, reason: &str) -> Response {
    error_response(
        status,
        &format!("couldn't deserialize coprocessor output body: {reason}"),
        "EXTERNAL_DESERIALIZATION_ERROR",
    )
}

/// The body of a request stage: text at the router, otherwise a GraphQL request.
pub(super) fn request_body(kind: StageKind, raw: &RawValue) -> Result<Bytes, CoprocessorError> {
    if kind.is_router() {
        return text_body(raw);
    }
    if !raw.get().starts_with('{') {
        return Err(CoprocessorError::Answer(
            "body: expected an object with a GraphQL request".into(),
        ));
    }
    check_unambiguous("body", raw)?;
    Ok(Bytes::copy_from_slice(raw.get().as_bytes()))
}

/// The text of a router stage's body.
pub(super) fn text_body(raw: &RawValue) -> Result<Bytes, CoprocessorError> {
    serde_json::from_str::<String>(raw.get())
        .map(Bytes::from)
        .map_err(|_| CoprocessorError::Answer("body: expected a string at the router".into()))
}

impl<'de> Deserialize<'de> for Headers {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Headers;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object of lists of strings")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Headers, A::Error> {
                // JSON maps have no size hint. 16 headers are a usual number.
                let mut map = HeaderMap::with_capacity(access.size_hint().unwrap_or(16));
                while let Some(name) = access.next_key::<Cow<'de, str>>()? {
                    let values: Vec<Cow<'de, str>> = access.next_value()?;
                    // Dropped silently, because coprocessors return the headers that they received.
                    if is_of_the_connection(&name) {
                        continue;
                    }
                    let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| {
                        de::Error::custom(format!("`{name}` is not a legal header name"))
                    })?;
                    for value in values {
                        let value = HeaderValue::from_str(&value).map_err(|_| {
                            de::Error::custom(format!("`{name}` has a value that is not legal"))
                        })?;
                        map.append(name.clone(), value);
                    }
                }
                Ok(Headers(map))
            }
        }
        deserializer.deserialize_map(Reader)
    }
}

/// True for headers that describe a connection or a length. They describe the coprocessor's own message.
fn is_of_the_connection(name: &str) -> bool {
    gateway_hop::is_of_connection(name) || name.eq_ignore_ascii_case("content-length")
}
