//! Estimates the number of objects of a field. Many objects make the response to a small operation large.

use async_graphql::Variables;
use async_graphql::parser::types::{ExecutableDocument, Field};
use async_graphql_value::{ConstValue, Name, Value};

use crate::universe::PLACES;

/// Maximum number of objects of a field in either subgraph. Introspection fields use about the average of
/// these schemas.
pub(super) fn most(field: &Field, document: &ExecutableDocument, variables: &Variables) -> u64 {
    let most = match field.name.node.as_str() {
        "locations" => PLACES.len(),
        "reviewsForLocation" => reviews_of_one_place(),
        "_entities" => representations(field, document, variables),
        "types" => 24,
        "directives" => 8,
        "fields" => 6,
        "enumValues" => 4,
        // Including lists that are empty in most types.
        _ => 1,
    };
    u64::try_from(most).unwrap_or(u64::MAX)
}

fn reviews_of_one_place() -> usize {
    let lengths = PLACES.iter().map(|place| place.reviews.len());
    lengths.max().unwrap_or_default()
}

/// Number of requested entities.
fn representations(field: &Field, document: &ExecutableDocument, variables: &Variables) -> usize {
    match field.get_argument("representations").map(|it| &it.node) {
        Some(Value::List(items)) => items.len(),
        Some(Value::Variable(name)) => match variables.get(name) {
            Some(value) => length(value),
            None => length_by_default(name, document),
        },
        // A single value counts as a list of one.
        _ => 1,
    }
}

fn length(value: &ConstValue) -> usize {
    match value {
        ConstValue::List(items) => items.len(),
        _ => 1,
    }
}

/// The longest default of a variable in any operation.
fn length_by_default(name: &Name, document: &ExecutableDocument) -> usize {
    let operations = document.operations.iter().map(|(_, operation)| operation);
    let definitions = operations.flat_map(|operation| &operation.node.variable_definitions);
    let lengths = definitions
        .filter(|definition| definition.node.name.node == *name)
        .filter_map(|definition| definition.node.default_value.as_ref())
        .map(|value| length(&value.node));
    lengths.max().unwrap_or(1)
}
