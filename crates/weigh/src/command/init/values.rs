//! Values of other tools as texts.

use serde_json::Value;

use super::tree::without_mark;

/// A scalar as text. Empty for a list or a mapping.
pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => without_mark(text).to_owned(),
        Value::Number(_) | Value::Bool(_) => value.to_string(),
        _ => String::new(),
    }
}

/// Percent-encodes a text for a path or a query (RFC 3986, section 2.3).
pub(super) fn encoded(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b',' => {
                encoded.push(char::from(byte));
            }
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}
