//! Reads a GraphQL request from a JSON body or from the parameters of a URL.
//!
//! The variables are decoded directly into the type of the executor. A server that only forwards them decodes
//! them as [`RawObject`]. The query is borrowed from the body if it has no escapes.
//!
//! A request that two readers could understand differently is refused, because the program that checks a
//! request often differs from the program that executes it. See [`json_text::check_unambiguous`].

use std::borrow::Cow;
use std::fmt;

use json_text::Ambiguity;
use serde::de::{DeserializeOwned, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::escapes::with_old_escapes;
pub use entries::Entries;

mod entries;

/// A well-formed request. The executor decides whether the document is valid.
#[derive(Debug, PartialEq, Eq)]
pub struct GraphqlRequest<'a, V, E = DiscardedObject> {
    /// The text of the document. It may be empty.
    pub query: Cow<'a, str>,
    /// The name of the operation to execute. An empty name in a body is kept.
    pub operation_name: Option<Cow<'a, str>>,
    /// Values of the operation's variables.
    pub variables: Option<V>,
    /// Protocol extensions of the request.
    pub extensions: Option<E>,
}

/// A request that may lack its document.
#[derive(Debug, PartialEq, Eq)]
pub struct Incomplete<'a, V, E> {
    /// The text of the document, if it was sent.
    pub query: Option<Cow<'a, str>>,
    /// See [`GraphqlRequest::operation_name`].
    pub operation_name: Option<Cow<'a, str>>,
    /// See [`GraphqlRequest::variables`].
    pub variables: Option<V>,
    /// See [`GraphqlRequest::extensions`].
    pub extensions: Option<E>,
}

/// The reason why a request cannot be decoded.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// The body is a list.
    #[error("the body must be one JSON object; batches are not served")]
    Batch,
    /// The body is not JSON.
    #[error("the body is not JSON: {0}")]
    NotJson(#[source] serde_json::Error),
    /// The body is JSON, but not an object, or an entry has the wrong type.
    #[error("the body is not a GraphQL request: {0}")]
    NotARequest(#[source] serde_json::Error),
    /// The body has no document.
    #[error("the body is not a GraphQL request: `query` is missing")]
    NoQuery,
    /// The URL has no document.
    #[error("the parameter `query` is missing; send ?query=… or a POST")]
    NoQueryParameter,
    /// A parameter of the URL appears twice.
    #[error("the parameter `{0}` is given twice")]
    GivenTwice(&'static str),
    /// A parameter of the URL is not a JSON object, but must be one.
    #[error("the parameter `{name}` must be a JSON object: {source}")]
    BadParameter {
        /// Name of the parameter.
        name: &'static str,
        /// The error of the parser.
        source: serde_json::Error,
    },
}

/// Reads a body. The document has the escapes of older specifications (see [`with_old_escapes`]).
///
/// # Errors
/// Fails if the body is not a JSON object with a `query`, or if an entry has the wrong type. Also fails if
/// two readers could understand the body differently, for instance if an object has a key twice.
pub fn from_body<'a, V, E>(body: &'a [u8]) -> Result<GraphqlRequest<'a, V, E>, DecodeError>
where
    V: Deserialize<'a>,
    E: Deserialize<'a>,
{
    check_body(body)?;
    let read = from_checked_body_or_hash(body)?;
    read.complete(DecodeError::NoQuery)
        .map(GraphqlRequest::with_old_escapes)
}

/// Refuses a body that two readers could understand differently. [`from_checked_body_or_hash`] then finds the
/// remaining errors of syntax.
///
/// # Errors
/// [`DecodeError::NotJson`], or [`DecodeError::NotARequest`] with the reason.
pub fn check_body(body: &[u8]) -> Result<(), DecodeError> {
    let body = utf8(body)?;
    json_text::check_unambiguous(body).map_err(|ambiguity| refused(body, ambiguity))
}

/// Like [`check_body`]. Also returns the places of a request's entries, for [`Entries::read`].
///
/// # Errors
/// Like [`check_body`].
pub fn check_entries(body: &[u8]) -> Result<Entries, DecodeError> {
    let text = utf8(body)?;
    if !text.trim_ascii_start().starts_with('{') {
        return check_body(body).map(|()| Entries::unusual());
    }
    let mut entries = Entries::default();
    json_text::check_members(text, |member| entries.add(text, member))
        .map_err(|ambiguity| refused(text, ambiguity))?;
    Ok(entries)
}

fn utf8(body: &[u8]) -> Result<&str, DecodeError> {
    std::str::from_utf8(body).map_err(|error| {
        let at = error.valid_up_to();
        DecodeError::NotJson(serde_json::Error::custom(format!("not UTF-8 at byte {at}")))
    })
}

#[cold]
fn refused(body: &str, ambiguity: Ambiguity) -> DecodeError {
    match ambiguity {
        // serde_json's message contains the expected token.
        Ambiguity::NotJson { .. } => match serde_json::from_str::<IgnoredAny>(body) {
            Err(error) => DecodeError::NotJson(error),
            Ok(_) => DecodeError::NotJson(serde_json::Error::custom(ambiguity)),
        },
        ambiguity => DecodeError::NotARequest(serde_json::Error::custom(ambiguity)),
    }
}

/// Reads a body that has passed [`check_body`], or that this program has written. Its extensions may identify
/// the document by a hash. So `query` is `None` if it is missing.
///
/// # Errors
/// Fails if the body is not a JSON object, or if an entry has the wrong type.
pub fn from_checked_body_or_hash<'a, V, E>(
    body: &'a [u8],
) -> Result<Incomplete<'a, V, E>, DecodeError>
where
    V: Deserialize<'a>,
    E: Deserialize<'a>,
{
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase", expecting = "a JSON object")]
    #[serde(bound(deserialize = "V: Deserialize<'de>, E: Deserialize<'de>"))]
    struct Body<'a, V, E> {
        #[serde(borrow)]
        query: Option<Text<'a>>,
        #[serde(borrow)]
        operation_name: Option<Text<'a>>,
        variables: Option<V>,
        extensions: Option<E>,
    }

    /// Borrowed if there are no escapes. serde cannot borrow `Option<Cow<str>>`.
    #[derive(Deserialize)]
    struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

    // serde would accept a list as the fields of a struct in their order.
    if body.trim_ascii_start().starts_with(b"[") {
        // Read to its end, so that text that only begins like a list is reported as invalid JSON.
        let list = serde_json::from_slice::<Vec<IgnoredAny>>(body);
        return Err(list.map_or_else(DecodeError::NotJson, |_| DecodeError::Batch));
    }
    let body: Body<'_, V, E> = serde_json::from_slice(body).map_err(|error| {
        // serde_json distinguishes text that is not JSON from JSON of the wrong shape.
        if error.is_data() {
            DecodeError::NotARequest(error)
        } else {
            DecodeError::NotJson(error)
        }
    })?;
    Ok(Incomplete {
        query: body.query.map(|query| query.0),
        operation_name: body.operation_name.map(|name| name.0),
        variables: body.variables,
        extensions: body.extensions,
    })
}

impl<V, E> GraphqlRequest<'_, V, E> {
    /// Replaces escapes that parsers do not know. See [`with_old_escapes`].
    fn with_old_escapes(mut self) -> Self {
        let replaced = match with_old_escapes(&self.query) {
            Cow::Borrowed(_) => None,
            Cow::Owned(text) => Some(text),
        };
        if let Some(text) = replaced {
            self.query = text.into();
        }
        self
    }
}

impl<'a, V, E> Incomplete<'a, V, E> {
    /// The request, unless it has no document.
    ///
    /// # Errors
    /// `without` if the document is missing.
    pub fn complete(self, without: DecodeError) -> Result<GraphqlRequest<'a, V, E>, DecodeError> {
        Ok(GraphqlRequest {
            query: self.query.ok_or(without)?,
            operation_name: self.operation_name,
            variables: self.variables,
            extensions: self.extensions,
        })
    }
}

/// Reads the query string of a URL, without the question mark. The document has the escapes of older
/// specifications (see [`with_old_escapes`]).
///
/// An empty `operationName`, `variables` or `extensions` counts as absent, because HTML forms and URL
/// builders send them that way.
///
/// # Errors
/// Fails if `query` is missing, a parameter is given twice, or a parameter is not valid JSON. Its JSON must
/// have a single meaning for all readers.
pub fn from_parameters<V, E>(parameters: &str) -> Result<GraphqlRequest<'_, V, E>, DecodeError>
where
    V: DeserializeOwned,
    E: DeserializeOwned,
{
    let read = from_parameters_or_hash(parameters)?;
    read.complete(DecodeError::NoQueryParameter)
        .map(GraphqlRequest::with_old_escapes)
}

/// Like [`from_parameters`], but the extensions may identify the document by a hash.
///
/// # Errors
/// Fails if a parameter is given twice, or is not the required JSON.
pub fn from_parameters_or_hash<V, E>(parameters: &str) -> Result<Incomplete<'_, V, E>, DecodeError>
where
    V: DeserializeOwned,
    E: DeserializeOwned,
{
    let (mut query, mut operation_name, mut variables, mut extensions) = (None, None, None, None);
    for (key, value) in form_urlencoded::parse(parameters.as_bytes()) {
        let (slot, name) = match key.as_ref() {
            "query" => (&mut query, "query"),
            "operationName" => (&mut operation_name, "operationName"),
            "variables" => (&mut variables, "variables"),
            "extensions" => (&mut extensions, "extensions"),
            // Other parameters belong to the application.
            _ => continue,
        };
        // With two values, two programs on the way could execute different operations.
        if slot.replace(value).is_some() {
            return Err(DecodeError::GivenTwice(name));
        }
    }
    Ok(Incomplete {
        query,
        operation_name: operation_name.filter(|name| !name.is_empty()),
        variables: json_parameter("variables", variables)?,
        extensions: json_parameter("extensions", extensions)?,
    })
}

fn json_parameter<T: DeserializeOwned>(
    name: &'static str,
    value: Option<Cow<'_, str>>,
) -> Result<Option<T>, DecodeError> {
    match value {
        None => Ok(None),
        Some(text) if text.is_empty() => Ok(None),
        Some(text) => {
            let read = serde_json::from_str(&text).and_then(|read| {
                // The text is later written into a body, one level deeper.
                let checked = json_text::check_unambiguous_part(&text, 1);
                checked.map_err(serde_json::Error::custom)?;
                Ok(read)
            });
            read.map_err(|source| DecodeError::BadParameter { name, source })
        }
    }
}

/// Writes a request as a body.
///
/// # Panics
/// Never: text and JSON objects are always written.
#[must_use]
pub fn to_json<V: Serialize, E: Serialize>(request: &GraphqlRequest<'_, V, E>) -> Vec<u8> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Body<'a, V, E> {
        query: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        operation_name: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        variables: Option<&'a V>,
        #[serde(skip_serializing_if = "Option::is_none")]
        extensions: Option<&'a E>,
    }

    serde_json::to_vec(&Body {
        query: &request.query,
        operation_name: request.operation_name.as_deref(),
        variables: request.variables.as_ref(),
        extensions: request.extensions.as_ref(),
    })
    .expect("text and JSON objects are always written")
}

/// A JSON object as unparsed text, borrowed from a body.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct RawObject<'a>(&'a RawValue);

/// A JSON object as unparsed text.
#[derive(Debug, Clone, Serialize)]
pub struct RawObjectBuf(Box<RawValue>);

impl<'a> RawObject<'a> {
    /// The JSON text of the object.
    #[must_use]
    pub fn text(self) -> &'a str {
        self.0.get()
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for RawObject<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?;
        is_object(raw)?;
        Ok(Self(raw))
    }
}

impl<'de> Deserialize<'de> for RawObjectBuf {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        is_object(&raw)?;
        Ok(Self(raw))
    }
}

fn is_object<E: serde::de::Error>(raw: &RawValue) -> Result<(), E> {
    // The text of a raw value has no leading white space.
    if raw.get().starts_with('{') {
        return Ok(());
    }
    Err(E::custom("expected a JSON object"))
}

/// Any JSON object, checked and discarded, for servers without extensions.
#[derive(Debug, PartialEq, Eq)]
pub struct DiscardedObject;

impl<'de> Deserialize<'de> for DiscardedObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;

        impl<'de> Visitor<'de> for Entries {
            type Value = DiscardedObject;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a map")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<DiscardedObject, A::Error> {
                // Read and not skipped, because the text must be valid JSON to its end.
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(DiscardedObject)
            }
        }

        deserializer.deserialize_map(Entries)
    }
}

#[cfg(test)]
mod tests;
