//! Limits the size of responses to introspection queries.
//!
//! Types refer to types, so an introspection query has no natural end. A few levels of nesting would make a
//! response of many megabytes. Other queries are limited at their lists, by
//! [`Allowance`](crate::content::Allowance).

use async_graphql::parser::parse_query;
use async_graphql::parser::types::{ExecutableDocument, OperationDefinition};
use graphql_document::{AnswerLimits, DocumentError, FieldPlace, SchemaSize, Size, selected};

use crate::content::{FIELDS_PER_REQUEST_MAX, NAME_BYTES_PER_REQUEST_MAX};

/// Equal to the limits of other queries.
const LIMITS: AnswerLimits = AnswerLimits {
    fields: FIELDS_PER_REQUEST_MAX,
    bytes: NAME_BYTES_PER_REQUEST_MAX,
};
/// Largest lists of the schema. A test compares them with the schema.
const SCHEMA: SchemaSize = SchemaSize {
    types: 24,
    fields: 12,
    arguments: 3,
    related: 1,
};

/// The reason why an introspection query is refused.
#[derive(Debug, thiserror::Error)]
pub enum IntrospectionError {
    /// The response would be too large.
    #[error(transparent)]
    Answer(#[from] DocumentError),
    /// The document does not parse, so the size of the response is unknown.
    #[error("a question about the schema must be in the grammar of October 2021: {0}")]
    Grammar(#[from] async_graphql::parser::Error),
}

/// Checks the operation to be executed.
///
/// # Errors
/// Fails if the introspection part of the response would be too large.
pub fn check(
    document: &ExecutableDocument,
    operation: &OperationDefinition,
) -> Result<(), DocumentError> {
    LIMITS.check(document, operation, |field, place| Size {
        objects: match place {
            FieldPlace::Schema => SCHEMA.of(&field.name.node),
            // The lists of other queries are counted when they are executed.
            FieldPlace::Root | FieldPlace::Below => 1,
        },
        bytes: 0,
    })
}

/// Like [`check`], for a document as text. Only introspection queries are parsed for it.
///
/// # Errors
/// Like [`check`]. Also fails if the text cannot be parsed.
pub fn check_text(text: &str, name: Option<&str>) -> Result<(), IntrospectionError> {
    if !asks_about_schema(text) {
        return Ok(());
    }
    let document = parse_query(text)?;
    if let Some(operation) = selected(&document, name) {
        check(&document, operation)?;
    }
    Ok(())
}

/// True if a text contains the name of an introspection field.
fn asks_about_schema(text: &str) -> bool {
    // `__typename` is part of ordinary queries.
    text.contains("__schema")
        || text
            .match_indices("__type")
            .any(|(at, found)| !text[at + found.len()..].starts_with("name"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_questions_about_the_schema_are_looked_at() {
        for text in ["{ test { id __typename } }", "{ items { name } }", ""] {
            assert!(!asks_about_schema(text), "{text}");
        }
        for text in [
            "{ __schema { types { name } } }",
            "{ __typename x:__type (name: 1) }",
        ] {
            assert!(asks_about_schema(text), "{text}");
        }
    }
}
