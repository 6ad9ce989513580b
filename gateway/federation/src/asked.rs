//! The values of variables that make a fetch request any field.
//!
//! `@skip` and `@include` can leave out every field of a fetch. The planner sends such a request even so. Its
//! failure or its latency would reach a client that has not selected the field.

use hive_router_query_planner::ast::selection_item::SelectionItem;
use hive_router_query_planner::ast::selection_set::SelectionSet;

use crate::variables::Declared;

/// The condition under which a selection requests a field.
#[derive(Debug)]
pub(crate) enum Asked {
    /// The selection always requests a field.
    Always,
    /// The selection requests a field if one of the branches applies.
    If(Vec<Branch>),
}

/// Fields that are requested if all variables have these values, and if `inner` requests a field.
#[derive(Debug)]
pub(crate) struct Branch {
    guards: Vec<Guard>,
    inner: Asked,
}

/// A Boolean variable of the client, by its index, and its necessary value.
#[derive(Debug)]
struct Guard {
    variable: usize,
    value: bool,
}

impl Asked {
    pub(crate) fn of(selections: &SelectionSet, declared: &[Declared]) -> Asked {
        let mut branches = Vec::new();
        for item in &selections.items {
            let branch = branch(item, declared);
            if branch.guards.is_empty() && matches!(branch.inner, Asked::Always) {
                return Asked::Always;
            }
            branches.push(branch);
        }
        Asked::If(branches)
    }

    /// True if a field is requested. `truth` returns the value of a variable.
    pub(crate) fn holds(&self, truth: &impl Fn(usize) -> bool) -> bool {
        let applies = |branch: &Branch| {
            let mut guards = branch.guards.iter();
            guards.all(|guard| truth(guard.variable) == guard.value) && branch.inner.holds(truth)
        };
        match self {
            Asked::Always => true,
            Asked::If(branches) => branches.iter().any(applies),
        }
    }
}

fn branch(item: &SelectionItem, declared: &[Declared]) -> Branch {
    let (skip_if, include_if, inner) = match item {
        // If no field of the entities is requested, the list of entities is useless.
        SelectionItem::Field(field) if field.name == "_entities" => (
            &field.skip_if,
            &field.include_if,
            Asked::of(&field.selections, declared),
        ),
        SelectionItem::Field(field) => (&field.skip_if, &field.include_if, Asked::Always),
        SelectionItem::InlineFragment(fragment) => (
            &fragment.skip_if,
            &fragment.include_if,
            Asked::of(&fragment.selections, declared),
        ),
        SelectionItem::FragmentSpread(_) => (&None, &None, Asked::Always),
    };
    // A condition on an undeclared variable does not count, so that the fetch is sent.
    let guard = |name: &Option<String>, value: bool| {
        let name = name.as_deref()?;
        let variable = declared.iter().position(|it| it.name == name)?;
        Some(Guard { variable, value })
    };
    let guards = [guard(skip_if, false), guard(include_if, true)];
    Branch {
        guards: guards.into_iter().flatten().collect(),
        inner,
    }
}
