//! A second planner for supergraphs with interface objects.
//!
//! The planner finds no way from the root field of an interface object's subgraph to a field of one object type,
//! if a subgraph also resolves the interface object by its key. It finds the way if keys only leave that
//! subgraph. Other operations need the keys, so this planner is asked only if the first has no plan.
//!
//! Without the keys, no object leads back to the fields of its interface object. So such fields are selected from
//! the interface, above the fragments on objects. A field under a condition keeps it there, if this planner finds
//! no plan otherwise.

use std::sync::OnceLock;

use graphql_tools::parser::schema::{Definition, Document, TypeDefinition, Value};
use hive_router_query_planner::ast::selection_item::SelectionItem;
use hive_router_query_planner::ast::selection_set::{
    FieldSelection, InlineFragmentSelection, SelectionSet,
};
use hive_router_query_planner::planner::Planner;

use crate::divide::typename;
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
pub(crate) fn above_fragments(
    schema: &Schema,
    parent: &str,
    set: &SelectionSet,
    raises: Raises,
) -> SelectionSet {
    let mut items = Vec::new();
    let mut raised = Vec::new();
    for item in &set.items {
        match item {
            SelectionItem::Field(field) => {
                let below = schema.field_type(parent, &field.name).unwrap_or_default();
                items.push(SelectionItem::Field(FieldSelection {
                    selections: above_fragments(schema, below, &field.selections, raises),
                    ..field.clone()
                }));
            }
            SelectionItem::InlineFragment(inline) => {
                let condition = &inline.type_condition;
                let set = above_fragments(schema, condition, &inline.selections, raises);
                let mut own = Vec::new();
                for item in set.items {
                    match raises.above(parent, inline, &item) {
                        Some(above) if is_of_interface(schema, parent, &item) => raised.push(above),
                        _ => own.push(item),
                    }
                }
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
        // Fields of the planner are equal without their conditions.
        let is_there = match raises {
            Raises::Bare => items.contains(&item),
            Raises::All => items.iter().any(|it| it.to_string() == item.to_string()),
        };
        if !is_there {
            items.push(item);
        }
    }
    let is_empty = |item: &SelectionItem| matches!(item, SelectionItem::InlineFragment(it) if it.selections.items.is_empty());
    items.retain(|item| !is_empty(item));
    let is_conditional = |item: &SelectionItem| matches!(item, SelectionItem::InlineFragment(it) if it.skip_if.is_some() || it.include_if.is_some());
    if raises == Raises::All
        && !schema.is_object(parent.as_bytes())
        && items.iter().any(is_conditional)
        && !items.iter().any(|it| it.to_string() == "__typename")
    {
        // Without it, only a request under a condition says which objects the fragment is for.
        items.push(typename());
    }
    SelectionSet { items }
}

/// The fields that leave fragments on objects.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Raises {
    /// Fields without conditions.
    Bare,
    /// All fields. A field takes the conditions of its fragment with it.
    All,
}

impl Raises {
    /// The field above its fragment, selected from `parent`. `None` if it must stay in the fragment.
    fn above(
        self,
        parent: &str,
        inline: &InlineFragmentSelection,
        item: &SelectionItem,
    ) -> Option<SelectionItem> {
        let SelectionItem::Field(field) = item else {
            return None;
        };
        let fragment = [inline.skip_if.as_ref(), inline.include_if.as_ref()];
        let own = [field.skip_if.as_ref(), field.include_if.as_ref()];
        let is_bare = fragment.iter().chain(&own).all(|it| it.is_none());
        // A field has one condition of each kind.
        let has_room = fragment
            .iter()
            .zip(&own)
            .all(|(one, other)| one.is_none() || other.is_none() || one == other);
        if self == Self::Bare && !is_bare {
            return None;
        }
        if !has_room {
            return Some(SelectionItem::InlineFragment(InlineFragmentSelection {
                type_condition: parent.to_owned(),
                selections: SelectionSet {
                    items: vec![item.clone()],
                },
                ..inline.clone()
            }));
        }
        let [skip_if, include_if] = [0, 1].map(|kind| fragment[kind].or(own[kind]).cloned());
        Some(SelectionItem::Field(FieldSelection {
            skip_if,
            include_if,
            ..field.clone()
        }))
    }
}

/// True for a field that the interface `parent` has.
fn is_of_interface(schema: &Schema, parent: &str, item: &SelectionItem) -> bool {
    let SelectionItem::Field(field) = item else {
        return false;
    };
    let is_known = field.name == "__typename" || schema.field_type(parent, &field.name).is_some();
    is_known && !schema.is_object(parent.as_bytes())
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
