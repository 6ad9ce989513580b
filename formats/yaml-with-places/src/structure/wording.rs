//! Phrases for expected and actual values in messages.

use serde_json::Value as Schema;

use super::strings;
use crate::mistake::Finding;
use crate::tree::{Kind, Node};

/// The words of a choice: `a` or `b`.
pub(super) fn quoted(words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    words.join(" or ")
}

/// Describes a `type` of JSON Schema, which is one name or a list of names.
pub(super) fn of_type(names: &Schema) -> String {
    let names: Vec<&str> = match names {
        Schema::String(name) => vec![name],
        list => strings(list).collect(),
    };
    let is_text_welcome = names.contains(&"string");
    let words: Vec<&str> = names
        .into_iter()
        .filter_map(|name| match name {
            "null" => None,
            // If text is accepted, `true` is valid as text.
            "boolean" if is_text_welcome => None,
            "boolean" => Some("`true` or `false`"),
            "integer" => Some("a whole number"),
            "number" => Some("a number"),
            "array" => Some("a list"),
            "object" => Some("a mapping of keys to values"),
            _ => Some("text"),
        })
        .collect();
    words.join(" or ")
}

/// Returns the finding for a value that is not of the `expected` kind.
pub(super) fn wrong_kind(node: &Node, expected: &str) -> Finding {
    let text = node.text().unwrap_or_default();
    let found = match node.kind() {
        Kind::Null => "nothing".to_owned(),
        Kind::Boolean => format!("`{text}`"),
        Kind::Integer | Kind::Number => format!("the number `{text}`"),
        Kind::String => format!("the text `{text}`"),
        Kind::Array => "a list".to_owned(),
        Kind::Object => "a mapping".to_owned(),
    };
    let finding = Finding::new(node.place, format!("expected {expected}, found {found}"));
    match node.kind() {
        Kind::Boolean | Kind::Integer | Kind::Number if expected == "text" => {
            finding.help(format!("write \"{text}\", in quotes"))
        }
        _ => finding,
    }
}
