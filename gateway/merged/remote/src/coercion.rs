//! Coerces literals and the JSON of variables to their types: GraphQL specification, sections 3.5 to 3.12,
//! "Input Coercion".
//!
//! The handler of an action is often no GraphQL server and does not coerce. A value is checked before.

use std::borrow::Cow;

use gateway_federation::{Schema, inner_name};
use gateway_template::{Json, write_text};
use graphql_tools::parser::query::Value;
use graphql_tools::parser::schema::{InputValue, Type};

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
        (Type::ListType(item), _) => {
            // A single value counts as a list of one item.
            let items = match value {
                Json::List(items) => &items[..],
                single => std::slice::from_ref(single),
            };
            write_list(items, out, |value, out| {
                write_value(value, item, schema, out)
            });
        }
        (Type::NamedType(name), Json::Number(digits)) => match name.as_str() {
            "ID" => write_text(&whole(digits), out),
            "Int" => out.extend_from_slice(whole(digits).as_bytes()),
            _ => value.write(out),
        },
        (Type::NamedType(name), Json::Object(members)) => match schema.input_fields(name) {
            Some(fields) => write_input(members, fields, schema, out),
            None => value.write(out),
        },
        _ => value.write(out),
    }
}

fn write_input(
    members: &[(Cow<'_, str>, Json<'_>)],
    fields: &[InputValue<'static, String>],
    schema: &Schema,
    out: &mut Vec<u8>,
) {
    out.push(b'{');
    let start = out.len();
    for (key, value) in members {
        // The check before refuses a member that its type does not have.
        let Some(field) = fields.iter().find(|it| it.name == *key) else {
            continue;
        };
        write_key(key, start, out);
        write_value(value, &field.value_type, schema, out);
    }
    let is_given = |name: &str| members.iter().any(|(key, _)| key == name);
    for (field, default) in defaults_of(fields, is_given) {
        write_key(&field.name, start, out);
        write_constant(default, Some(&field.value_type), schema, out);
    }
    out.push(b'}');
}

/// Appends a list. `write` appends one item.
pub(crate) fn write_list<'a, T>(
    items: &'a [T],
    out: &mut Vec<u8>,
    write: impl Fn(&'a T, &mut Vec<u8>),
) {
    out.push(b'[');
    for (position, item) in items.iter().enumerate() {
        if position > 0 {
            out.push(b',');
        }
        write(item, out);
    }
    out.push(b']');
}

/// Appends the key of a member. `start` is the length of `out` before the first member.
pub(crate) fn write_key(key: &str, start: usize, out: &mut Vec<u8>) {
    if out.len() > start {
        out.push(b',');
    }
    write_text(key, out);
    out.push(b':');
}

/// The inputs with defaults that are not given.
pub(crate) fn defaults_of<'a>(
    known: &'a [InputValue<'static, String>],
    is_given: impl Fn(&str) -> bool,
) -> impl Iterator<Item = (&'a InputValue<'static, String>, &'a Value<'static, String>)> {
    let defaults = known
        .iter()
        .filter_map(|input| Some((input, input.default_value.as_ref()?)));
    defaults.filter(move |(input, _)| !is_given(&input.name))
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
            write_list(items, out, |value, out| {
                write_constant(value, item, schema, out)
            });
        }
        // Input coercion (GraphQL specification, section 3.11): a single value counts as a list of one.
        single if item.is_some() => {
            let items = std::slice::from_ref(single);
            write_list(items, out, |value, out| {
                write_constant(value, item, schema, out)
            });
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
    out.push(b'{');
    let start = out.len();
    for (key, value) in members {
        let field = fields.iter().find(|it| it.name == *key);
        write_key(key, start, out);
        write_constant(value, field.map(|it| &it.value_type), schema, out);
    }
    let is_given = |name: &str| members.iter().any(|(key, _)| key == name);
    for (field, default) in defaults_of(fields, is_given) {
        write_key(&field.name, start, out);
        write_constant(default, Some(&field.value_type), schema, out);
    }
    out.push(b'}');
}
