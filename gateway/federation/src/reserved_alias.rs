//! Finds a field with the alias `__typename` that is another field.
//!
//! The gateway asks subgraphs for the type of each object under this name. A subgraph would get two fields with
//! one name, and the gateway would take the other value for a type.

use graphql_tools::parser::Pos;
use graphql_tools::parser::query::{Definition, OperationDefinition, Selection, SelectionSet};

use crate::error::GraphqlError;
use crate::limits::QueryDocument;

const TYPENAME: &str = "__typename";

/// Returns the error for the first such field of a document.
pub(crate) fn error(document: &QueryDocument) -> Option<GraphqlError> {
    let mut sets = document.definitions.iter().map(|it| match it {
        Definition::Fragment(fragment) => &fragment.selection_set,
        Definition::Operation(operation) => match operation {
            OperationDefinition::SelectionSet(set) => set,
            OperationDefinition::Query(query) => &query.selection_set,
            OperationDefinition::Mutation(mutation) => &mutation.selection_set,
            OperationDefinition::Subscription(subscription) => &subscription.selection_set,
        },
    });
    let (name, place) = sets.find_map(field)?;
    let message = format!(
        "the alias `{TYPENAME}` of the field `{name}` is reserved for the type of an object. Write another alias"
    );
    let error = GraphqlError::new(message, "GRAPHQL_VALIDATION_FAILED");
    Some(error.at(place.line, place.column))
}

fn field<'a>(set: &'a SelectionSet<'static, String>) -> Option<(&'a str, Pos)> {
    set.items.iter().find_map(|selection| match selection {
        Selection::Field(it) => {
            let is_reserved = it.alias.as_deref() == Some(TYPENAME) && it.name != TYPENAME;
            if is_reserved {
                return Some((it.name.as_str(), it.position));
            }
            field(&it.selection_set)
        }
        Selection::InlineFragment(it) => field(&it.selection_set),
        Selection::FragmentSpread(_) => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(query: &str) -> Option<String> {
        let document = graphql_tools::parser::parse_query::<String>(query).unwrap();
        error(&document.into_static()).map(|error| error.message)
    }

    #[test]
    fn another_field_cannot_have_the_name_of_the_type() {
        for query in [
            "{ a { __typename: b } }",
            "mutation { a { ... on T { __typename: b } } }",
            "{ ...F } fragment F on Query { a { __typename: b } }",
        ] {
            let message = message(query).unwrap();
            assert!(
                message.contains("of the field `b` is reserved"),
                "{message}"
            );
        }
        for query in [
            "{ __typename a { __typename } }",
            "{ __typename: __typename }",
            "{ kind: __typename }",
        ] {
            assert_eq!(message(query), None, "{query}");
        }
    }
}
