//! The text of a key, `@requires` or `@provides`: a selection without its outer braces.

use async_graphql::parser::parse_query;
use async_graphql::parser::types::{Selection, SelectionSet};
use serde_json::{Map, Value};

/// Fields with their nested selections. The types of fragments do not matter here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FieldSet(pub(crate) Vec<(String, FieldSet)>);

/// Reads a text such as `id organization { id }`. `None` if the text is not a selection.
pub(crate) fn parse(text: &str) -> Option<FieldSet> {
    // A field set is a selection without braces, so GraphQL's own parser can read it.
    let document = parse_query(format!("{{ {text} }}")).ok()?;
    let operation = document.operations.iter().next()?;
    Some(read(&operation.1.node.selection_set.node))
}

fn read(set: &SelectionSet) -> FieldSet {
    let mut fields = Vec::new();
    for selection in &set.items {
        match &selection.node {
            Selection::Field(field) => {
                let below = read(&field.node.selection_set.node);
                fields.push((field.node.name.node.to_string(), below));
            }
            Selection::InlineFragment(fragment) => {
                fields.extend(read(&fragment.node.selection_set.node).0);
            }
            // A field set cannot define a fragment.
            Selection::FragmentSpread(_) => {}
        }
    }
    FieldSet(fields)
}

impl FieldSet {
    /// True if an object has all fields, down to the leaves.
    pub(crate) fn is_in(&self, object: &Map<String, Value>) -> bool {
        self.0
            .iter()
            .all(|(name, below)| object.get(name).is_some_and(|value| below.is_below(value)))
    }

    fn is_below(&self, value: &Value) -> bool {
        match value {
            Value::Object(object) => self.is_in(object),
            Value::Array(values) => values.iter().all(|value| self.is_below(value)),
            // A null ends a key. No field below it can be missing.
            _ => self.0.is_empty() || value.is_null(),
        }
    }

    /// True if a field of this name is selected at the top level.
    pub(crate) fn names(&self, name: &str) -> bool {
        self.0.iter().any(|(known, _)| known == name)
    }

    /// True if a field of this name is selected at any depth.
    pub(crate) fn mentions(&self, name: &str) -> bool {
        self.0
            .iter()
            .any(|(known, below)| known == name || below.mentions(name))
    }
}
