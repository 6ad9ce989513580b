//! Errors in the form of the contract: `{"message", "extensions": {"path", "code"}}`.

use gateway_federation::{GraphqlError, Refusal, SUBSCRIPTION_DISABLED};
use graphql_tools::parser::parse_query;
use graphql_tools::parser::query::{Definition, OperationDefinition, Selection, SelectionSet};

/// An error with its path, `$.selectionSet.product`, and its code.
pub(crate) fn error(message: impl Into<String>, path: &str, code: &str) -> GraphqlError {
    GraphqlError::new(message, code).with("path", path)
}

/// Path of a root field.
pub(crate) fn root_path(field: &str) -> String {
    format!("$.selectionSet.{field}")
}

/// The refusal of an operation in the form of the contract.
pub(crate) fn refused(refusal: Refusal, query: &str) -> Refusal {
    let errors = refusal.errors.iter().map(|refused| {
        let code = match refused.code() {
            Some("PARSING_ERROR" | "GRAPHQL_VALIDATION_FAILED") => "validation-failed".to_owned(),
            Some("GRAPHQL_UNKNOWN_OPERATION_NAME" | SUBSCRIPTION_DISABLED) => {
                "validation-failed".to_owned()
            }
            Some("INTROSPECTION_DISABLED") => "access-denied".to_owned(),
            Some("QUERY_PLANNING_FAILED") => "unexpected".to_owned(),
            Some(other) => other.to_owned(),
            None => "unexpected".to_owned(),
        };
        let place = refused.locations.first();
        // Parsed again for its positions, because refusals are rare, and prepared operations need not store
        // positions.
        let path = place.and_then(|place| path_at(query, place.line, place.column));
        error(
            refused.message.as_str(),
            path.as_deref().unwrap_or("$"),
            &code,
        )
    });
    let errors = errors.collect();
    refusal.with_errors(errors)
}

/// The errors of invalid variables in the form of the contract.
pub(crate) fn wrong_variables(errors: Vec<GraphqlError>) -> Vec<GraphqlError> {
    let errors = errors.into_iter().map(|wrong| {
        let name = wrong.extensions.get("name").and_then(|it| it.as_str());
        let path = name.map_or_else(
            || "$.variables".to_owned(),
            |it| format!("$.variables.{it}"),
        );
        let message = match wrong.extensions.get("details").and_then(|it| it.as_str()) {
            Some(details) => details.to_owned(),
            None => wrong.message.clone(),
        };
        error(message, &path, "validation-failed")
    });
    errors.collect()
}

/// The path to the field at a position of the document.
fn path_at(query: &str, line: usize, column: usize) -> Option<String> {
    let document = parse_query::<String>(query).ok()?;
    document.definitions.iter().find_map(|definition| {
        let (start, set) = match definition {
            Definition::Fragment(it) => (format!("${}", it.name), &it.selection_set),
            Definition::Operation(OperationDefinition::SelectionSet(set)) => ("$".to_owned(), set),
            Definition::Operation(OperationDefinition::Query(it)) => {
                ("$".to_owned(), &it.selection_set)
            }
            Definition::Operation(OperationDefinition::Mutation(it)) => {
                ("$".to_owned(), &it.selection_set)
            }
            Definition::Operation(OperationDefinition::Subscription(it)) => {
                ("$".to_owned(), &it.selection_set)
            }
        };
        path_in(set, &start, (line, column))
    })
}

fn path_in(set: &SelectionSet<'_, String>, so_far: &str, place: (usize, usize)) -> Option<String> {
    set.items.iter().find_map(|selection| match selection {
        Selection::Field(field) => {
            let path = format!("{so_far}.selectionSet.{}", field.name);
            if (field.position.line, field.position.column) == place {
                return Some(path);
            }
            // The response key would be the alias, but the contract's paths use field names.
            path_in(&field.selection_set, &path, place)
        }
        Selection::InlineFragment(it) => path_in(&it.selection_set, so_far, place),
        Selection::FragmentSpread(_) => None,
    })
}
