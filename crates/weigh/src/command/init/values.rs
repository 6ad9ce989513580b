//! Files of other tools as trees of values, and values as text.

use std::path::PathBuf;

use serde_json::Value;
use yaml_with_places::{Document, Findings, Source};

/// The file as a tree. JSON has its own parser, because generated files may be large.
pub(super) fn tree(source: &str, text: &str, color: bool) -> Result<Value, String> {
    if text.trim_start().starts_with('{') {
        return serde_json::from_str(text)
            .map_err(|error| format!("expected JSON or YAML, found a mistake: {error}"));
    }
    let mut findings = Findings::default();
    let document = yaml_with_places::read(0, text, "it is one document", &mut findings);
    let sources = vec![Source {
        path: PathBuf::from(source),
        text: text.to_owned(),
    }];
    let settled = findings.settle(sources);
    settled.map_err(|mistakes| format!("it has mistakes\n{}", mistakes.render(color)))?;
    match document {
        Document::Tree(node) => Ok(node.json()),
        Document::Empty | Document::Unreadable => Ok(Value::Null),
    }
}

/// A scalar as text. Empty for a list or a mapping.
pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
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
