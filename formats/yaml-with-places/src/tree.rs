//! The tree: values, their places, and the types of scalars.

use serde_json::{Map, Number, Value as JsonValue};

/// A range of bytes `start..end` in a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The number of the source. See [`crate::read`].
    pub source: usize,
    /// The first byte of the range.
    pub start: usize,
    /// The byte after the last byte of the range. At least `start`.
    pub end: usize,
}

/// A value and its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The place of the value. For a block mapping or list it is the first key or dash, because marking all
    /// lines would highlight no specific place.
    pub place: Place,
    /// The value, or a marker for a reported one.
    pub value: Value,
}

/// A value of YAML, before its type is decided.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A single word, number or text.
    Scalar {
        /// The original text without quotes. `1.10` is not yet a number.
        text: String,
        /// True if it has no quotes. Only plain text may be a number.
        plain: bool,
    },
    /// A list, in block or flow style.
    List(Vec<Node>),
    /// A mapping in its original order, without duplicate keys.
    Map(Vec<Entry>),
    /// A reported mistake. Later checks skip it.
    Reported,
}

/// A key of a mapping with its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The key, without quotes.
    pub key: String,
    /// The place of the key.
    pub key_place: Place,
    /// The value and its place.
    pub node: Node,
    /// True if the file has an unknown key that is probably a misspelling of this key. The value is then
    /// [`Value::Reported`].
    pub is_guess: bool,
}

impl Node {
    /// Creates a node for a reported mistake.
    #[must_use]
    pub fn reported(place: Place) -> Node {
        Node {
            place,
            value: Value::Reported,
        }
    }

    /// The entry of a mapping with this key.
    #[must_use]
    pub fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries().iter().find(|entry| entry.key == key)
    }

    /// The value of a mapping under this key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entry(key).map(|entry| &entry.node)
    }

    /// The entry at a path of keys.
    #[must_use]
    pub fn at(&self, path: &[&str]) -> Option<&Entry> {
        let (first, rest) = path.split_first()?;
        let entry = self.entry(first)?;
        if rest.is_empty() {
            Some(entry)
        } else {
            entry.node.at(rest)
        }
    }

    /// The entries of a mapping. Empty for other values.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        match &self.value {
            Value::Map(entries) => entries,
            _ => &[],
        }
    }

    /// The text of a scalar.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Scalar { text, .. } => Some(text),
            _ => None,
        }
    }

    /// True for YAML's null: no value at all, or `~` or `null`.
    #[must_use]
    pub fn is_null(&self) -> bool {
        matches!(&self.value, Value::Scalar { text, plain: true } if is_null(text))
    }

    /// True if the key has no value. `~` means the same in YAML.
    #[must_use]
    pub fn is_blank(&self) -> bool {
        matches!(&self.value, Value::Scalar { text, plain: true } if text.is_empty() || text == "~")
    }

    /// The JSON Schema type of the value. A reported value counts as null.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match &self.value {
            Value::List(_) => Kind::Array,
            Value::Map(_) => Kind::Object,
            Value::Reported => Kind::Null,
            Value::Scalar { text, plain } => match scalar(text, *plain) {
                JsonValue::Null => Kind::Null,
                JsonValue::Bool(_) => Kind::Boolean,
                JsonValue::Number(number) if number.is_f64() => Kind::Number,
                JsonValue::Number(_) => Kind::Integer,
                _ => Kind::String,
            },
        }
    }

    /// The node as a JSON value. A key without a value is left out, unless its value is the word `null`.
    #[must_use]
    pub fn json(&self) -> JsonValue {
        match &self.value {
            Value::Scalar { text, plain } => scalar(text, *plain),
            Value::Reported => JsonValue::Null,
            Value::List(items) => items.iter().map(Node::json).collect(),
            Value::Map(entries) => {
                let members = entries
                    .iter()
                    .filter(|entry| !entry.node.is_blank())
                    .map(|entry| (entry.key.clone(), entry.node.json()));
                JsonValue::Object(members.collect::<Map<_, _>>())
            }
        }
    }

    /// Number of values in the node, including the node.
    pub(crate) fn count(&self) -> usize {
        1 + match &self.value {
            Value::List(items) => items.iter().map(Node::count).sum(),
            Value::Map(entries) => entries.iter().map(|entry| entry.node.count()).sum(),
            Value::Scalar { .. } | Value::Reported => 0,
        }
    }
}

/// The JSON value of a scalar by YAML 1.2's core schema: null, `true` or `false`, a number, or text.
#[must_use]
pub fn scalar(text: &str, plain: bool) -> JsonValue {
    if !plain {
        return text.into();
    }
    match text {
        "true" | "True" | "TRUE" => return true.into(),
        "false" | "False" | "FALSE" => return false.into(),
        _ if is_null(text) => return JsonValue::Null,
        _ => {}
    }
    // Rust parses words such as `inf` and `nan` as numbers. In YAML they are text.
    if !text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.')) {
        return text.into();
    }
    // Integers first: a large integer would lose digits as a float.
    if let Ok(number) = text.parse::<u64>() {
        return number.into();
    }
    if let Ok(number) = text.parse::<i64>() {
        return number.into();
    }
    // `-inf` gets here. JSON has no such number, so it stays text.
    let number = text.parse::<f64>().ok().and_then(Number::from_f64);
    number.map_or_else(|| text.into(), JsonValue::Number)
}

fn is_null(text: &str) -> bool {
    matches!(text, "" | "~" | "null" | "Null" | "NULL")
}

/// A type of JSON Schema. Integers have their own kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// No value, `~` or `null`.
    Null,
    /// `true` or `false`.
    Boolean,
    /// A number without a fraction.
    Integer,
    /// A number with a fraction or an exponent, or beyond 64 bits.
    Number,
    /// Text.
    String,
    /// A list.
    Array,
    /// A mapping.
    Object,
}

impl Kind {
    /// True if the JSON Schema `type` of this name accepts the kind.
    #[must_use]
    pub fn is(self, name: &str) -> bool {
        match self {
            Kind::Null => name == "null",
            Kind::Boolean => name == "boolean",
            Kind::Integer => name == "integer" || name == "number",
            Kind::Number => name == "number",
            Kind::String => name == "string",
            Kind::Array => name == "array",
            Kind::Object => name == "object",
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_plain_scalar_means_what_the_core_schema_says() {
        for (text, meaning) in [
            ("", json!(null)),
            ("~", json!(null)),
            ("NULL", json!(null)),
            ("True", json!(true)),
            ("on", json!("on")),
            ("18446744073709551615", json!(u64::MAX)),
            ("-7", json!(-7)),
            ("+7", json!(7)),
            ("1.10", json!(1.1)),
            (".5", json!(0.5)),
            ("1e3", json!(1000.0)),
            ("-inf", json!("-inf")),
            ("nan", json!("nan")),
            ("-", json!("-")),
            (".", json!(".")),
            ("1.2.3", json!("1.2.3")),
            ("10s", json!("10s")),
        ] {
            assert_eq!(scalar(text, true), meaning, "{text}");
            assert_eq!(scalar(text, false), json!(text), "{text}");
        }
    }
}
