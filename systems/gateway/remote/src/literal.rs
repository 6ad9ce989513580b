//! The arguments of an action as JSON. Literals are rendered once, and variables are inserted for each
//! request.

use gateway_federation::{Checked, Variables};
use gateway_template::write_text;
use graphql_tools::parser::query::{Value, VariableDefinition};
use graphql_tools::parser::schema::Type;

use crate::merge::inner_name;

/// An argument, or a part of one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Argument {
    /// JSON without variables.
    Json(Vec<u8>),
    /// A variable by its position, with its default.
    Variable(usize, Option<Vec<u8>>),
    List(Vec<Argument>),
    Object(Vec<(String, Argument)>),
}

/// Converts arguments by their types in the schema.
pub(crate) struct Reader<'a> {
    pub(crate) checked: &'a Checked,
    pub(crate) declared: &'a [VariableDefinition<'static, String>],
}

impl Reader<'_> {
    pub(crate) fn read(
        &self,
        value: &Value<'static, String>,
        kind: Option<&Type<'static, String>>,
    ) -> Argument {
        match value {
            Value::Variable(name) => {
                let declared = self.declared.iter().find(|it| it.name == *name);
                let default = declared.and_then(|it| {
                    let value = it.default_value.as_ref()?;
                    Some(constant(value, Some(&it.var_type)))
                });
                match self.checked.variable(name) {
                    Some(index) => Argument::Variable(index, default),
                    // Validation refuses undeclared variables, so this case cannot occur and null is
                    // arbitrary.
                    None => Argument::Json(b"null".to_vec()),
                }
            }
            // Only a list with a variable is split. Every other value is rendered once.
            Value::List(items) if items.iter().any(has_variable) => {
                let items = items
                    .iter()
                    .map(|item| self.read(item, kind.and_then(item_of)));
                Argument::List(items.collect())
            }
            Value::Object(members) if members.iter().any(|(_, value)| has_variable(value)) => {
                let members = members
                    .iter()
                    // The type of the member is unknown here, so an `ID` within an object keeps its form.
                    .map(|(key, value)| (key.clone(), self.read(value, None)));
                Argument::Object(members.collect())
            }
            other => Argument::Json(constant(other, kind)),
        }
    }
}

impl Argument {
    /// Appends the argument. Returns false and appends no bytes if it is a variable without a value.
    pub(crate) fn write(&self, variables: &Variables, out: &mut Vec<u8>) -> bool {
        match self {
            Self::Json(json) => out.extend_from_slice(json),
            Self::Variable(index, default) => match (variables.json(*index), default) {
                (Some(json), _) => out.extend_from_slice(json),
                (None, Some(json)) => out.extend_from_slice(json),
                (None, None) => return false,
            },
            Self::List(items) => {
                out.push(b'[');
                for (position, item) in items.iter().enumerate() {
                    if position > 0 {
                        out.push(b',');
                    }
                    // A list has no gaps: an omitted variable becomes null in a list, but its member is left
                    // out of an object.
                    if !item.write(variables, out) {
                        out.extend_from_slice(b"null");
                    }
                }
                out.push(b']');
            }
            Self::Object(members) => write_members(members, variables, out),
        }
        true
    }
}

/// Appends an object with the members that have a value.
pub(crate) fn write_members(
    members: &[(String, Argument)],
    variables: &Variables,
    out: &mut Vec<u8>,
) {
    out.push(b'{');
    let mut is_first = true;
    for (key, value) in members {
        let before = out.len();
        if !is_first {
            out.push(b',');
        }
        write_text(key, out);
        out.push(b':');
        if value.write(variables, out) {
            is_first = false;
        } else {
            out.truncate(before);
        }
    }
    out.push(b'}');
}

fn has_variable(value: &Value<'static, String>) -> bool {
    match value {
        Value::Variable(_) => true,
        Value::List(items) => items.iter().any(has_variable),
        Value::Object(members) => members.iter().any(|(_, value)| has_variable(value)),
        _ => false,
    }
}

fn item_of<'a>(kind: &'a Type<'static, String>) -> Option<&'a Type<'static, String>> {
    match kind {
        Type::ListType(inner) => Some(inner),
        Type::NonNullType(inner) => item_of(inner),
        Type::NamedType(_) => None,
    }
}

/// A literal as JSON. For an expected `ID`, a whole number becomes a text. For an expected list, a single
/// value becomes a list of one.
fn constant(value: &Value<'static, String>, kind: Option<&Type<'static, String>>) -> Vec<u8> {
    let mut out = Vec::new();
    write_constant(value, kind, &mut out);
    out
}

fn write_constant(
    value: &Value<'static, String>,
    kind: Option<&Type<'static, String>>,
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
                write_constant(value, item, out);
            }
            out.push(b']');
        }
        // Input coercion (GraphQL specification, section 3.11): a single value counts as a list of one.
        single if item.is_some() => {
            out.push(b'[');
            write_constant(single, item, out);
            out.push(b']');
        }
        Value::Object(members) => {
            out.push(b'{');
            for (position, (key, value)) in members.iter().enumerate() {
                if position > 0 {
                    out.push(b',');
                }
                write_text(key, out);
                out.push(b':');
                write_constant(value, None, out);
            }
            out.push(b'}');
        }
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
