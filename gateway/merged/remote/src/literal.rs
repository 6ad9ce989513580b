//! The arguments of an action as JSON, coerced to their types. Literals are rendered once, and variables are
//! inserted for each request.

use gateway_federation::{Checked, Schema, Variables, inner_name};
use graphql_tools::parser::query::{Value, VariableDefinition};
use graphql_tools::parser::schema::{InputValue, Type};

use crate::coercion::{defaults_of, item_of, write_constant, write_json, write_key, write_list};

/// An argument, or a part of one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Argument {
    /// JSON without variables.
    Json(Vec<u8>),
    Variable(Variable),
    List(Vec<Argument>),
    Object(Vec<(String, Argument)>),
}

/// A variable in an argument.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Variable {
    /// Position among the variables of the operation.
    index: usize,
    kind: Type<'static, String>,
    /// The value if the client sends none: the default of the variable, or else of its place.
    default: Option<Vec<u8>>,
}

/// Converts arguments by their types in the schema.
pub(crate) struct Reader<'a> {
    pub(crate) schema: &'a Schema,
    pub(crate) checked: &'a Checked,
    pub(crate) declared: &'a [VariableDefinition<'static, String>],
}

impl Reader<'_> {
    /// The arguments of a field: the client's arguments, then the defaults of the others.
    pub(crate) fn arguments(
        &self,
        given: &[(String, Value<'static, String>)],
        known: &[InputValue<'static, String>],
    ) -> Vec<(String, Argument)> {
        let mut arguments = Vec::with_capacity(known.len());
        for (name, value) in given {
            let of = known.iter().find(|it| it.name == *name);
            arguments.push((name.clone(), self.member(value, of)));
        }
        let is_given = |name: &str| given.iter().any(|(known, _)| known == name);
        for (of, default) in defaults_of(known, is_given) {
            let default = self.constant(default, Some(&of.value_type));
            arguments.push((of.name.clone(), Argument::Json(default)));
        }
        arguments
    }

    /// An argument or a member of an input object.
    fn member(
        &self,
        value: &Value<'static, String>,
        of: Option<&InputValue<'static, String>>,
    ) -> Argument {
        let mut read = self.read(value, of.map(|it| &it.value_type));
        if let (Argument::Variable(variable), Some(of)) = (&mut read, of)
            && variable.default.is_none()
            && let Some(default) = &of.default_value
        {
            variable.default = Some(self.constant(default, Some(&of.value_type)));
        }
        read
    }

    fn read(
        &self,
        value: &Value<'static, String>,
        kind: Option<&Type<'static, String>>,
    ) -> Argument {
        let item = kind.and_then(item_of);
        match value {
            Value::Variable(name) => self.variable(name),
            constant if !has_variable(constant) => Argument::Json(self.constant(constant, kind)),
            Value::List(items) => {
                Argument::List(items.iter().map(|value| self.read(value, item)).collect())
            }
            // A single value counts as a list of one item.
            single if item.is_some() => Argument::List(vec![self.read(single, item)]),
            Value::Object(members) => {
                let fields = kind.and_then(|kind| self.schema.input_fields(inner_name(kind)));
                Argument::Object(self.arguments(members, fields.unwrap_or_default()))
            }
            other => Argument::Json(self.constant(other, kind)),
        }
    }

    fn variable(&self, name: &str) -> Argument {
        let declared = self.declared.iter().find(|it| it.name == name);
        match (self.checked.variable(name), declared) {
            (Some(index), Some(declared)) => {
                let default = declared.default_value.as_ref();
                Argument::Variable(Variable {
                    index,
                    kind: declared.var_type.clone(),
                    default: default.map(|value| self.constant(value, Some(&declared.var_type))),
                })
            }
            // Validation refuses undeclared variables, so this case cannot occur and null is arbitrary.
            _ => Argument::Json(b"null".to_vec()),
        }
    }

    fn constant(
        &self,
        value: &Value<'static, String>,
        kind: Option<&Type<'static, String>>,
    ) -> Vec<u8> {
        let mut out = Vec::new();
        write_constant(value, kind, self.schema, &mut out);
        out
    }
}

/// Writes arguments with the variables of one request.
pub(crate) struct Writer<'a> {
    pub(crate) variables: &'a Variables,
    pub(crate) schema: &'a Schema,
}

impl Writer<'_> {
    /// Appends an argument. Returns false and appends no bytes if it is a variable without a value.
    fn write(&self, argument: &Argument, out: &mut Vec<u8>) -> bool {
        match argument {
            Argument::Json(json) => out.extend_from_slice(json),
            Argument::Variable(variable) => {
                match (self.variables.json(variable.index), &variable.default) {
                    (Some(json), _) => write_json(json, &variable.kind, self.schema, out),
                    (None, Some(json)) => out.extend_from_slice(json),
                    (None, None) => return false,
                }
            }
            Argument::List(items) => write_list(items, out, |item, out| {
                // A list has no gaps: an omitted variable becomes null in a list, but its member is left out of
                // an object.
                if !self.write(item, out) {
                    out.extend_from_slice(b"null");
                }
            }),
            Argument::Object(members) => self.members(members, out),
        }
        true
    }

    /// Appends an object with the members that have a value.
    pub(crate) fn members(&self, members: &[(String, Argument)], out: &mut Vec<u8>) {
        out.push(b'{');
        let start = out.len();
        for (key, value) in members {
            let before = out.len();
            write_key(key, start, out);
            if !self.write(value, out) {
                out.truncate(before);
            }
        }
        out.push(b'}');
    }
}

fn has_variable(value: &Value<'static, String>) -> bool {
    match value {
        Value::Variable(_) => true,
        Value::List(items) => items.iter().any(has_variable),
        Value::Object(members) => members.iter().any(|(_, value)| has_variable(value)),
        _ => false,
    }
}
