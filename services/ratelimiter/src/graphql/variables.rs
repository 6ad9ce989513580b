//! Do the values of the variables fit their declared types?
//!
//! By the GraphQL specification (6.1.2, coercing variable values), a missing or unfitting value is an error
//! of the whole request. The service then executes no field. The library detects some of them only when a
//! field reads the value, and then responds with data.

use async_graphql::parser::types::{BaseType, OperationDefinition, Type, VariableDefinition};
use async_graphql::{ServerError, Value, Variables};

use super::Code;

/// The values of the enum.
pub(super) const EVENT_NAMES: [&str; 2] = ["LOGIN_FAILED", "LOGIN_SUCCEEDED"];

/// One error for each variable with a missing or unfitting value.
pub(super) fn check(operation: &OperationDefinition, values: &Variables) -> Vec<ServerError> {
    let mistakes = operation.variable_definitions.iter().map(|definition| {
        let mistake = mistake(&definition.node, values)?;
        Some(Code::Internal.error(mistake, Some(definition.pos)))
    });
    mistakes.flatten().collect()
}

fn mistake(definition: &VariableDefinition, values: &Variables) -> Option<String> {
    let declared = &definition.var_type.node;
    let name = &definition.name.node;
    match values.get(name) {
        None if declared.nullable || definition.default_value.is_some() => None,
        None => Some(format!(
            "Variable \"${name}\" of required type \"{declared}\" was not provided."
        )),
        Some(value) => {
            let unfit = unfit(declared, value)?;
            Some(format!(
                "Variable \"${name}\" got invalid value {value}; {unfit}"
            ))
        }
    }
}

/// The reason why the value is not of the type. `None` if it is.
fn unfit(declared: &Type, value: &Value) -> Option<String> {
    match (&declared.base, value) {
        (_, Value::Null) if declared.nullable => None,
        (_, Value::Null) => Some(format!(
            "Expected non-nullable type {declared} not to be null."
        )),
        (BaseType::List(entry), Value::List(values)) => {
            values.iter().find_map(|value| unfit(entry, value))
        }
        // A single value counts as a list of one.
        (BaseType::List(entry), single) => unfit(entry, single),
        (BaseType::Named(name), Value::Object(fields)) if name == "RatelimitInput" => {
            // All three are required texts or enums, so a list of names describes the whole type.
            const FIELDS: [&str; 3] = ["eventName", "ip", "email"];
            let unknown = fields
                .keys()
                .find(|field| !FIELDS.contains(&field.as_str()));
            if let Some(field) = unknown {
                let text = format!("Field \"{field}\" is not defined by type RatelimitInput.");
                return Some(text);
            }
            FIELDS
                .iter()
                .find_map(|field| unfit_field(field, fields.get(*field)))
        }
        (BaseType::Named(name), value) => {
            (!is_of(name, value)).then(|| format!("Expected type {name}."))
        }
    }
}

fn unfit_field(field: &str, value: Option<&Value>) -> Option<String> {
    let of = if field == "eventName" {
        "EventName"
    } else {
        "String"
    };
    match value {
        None => Some(format!(
            "Field {field} of required type {of}! was not provided."
        )),
        Some(Value::Null) => Some(format!(
            "Expected non-nullable type {of}! not to be null at value.{field}."
        )),
        Some(value) if is_of(of, value) => None,
        Some(_) => Some(format!("Expected type {of} at value.{field}.")),
    }
}

fn is_of(name: &str, value: &Value) -> bool {
    let is_int = || match value {
        Value::Number(number) => number.as_i64().is_some_and(|n| i32::try_from(n).is_ok()),
        _ => false,
    };
    match name {
        "EventName" => match value {
            Value::String(text) => EVENT_NAMES.contains(&text.as_str()),
            Value::Enum(name) => EVENT_NAMES.contains(&name.as_str()),
            _ => false,
        },
        "RatelimitInput" => false,
        "Int" => is_int(),
        "Float" => matches!(value, Value::Number(_)),
        "String" => matches!(value, Value::String(_)),
        "Boolean" => matches!(value, Value::Boolean(_)),
        "ID" => is_int() || matches!(value, Value::String(_)),
        // The schema has no other input types, and the validator has checked that.
        _ => true,
    }
}
