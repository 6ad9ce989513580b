//! Removes `@provides` where the planner would mix up two of them.
//!
//! The planner (2.10) numbers the fields with `@provides` of each type from one, and keeps
//! for each subgraph, type and number one node of what is provided there. Two types'
//! fields of one number share that node: each seems to provide what the other provides. So
//! of two such fields that select differently from a type they share, one loses its
//! `@provides`. That costs a fetch and never a wrong answer, for `@provides` is permission,
//! not duty.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use graphql_tools::parser::query::{
    Definition as QueryDefinition, OperationDefinition, Selection, SelectionSet, TypeCondition,
    parse_query,
};
use graphql_tools::parser::schema::{
    Definition, Directive, Document, Field, TypeDefinition, Value,
};

use crate::schema::inner_name;

type Text = String;

/// What is selected of each type.
type Selected = BTreeMap<String, BTreeSet<String>>;

/// One `@provides`, and where it stands.
struct Provision {
    graph: String,
    definition: usize,
    field: usize,
    directive: usize,
    selected: Selected,
}

/// Removes the fewest provisions, in document order, that leave no two confused.
pub(crate) fn remove_conflicts(document: &mut Document<'static, Text>) {
    let mut kept: Vec<Provision> = Vec::new();
    let mut dropped = Vec::new();
    for provision in provisions(document) {
        let has_conflict = provision.selected.values().any(|ways| ways.len() > 1)
            || kept.iter().any(|other| conflict(other, &provision));
        if has_conflict {
            dropped.push(provision);
        } else {
            kept.push(provision);
        }
    }
    // Removed after the loop, because `provisions` borrows the document.
    for provision in dropped {
        let Some(fields) = document
            .definitions
            .get_mut(provision.definition)
            .and_then(fields_mut)
        else {
            continue;
        };
        let directive = fields
            .get_mut(provision.field)
            .and_then(|field| field.directives.get_mut(provision.directive));
        if let Some(directive) = directive {
            // Only the argument goes; the rest of `@join__field` says where the field lives.
            directive.arguments.retain(|(name, _)| name != "provides");
        }
    }
}

/// Fields of one type have numbers of their own; those of two may have the same.
fn conflict(one: &Provision, other: &Provision) -> bool {
    one.graph == other.graph
        && one.definition != other.definition
        && one
            .selected
            .iter()
            .any(|(name, ways)| other.selected.get(name).is_some_and(|other| other != ways))
}

fn provisions(document: &Document<'static, Text>) -> Vec<Provision> {
    let types: HashMap<&str, &[Field<'static, Text>]> = document
        .definitions
        .iter()
        .filter_map(|definition| Some((name_of(definition)?, fields(definition)?)))
        .collect();
    let mut found = Vec::new();
    for (definition, it) in document.definitions.iter().enumerate() {
        for (field, it) in fields(it).into_iter().flatten().enumerate() {
            for (directive, of) in it.directives.iter().enumerate() {
                let (Some(Value::Enum(graph)), Some(Value::String(text))) =
                    (argument(of, "graph"), argument(of, "provides"))
                else {
                    continue;
                };
                let mut selected = Selected::new();
                if let Some(set) = selection(text) {
                    collect_selected(&types, inner_name(&it.field_type), &set, &mut selected);
                }
                found.push(Provision {
                    graph: graph.clone(),
                    definition,
                    field,
                    directive,
                    selected,
                });
            }
        }
    }
    found
}

fn selection(text: &str) -> Option<SelectionSet<'static, Text>> {
    let document = parse_query::<Text>(&format!("{{{text}}}"))
        .ok()?
        .into_static();
    document.definitions.into_iter().find_map(|it| match it {
        QueryDefinition::Operation(OperationDefinition::SelectionSet(set)) => Some(set),
        _ => None,
    })
}

fn collect_selected(
    types: &HashMap<&str, &[Field<'static, Text>]>,
    parent: &str,
    set: &SelectionSet<'static, Text>,
    selected: &mut Selected,
) {
    selected
        .entry(parent.to_owned())
        .or_default()
        .insert(set.to_string());
    for item in &set.items {
        match item {
            Selection::Field(field) if !field.selection_set.items.is_empty() => {
                let definition = types
                    .get(parent)
                    .and_then(|fields| fields.iter().find(|it| it.name == field.name));
                if let Some(definition) = definition {
                    let inner = inner_name(&definition.field_type);
                    collect_selected(types, inner, &field.selection_set, selected);
                }
            }
            Selection::InlineFragment(inline) => {
                let name = match &inline.type_condition {
                    Some(TypeCondition::On(name)) => name,
                    None => parent,
                };
                collect_selected(types, name, &inline.selection_set, selected);
            }
            Selection::Field(_) | Selection::FragmentSpread(_) => {}
        }
    }
}

fn argument<'a>(
    directive: &'a Directive<'static, Text>,
    name: &str,
) -> Option<&'a Value<'static, Text>> {
    let mut arguments = directive.arguments.iter();
    let found = arguments.find(|(known, _)| known == name);
    found
        .map(|(_, value)| value)
        .filter(|_| directive.name == "join__field")
}

fn name_of<'a>(definition: &'a Definition<'static, Text>) -> Option<&'a str> {
    match definition {
        Definition::TypeDefinition(TypeDefinition::Object(it)) => Some(&it.name),
        Definition::TypeDefinition(TypeDefinition::Interface(it)) => Some(&it.name),
        _ => None,
    }
}

fn fields<'a>(definition: &'a Definition<'static, Text>) -> Option<&'a [Field<'static, Text>]> {
    match definition {
        Definition::TypeDefinition(TypeDefinition::Object(it)) => Some(&it.fields),
        Definition::TypeDefinition(TypeDefinition::Interface(it)) => Some(&it.fields),
        _ => None,
    }
}

fn fields_mut<'a>(
    definition: &'a mut Definition<'static, Text>,
) -> Option<&'a mut Vec<Field<'static, Text>>> {
    match definition {
        Definition::TypeDefinition(TypeDefinition::Object(it)) => Some(&mut it.fields),
        Definition::TypeDefinition(TypeDefinition::Interface(it)) => Some(&mut it.fields),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use graphql_tools::parser::schema::parse_schema;

    use super::*;

    fn left(sdl: &str) -> String {
        let mut document = parse_schema::<Text>(sdl).unwrap().into_static();
        remove_conflicts(&mut document);
        let text = document.to_string();
        let lines = text.lines().filter(|line| line.contains("provides"));
        lines.map(str::trim).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn of_two_types_fields_that_provide_differently_the_second_gives_way() {
        insta::assert_snapshot!(left(
            r#"
            type Post { author: User @join__field(graph: A, provides: "name") }
            type Query {
              post: Post @join__field(graph: A, provides: "author { name age }")
              other: Post @join__field(graph: B, provides: "author { name age }")
              same: [User] @join__field(graph: A, provides: "name")
            }
            type User { name: String age: Int }
            "#
        ), @r#"
        author: User @join__field(graph: A, provides: "name")
        other: Post @join__field(graph: B, provides: "author { name age }")
        same: [User] @join__field(graph: A, provides: "name")
        "#);
    }

    #[test]
    fn one_that_selects_differently_from_one_type_confuses_itself() {
        let sdl = r#"
            type Query { user: User @join__field(graph: A, provides: "name friend { id }") }
            type User { id: ID name: String friend: User }
        "#;
        assert_eq!(left(sdl), "");
    }

    #[test]
    fn fields_of_one_type_are_told_apart() {
        let sdl = r#"
            type Query {
              a: User @join__field(graph: A, provides: "name")
              b: User @join__field(graph: A, provides: "id")
            }
            type User { id: ID name: String }
        "#;
        assert_eq!(left(sdl).lines().count(), 2);
    }
}
