//! Completes objects with an empty selection.
//!
//! `@skip(if: true)` in the document and fragments that never apply can leave an object without a selection.
//! No subgraph accepts this. Then the gateway selects `__typename`, which shows that the object exists. The
//! client's response does not contain it.

use hive_router_query_planner::ast::selection_item::SelectionItem;
use hive_router_query_planner::ast::selection_set::{FieldSelection, SelectionSet};

use crate::composition::Composition;
use crate::schema::Schema;

/// Gives each object of a normalized selection at least one selected field.
pub(crate) fn fill(
    set: &mut SelectionSet,
    parent: &str,
    schema: &Schema,
    composition: &Composition,
) {
    for item in &mut set.items {
        match item {
            SelectionItem::Field(field) => {
                let Some(composed) = composition.field(parent, &field.name) else {
                    continue;
                };
                let returns = composed.returns.as_str();
                fill(&mut field.selections, returns, schema, composition);
                if field.selections.items.is_empty() && !schema.possible(returns).is_empty() {
                    let name = FieldSelection::new_skipped_typename();
                    field.selections.items.push(SelectionItem::Field(name));
                }
            }
            SelectionItem::InlineFragment(inline) => {
                fill(
                    &mut inline.selections,
                    &inline.type_condition,
                    schema,
                    composition,
                );
            }
            SelectionItem::FragmentSpread(_) => {}
        }
    }
    set.items.retain(|item| match item {
        SelectionItem::InlineFragment(inline) => !inline.selections.items.is_empty(),
        SelectionItem::Field(_) | SelectionItem::FragmentSpread(_) => true,
    });
}
