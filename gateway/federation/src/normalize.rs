//! The planner's normal form of an operation, without the fields that the gateway answers itself.

use hive_router_query_planner::ast::normalization::error::NormalizationError;
use hive_router_query_planner::ast::normalization::normalize_operation;
use hive_router_query_planner::ast::operation::OperationDefinition;
use hive_router_query_planner::ast::selection_item::SelectionItem;
use hive_router_query_planner::ast::selection_set::SelectionSet;

use crate::limits::QueryDocument;
use crate::supergraph::Supergraph;

/// Normalizes an operation of a document. Its root keeps no field of introspection and no
/// `__typename`, which the gateway answers itself.
///
/// # Errors
/// If the planner cannot normalize the operation.
pub(crate) fn normalize(
    supergraph: &Supergraph,
    document: &QueryDocument,
    operation_name: Option<&str>,
) -> Result<OperationDefinition, NormalizationError> {
    let state = &supergraph.planner.supergraph;
    let mut operation = normalize_operation(state, document, operation_name)?.operation;
    drop_own_fields(&mut operation.selection_set);
    Ok(operation)
}

/// Removes the fields that the gateway answers itself from the root.
fn drop_own_fields(set: &mut SelectionSet) {
    // Inner fragments first, so that an emptied fragment is removed below.
    for item in &mut set.items {
        if let SelectionItem::InlineFragment(inline) = item {
            drop_own_fields(&mut inline.selections);
        }
    }
    set.items.retain(|item| match item {
        SelectionItem::Field(field) => !field.name.starts_with("__"),
        SelectionItem::InlineFragment(inline) => !inline.selections.is_empty(),
        SelectionItem::FragmentSpread(_) => true,
    });
}
