//! Coerces literals and the JSON of variables to their types: GraphQL specification, sections 3.5 to 3.12,
//! "Input Coercion".
//!
//! The handler of an action is often no GraphQL server and does not coerce. A value is checked before.

use std::borrow::Cow;

use gateway_federation::Schema;
use gateway_template::{Json, write_text};
use graphql_tools::parser::query::Value;
use graphql_tools::parser::schema::Type;

use crate::merge::inner_name;

/// Largest whole number that is exact as a float: 2^53.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// Appends the JSON of a client as a value of its type. A value of a custom scalar stays as it is.
pub(crate) fn write_json(
    json: &[u8],
    kind: &Type<'static, String>,
    schema: &Schema,
    out: &mut Vec<u8>,
) {
    if is_unchanged(kind, schema) {
        out.extend_from_slice(json);
        return;
    }
    match Json::parse(json) {
        Ok(value) => write_value(&value, kind, schema, out),
        // Beyond the nesting that this reader accepts. Only a custom scalar can be so deep.
        Err(_) => out.extend_from_slice(json),
    }
}

/// True if coercion changes no value of the type.
fn is_unchanged(kind: &Type<'static, String>, schema: &Schema) -> bool {
    match kind {
        Type::NonNullType(inner) => is_unchanged(inner, schema),
        Type::ListType(_) => false,
        Type::NamedType(name) => {
            !matches!(name.as_str(), "ID" | "Int") && schema.input_fields(name).is_none()
        }
    }
}

fn write_value(value: &Json<'_>, kind: &Type<'static, String>, schema: &Schema, out: &mut Vec<u8>) {
    match (kind, value) {
        (Type::NonNullType(inner), _) => write_value(value, inner, schema, out),
        (_, Json::Null) => out.extend_from_slice(b"null"),
        (Type::ListType(item), Json::List(items)) => {
            out.push(b'[');
            for (position, value) in items.iter().enumerate() {
                if position > 0 {
                    out.push(b',');
                }
                write_value(value, item, schema, out);
            }
            out.push(b']');
        }
        // A single value counts as a list of one item.
        (Type::ListType(item), _) => {
            out.push(b'[');
            write_value(value, item, schema, out);
            out.push(b']');
        }
        (Type::NamedType(name), Json::Number(digits)) => match name.as_str() {
            "ID" => write_text(&whole(digits), out),
            "Int" => out.extend_from_slice(whole(digits).as_bytes()),
            _ => value.write(out),
        },
        (Type::NamedType(name), Json::Object(members)) => match schema.input_fields(name) {
            Some(fields) => {
                out.push(b'{');
                let mut separator: &[u8] = b"";
                for (key, value) in members {
                    // The check before refuses a member that its type does not have.
                    let Some(field) = fields.iter().find(|it| it.name == *key) else {
                        continue;
                    };
                    out.extend_from_slice(separator);
                    separator = b",";
                    write_text(key, out);
                    out.push(b':');
                    write_value(value, &field.value_type, schema, out);
                }
                for field in fields {
                    let Some(default) = &field.default_value else {
                        continue;
                    };
                    if members.iter().any(|(key, _)| *key == field.name) {
                        continue;
                    }
                    out.extend_from_slice(separator);
                    separator = b",";
                    write_text(&field.name, out);
                    out.push(b':');
                    write_constant(default, Some(&field.value_type), schema, out);
                }
                out.push(b'}');
            }
            None => value.write(out),
        },
        _ => value.write(out),
    }
}

/// A whole number without a fraction or an exponent: `1.0` and `1e0` are `1`.
fn whole(digits: &str) -> Cow<'_, str> {
    let is_plain = digits
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'-');
    match digits.parse::<f64>() {
        Ok(number) if !is_plain && number.abs() <= EXACT_MAX => Cow::Owned(format!("{number:.0}")),
        _ => Cow::Borrowed(digits),
    }
}

/// The type of a list's items. `None` if the type is no list.
pub(crate) fn item_of<'a>(kind: &'a Type<'static, String>) -> Option<&'a Type<'static, String>> {
    match kind {
        Type::ListType(inner) => Some(inner),
        Type::NonNullType(inner) => item_of(inner),
        Type::NamedType(_) => None,
    }
}

/// Appends a literal as JSON. For an expected `ID`, a whole number becomes a text. For an expected list, a
/// single value becomes a list of one. Absent members of an input object get their defaults.
pub(crate) fn write_constant(
    value: &Value<'static, String>,
    kind: Option<&Type<'static, String>>,
    schema: &Schema,
    out: &mut Vec<u8>,
) {
    let item = kind.and_then(item_of);
    match value {
        Value::Null | Value::Variable(_) => out.extend_from_slice(b"null"),
        Value::List(items) => {
            out.push(b'[');
            for (position, value) in items.iter().enumerate() {
                if position > 0 {
                    out.push(b',');
                }
                write_constant(value, item, schema, out);
            }
            out.push(b']');
        }
        // Input coercion (GraphQL specification, section 3.11): a single value counts as a list of one.
        single if item.is_some() => {
            out.push(b'[');
            write_constant(single, item, schema, out);
            out.push(b']');
        }
        Value::Object(members) => write_object(members, kind, schema, out),
        Value::String(text) | Value::Enum(text) => write_text(text, out),
        Value::Boolean(flag) => out.extend_from_slice(flag.to_string().as_bytes()),
        Value::Float(number) => out.extend_from_slice(format!("{number:?}").as_bytes()),
        Value::Int(number) => {
            let text = number
                .as_i64()
                .expect("the parser reads integers as 64-bit")
                .to_string();
            if kind.is_some_and(|kind| inner_name(kind) == "ID") {
                write_text(&text, out);
            } else {
                out.extend_from_slice(text.as_bytes());
            }
        }
    }
}

fn write_object(
    members: &[(String, Value<'static, String>)],
    kind: Option<&Type<'static, String>>,
    schema: &Schema,
    out: &mut Vec<u8>,
) {
    let fields = kind
        .and_then(|kind| schema.input_fields(inner_name(kind)))
        .unwrap_or_default();
    let given = members.iter().map(|(key, value)| {
        let field = fields.iter().find(|it| it.name == *key);
        (key, value, field.map(|it| &it.value_type))
    });
    let defaults = fields.iter().filter_map(|field| {
        let default = field.default_value.as_ref()?;
        let is_absent = members.iter().all(|(key, _)| *key != field.name);
        is_absent.then_some((&field.name, default, Some(&field.value_type)))
    });
    out.push(b'{');
    for (position, (key, value, kind)) in given.chain(defaults).enumerate() {
        if position > 0 {
            out.push(b',');
        }
        write_text(key, out);
        out.push(b':');
        write_constant(value, kind, schema, out);
    }
    out.push(b'}');
}
