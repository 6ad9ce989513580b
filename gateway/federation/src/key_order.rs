//! Moves `__typename` and the keys of entities to the front of their selections.
//!
//! A GraphQL server does not depend on the order of fields. Some fixtures do, because they compare request
//! bodies with the bodies of Apollo's planner. It begins the parent's selection with the key.

use hive_router_query_planner::ast::document::Document;
use hive_router_query_planner::ast::selection_item::SelectionItem;
use hive_router_query_planner::ast::selection_set::SelectionSet;

use crate::plan::{FetchPlan, Need, PathStep, response_keys};

/// Reorders the documents. Each belongs to one fetch.
pub(crate) fn keys_first(fetches: &[FetchPlan], documents: &mut [Document]) {
    for input in fetches.iter().flat_map(|fetch| &fetch.inputs) {
        for place in &input.places {
            let mut keys = Vec::new();
            key_names(&place.needs, &mut keys);
            // All fetches, because the plan does not contain the fetch that returns an entity's keys.
            for (fetch, document) in fetches.iter().zip(documents.iter_mut()) {
                reorder_in(fetch, document, &place.path, &keys);
            }
        }
    }
}

fn key_names<'a>(needs: &'a [Need], keys: &mut Vec<&'a [u8]>) {
    for need in needs {
        match need {
            Need::Typename => keys.push(b"__typename"),
            Need::Field { key, .. } => keys.push(key),
            Need::Fragment { needs, .. } => key_names(needs, keys),
        }
    }
}

fn reorder_in(fetch: &FetchPlan, document: &mut Document, path: &[PathStep], keys: &[&[u8]]) {
    let set = &mut document.operation.selection_set;
    if fetch.inputs.is_empty() {
        descend(set, &response_keys(path), keys);
        return;
    }
    for output in &fetch.outputs {
        let Some(input) = fetch.inputs.get(output.input) else {
            continue;
        };
        let entities = set.items.iter_mut().find_map(|item| match item {
            SelectionItem::Field(field)
                if field.selection_identifier().as_bytes() == output.key =>
            {
                Some(&mut field.selections)
            }
            _ => None,
        });
        let Some(entities) = entities else {
            continue;
        };
        for own in &input.places {
            if let Some(rest) =
                response_keys(path).strip_prefix(response_keys(&own.path).as_slice())
                && !rest.is_empty()
            {
                descend(entities, rest, keys);
            }
        }
    }
}

fn descend(set: &mut SelectionSet, path: &[&[u8]], keys: &[&[u8]]) {
    let Some((first, rest)) = path.split_first() else {
        reorder(set, keys);
        return;
    };
    for item in &mut set.items {
        match item {
            SelectionItem::Field(field) if field.selection_identifier().as_bytes() == *first => {
                descend(&mut field.selections, rest, keys);
            }
            // `path` has no steps for type conditions. So a fragment consumes no step.
            SelectionItem::InlineFragment(inline) => descend(&mut inline.selections, path, keys),
            _ => {}
        }
    }
}

fn reorder(set: &mut SelectionSet, keys: &[&[u8]]) {
    // The sort is stable: fields that are not keys keep the planner's order.
    set.items.sort_by_key(|item| match item {
        SelectionItem::Field(field) => keys
            .iter()
            .position(|key| field.selection_identifier().as_bytes() == *key)
            .unwrap_or(keys.len()),
        _ => keys.len(),
    });
}
