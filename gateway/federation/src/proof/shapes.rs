//! Checks that a subgraph accepts all selections of its operation under one key.
//!
//! The specification (5.3.2, "Field Selection Merging") requires equal shapes for all values under one key.
//! This includes values of objects that never occur together. A field of all subgraphs can be nullable in one
//! type and non-null in another type of a single subgraph.

use std::collections::BTreeMap;

use hive_router_query_planner::ast::document::Document;
use hive_router_query_planner::ast::selection_item::SelectionItem;
use hive_router_query_planner::ast::selection_set::{FieldSelection, SelectionSet};

use super::{PlanGoal, ProofError, proof_error};
use crate::composition::Graph;

/// Checks the operation of one fetch.
pub(super) fn check(
    goal: &PlanGoal<'_>,
    graph: Graph,
    document: &Document,
) -> Result<(), ProofError> {
    let sets = vec![(goal.root_type, &document.operation.selection_set)];
    let checking = Checking {
        goal,
        graph,
        document,
    };
    checking.check(&sets)
}

struct Checking<'a> {
    goal: &'a PlanGoal<'a>,
    graph: Graph,
    document: &'a Document,
}

/// A field, and the type that has it.
type TypedField<'a> = (&'a str, &'a FieldSelection);

impl<'a> Checking<'a> {
    /// Checks the selections at one place.
    fn check(&self, sets: &[(&'a str, &'a SelectionSet)]) -> Result<(), ProofError> {
        let mut by_key: BTreeMap<&str, Vec<TypedField<'a>>> = BTreeMap::new();
        for (parent, set) in sets {
            self.collect(parent, set, &mut by_key);
        }
        for (key, fields) in by_key {
            let mut shape = None;
            let mut below = Vec::new();
            for (parent, field) in fields {
                let composed = self.goal.composition.field(parent, &field.name);
                let returns = composed.map_or("", |it| it.returns.as_str());
                if !field.selections.items.is_empty() {
                    below.push((returns, &field.selections));
                }
                // `_entities` and `__typename` have the same type everywhere.
                let Some(composed) = composed else {
                    continue;
                };
                let kind = composed.kind(self.graph);
                let kind = match field.selections.items.is_empty() {
                    true => kind.to_owned(),
                    // For objects, only the lists and the exclamation marks must be equal.
                    false => kind.replace(returns, ""),
                };
                if shape.get_or_insert_with(|| kind.clone()) != &kind {
                    return Err(proof_error(format!(
                        "a subgraph has `{key}` with two types at one place"
                    )));
                }
            }
            self.check(&below)?;
        }
        Ok(())
    }

    fn collect(
        &self,
        parent: &'a str,
        set: &'a SelectionSet,
        into: &mut BTreeMap<&'a str, Vec<TypedField<'a>>>,
    ) {
        for item in &set.items {
            match item {
                SelectionItem::Field(field) => {
                    let key = field.selection_identifier();
                    into.entry(key).or_default().push((parent, field));
                }
                SelectionItem::InlineFragment(inline) => {
                    self.collect(&inline.type_condition, &inline.selections, into);
                }
                SelectionItem::FragmentSpread(name) => {
                    let mut fragments = self.document.fragments.iter();
                    if let Some(fragment) = fragments.find(|it| it.name == *name) {
                        self.collect(&fragment.type_condition, &fragment.selection_set, into);
                    }
                }
            }
        }
    }
}
