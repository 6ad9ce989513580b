//! Divides an operation in two: one field of one object type at one place, and the rest.
//!
//! The planner often plans a field correctly if it stands alone. The root fetches of such a plan repeat
//! fetches of the rest, so only its entity fetches are added to the plan. The proof then checks that these
//! fetches find all the data they need.

use hive_router_query_planner::ast::selection_item::SelectionItem;
use hive_router_query_planner::ast::selection_set::{
    FieldSelection, InlineFragmentSelection, SelectionSet,
};
use hive_router_query_planner::planner::plan_nodes::{ParallelNode, PlanNode, SequenceNode};

use crate::proof::MissingField;
use crate::schema::Schema;

/// The part with only this field. `None` if the operation does not contain it.
pub(crate) fn only(
    schema: &Schema,
    parent: &str,
    set: &SelectionSet,
    missing: &MissingField,
) -> Option<SelectionSet> {
    let dividing = Dividing { schema, missing };
    let part = dividing.only(parent, set, &missing.path);
    (!part.items.is_empty()).then_some(part)
}

/// The part without the field. Objects of other types keep the field. This requires an operation that is
/// written [by type](crate::by_type).
pub(crate) fn without(
    schema: &Schema,
    parent: &str,
    set: &SelectionSet,
    missing: &MissingField,
) -> SelectionSet {
    let dividing = Dividing { schema, missing };
    dividing.without(parent, set, &missing.path)
}

/// A plan without its fetches of root fields. `None` if it has no other fetch.
pub(crate) fn entities_of(node: PlanNode) -> Option<PlanNode> {
    let left = |nodes: Vec<PlanNode>| -> Vec<PlanNode> {
        nodes.into_iter().filter_map(entities_of).collect()
    };
    match node {
        PlanNode::Fetch(_) => None,
        PlanNode::Sequence(it) => {
            let nodes = left(it.nodes);
            (!nodes.is_empty()).then_some(PlanNode::Sequence(SequenceNode { nodes }))
        }
        PlanNode::Parallel(it) => {
            let nodes = left(it.nodes);
            (!nodes.is_empty()).then_some(PlanNode::Parallel(ParallelNode { nodes }))
        }
        other => Some(other),
    }
}

struct Dividing<'a> {
    schema: &'a Schema,
    missing: &'a MissingField,
}

impl Dividing<'_> {
    fn only(&self, parent: &str, set: &SelectionSet, path: &[Vec<u8>]) -> SelectionSet {
        let mut items = Vec::new();
        let Some((first, rest)) = path.split_first() else {
            self.fields(set, &mut items);
            let is_own = parent == self.missing.real;
            // Below an interface, only the objects of this type.
            if !is_own && !items.is_empty() {
                let selections = SelectionSet { items };
                items = vec![SelectionItem::InlineFragment(InlineFragmentSelection {
                    type_condition: self.missing.real.clone(),
                    selections,
                    skip_if: None,
                    include_if: None,
                })];
            }
            return SelectionSet { items };
        };
        for item in &set.items {
            match item {
                SelectionItem::Field(field) if is_called(field, first) => {
                    let Some(returns) = self.schema.field_type(parent, &field.name) else {
                        continue;
                    };
                    let selections = self.only(returns, &field.selections, rest);
                    if !selections.items.is_empty() {
                        let field = field.clone();
                        items.push(SelectionItem::Field(FieldSelection {
                            selections,
                            ..field
                        }));
                    }
                }
                SelectionItem::InlineFragment(inline) => {
                    let selections = self.only(&inline.type_condition, &inline.selections, path);
                    if !selections.items.is_empty() {
                        let inline = inline.clone();
                        items.push(SelectionItem::InlineFragment(InlineFragmentSelection {
                            selections,
                            ..inline
                        }));
                    }
                }
                SelectionItem::Field(_) | SelectionItem::FragmentSpread(_) => {}
            }
        }
        SelectionSet { items }
    }

    /// Collects all selections of the field for the type, with the conditions around them.
    fn fields(&self, set: &SelectionSet, into: &mut Vec<SelectionItem>) {
        for item in &set.items {
            match item {
                SelectionItem::Field(field) if is_called(field, &self.missing.key) => {
                    into.push(item.clone());
                }
                SelectionItem::InlineFragment(inline)
                    if self
                        .schema
                        .is_subtype(&self.missing.real, &inline.type_condition) =>
                {
                    let mut own = Vec::new();
                    self.fields(&inline.selections, &mut own);
                    if inline.skip_if.is_none() && inline.include_if.is_none() {
                        into.append(&mut own);
                    } else if !own.is_empty() {
                        into.push(SelectionItem::InlineFragment(InlineFragmentSelection {
                            type_condition: self.missing.real.clone(),
                            selections: SelectionSet { items: own },
                            ..inline.clone()
                        }));
                    }
                }
                _ => {}
            }
        }
    }

    fn without(&self, parent: &str, set: &SelectionSet, path: &[Vec<u8>]) -> SelectionSet {
        let mut items = Vec::new();
        for item in &set.items {
            match item {
                SelectionItem::Field(field) => match path.split_first() {
                    None if parent == self.missing.real && is_called(field, &self.missing.key) => {}
                    Some((first, rest)) if is_called(field, first) => {
                        let returns = self.schema.field_type(parent, &field.name);
                        let below = returns.unwrap_or_default();
                        let mut selections = self.without(below, &field.selections, rest);
                        // The selection must not be empty, because the places of the objects matter.
                        if selections.items.is_empty() {
                            selections.items.push(typename());
                        }
                        let field = field.clone();
                        items.push(SelectionItem::Field(FieldSelection {
                            selections,
                            ..field
                        }));
                    }
                    _ => items.push(item.clone()),
                },
                SelectionItem::InlineFragment(inline) => {
                    let selections = self.without(&inline.type_condition, &inline.selections, path);
                    if !selections.items.is_empty() {
                        let inline = inline.clone();
                        items.push(SelectionItem::InlineFragment(InlineFragmentSelection {
                            selections,
                            ..inline
                        }));
                    }
                }
                SelectionItem::FragmentSpread(_) => items.push(item.clone()),
            }
        }
        SelectionSet { items }
    }
}

fn is_called(field: &FieldSelection, key: &[u8]) -> bool {
    field.selection_identifier().as_bytes() == key
}

/// The field `__typename`, which keeps a selection from being empty.
pub(crate) fn typename() -> SelectionItem {
    SelectionItem::Field(FieldSelection::new_typename())
}
