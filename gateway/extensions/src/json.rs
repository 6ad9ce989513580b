//! GraphQL messages as JSON text. Their members stay text.

use std::borrow::Cow;

use bytes::Bytes;
use serde::de::{self, IgnoredAny};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The members that stages use of a GraphQL response, or of one part. All other members are dropped.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct ResponseParts<'a> {
    #[serde(
        borrow,
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub(crate) label: Option<&'a RawValue>,
    #[serde(
        borrow,
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub(crate) data: Option<&'a RawValue>,
    #[serde(
        borrow,
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub(crate) path: Option<&'a RawValue>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(crate) errors: Option<&'a RawValue>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(crate) extensions: Option<&'a RawValue>,
    #[serde(
        borrow,
        default,
        rename = "hasNext",
        skip_serializing_if = "Option::is_none"
    )]
    pub(crate) has_next: Option<&'a RawValue>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(crate) pending: Option<&'a RawValue>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(crate) incremental: Option<&'a RawValue>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(crate) completed: Option<&'a RawValue>,
}

/// Distinguishes `null` from absence, because `{"data":null}` is a GraphQL response.
fn present<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

impl<'a> ResponseParts<'a> {
    pub(crate) fn read(text: &'a [u8]) -> Result<Self, serde_json::Error> {
        // A derived deserializer also accepts a list of the members in their order. Code after this check
        // changes members by name.
        if !text.trim_ascii_start().starts_with(b"{") {
            // Text that is not JSON keeps the parser's message.
            serde_json::from_slice::<IgnoredAny>(text)?;
            return Err(de::Error::custom("expected an object"));
        }
        serde_json::from_slice(text)
    }

    pub(crate) fn write(&self) -> Bytes {
        serde_json::to_vec(self)
            .expect("JSON text written to memory cannot fail")
            .into()
    }

    /// Copies missing members that a client needs to combine the parts. Stages must not decide if more parts
    /// follow.
    pub(crate) fn keep_part(&mut self, before: &Self) {
        self.has_next = before.has_next;
        self.pending = self.pending.or(before.pending);
        self.incremental = self.incremental.or(before.incremental);
        self.completed = self.completed.or(before.completed);
    }

    /// Removes the members that refer to other parts.
    pub(crate) fn without_part(self) -> Self {
        Self {
            has_next: None,
            pending: None,
            incremental: None,
            completed: None,
            ..self
        }
    }

    /// Checks the body by the GraphQL specification. A response has `data`, or a non-empty list of errors,
    /// each with a message.
    pub(crate) fn check(&self) -> Result<(), Cow<'static, str>> {
        #[derive(Deserialize)]
        struct Error<'a> {
            #[serde(borrow, rename = "message")]
            _message: Cow<'a, str>,
        }
        let count = match self.errors {
            None => 0,
            Some(errors) => serde_json::from_str::<Vec<Error<'_>>>(errors.get())
                .map_err(|error| Cow::from(format!("errors are not a list of errors: {error}")))?
                .len(),
        };
        let is_part = self.incremental.is_some() || self.completed.is_some();
        if self.data.is_none() && count == 0 && !is_part {
            return Err("it has neither `data` nor a non-empty list of `errors`".into());
        }
        Ok(())
    }
}

/// True if a GraphQL response has a non-empty list of errors.
pub(crate) fn has_errors(body: &[u8]) -> bool {
    ResponseParts::read(body).is_ok_and(|parts| {
        parts
            // A list with an opening brace contains an error. Counting elements would need to parse the list.
            .errors
            .is_some_and(|errors| errors.get().bytes().any(|byte| byte == b'{'))
    })
}

/// The message of the first error of a GraphQL response.
pub(crate) fn first_error(body: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Message {
        message: String,
    }
    let parts = ResponseParts::read(body).ok()?;
    let errors: Vec<Message> = serde_json::from_str(parts.errors?.get()).ok()?;
    Some(errors.into_iter().next()?.message)
}
