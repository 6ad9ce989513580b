//! Finds defaults of input fields that lead back to themselves, as in `input A { a: A = {} }`.
//!
//! Such a default has no end, so the specification forbids it (GraphQL, section 3.10, September 2025).

use std::collections::{HashMap, HashSet};

use graphql_tools::parser::schema::{
    Definition, Document, InputObjectType, InputValue, Type, TypeDefinition, Value,
};

use crate::graphql_text::inner_name;

/// The first field with a default that leads back to itself, as `type.field`.
pub(crate) fn circular(document: &Document<'_, String>) -> Option<String> {
    let inputs = document
        .definitions
        .iter()
        .filter_map(|definition| match definition {
            Definition::TypeDefinition(TypeDefinition::InputObject(input)) => {
                Some((input.name.as_str(), input))
            }
            _ => None,
        });
    let mut search = Search {
        inputs: inputs.collect(),
        checked: HashSet::new(),
        open: Vec::new(),
    };
    let mut inputs: Vec<_> = search.inputs.values().copied().collect();
    // Sorted, so that the message does not depend on the order of a table.
    inputs.sort_by(|a, b| a.name.cmp(&b.name));
    let mut fields = inputs
        .iter()
        .flat_map(|input| input.fields.iter().map(|field| (*input, field)));
    let (input, field) = fields.find(|(input, field)| search.field(input, field))?;
    Some(format!("{}.{}", input.name, field.name))
}

struct Search<'d, 'a> {
    inputs: HashMap<&'d str, &'d InputObjectType<'a, String>>,
    /// Fields with defaults that have an end, by type and name.
    checked: HashSet<(&'d str, &'d str)>,
    /// Fields with defaults that contain the current value.
    open: Vec<(&'d str, &'d str)>,
}

impl<'d, 'a> Search<'d, 'a> {
    fn field(
        &mut self,
        input: &'d InputObjectType<'a, String>,
        field: &'d InputValue<'a, String>,
    ) -> bool {
        let key = (input.name.as_str(), field.name.as_str());
        let Some(default) = field.default_value.as_ref() else {
            return false;
        };
        if self.open.contains(&key) {
            return true;
        }
        if self.checked.contains(&key) {
            return false;
        }
        self.open.push(key);
        let is_circular = self.value(default, &field.value_type);
        self.open.pop();
        self.checked.insert(key);
        is_circular
    }

    fn value(&mut self, value: &'d Value<'a, String>, kind: &'d Type<'a, String>) -> bool {
        match value {
            Value::List(items) => items.iter().any(|item| self.value(item, kind)),
            Value::Object(members) => {
                let Some(input) = self.inputs.get(inner_name(kind)).copied() else {
                    return false;
                };
                input.fields.iter().any(|field| {
                    let given = members.iter().find(|(key, _)| *key == field.name);
                    match given {
                        Some((_, value)) => self.value(value, &field.value_type),
                        None => self.field(input, field),
                    }
                })
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn circular_in(types: &str) -> Option<String> {
        let document = graphql_tools::parser::parse_schema::<String>(types).expect("types");
        circular(&document)
    }

    #[test]
    fn defaults_that_lead_back_to_themselves_are_found() {
        for (types, expected) in [
            ("input A { a: A = {} }", Some("A.a")),
            (
                "input A { b: B = {} } input B { l: [A!] = [{}] }",
                Some("A.b"),
            ),
            ("input A { b: B = {c: {}} } input B { c: A }", Some("A.b")),
            ("input A { a: A = {a: null} }", None),
            (
                "input A { a: A = null, b: B = {} } input B { a: A, n: Int = 1 }",
                None,
            ),
            (
                "input A { b: B = {}, c: B = {} } input B { n: [Int] = [1] }",
                None,
            ),
            ("scalar J input A { j: J = {a: {}} }", None),
        ] {
            assert_eq!(circular_in(types).as_deref(), expected, "{types}");
        }
    }
}
