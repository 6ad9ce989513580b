//! Notations of values in requests: as text, as JSON, within a JSON text, percent-encoded, raw.

use std::borrow::Cow;

use serde_json::Value;

use super::Part;
use crate::scenario::CapturedValue;

/// The form of a value in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Notation {
    /// The value unchanged.
    Text,
    /// The value percent-encoded: `{{encoded:name}}`, and each value in a path.
    Encoded,
    /// The value unchanged in a path: `{{raw:name}}`. It has only characters that a path can contain.
    Raw,
    /// The value as JSON: `{{json:name}}`. A captured number has no quotes, and a text has quotes.
    Json,
    /// The value as JSON in a path.
    EncodedJson,
    /// The value within the quotes of a JSON text: `{{escaped:name}}`.
    Escaped,
    /// The value within a JSON text in a path.
    EncodedEscaped,
}

impl Notation {
    /// Splits the content of a place into its notation and its name.
    pub(super) fn of(place: &str, part: Part) -> (Notation, &str) {
        let is_path = part == Part::Path;
        let (plain, in_path, name) = if let Some(name) = place.strip_prefix("json:") {
            (Notation::Json, Notation::EncodedJson, name)
        } else if let Some(name) = place.strip_prefix("escaped:") {
            (Notation::Escaped, Notation::EncodedEscaped, name)
        } else if let Some(name) = place.strip_prefix("encoded:") {
            (Notation::Encoded, Notation::Encoded, name)
        } else if let Some(name) = place.strip_prefix("raw:") {
            (Notation::Text, Notation::Raw, name)
        } else {
            (Notation::Text, Notation::Encoded, place)
        };
        (if is_path { in_path } else { plain }, name)
    }

    /// Writes a captured value.
    pub(super) fn write(self, value: &CapturedValue) -> Cow<'_, str> {
        let text = value.text.as_str();
        match self {
            Notation::Text | Notation::Raw => Cow::Borrowed(text),
            Notation::Encoded => Cow::Owned(escape(text)),
            Notation::Json if value.is_json => Cow::Borrowed(text),
            Notation::Json => Cow::Owned(quote(text)),
            Notation::EncodedJson => Cow::Owned(escape(&Notation::Json.write(value))),
            Notation::Escaped => {
                let quoted = quote(text);
                Cow::Owned(quoted[1..quoted.len() - 1].to_owned())
            }
            Notation::EncodedEscaped => Cow::Owned(escape(&Notation::Escaped.write(value))),
        }
    }

    /// Writes the value of a column, which is a text.
    pub(super) fn write_bytes(self, value: &[u8]) -> Cow<'static, [u8]> {
        let found = CapturedValue {
            text: String::from_utf8_lossy(value).into_owned(),
            is_json: false,
        };
        Cow::Owned(self.write(&found).into_owned().into_bytes())
    }
}

/// A text as JSON.
fn quote(text: &str) -> String {
    Value::from(text).to_string()
}

/// Percent-encodes all but unreserved characters (RFC 3986, section 2.3). A value is data, so it cannot end
/// its segment or parameter.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            escaped.push_str(&format!("%{byte:02X}"));
        }
    }
    escaped
}
