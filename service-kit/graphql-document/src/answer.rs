//! Estimates the size of a response before the operation is executed.
//!
//! A few bytes of a document can cause many bytes of a response. A field in a list is repeated in each object
//! of the list, its alias may be long, and lists can be nested.

use async_graphql::parser::types::{
    DocumentOperations, ExecutableDocument, Field, OperationDefinition,
};

use crate::error::DocumentError;
use crate::extent::{FieldPlace, Measuring, Size};

/// Limits for the size of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnswerLimits {
    /// Maximum number of fields, each counted in every object of a list.
    pub fields: u64,
    /// Bytes of the names of these fields, and of the texts counted by [`Size::bytes`].
    pub bytes: u64,
}

impl AnswerLimits {
    /// Checks the operation of `document` that will be executed. `size` returns the size of a field.
    ///
    /// # Errors
    /// The first exceeded limit. Also fails if fragments are nested deeper than
    /// [`NESTING_MAX`](crate::NESTING_MAX).
    pub fn check(
        &self,
        document: &ExecutableDocument,
        operation: &OperationDefinition,
        size: impl Fn(&Field, FieldPlace) -> Size,
    ) -> Result<(), DocumentError> {
        let set = &operation.selection_set.node;
        let extent = Measuring::new(document, size).operation(set)?;
        if extent.complexity > self.fields {
            return Err(DocumentError::AnswerFields {
                found: extent.complexity,
                most: self.fields,
            });
        }
        if extent.bytes > self.bytes {
            return Err(DocumentError::AnswerBytes {
                found: extent.bytes,
                most: self.bytes,
            });
        }
        Ok(())
    }
}

/// The longest lists in responses to introspection queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchemaSize {
    /// Types, including introspection types.
    pub types: u64,
    /// Fields of a type, or of an input type.
    pub fields: u64,
    /// Arguments of a field or directive.
    pub arguments: u64,
    /// Interfaces of a type, and types of an interface or a union.
    pub related: u64,
}

impl SchemaSize {
    /// Directives, locations of a directive and values of an enum. The specification has 19 locations.
    const VALUES: u64 = 20;

    /// Maximum length of the list that a field below `__schema` or `__type` returns.
    #[must_use]
    pub fn of(&self, field: &str) -> u64 {
        match field {
            "types" => self.types,
            "fields" | "inputFields" => self.fields,
            "args" => self.arguments,
            "interfaces" | "possibleTypes" => self.related,
            "enumValues" | "directives" | "locations" => Self::VALUES,
            _ => 1,
        }
    }
}

/// The operation to execute: the operation with this name, or the only operation.
#[must_use]
pub fn selected<'a>(
    document: &'a ExecutableDocument,
    name: Option<&str>,
) -> Option<&'a OperationDefinition> {
    let operation = match (&document.operations, name) {
        (DocumentOperations::Single(operation), _) => Some(operation),
        (DocumentOperations::Multiple(operations), Some(name)) => operations.get(name),
        (DocumentOperations::Multiple(operations), None) => match operations.len() {
            1 => operations.values().next(),
            _ => None,
        },
    };
    operation.map(|operation| &operation.node)
}

#[cfg(test)]
mod tests {
    use async_graphql::parser::parse_query;

    use super::*;

    const LIMITS: AnswerLimits = AnswerLimits {
        fields: 1_000,
        bytes: 10_000,
    };

    const SCHEMA: SchemaSize = SchemaSize {
        types: 50,
        fields: 10,
        arguments: 2,
        related: 1,
    };

    /// `list` has a hundred objects if it is a field of the operation. `fields` has ten objects if it is a
    /// field of a schema.
    fn checked(text: &str) -> Result<(), DocumentError> {
        let document = parse_query(text).unwrap();
        let operation = selected(&document, None).unwrap();
        LIMITS.check(&document, operation, |field, place| {
            let objects = match (field.name.node.as_str(), place) {
                ("list", FieldPlace::Root) => 100,
                (name, FieldPlace::Schema) => SCHEMA.of(name),
                _ => 1,
            };
            Size { objects, bytes: 0 }
        })
    }

    #[test]
    fn fields_count_in_each_object_of_a_list() {
        assert_eq!(checked("{ list { a b c d e f g h i } }"), Ok(()));
        let refused = checked("{ list { a b c d e f g h i j } }");
        let (found, most) = (1_001, 1_000);
        assert_eq!(refused, Err(DocumentError::AnswerFields { found, most }));
    }

    #[test]
    fn a_name_means_what_it_means_in_its_place() {
        // A hundred objects in the list, each with a field of the same name and its fields.
        assert_eq!(checked("{ list { list { a b c d } } }"), Ok(()));
        let spread = "{ ...F } fragment F on Query { list { ...G } x: list { ...G } } \
            fragment G on Object { list { a b c } }";
        assert_eq!(checked(spread), Ok(()));
    }

    #[test]
    fn names_count_with_their_length_in_each_object_of_a_list() {
        let name = |length: usize| format!("{{ list {{ {}: a }} }}", "n".repeat(length));
        assert_eq!(checked(&name(99)), Ok(()));
        let (found, most) = (10_004, 10_000);
        let refused = Err(DocumentError::AnswerBytes { found, most });
        assert_eq!(checked(&name(100)), refused);
    }

    #[test]
    fn introspection_that_goes_round_in_circles_is_refused() {
        let round = "fields { type { ".repeat(4) + "name" + &" } }".repeat(4);
        let refused = checked(&format!("{{ __type(name: \"__Type\") {{ {round} }} }}"));
        assert!(matches!(refused, Err(DocumentError::AnswerFields { .. })));
        assert_eq!(
            checked("{ __schema { types { fields { name } } } }"),
            Ok(())
        );
    }
}
