//! What may be missing in a representation.
//!
//! A field that a variable leaves out needs nothing, so that what it requires may not have been asked
//! for. Its absence must not keep the other fields from being asked for. A key is never left out: the
//! subgraph could not tell which object is meant.

use hive_router_query_planner::ast::document::Document;
use hive_router_query_planner::ast::selection_item::SelectionItem;
use hive_router_query_planner::ast::selection_set::{FieldSelection, SelectionSet};

use crate::composition::{Composition, Graph};
use crate::plan::{Need, opener};

/// What fields of one entity require.
pub(crate) struct Leaving<'a> {
    composition: &'a Composition,
    graph: Graph,
    /// By fields that a variable may leave out.
    by_some: Vec<&'a SelectionSet>,
    /// By fields that are always asked for.
    by_all: Vec<&'a SelectionSet>,
}

impl<'a> Leaving<'a> {
    pub(crate) fn new(composition: &'a Composition, graph: Graph) -> Self {
        Leaving {
            composition,
            graph,
            by_some: Vec::new(),
            by_all: Vec::new(),
        }
    }

    /// Takes in what a request asks of an entity of a type, and whether a variable may leave all of
    /// it out.
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

    /// Marks the parts of a representation that may be missing.
    pub(crate) fn leave_open(&self, needs: &mut [Need]) {
        if self.by_some.is_empty() {
            return;
        }
        for need in needs {
            if let Need::Fragment { name, needs, .. } = need {
                let keys = self.composition.keys(self.graph, name);
                // An object of an interface object is known by the interface's keys.
                let interfaces = self.composition.interface_objects(self.graph);
                let others = interfaces.flat_map(|it| self.composition.keys(self.graph, it));
                let key = keys.iter().chain(others).find(|key| is_given(key, needs));
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

/// Marks what only `open` has, and `kept` has not.
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

/// What sets have below a member of a representation.
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

/// Whether a representation has all of a key.
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
