//! Asks for the type of objects that fragments select from.
//!
//! The planner asks for the type only under the conditions of a fragment. The subgraph of an interface object does
//! not know the type, and the plan may not ask another subgraph. The proof refuses such plans.
//! With `__typename` next to the fragment, the plan asks a subgraph that has the type.

use hive_router_query_planner::ast::selection_item::SelectionItem;
use hive_router_query_planner::ast::selection_set::{
    FieldSelection, InlineFragmentSelection, SelectionSet,
};

use crate::divide::typename;
use crate::schema::Schema;

/// The selection with `__typename` next to each fragment on a type other than its parent. `None` if it does not
/// change.
pub(crate) fn told(schema: &Schema, parent: &str, set: &SelectionSet) -> Option<SelectionSet> {
    let mut telling = Telling {
        schema,
        is_changed: false,
    };
    let told = telling.set(parent, set);
    telling.is_changed.then_some(told)
}

struct Telling<'a> {
    schema: &'a Schema,
    is_changed: bool,
}

impl Telling<'_> {
    fn set(&mut self, parent: &str, set: &SelectionSet) -> SelectionSet {
        let mut items: Vec<_> = set.items.iter().map(|it| self.item(parent, it)).collect();
        let is_other = |item: &SelectionItem| matches!(item, SelectionItem::InlineFragment(it) if it.type_condition != parent);
        if !self.schema.is_object(parent.as_bytes())
            && items.iter().any(is_other)
            && !items.iter().any(|it| it.to_string() == "__typename")
        {
            self.is_changed = true;
            items.push(typename());
        }
        SelectionSet { items }
    }

    fn item(&mut self, parent: &str, item: &SelectionItem) -> SelectionItem {
        match item {
            SelectionItem::Field(field) => {
                let below = self.schema.field_type(parent, &field.name);
                SelectionItem::Field(FieldSelection {
                    selections: self.set(below.unwrap_or_default(), &field.selections),
                    ..field.clone()
                })
            }
            SelectionItem::InlineFragment(inline) => {
                SelectionItem::InlineFragment(InlineFragmentSelection {
                    selections: self.set(&inline.type_condition, &inline.selections),
                    ..inline.clone()
                })
            }
            SelectionItem::FragmentSpread(_) => item.clone(),
        }
    }
}
