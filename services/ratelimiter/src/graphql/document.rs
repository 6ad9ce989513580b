//! Documents, parsed and checked once for all requests with the same text.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_graphql::ServerError;
use async_graphql::parser::parse_query;
use async_graphql::parser::types::{
    DocumentOperations, ExecutableDocument, OperationDefinition, OperationType, Selection,
    SelectionSet,
};
use operation_cache::{Bounds, Keep, Key, OperationCache};

use super::{Code, literals};

/// Limits of a worker's document cache.
const KEPT: Bounds = Bounds {
    entries: 100,
    bytes: 8 << 20,
};
/// Longest text of a cached document. Repeated documents are short.
const KEPT_TEXT_BYTES_MAX: usize = 4 * 1024;
/// Bytes in memory for each byte of a document's text, in the worst case.
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
    /// An error lists mistakes that the library misses or reports in other words, or a syntax error.
    pub(super) fn get(
        &self,
        query: &str,
        name: Option<&str>,
    ) -> Result<Arc<Document>, Vec<ServerError>> {
        self.kept.get_or_make(Key::new(query, name), || {
            let made = Document::read(query, name, self.has_introspection).map(Arc::new);
            // Mistakes are not cached, because clients can send any number of different mistakes.
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

/// A document and its operation to execute.
pub(super) struct Document {
    parsed: ExecutableDocument,
    operation: OperationDefinition,
    /// True if its execution may change the state of an address.
    changes_state: bool,
    /// True if validity depends only on the document. A nullable variable in a non-null place is valid or
    /// invalid depending on its value.
    is_constant: bool,
    was_executed: AtomicBool,
}

impl Document {
    fn read(
        query: &str,
        name: Option<&str>,
        has_introspection: bool,
    ) -> Result<Self, Vec<ServerError>> {
        // Before the parser, because these limits bound its time and stack.
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
        // The library validates all operations of a document with the sent variables.
        let has_one_operation = parsed.operations.iter().count() == 1;
        let mut sets = parsed.fragments.values();
        // All fragments, including fragments of other operations. A client can leave them out of a GET.
        let changes_state = asks(&operation.selection_set.node)
            || sets.any(|fragment| asks(&fragment.node.selection_set.node));
        Ok(Self {
            changes_state,
            is_constant: has_required_only && has_one_operation,
            parsed,
            operation,
            was_executed: AtomicBool::new(false),
        })
    }

    pub(super) fn parsed(&self) -> &ExecutableDocument {
        &self.parsed
    }

    /// The operation to execute.
    pub(super) fn operation(&self) -> &OperationDefinition {
        &self.operation
    }

    /// True if its execution may change the state of an address.
    pub(super) fn changes_state(&self) -> bool {
        self.changes_state
    }

    /// True if it would pass validation again with any values of its variables that have the declared types.
    pub(super) fn is_valid(&self) -> bool {
        self.is_constant && self.was_executed.load(Ordering::Relaxed)
    }

    /// Records that the document has passed validation.
    pub(super) fn was_executed(&self) {
        // Even a write of the same value would cost time.
        if !self.was_executed.load(Ordering::Relaxed) {
            self.was_executed.store(true, Ordering::Relaxed);
        }
    }
}

/// True if a selection contains the field that counts events. Only its type makes it a query.
fn asks(set: &SelectionSet) -> bool {
    set.items.iter().any(|selection| match &selection.node {
        // By its name and not its alias. Arguments and directives may depend on variables.
        Selection::Field(field) => field.node.name.node == "ratelimit",
        Selection::InlineFragment(inline) => asks(&inline.node.selection_set.node),
        // Fragments are checked at their definition.
        Selection::FragmentSpread(_) => false,
    })
}

/// The operation to execute.
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
