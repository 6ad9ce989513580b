//! Finds mistakes in a document that the library reports in other words: wrong literals of the enum. Also
//! finds introspection if it is switched off.

use async_graphql::ServerError;
use async_graphql::parser::types::{ExecutableDocument, Field, Selection, SelectionSet};
use async_graphql_value::Value;

use super::Code;
use super::variables::EVENT_NAMES;

/// The mistakes in all operations and fragments.
pub(super) fn check(document: &ExecutableDocument, has_introspection: bool) -> Vec<ServerError> {
    let mut search = Search {
        has_introspection,
        mistakes: Vec::new(),
    };
    for (_, operation) in document.operations.iter() {
        search.selections(&operation.node.selection_set.node);
    }
    for fragment in document.fragments.values() {
        search.selections(&fragment.node.selection_set.node);
    }
    search.mistakes
}

struct Search {
    has_introspection: bool,
    mistakes: Vec<ServerError>,
}

impl Search {
    fn selections(&mut self, set: &SelectionSet) {
        for selection in &set.items {
            match &selection.node {
                Selection::Field(field) => {
                    self.field(&field.node);
                    self.selections(&field.node.selection_set.node);
                }
                Selection::InlineFragment(inline) => {
                    self.selections(&inline.node.selection_set.node);
                }
                // Fragments are checked at their definition.
                Selection::FragmentSpread(_) => {}
            }
        }
    }

    fn field(&mut self, field: &Field) {
        let name = field.name.node.as_str();
        if matches!(name, "__schema" | "__type") && !self.has_introspection {
            let message = "GraphQL introspection is not allowed, but the query contained \
                           __schema or __type. Set NODE_ENV to something else than production \
                           to allow it";
            self.mistakes
                .push(Code::Validation.error(message, Some(field.name.pos)));
        }
        for (argument, value) in &field.arguments {
            // A variable instead of the object is checked with the variables.
            let Value::Object(object) = &value.node else {
                continue;
            };
            if name != "ratelimit" || argument.node != "ratelimitInput" {
                continue;
            }
            let literal = match object.get("eventName") {
                Some(Value::Enum(name)) if EVENT_NAMES.contains(&name.as_str()) => continue,
                None | Some(Value::Variable(_)) => continue,
                Some(literal) => literal,
            };
            let message = format!(
                "Expected type EventName!, found {literal}. Did you mean the enum value {}?",
                EVENT_NAMES.join(" or ")
            );
            self.mistakes
                .push(Code::Validation.error(message, Some(value.pos)));
        }
    }
}
