//! A second planner for supergraphs with interface objects.
//!
//! The planner finds no way from the root field of an interface object's subgraph to a field of one object type,
//! if a subgraph also resolves the interface object by its key. It finds the way if keys only leave that
//! subgraph. Other operations need the keys, so this planner is asked only if the first has no plan.
//!
//! Without the keys, no object leads back to the fields of its interface object. So such fields are selected from
//! the interface, above the fragments on objects.

use std::sync::OnceLock;

use graphql_tools::parser::schema::{Definition, Document, TypeDefinition, Value};
use hive_router_query_planner::ast::selection_item::SelectionItem;
use hive_router_query_planner::ast::selection_set::{
    FieldSelection, InlineFragmentSelection, SelectionSet,
};
use hive_router_query_planner::planner::Planner;

use crate::schema::Schema;
use crate::sdl::{Applied, argument};

/// A supergraph whose interface objects have keys that only leave their subgraphs.
pub(crate) struct OneWay {
    document: Document<'static, String>,
    /// Built for the first operation that needs it. `None` if it cannot be built.
    planner: OnceLock<Option<Planner>>,
}

impl OneWay {
    /// `None` if no subgraph resolves an interface object by a key.
    pub(crate) fn of(document: &Document<'static, String>) -> Option<OneWay> {
        let mut interfaces = document.definitions.iter().filter_map(|it| match it {
            Definition::TypeDefinition(TypeDefinition::Interface(it)) => Some(it),
            _ => None,
        });
        // Looked at first, because a supergraph may be large and rarely has interface objects.
        if !interfaces.any(|it| it.directives.iter().any(is_resolved)) {
            return None;
        }
        let mut document = document.clone();
        for definition in &mut document.definitions {
            if let Definition::TypeDefinition(TypeDefinition::Interface(interface)) = definition {
                let resolved = interface.directives.iter_mut();
                for directive in resolved.filter(|it| is_resolved(it)) {
                    let arguments = &mut directive.arguments;
                    arguments.retain(|(name, _)| name != "resolvable");
                    arguments.push(("resolvable".to_owned(), Value::Boolean(false)));
                }
            }
        }
        Some(OneWay {
            document,
            planner: OnceLock::new(),
        })
    }

    /// The planner. `build` makes it from the document.
    pub(crate) fn planner(
        &self,
        build: impl FnOnce(&Document<'static, String>) -> Option<Planner>,
    ) -> Option<&Planner> {
        self.planner.get_or_init(|| build(&self.document)).as_ref()
    }
}

/// True if a `@join__type` gives an interface object a key that its subgraph resolves.
fn is_resolved(directive: &Applied) -> bool {
    let is_true = |name: &str| argument(directive, name) == Some(&Value::Boolean(true));
    let is_false = |name: &str| argument(directive, name) == Some(&Value::Boolean(false));
    directive.name == "join__type"
        && is_true("isInterfaceObject")
        && argument(directive, "key").is_some()
        && !is_false("resolvable")
}

/// The selection with the fields of interfaces above the fragments on objects. It asks for the same fields, and
/// for some of them on more objects.
pub(crate) fn above_fragments(schema: &Schema, parent: &str, set: &SelectionSet) -> SelectionSet {
    let mut items = Vec::new();
    let mut raised = Vec::new();
    for item in &set.items {
        match item {
            SelectionItem::Field(field) => {
                let below = schema.field_type(parent, &field.name).unwrap_or_default();
                items.push(SelectionItem::Field(FieldSelection {
                    selections: above_fragments(schema, below, &field.selections),
                    ..field.clone()
                }));
            }
            SelectionItem::InlineFragment(inline) => {
                let set = above_fragments(schema, &inline.type_condition, &inline.selections);
                let is_bare = inline.skip_if.is_none() && inline.include_if.is_none();
                let (own, of_interface) = set
                    .items
                    .into_iter()
                    .partition(|item| !is_bare || !is_of_interface(schema, parent, item));
                raised.extend::<Vec<SelectionItem>>(of_interface);
                items.push(SelectionItem::InlineFragment(InlineFragmentSelection {
                    selections: SelectionSet { items: own },
                    ..inline.clone()
                }));
            }
            SelectionItem::FragmentSpread(_) => items.push(item.clone()),
        }
    }
    // Another field of the same name stands above. Then no field may be raised.
    if raised.iter().any(|item| has_rival(&items, item)) || has_rivals(&raised) {
        return set.clone();
    }
    for item in raised {
        if !items.contains(&item) {
            items.push(item);
        }
    }
    let is_empty = |item: &SelectionItem| matches!(item, SelectionItem::InlineFragment(it) if it.selections.items.is_empty());
    items.retain(|item| !is_empty(item));
    SelectionSet { items }
}

/// True for an unconditional field that the interface `parent` has.
fn is_of_interface(schema: &Schema, parent: &str, item: &SelectionItem) -> bool {
    let SelectionItem::Field(field) = item else {
        return false;
    };
    let is_bare = field.skip_if.is_none() && field.include_if.is_none();
    let is_known = field.name == "__typename" || schema.field_type(parent, &field.name).is_some();
    is_bare && is_known && !schema.is_object(parent.as_bytes())
}

fn has_rivals(items: &[SelectionItem]) -> bool {
    items.iter().any(|item| has_rival(items, item))
}

/// True if a field has the response key of another field, but another name or other arguments.
fn has_rival(items: &[SelectionItem], item: &SelectionItem) -> bool {
    let SelectionItem::Field(field) = item else {
        return false;
    };
    items.iter().any(|other| {
        matches!(other, SelectionItem::Field(other)
            if other.selection_identifier() == field.selection_identifier()
                && (other.name != field.name || other.arguments != field.arguments))
    })
}
