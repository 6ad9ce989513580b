//! Input values: literals, variables and defaults, with checks of their types.

use std::collections::BTreeMap;

use async_graphql::parser::types::{BaseType, OperationDefinition, Type};
use async_graphql_value::Value as Literal;
use serde_json::{Map, Value};

use crate::schema::{Input, Kind, Schema};

/// The variables of a request after coercion, without absent variables.
pub(crate) type Variables = BTreeMap<String, Value>;

/// Checks and coerces variables by their definitions.
pub(crate) fn variables(
    schema: &Schema,
    operation: &OperationDefinition,
    given: &Map<String, Value>,
) -> Result<Variables, String> {
    let mut variables = Variables::new();
    for definition in &operation.variable_definitions {
        let name = definition.node.name.node.to_string();
        let ty = &definition.node.var_type.node;
        let default = definition.node.default_value.as_ref();
        let default = default.map(|default| default.node.clone().into_json());
        let default = default.transpose().map_err(|error| error.to_string())?;
        if let Some(value) = given.get(&name).or(default.as_ref()) {
            let value =
                coerce(schema, ty, value).map_err(|why| format!("variable `${name}`: {why}"))?;
            variables.insert(name, value);
        } else if !ty.nullable {
            return Err(format!("variable `${name}` is required"));
        }
    }
    // The specification ignores such a variable. This check is stricter, because a gateway that sends it has
    // made a mistake.
    if let Some(unknown) = given.keys().find(|name| {
        !operation
            .variable_definitions
            .iter()
            .any(|known| known.node.name.node == name.as_str())
    }) {
        return Err(format!("variable `${unknown}` is sent and not defined"));
    }
    Ok(variables)
}

/// The arguments of a field, including defaults.
pub(crate) fn arguments<'a>(
    schema: &Schema,
    known: &[Input],
    given: impl Iterator<Item = (&'a str, &'a Literal)>,
    variables: &Variables,
) -> Result<Map<String, Value>, String> {
    let given: BTreeMap<&str, Value> = given
        .filter_map(|(name, value)| Some((name, literal(value, variables)?)))
        .collect();
    let mut arguments = Map::new();
    for input in known {
        fill(
            schema,
            input,
            given.get(input.name.as_str()),
            &mut arguments,
        )?;
    }
    Ok(arguments)
}

fn fill(
    schema: &Schema,
    input: &Input,
    given: Option<&Value>,
    into: &mut Map<String, Value>,
) -> Result<(), String> {
    if let Some(value) = given.or(input.default.as_ref()) {
        let value =
            coerce(schema, &input.ty, value).map_err(|why| format!("`{}`: {why}", input.name))?;
        into.insert(input.name.clone(), value);
    } else if !input.ty.nullable {
        return Err(format!("`{}` is required", input.name));
    }
    Ok(())
}

/// A literal as JSON. `None` for an absent variable.
pub(crate) fn literal(value: &Literal, variables: &Variables) -> Option<Value> {
    match value {
        Literal::Variable(name) => variables.get(name.as_str()).cloned(),
        Literal::List(values) => Some(
            values
                .iter()
                // An absent variable is null in a list and absent in an object (GraphQL
                // specification, section 3.10).
                .map(|value| literal(value, variables).unwrap_or_default())
                .collect(),
        ),
        Literal::Object(members) => {
            let members = members
                .iter()
                .filter_map(|(name, value)| Some((name.to_string(), literal(value, variables)?)));
            Some(Value::Object(members.collect()))
        }
        value => Some(value.clone().into_json().expect("no variable is left")),
    }
}

fn coerce(schema: &Schema, ty: &Type, value: &Value) -> Result<Value, String> {
    if value.is_null() {
        return if ty.nullable {
            Ok(Value::Null)
        } else {
            Err(format!("`{ty}` is not null"))
        };
    }
    match &ty.base {
        BaseType::List(inner) => match value {
            Value::Array(values) => values
                .iter()
                .map(|value| coerce(schema, inner, value))
                .collect(),
            // A single value counts as a list with one item (GraphQL specification, section 3.12).
            value => Ok(Value::Array(vec![coerce(schema, inner, value)?])),
        },
        BaseType::Named(name) => coerce_named(schema, name, value),
    }
}

fn coerce_named(schema: &Schema, name: &str, value: &Value) -> Result<Value, String> {
    let definition = schema
        .types
        .get(name)
        .ok_or_else(|| format!("there is no type `{name}`"))?;
    let is_fit = match (definition.kind, name) {
        (Kind::Scalar, "Int") => value
            .as_i64()
            .is_some_and(|number| i32::try_from(number).is_ok()),
        (Kind::Scalar, "Float") => value.is_number(),
        (Kind::Scalar, "Boolean") => value.is_boolean(),
        (Kind::Scalar, "String") => value.is_string(),
        (Kind::Scalar, "ID") => value.is_string() || value.is_i64(),
        (Kind::Scalar, _) => true,
        (Kind::Enum, _) => value
            .as_str()
            .is_some_and(|text| definition.values.iter().any(|known| known == text)),
        (Kind::Input, _) => return coerce_object(schema, name, &definition.inputs, value),
        (Kind::Object | Kind::Interface | Kind::Union, _) => false,
    };
    if is_fit {
        Ok(value.clone())
    } else {
        Err(format!("{value} is no `{name}`"))
    }
}

fn coerce_object(
    schema: &Schema,
    name: &str,
    known: &[Input],
    value: &Value,
) -> Result<Value, String> {
    let given = value
        .as_object()
        .ok_or_else(|| format!("{value} is no `{name}`"))?;
    if let Some(unknown) = given
        .keys()
        .find(|key| !known.iter().any(|input| input.name == **key))
    {
        return Err(format!("`{name}` has no `{unknown}`"));
    }
    let mut object = Map::new();
    for input in known {
        fill(schema, input, given.get(&input.name), &mut object)?;
    }
    Ok(Value::Object(object))
}
