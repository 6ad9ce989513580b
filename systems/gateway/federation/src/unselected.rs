//! Fields of objects of which nothing is left to be asked.
//!
//! `@skip(if: true)` in the document and fragments that never apply can leave an object without a
//! selection, which no subgraph accepts. Then its name is asked for, which tells that it is there; the
//! answer to the client does not have it.

use hive_router_query_planner::ast::selection_item::SelectionItem;
use hive_router_query_planner::ast::selection_set::{FieldSelection, SelectionSet};

use crate::composition::Composition;
use crate::schema::Schema;

/// Has each object of a normalized selection asked for something.
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
