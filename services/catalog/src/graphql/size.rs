//! Estimates the size of the response to an operation.
//!
//! The allowance limits the number of rows from the database, but not how often a document names their
//! columns. Ten thousand rows under four thousand aliases would be a response of a gigabyte.

use std::convert::Infallible;

use async_graphql::parser::types::{ExecutableDocument, Field, OperationDefinition};
use async_graphql::{Value, Variables};
use graphql_document::{AnswerLimits, DocumentError, FieldPlace, SchemaSize, Size};

use crate::entity::NAME_LENGTH_MAX;
use crate::rest::LIMIT_DEFAULT;

/// 200,000 fields are twice the fields of the longest lists with every column once.
const LIMITS: AnswerLimits = AnswerLimits {
    fields: 200_000,
    bytes: 16 << 20,
};
/// Largest lists of the schema. A test compares them with the schema.
const SCHEMA: SchemaSize = SchemaSize {
    types: 48,
    fields: 12,
    arguments: 6,
    related: 1,
};
/// Bytes of a product's name. A character has at most four bytes.
const NAME_BYTES_MAX: u64 = NAME_LENGTH_MAX as u64 * 4;

/// Checks the operation to be executed, with these values of variables.
pub(super) fn check(
    document: &ExecutableDocument,
    operation: &OperationDefinition,
    values: &Variables,
    limit_max: u32,
) -> Result<(), DocumentError> {
    LIMITS.check(document, operation, |field, place| {
        match (field.name.node.as_str(), place) {
            ("product" | "lineItem", FieldPlace::Root) => Size {
                // A value out of range is refused when the field is executed.
                objects: rows(field, operation, values).min(limit_max).into(),
                bytes: 0,
            },
            ("name", FieldPlace::Below) => Size {
                objects: 1,
                bytes: NAME_BYTES_MAX,
            },
            (name, FieldPlace::Schema) => Size {
                objects: SCHEMA.of(name),
                bytes: 0,
            },
            _ => Size::ONE,
        }
    })
}

/// Maximum number of rows of a list, for any number of matching rows.
fn rows(field: &Field, operation: &OperationDefinition, values: &Variables) -> u32 {
    let Some(limit) = field.get_argument("limit") else {
        return LIMIT_DEFAULT;
    };
    let limit = limit.node.clone().into_const_with(|name| {
        let given = values.get(&name).cloned();
        let declared = || {
            let definitions = operation.variable_definitions.iter();
            let mut definitions = definitions.map(|definition| &definition.node);
            let definition = definitions.find(|it| it.name.node == name)?;
            definition.default_value().cloned()
        };
        // Without a value and a default, the argument counts as missing.
        Ok::<_, Infallible>(given.or_else(declared).unwrap_or_default())
    });
    match limit {
        Ok(Value::Null) => LIMIT_DEFAULT,
        Ok(Value::Number(limit)) => {
            let limit = limit.as_u64().and_then(|limit| u32::try_from(limit).ok());
            limit.unwrap_or(u32::MAX)
        }
        _ => u32::MAX,
    }
}
