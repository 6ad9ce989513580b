//! Merges selections of one field that differ only in their conditions.
//!
//! The planner can lose the second selection of `f { a } f @skip(if: $v) { b }`. Its conditions move into the
//! first selection: `f { a ... @skip(if: $v) { b } }` has the same result.
//!
//! A field that is selected without conditions needs no second selection in a fragment on the same object. Such a
//! selection can keep the planner from a plan, so it is left out.

use hive_router_query_planner::ast::selection_item::SelectionItem;
use hive_router_query_planner::ast::selection_set::{
    FieldSelection, InlineFragmentSelection, SelectionSet,
};

use crate::schema::Schema;

/// The selections with merged fields. `None` if they do not change.
pub(crate) fn merged(schema: &Schema, parent: &str, set: &SelectionSet) -> Option<SelectionSet> {
    let mut merging = Merging {
        schema,
        is_changed: false,
    };
    let merged = merging.set(parent, set, &[]);
    merging.is_changed.then_some(merged)
}

struct Merging<'a> {
    schema: &'a Schema,
    is_changed: bool,
}

impl Merging<'_> {
    /// Merges the selections of one object. `known` are leaves that are already selected for it.
    fn set(&mut self, parent: &str, set: &SelectionSet, known: &[FieldSelection]) -> SelectionSet {
        let mut items = self.fields(parent, set, known);
        let mut known = known.to_vec();
        known.extend(items.iter().filter_map(bare_leaf).cloned());
        let fragments = set.items.iter().filter_map(|item| match item {
            SelectionItem::InlineFragment(inline) => Some(inline),
            SelectionItem::Field(_) | SelectionItem::FragmentSpread(_) => None,
        });
        // A fragment without conditions comes first, because it makes selections in the others superfluous.
        let (bare, conditional): (Vec<_>, Vec<_>) = fragments.partition(|it| is_bare(it));
        let mut of_types: Vec<(String, FieldSelection)> = Vec::new();
        for inline in bare.into_iter().chain(conditional) {
            let condition = &inline.type_condition;
            let others = of_types.iter().filter(|(of, _)| of == condition);
            let mut own = known.clone();
            own.extend(others.map(|(_, field)| field.clone()));
            let selections = self.set(condition, &inline.selections, &own);
            if selections.items.is_empty() {
                continue;
            }
            if is_bare(inline) {
                let leaves = selections.items.iter().filter_map(bare_leaf);
                of_types.extend(leaves.map(|field| (condition.clone(), field.clone())));
            }
            items.push(SelectionItem::InlineFragment(InlineFragmentSelection {
                selections,
                ..inline.clone()
            }));
        }
        let spreads = set.items.iter();
        items.extend(
            spreads
                .filter(|item| matches!(item, SelectionItem::FragmentSpread(_)))
                .cloned(),
        );
        SelectionSet { items }
    }

    /// The fields of a selection, merged, with their own selections merged.
    fn fields(
        &mut self,
        parent: &str,
        set: &SelectionSet,
        known: &[FieldSelection],
    ) -> Vec<SelectionItem> {
        let fields = set.items.iter().filter_map(|item| match item {
            SelectionItem::Field(field) => Some(field),
            SelectionItem::InlineFragment(_) | SelectionItem::FragmentSpread(_) => None,
        });
        // Fields without conditions come first, because the others move into them.
        let (bare, conditional): (Vec<_>, Vec<_>) = fields.partition(|field| !has_condition(field));
        let mut merged: Vec<FieldSelection> = Vec::new();
        for field in bare.into_iter().chain(conditional) {
            if known.iter().any(|it| is_same(it, field)) {
                self.is_changed = true;
                continue;
            }
            let before = merged.iter_mut().find(|it| is_same(it, field));
            let returns = self.schema.field_type(parent, &field.name);
            match (before, returns) {
                (Some(before), Some(returns)) if has_condition(field) => {
                    self.is_changed = true;
                    before
                        .selections
                        .items
                        .extend(under_condition(returns, field));
                }
                _ => merged.push(field.clone()),
            }
        }
        let below = merged.into_iter().map(|mut field| {
            if let Some(returns) = self.schema.field_type(parent, &field.name) {
                field.selections = self.set(returns, &field.selections, &[]);
            }
            SelectionItem::Field(field)
        });
        below.collect()
    }
}

/// The selections of a field under its conditions. `None` for a leaf, which has no selections.
fn under_condition(returns: &str, field: &FieldSelection) -> Option<SelectionItem> {
    let inline = InlineFragmentSelection {
        type_condition: returns.to_owned(),
        selections: field.selections.clone(),
        skip_if: field.skip_if.clone(),
        include_if: field.include_if.clone(),
    };
    let is_leaf = field.selections.items.is_empty();
    (!is_leaf).then_some(SelectionItem::InlineFragment(inline))
}

/// The field of an item, if it is a leaf without conditions.
fn bare_leaf(item: &SelectionItem) -> Option<&FieldSelection> {
    match item {
        SelectionItem::Field(field)
            if !has_condition(field) && field.selections.items.is_empty() =>
        {
            Some(field)
        }
        _ => None,
    }
}

fn is_bare(inline: &InlineFragmentSelection) -> bool {
    inline.skip_if.is_none() && inline.include_if.is_none()
}

fn has_condition(field: &FieldSelection) -> bool {
    field.skip_if.is_some() || field.include_if.is_some()
}

/// True if a field without conditions is the same field as another one.
fn is_same(known: &FieldSelection, field: &FieldSelection) -> bool {
    !has_condition(known)
        && known.selection_identifier() == field.selection_identifier()
        && known.name == field.name
        && known.arguments() == field.arguments()
}
