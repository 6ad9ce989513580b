//! Attributes of spans, instruments and events.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::condition::Condition;
use crate::selector::{Selector, SelectorFile};

/// The value of an attribute: a standard value under its own or another name, or a selected value.
#[derive(Clone, Debug, PartialEq)]
pub enum Attribute {
    /// True if the standard attribute with this name is present.
    Switch(bool),
    /// Another name for the standard attribute.
    Alias(String),
    /// A value of the request or response, under a condition.
    Selected {
        /// The source of the value.
        selector: Box<Selector>,
        /// The condition for the attribute. `None` means always.
        condition: Option<Condition>,
    },
}

/// The value that an instrument records.
#[derive(Clone, Debug, PartialEq)]
pub enum Measured {
    /// The number 1 for each request.
    Unit,
    /// The duration of the request.
    Duration,
    /// The number 1 for each part of a response.
    EventUnit,
    /// The time since the request, for each part of a response.
    EventDuration,
    /// A number of the request or response.
    Selected(Selector),
    /// A number of each part of a response.
    EventSelected(Selector),
}

/// Takes a member out of a mapping.
fn taken<T: DeserializeOwned>(
    members: &mut Map<String, Value>,
    key: &str,
) -> Option<Result<T, serde_json::Error>> {
    let value = members.remove(key).filter(|value| !value.is_null())?;
    Some(serde_json::from_value(value))
}

fn selector<T: DeserializeOwned>(members: Map<String, Value>) -> Result<T, serde_json::Error> {
    serde_json::from_value(Value::Object(members))
}

impl<'de> Deserialize<'de> for Attribute {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut members = match Value::deserialize(deserializer)? {
            Value::Bool(is_on) => return Ok(Self::Switch(is_on)),
            Value::Object(members) => members,
            // The form of version 1 for `static`.
            Value::String(text) => {
                let members = Map::from_iter([("static".to_owned(), Value::String(text))]);
                return Ok(Self::Selected {
                    selector: selector(members).map_err(D::Error::custom)?,
                    condition: None,
                });
            }
            other => {
                let message = format!("expected `true`, `false` or a selector, found {other}");
                return Err(D::Error::custom(message));
            }
        };
        let alias = taken(&mut members, "alias").transpose();
        let condition = taken(&mut members, "condition").transpose();
        match alias.map_err(D::Error::custom)? {
            Some(alias) if members.is_empty() => Ok(Self::Alias(alias)),
            Some(_) => Err(D::Error::custom(
                "`alias` renames a standard attribute, so it cannot have a selector: write one of both",
            )),
            None => Ok(Self::Selected {
                selector: selector(members).map_err(D::Error::custom)?,
                condition: condition.map_err(D::Error::custom)?,
            }),
        }
    }
}

impl<'de> Deserialize<'de> for Measured {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut members = match Value::deserialize(deserializer)? {
            Value::Object(members) => members,
            other => {
                return match other.as_str() {
                    Some("unit") => Ok(Self::Unit),
                    Some("duration") => Ok(Self::Duration),
                    Some("event_unit") => Ok(Self::EventUnit),
                    Some("event_duration") => Ok(Self::EventDuration),
                    _ => Err(D::Error::custom(format!(
                        "expected `unit`, `duration`, `event_unit`, `event_duration` or a selector, found {other}"
                    ))),
                };
            }
        };
        if let Some(event) = taken(&mut members, "event_custom") {
            let event = event.map_err(D::Error::custom)?;
            return if members.is_empty() {
                Ok(Self::EventSelected(event))
            } else {
                Err(D::Error::custom(
                    "`event_custom` contains the selector: move the other keys into it",
                ))
            };
        }
        selector(members)
            .map(Self::Selected)
            .map_err(D::Error::custom)
    }
}

/// The schema of a selector with more keys.
fn with_keys(generator: &mut SchemaGenerator, keys: &[(&str, Schema)]) -> Schema {
    let mut schema = SelectorFile::json_schema(generator);
    for (key, extra) in keys {
        if let Some(Value::Object(properties)) = schema.get_mut("properties") {
            properties.insert((*key).to_owned(), extra.clone().to_value());
        }
    }
    schema
}

impl JsonSchema for Attribute {
    fn schema_name() -> Cow<'static, str> {
        "Attribute".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut condition = generator.subschema_for::<Condition>();
        condition.insert(
            "description".to_owned(),
            "The condition for the attribute.".into(),
        );
        let alias = json_schema!({
            "type": "string",
            "description": "Another name for the standard attribute.",
        });
        let selected = with_keys(generator, &[("alias", alias), ("condition", condition)]);
        json_schema!({
            "anyOf": [
                {"type": "boolean", "description": "True if the standard attribute is present."},
                {"type": "string", "description": "A constant. It equals `static`."},
                selected,
            ],
            "description": "The value of an attribute: a standard value, or a selected value.",
        })
    }
}

impl JsonSchema for Measured {
    fn schema_name() -> Cow<'static, str> {
        "Measured".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut event = generator.subschema_for::<Selector>();
        event.insert(
            "description".to_owned(),
            "A number of each part of a response.".into(),
        );
        let selected = with_keys(generator, &[("event_custom", event)]);
        json_schema!({
            "anyOf": [
                {"type": "string", "enum": ["unit", "duration", "event_unit", "event_duration"]},
                selected,
            ],
            "description": "The value that an instrument records.",
        })
    }
}
