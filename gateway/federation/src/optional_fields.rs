//! Finds the optional parts of a representation.
//!
//! If a variable leaves out a field, the plan may not have fetched the fields that it requires. Their absence
//! must not prevent the request for the other fields. A key is never optional, because the subgraph needs it
//! to identify the object.

use hive_router_query_planner::ast::document::Document;
use hive_router_query_planner::ast::selection_item::SelectionItem;
use hive_router_query_planner::ast::selection_set::{FieldSelection, SelectionSet};

use crate::composition::{Composition, Graph};
use crate::plan::{Need, opener};

/// The required fields of one entity.
pub(crate) struct OptionalFields<'a> {
    composition: &'a Composition,
    graph: Graph,
    /// Requirements of fields that a variable may leave out.
    by_some: Vec<&'a SelectionSet>,
    /// Requirements of fields that are always selected.
    by_all: Vec<&'a SelectionSet>,
}

impl<'a> OptionalFields<'a> {
    pub(crate) fn new(composition: &'a Composition, graph: Graph) -> Self {
        OptionalFields {
            composition,
            graph,
            by_some: Vec::new(),
            by_all: Vec::new(),
        }
    }

    /// Adds the requirements of a selection on an entity of a type. `is_left` is true if a variable may leave
    /// out the whole selection.
    pub(crate) fn take(
        &mut self,
        document: &'a Document,
        set: &'a SelectionSet,
        parent: Option<&str>,
        is_left: bool,
    ) {
        for item in &set.items {
            match item {
                SelectionItem::Field(field) => {
                    let is_left = is_left || field.skip_if.is_some() || field.include_if.is_some();
                    let composed = parent.and_then(|it| self.composition.field(it, &field.name));
                    let required = composed.and_then(|it| it.requires(self.graph));
                    match is_left {
                        true => self.by_some.extend(required),
                        false => self.by_all.extend(required),
                    }
                }
                SelectionItem::InlineFragment(it) => {
                    let is_left = is_left || it.skip_if.is_some() || it.include_if.is_some();
                    self.take(document, &it.selections, Some(&it.type_condition), is_left);
                }
                SelectionItem::FragmentSpread(name) => {
                    let mut fragments = document.fragments.iter();
                    if let Some(it) = fragments.find(|it| it.name == *name) {
                        let parent = Some(it.type_condition.as_str());
                        self.take(document, &it.selection_set, parent, is_left);
                    }
                }
            }
        }
    }

    /// Marks the optional parts of a representation.
    pub(crate) fn leave_open(&self, needs: &mut [Need]) {
        if self.by_some.is_empty() {
            return;
        }
        for need in needs {
            if let Need::Fragment { name, needs, .. } = need {
                let keys = self.composition.keys(self.graph, name);
                // The keys of an interface object also identify its objects.
                let interfaces = self.composition.interface_objects(self.graph);
                let others = interfaces.flat_map(|it| self.composition.keys(self.graph, it));
                let key = keys.chain(others).find(|key| is_given(key, needs));
                let key: Vec<_> = key.into_iter().collect();
                leave_open(
                    needs,
                    &[key.as_slice(), &self.by_all].concat(),
                    &self.by_some,
                );
            }
        }
    }
}

/// Marks the parts that only `open` contains and `kept` does not.
fn leave_open(needs: &mut [Need], kept: &[&SelectionSet], open: &[&SelectionSet]) {
    for need in needs {
        match need {
            Need::Typename => {}
            Need::Fragment { needs, .. } => leave_open(needs, kept, open),
            Need::Field {
                opener,
                is_optional,
                needs,
                ..
            } => {
                let [kept, open] = [kept, open].map(|sets| below(sets, opener));
                *is_optional = kept.is_empty() && !open.is_empty();
                leave_open(needs, &kept, &open);
            }
        }
    }
}

/// The selections of these sets below a member of a representation.
fn below<'a>(sets: &[&'a SelectionSet], member: &[u8]) -> Vec<&'a SelectionSet> {
    let mut found = Vec::new();
    for set in sets {
        each_field(set, &mut |field| {
            if opener(&field.name) == member {
                found.push(&field.selections);
            }
        });
    }
    found
}

/// True if a representation contains the complete key.
fn is_given(key: &SelectionSet, needs: &[Need]) -> bool {
    let mut is_whole = true;
    each_field(key, &mut |field| {
        is_whole &= field.name == "__typename"
            || needs.iter().any(|need| match need {
                Need::Field {
                    opener: member,
                    needs,
                    ..
                } => *member == opener(&field.name) && is_given(&field.selections, needs),
                Need::Fragment { .. } | Need::Typename => false,
            });
    });
    is_whole
}

fn each_field<'a>(set: &'a SelectionSet, visit: &mut impl FnMut(&'a FieldSelection)) {
    for item in &set.items {
        match item {
            SelectionItem::Field(field) => visit(field),
            SelectionItem::InlineFragment(inline) => each_field(&inline.selections, visit),
            // Keys and requirements have no named fragments.
            SelectionItem::FragmentSpread(_) => {}
        }
    }
}
