//! A JSON value that keeps the order of its members.

use std::fmt;

use serde_json::Value;

/// A value of a response.
#[derive(Debug, Clone, PartialEq)]
pub enum Output {
    /// The JSON value `null`.
    Null,
    /// A scalar or an enum, or a custom scalar of any shape.
    Leaf(Value),
    /// A list of values.
    List(Vec<Output>),
    /// An object, in the order of the selection.
    Object(Vec<(String, Output)>),
}

impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Leaf(value) => write!(f, "{value}"),
            Self::List(values) => {
                f.write_str("[")?;
                for (index, value) in values.iter().enumerate() {
                    write!(f, "{}{value}", if index > 0 { "," } else { "" })?;
                }
                f.write_str("]")
            }
            Self::Object(members) => {
                f.write_str("{")?;
                for (index, (name, value)) in members.iter().enumerate() {
                    let comma = if index > 0 { "," } else { "" };
                    write!(f, "{comma}\"{name}\":{value}")?;
                }
                f.write_str("}")
            }
        }
    }
}
