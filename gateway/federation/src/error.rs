//! Errors in GraphQL form, and functions that write them as JSON.

use serde_json::{Map, Value};

/// A place in the client's document, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Location {
    /// The line, counted from 1.
    pub line: usize,
    /// The column, counted from 1.
    pub column: usize,
}

/// One step of a response path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathSegment {
    /// A response key. `@` stands for every element of a list.
    Key(String),
    /// The position in a list, counted from 0.
    Index(usize),
}

/// One entry of `errors` in a GraphQL response.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GraphqlError {
    /// The error text for people.
    pub message: String,
    /// Places in the client's document. Can be empty.
    pub locations: Vec<Location>,
    /// Path in the response. Empty if the error has no path.
    pub path: Vec<PathSegment>,
    /// All other members, including `code`.
    pub extensions: Map<String, Value>,
}

impl GraphqlError {
    /// Creates an error with a message and `extensions.code`.
    pub fn new(message: impl Into<String>, code: &str) -> Self {
        let mut extensions = Map::new();
        extensions.insert("code".to_owned(), Value::from(code));
        GraphqlError {
            message: message.into(),
            extensions,
            ..GraphqlError::default()
        }
    }

    /// Adds one entry to `extensions`.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.extensions.insert(key.to_owned(), value.into());
        self
    }

    /// Adds a place in the client's document.
    #[must_use]
    pub fn at(mut self, line: usize, column: usize) -> Self {
        self.locations.push(Location { line, column });
        self
    }

    /// `extensions.code`, if it is a string.
    #[must_use]
    pub fn code(&self) -> Option<&str> {
        self.extensions.get("code").and_then(Value::as_str)
    }

    /// Approximate size of the error in bytes.
    pub(crate) fn weight(&self) -> usize {
        let extensions = self.extensions.iter();
        // Each path segment counts 16 bytes. The sum only bounds memory, so an estimate is enough.
        let extensions = extensions.map(|(key, value)| key.len() + weight(value));
        self.message.len() + 16 * self.path.len() + extensions.sum::<usize>()
    }

    /// Appends the error as JSON with `message`, `locations`, `path` and `extensions`. Leaves out empty
    /// members.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"message\":");
        json_text::write_string(&self.message, out);
        if !self.locations.is_empty() {
            out.extend_from_slice(b",\"locations\":[");
            for (index, place) in self.locations.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                let text = format!("{{\"line\":{},\"column\":{}}}", place.line, place.column);
                out.extend_from_slice(text.as_bytes());
            }
            out.push(b']');
        }
        if !self.path.is_empty() {
            out.extend_from_slice(b",\"path\":[");
            for (index, segment) in self.path.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                match segment {
                    PathSegment::Key(key) => json_text::write_string(key, out),
                    PathSegment::Index(index) => {
                        out.extend_from_slice(index.to_string().as_bytes());
                    }
                }
            }
            out.push(b']');
        }
        if !self.extensions.is_empty() {
            out.extend_from_slice(b",\"extensions\":");
            serde_json::to_writer(&mut *out, &self.extensions)
                .expect("a map of JSON values written to memory cannot fail");
        }
        out.push(b'}');
    }
}

fn weight(value: &Value) -> usize {
    16 + match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(weight).sum(),
        Value::Object(members) => members
            .iter()
            .map(|(key, value)| key.len() + weight(value))
            .sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

/// A complete response that contains only errors: `{"errors":[…]}`.
#[must_use]
pub fn errors_body(errors: &[GraphqlError]) -> Vec<u8> {
    let mut out = Vec::with_capacity(128);
    out.extend_from_slice(b"{\"errors\":");
    write_errors(errors, &mut out);
    out.push(b'}');
    out
}

/// Appends a JSON list of errors.
pub(crate) fn write_errors(errors: &[GraphqlError], out: &mut Vec<u8>) {
    out.push(b'[');
    for (index, error) in errors.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        error.write_json(out);
    }
    out.push(b']');
}

/// A parser's message without its line breaks.
pub(crate) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
