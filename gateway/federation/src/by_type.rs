//! Rewrites an operation without changing its meaning. Below each interface and union, the result has one
//! fragment for each object type, with all fields requested for it.
//!
//! For some operations, the planner finds a correct plan only in this form.

use hive_router_query_planner::ast::selection_item::SelectionItem;
use hive_router_query_planner::ast::selection_set::{
    FieldSelection, InlineFragmentSelection, SelectionSet,
};

use crate::schema::Schema;

/// Rewrites a selection of a type. `None` if the selection does not change, or if the result would have more
/// than `items_max` fields and fragments.
pub(crate) fn by_type(
    schema: &Schema,
    parent: &str,
    set: &SelectionSet,
    items_max: usize,
) -> Option<SelectionSet> {
    let mut writing = Writing {
        schema,
        items_left: items_max,
        is_other: false,
    };
    let written = writing.set(parent, set)?;
    writing.is_other.then_some(written)
}

struct Writing<'a> {
    schema: &'a Schema,
    items_left: usize,
    is_other: bool,
}

impl Writing<'_> {
    fn set(&mut self, parent: &str, set: &SelectionSet) -> Option<SelectionSet> {
        let has_fragments = set.items.iter().any(is_fragment);
        if !has_fragments || self.schema.is_object(parent.as_bytes()) {
            let mut items = Vec::with_capacity(set.items.len());
            for item in &set.items {
                items.push(self.item(parent, item)?);
            }
            return Some(SelectionSet { items });
        }
        self.is_other = true;
        let mut items = Vec::new();
        let schema = self.schema;
        for object in schema.possible(parent) {
            // The type is hidden, so a client's operation may not contain its name.
            if schema.named(object).is_none() {
                continue;
            }
            let mut own = SelectionSet { items: Vec::new() };
            self.collect(object, set, &mut own)?;
            if !own.items.is_empty() {
                self.spend()?;
                items.push(SelectionItem::InlineFragment(InlineFragmentSelection {
                    type_condition: object.to_owned(),
                    selections: own,
                    skip_if: None,
                    include_if: None,
                }));
            }
        }
        Some(SelectionSet { items })
    }

    /// Adds the fields that a selection requests for an object type.
    fn collect(&mut self, object: &str, set: &SelectionSet, into: &mut SelectionSet) -> Option<()> {
        for item in &set.items {
            match item {
                SelectionItem::InlineFragment(inline)
                    if inline.skip_if.is_none() && inline.include_if.is_none() =>
                {
                    if self.schema.is_subtype(object, &inline.type_condition) {
                        self.collect(object, &inline.selections, into)?;
                    }
                }
                SelectionItem::InlineFragment(inline) => {
                    if self.schema.is_subtype(object, &inline.type_condition) {
                        let mut own = SelectionSet { items: Vec::new() };
                        self.collect(object, &inline.selections, &mut own)?;
                        self.spend()?;
                        into.items
                            .push(SelectionItem::InlineFragment(InlineFragmentSelection {
                                type_condition: object.to_owned(),
                                selections: own,
                                ..inline.clone()
                            }));
                    }
                }
                SelectionItem::Field(_) | SelectionItem::FragmentSpread(_) => {
                    let item = self.item(object, item)?;
                    add(item, into);
                }
            }
        }
        Some(())
    }

    fn item(&mut self, parent: &str, item: &SelectionItem) -> Option<SelectionItem> {
        self.spend()?;
        Some(match item {
            SelectionItem::Field(field) if !field.selections.items.is_empty() => {
                let returns = self.schema.field_type(parent, &field.name)?.to_owned();
                SelectionItem::Field(FieldSelection {
                    selections: self.set(&returns, &field.selections)?,
                    ..field.clone()
                })
            }
            SelectionItem::InlineFragment(inline) => {
                SelectionItem::InlineFragment(InlineFragmentSelection {
                    selections: self.set(&inline.type_condition, &inline.selections)?,
                    ..inline.clone()
                })
            }
            other => other.clone(),
        })
    }

    fn spend(&mut self) -> Option<()> {
        self.items_left = self.items_left.checked_sub(1)?;
        Some(())
    }
}

fn is_fragment(item: &SelectionItem) -> bool {
    matches!(item, SelectionItem::InlineFragment(_))
}

/// Adds a field. If it exists already, only its selections are added.
fn add(item: SelectionItem, into: &mut SelectionSet) {
    if let SelectionItem::Field(field) = &item {
        for known in &mut into.items {
            if let SelectionItem::Field(known) = known
                && known.selection_identifier() == field.selection_identifier()
                && known.skip_if == field.skip_if
                && known.include_if == field.include_if
            {
                for below in &field.selections.items {
                    add(below.clone(), &mut known.selections);
                }
                return;
            }
        }
    } else if into.items.contains(&item) {
        return;
    }
    into.items.push(item);
}
