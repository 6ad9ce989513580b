//! Documents, parsed and checked once for all requests with the same text.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_graphql::ServerError;
use async_graphql::parser::parse_query;
use async_graphql::parser::types::{
    DocumentOperations, ExecutableDocument, OperationDefinition, OperationType,
};
use operation_cache::{Bounds, Keep, Key, OperationCache};

use super::{Code, literals};

/// What a worker keeps of documents.
const KEPT: Bounds = Bounds {
    entries: 100,
    bytes: 8 << 20,
};
/// Longest text of a document that is kept: what clients send again is short.
const KEPT_TEXT_BYTES_MAX: usize = 4 * 1024;
/// Bytes that a document takes in memory for each of its text, at worst.
const BYTES_PER_TEXT_BYTE: usize = 100;

/// The documents of a worker.
pub(super) struct Documents {
    kept: OperationCache<Result<Arc<Document>, Vec<ServerError>>>,
    has_introspection: bool,
}

impl Documents {
    pub(super) fn new(has_introspection: bool) -> Self {
        Self {
            kept: OperationCache::new(KEPT),
            has_introspection,
        }
    }

    /// The document of this text, with the operation of this name.
    ///
    /// What the library does not check or reports in other words, and texts that are not a
    /// document.
    pub(super) fn get(
        &self,
        query: &str,
        name: Option<&str>,
    ) -> Result<Arc<Document>, Vec<ServerError>> {
        self.kept.get_or_make(Key::new(query, name), || {
            let made = Document::read(query, name, self.has_introspection).map(Arc::new);
            // Mistakes are not kept: any client can send any number of different ones.
            let may_be_kept = made.is_ok() && query.len() <= KEPT_TEXT_BYTES_MAX;
            let bytes = BYTES_PER_TEXT_BYTE * query.len();
            let keep = if may_be_kept {
                Keep::Yes { bytes }
            } else {
                Keep::No
            };
            (made, keep)
        })
    }
}

/// A document and the operation of it that is to be executed.
pub(super) struct Document {
    parsed: ExecutableDocument,
    operation: OperationDefinition,
    /// Whether validity follows from the document alone. A variable that may be null, in a place
    /// that may not, is valid or not by its value.
    is_constant: bool,
    was_executed: AtomicBool,
}

impl Document {
    fn read(
        query: &str,
        name: Option<&str>,
        has_introspection: bool,
    ) -> Result<Self, Vec<ServerError>> {
        // Before the parser: its time and stack depend on what this bounds.
        graphql_document::check_text(query)
            .map_err(|error| vec![Code::Parse.error(error.to_string(), None)])?;
        let parsed = parse_query(query).map_err(|error| vec![Code::Parse.mark(error.into())])?;
        graphql_document::check_fragments(&parsed)
            .map_err(|error| vec![Code::Validation.error(error.to_string(), None)])?;
        let mistakes = literals::check(&parsed, has_introspection);
        if !mistakes.is_empty() {
            return Err(mistakes);
        }
        let refused = |message: String| vec![Code::Internal.error(message, None)];
        let operation = selected(&parsed, name).map_err(refused)?.clone();
        match operation.ty {
            OperationType::Query => {}
            OperationType::Mutation => {
                return Err(refused(
                    "Schema is not configured for mutations.".to_owned(),
                ));
            }
            OperationType::Subscription => {
                return Err(refused(
                    "Schema is not configured for subscriptions.".to_owned(),
                ));
            }
        }
        let mut variables = operation.variable_definitions.iter();
        let has_required_only = variables.all(|it| !it.node.var_type.node.nullable);
        // The library validates all operations of a document, each with the variables sent.
        let has_one_operation = parsed.operations.iter().count() == 1;
        Ok(Self {
            is_constant: has_required_only && has_one_operation,
            parsed,
            operation,
            was_executed: AtomicBool::new(false),
        })
    }

    pub(super) fn parsed(&self) -> &ExecutableDocument {
        &self.parsed
    }

    /// The operation that is to be executed.
    pub(super) fn operation(&self) -> &OperationDefinition {
        &self.operation
    }

    /// Whether it would pass validation again, whatever the values of its variables, provided
    /// that they are of the declared types.
    pub(super) fn is_valid(&self) -> bool {
        self.is_constant && self.was_executed.load(Ordering::Relaxed)
    }

    /// Says that it has passed validation.
    pub(super) fn was_executed(&self) {
        // A write that changes nothing would still cost.
        if !self.was_executed.load(Ordering::Relaxed) {
            self.was_executed.store(true, Ordering::Relaxed);
        }
    }
}

/// The operation that is to be executed.
fn selected<'a>(
    document: &'a ExecutableDocument,
    name: Option<&str>,
) -> Result<&'a OperationDefinition, String> {
    let found = match (&document.operations, name) {
        (DocumentOperations::Single(operation), None) => Some(operation),
        (DocumentOperations::Single(_), Some(_)) => None,
        (DocumentOperations::Multiple(operations), Some(name)) => operations.get(name),
        (DocumentOperations::Multiple(operations), None) => match operations.len() {
            1 => operations.values().next(),
            _ => {
                let message = "Must provide operation name if query contains multiple operations.";
                return Err(message.to_owned());
            }
        },
    };
    let unknown = || format!("Unknown operation named \"{}\".", name.unwrap_or_default());
    found.map(|operation| &operation.node).ok_or_else(unknown)
}
