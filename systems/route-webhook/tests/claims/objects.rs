//! Checks objects against types from Kubernetes' own API description.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Reads an object as a type of Kubernetes. Fails if the type lacks one of its members.
pub(crate) fn as_type<T: DeserializeOwned + Serialize>(object: &Value) -> Result<T, String> {
    let typed: T = serde_json::from_value(object.clone()).map_err(|error| error.to_string())?;
    let again = serde_json::to_value(&typed).map_err(|error| error.to_string())?;
    let (given, known) = (without_nothing(object), without_nothing(&again));
    if given == known {
        return Ok(typed);
    }
    Err(format!("of {given} only this is known: {known}"))
}

/// Removes empty members and null members. They have no meaning, and types leave them out.
fn without_nothing(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let members = members
                .iter()
                .map(|(name, value)| (name.clone(), without_nothing(value)));
            let is_something = |value: &Value| {
                !value.is_null()
                    && value != &Value::Object(Map::new())
                    && value != &Value::Array(Vec::new())
            };
            Value::Object(members.filter(|(_, value)| is_something(value)).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(without_nothing).collect()),
        // Types may convert between whole numbers and floats.
        Value::Number(number) => number.as_f64().map_or(Value::Null, Value::from),
        other => other.clone(),
    }
}
