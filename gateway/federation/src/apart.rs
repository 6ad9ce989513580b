//! Fields of one name with different arguments, in fragments on different types.
//!
//! ```graphql
//! {
//!   beings {
//!     ... on Owl { picture { sized(width: 800) } }
//!     ... on Elk { picture { sized(width: 1000) } }
//!   }
//! }
//! ```
//!
//! This is valid, because no object is an owl and an elk. The planner merges both pictures into one request for
//! entities and fails an assertion of its own. Planned one at a time, each field has its own request.

use hive_router_query_planner::ast::selection_item::SelectionItem;
use hive_router_query_planner::ast::selection_set::{FieldSelection, SelectionSet};
use hive_router_query_planner::planner::plan_nodes::{FetchNode, PlanNode};

use crate::divide::typename;

/// A place in an operation: the index of an item in each selection set, from the root.
type ItemPath = Vec<usize>;

/// The fields that differ from an earlier field with the same place in the response, or the fields and fragments
/// this number of levels above them.
pub(crate) fn conflicts(set: &SelectionSet, levels: usize) -> Vec<ItemPath> {
    let mut found = Vec::new();
    find(&[(Vec::new(), set)], &mut found);
    for path in &mut found {
        let length = path.len().saturating_sub(levels).max(1);
        path.truncate(length);
    }
    found.sort_unstable();
    found.dedup();
    // A place below another one is planned with it.
    let all = found.clone();
    found.retain(|path| {
        all.iter()
            .all(|other| other == path || !path.starts_with(other))
    });
    found
}

/// Looks at the selections of one object in the response.
fn find(scope: &[(ItemPath, &SelectionSet)], found: &mut Vec<ItemPath>) {
    let mut fields: Vec<(ItemPath, &FieldSelection)> = Vec::new();
    for (path, set) in scope {
        collect(path, set, &mut fields);
    }
    let mut is_seen = vec![false; fields.len()];
    for first in 0..fields.len() {
        if is_seen[first] {
            continue;
        }
        let mut below = Vec::new();
        for (index, (path, field)) in fields.iter().enumerate().skip(first) {
            let (_, one) = &fields[first];
            if is_seen[index] || field.selection_identifier() != one.selection_identifier() {
                continue;
            }
            is_seen[index] = true;
            if field.name == one.name && field.arguments == one.arguments {
                below.push((path.clone(), &field.selections));
            } else {
                found.push(path.clone());
            }
        }
        find(&below, found);
    }
}

fn collect<'a>(
    path: &ItemPath,
    set: &'a SelectionSet,
    fields: &mut Vec<(ItemPath, &'a FieldSelection)>,
) {
    for (index, item) in set.items.iter().enumerate() {
        let mut path = path.clone();
        path.push(index);
        match item {
            SelectionItem::Field(field) => fields.push((path, field)),
            SelectionItem::InlineFragment(inline) => collect(&path, &inline.selections, fields),
            // Normalized operations have no spreads.
            SelectionItem::FragmentSpread(_) => {}
        }
    }
}

/// The operation with only the field at this place.
pub(crate) fn only(set: &SelectionSet, path: &[usize]) -> SelectionSet {
    let mut items = Vec::new();
    if let Some((first, rest)) = path.split_first()
        && let Some(item) = set.items.get(*first)
    {
        let mut item = item.clone();
        if !rest.is_empty()
            && let Some(selections) = selections_of(&mut item)
        {
            *selections = only(selections, rest);
        }
        items.push(item);
    }
    SelectionSet { items }
}

/// The operation without the fields at these places.
pub(crate) fn without(set: &SelectionSet, paths: &[ItemPath]) -> SelectionSet {
    let mut set = set.clone();
    let mut paths: Vec<&ItemPath> = paths.iter().collect();
    // From the last to the first, so that the other indexes stay right.
    paths.sort_unstable();
    for path in paths.into_iter().rev() {
        remove(&mut set, path);
    }
    set
}

fn remove(set: &mut SelectionSet, path: &[usize]) {
    let Some((first, rest)) = path.split_first() else {
        return;
    };
    if rest.is_empty() {
        set.items.remove(*first);
    } else if let Some(selections) = set.items.get_mut(*first).and_then(selections_of) {
        remove(selections, rest);
    }
    // The selection must not be empty, because the places of the objects matter.
    if set.items.is_empty() {
        set.items.push(typename());
    }
}

fn selections_of(item: &mut SelectionItem) -> Option<&mut SelectionSet> {
    match item {
        SelectionItem::Field(field) => Some(&mut field.selections),
        SelectionItem::InlineFragment(inline) => Some(&mut inline.selections),
        SelectionItem::FragmentSpread(_) => None,
    }
}

/// Adds the root fields of a plan to the requests for root fields of another plan. They bring the keys for the
/// entities of the first plan. `None` if no request goes to the same subgraph.
pub(crate) fn add_root_fields(plan: &mut PlanNode, of: &PlanNode) -> Option<()> {
    let mut more = Vec::new();
    roots(of, &mut more);
    for fetch in more {
        let own = root_of(plan, &fetch.service_name)?;
        let operation = &mut own.operation.document.operation;
        let added = &fetch.operation.document.operation;
        let items = added.selection_set.items.iter().cloned();
        operation.selection_set.items.extend(items);
        let variables = operation.variable_definitions.get_or_insert_default();
        for variable in added.variable_definitions.iter().flatten() {
            if variables.iter().all(|known| known.name != variable.name) {
                variables.push(variable.clone());
            }
        }
    }
    Some(())
}

fn roots<'a>(node: &'a PlanNode, into: &mut Vec<&'a FetchNode>) {
    match node {
        PlanNode::Fetch(fetch) => into.push(fetch),
        PlanNode::Sequence(it) => it.nodes.iter().for_each(|node| roots(node, into)),
        PlanNode::Parallel(it) => it.nodes.iter().for_each(|node| roots(node, into)),
        _ => {}
    }
}

/// The first request for root fields of a subgraph.
fn root_of<'a>(node: &'a mut PlanNode, service: &str) -> Option<&'a mut FetchNode> {
    match node {
        PlanNode::Fetch(fetch) => (fetch.service_name == service).then_some(fetch),
        PlanNode::Sequence(it) => {
            let mut nodes = it.nodes.iter_mut();
            nodes.find_map(|node| root_of(node, service))
        }
        PlanNode::Parallel(it) => {
            let mut nodes = it.nodes.iter_mut();
            nodes.find_map(|node| root_of(node, service))
        }
        _ => None,
    }
}
