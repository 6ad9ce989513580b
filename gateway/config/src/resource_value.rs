//! Values of a service's attributes.

use schemars::JsonSchema;
use serde::Deserialize;

/// A value of an attribute.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum AttributeValue {
    /// The value `true` or `false`.
    Switch(bool),
    /// A whole number, with 64 bits.
    Integer(i64),
    /// A number with a fraction.
    Number(f64),
    /// The value is a text.
    Text(String),
    /// Several values of one kind.
    List(Vec<AttributeItem>),
}

/// One of several values of an attribute.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum AttributeItem {
    /// The value `true` or `false`.
    Switch(bool),
    /// A whole number, with 64 bits.
    Integer(i64),
    /// A number with a fraction.
    Number(f64),
    /// The value is a text.
    Text(String),
}
