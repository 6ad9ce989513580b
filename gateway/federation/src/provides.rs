//! Handles supergraphs with two `@provides`, or two levels of one, that the planner would confuse.
//!
//! The planner (2.10) numbers the fields with `@provides` of each type, starting at one. For each subgraph,
//! type and number it has one node for the provided fields. Fields of two types with one number share this
//! node, and two places of one type in one `@provides` do, too. Each then seems to provide the fields of the
//! other.
//!
//! Most operations are still planned correctly. So the gateway compares each plan with the provided fields
//! (`permission`). If a plan requests more, the operation is planned again with [`reduced`] provisions.

mod permission;

pub(crate) use permission::Permissions;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use graphql_tools::parser::query::{
    Definition as QueryDefinition, OperationDefinition, Selection, SelectionSet, TypeCondition,
    parse_query,
};
use graphql_tools::parser::schema::{Definition, Document, Field, TypeDefinition, Value};

use crate::schema::inner_name;
use crate::sdl::{self, composite};

type Text = String;

/// The selected fields of each type.
type Selected = BTreeMap<String, BTreeSet<String>>;

/// One `@provides`, with its place in the document.
struct Provision {
    graph: String,
    definition: usize,
    field: usize,
    directive: usize,
    returns: String,
    set: SelectionSet<'static, Text>,
    selected: Selected,
}

/// Returns the document with provisions that the planner cannot confuse. `None` if the document has only such
/// provisions. Levels within one provision are cut off. The later of two conflicting provisions is removed.
/// The remaining provisions can cost an additional fetch, and can make some fields unreachable.
pub(crate) fn reduced(document: &Document<'static, Text>) -> Option<Document<'static, Text>> {
    let types = types_of(document);
    let mut kept: Vec<Provision> = Vec::new();
    let mut changed = Vec::new();
    for mut provision in provisions(document) {
        let has_levels = is_ambiguous(&provision);
        if has_levels {
            let path = vec![provision.returns.clone()];
            provision.set = without_repetition(&types, &path, &provision.set);
            provision.selected.clear();
            let (returns, set) = (&provision.returns, &provision.set);
            collect_selected(&types, returns, set, &mut provision.selected);
        }
        let has_conflict = provision.set.items.is_empty()
            || is_ambiguous(&provision)
            || kept.iter().any(|other| conflict(other, &provision));
        if has_conflict {
            provision.set.items.clear();
            changed.push(provision);
        } else if has_levels {
            kept.push(provision);
            changed.extend(kept.last().map(Provision::copy));
        } else {
            kept.push(provision);
        }
    }
    if changed.is_empty() {
        return None;
    }
    let mut reduced = document.clone();
    for provision in changed {
        let fields = reduced.definitions.get_mut(provision.definition);
        let field = fields
            .and_then(fields_mut)
            .and_then(|fields| fields.get_mut(provision.field));
        let directive = field.and_then(|field| field.directives.get_mut(provision.directive));
        if let Some(directive) = directive {
            // Only the argument changes. The other arguments of `@join__field` contain the field's subgraph.
            let arguments = &mut directive.arguments;
            arguments.retain(|(name, _)| name != "provides");
            if !provision.set.items.is_empty() {
                let text = Value::String(text_of(&provision.set));
                arguments.push(("provides".to_owned(), text));
            }
        }
    }
    Some(reduced)
}

impl Provision {
    fn copy(&self) -> Provision {
        Provision {
            graph: self.graph.clone(),
            returns: self.returns.clone(),
            set: self.set.clone(),
            selected: Selected::new(),
            ..*self
        }
    }
}

/// A selection in the form of `provides`, without the outer braces.
fn text_of(set: &SelectionSet<'static, Text>) -> String {
    let text = set.to_string();
    let inside = text.trim().trim_start_matches('{');
    inside.strip_suffix('}').unwrap_or(inside).trim().to_owned()
}

/// True if a type is selected in two ways.
fn is_ambiguous(provision: &Provision) -> bool {
    provision.selected.values().any(|ways| ways.len() > 1)
}

/// A selection without fields that return a type on the path to them.
fn without_repetition(
    types: &Types<'_>,
    path: &[String],
    set: &SelectionSet<'static, Text>,
) -> SelectionSet<'static, Text> {
    let mut out = set.clone();
    let items = set.items.iter().filter_map(|item| match item {
        Selection::Field(field) if !field.selection_set.items.is_empty() => {
            let returns = returned(types, path.last()?, &field.name)?;
            if path.iter().any(|known| known == returns) {
                return None;
            }
            let mut field = field.clone();
            let path = [path, &[returns.to_owned()]].concat();
            field.selection_set = without_repetition(types, &path, &field.selection_set);
            (!field.selection_set.items.is_empty()).then_some(Selection::Field(field))
        }
        Selection::InlineFragment(inline) => {
            let mut inline = inline.clone();
            let mut path = path.to_vec();
            if let Some(TypeCondition::On(name)) = &inline.type_condition {
                path.push(name.clone());
            }
            inline.selection_set = without_repetition(types, &path, &inline.selection_set);
            let is_left = !inline.selection_set.items.is_empty();
            is_left.then_some(Selection::InlineFragment(inline))
        }
        other => Some(other.clone()),
    });
    out.items = items.collect();
    out
}

/// True if the planner confuses two provisions. Fields of one type have different numbers, but fields of two
/// types can have equal numbers.
fn conflict(one: &Provision, other: &Provision) -> bool {
    one.graph == other.graph
        && one.definition != other.definition
        && one
            .selected
            .iter()
            .any(|(name, ways)| other.selected.get(name).is_some_and(|other| other != ways))
}

/// The fields of each type, without types that have no fields.
type Types<'a> = HashMap<&'a str, &'a [Field<'static, Text>]>;

fn types_of<'a>(document: &'a Document<'static, Text>) -> Types<'a> {
    let definitions = document.definitions.iter();
    definitions
        .filter_map(composite)
        .map(|it| (it.name, it.fields))
        .collect()
}

/// The name of the type that a field returns.
fn returned<'a>(types: &Types<'a>, parent: &str, field: &str) -> Option<&'a str> {
    let definition = types.get(parent)?.iter().find(|it| it.name == field)?;
    Some(inner_name(&definition.field_type))
}

fn provisions(document: &Document<'static, Text>) -> Vec<Provision> {
    let types = types_of(document);
    let mut found = Vec::new();
    for (definition, it) in document.definitions.iter().enumerate() {
        let fields = composite(it).map_or(&[][..], |it| it.fields);
        for (field, it) in fields.iter().enumerate() {
            for (directive, of) in it.directives.iter().enumerate() {
                let (Some(graph), Some(text)) = (sdl::graph(of), sdl::text(of, "provides")) else {
                    continue;
                };
                if of.name != "join__field" {
                    continue;
                }
                // The planner reports an unreadable selection with its place.
                let Some(set) = selection(text) else {
                    continue;
                };
                let returns = inner_name(&it.field_type);
                let mut selected = Selected::new();
                collect_selected(&types, returns, &set, &mut selected);
                found.push(Provision {
                    graph: graph.to_owned(),
                    definition,
                    field,
                    directive,
                    returns: returns.to_owned(),
                    set,
                    selected,
                });
            }
        }
    }
    found
}

/// Parses a selection in the form of `provides`, `requires` and keys, without the outer braces.
pub(crate) fn selection(text: &str) -> Option<SelectionSet<'static, Text>> {
    let document = parse_query::<Text>(&format!("{{{text}}}"))
        .ok()?
        .into_static();
    document.definitions.into_iter().find_map(|it| match it {
        QueryDefinition::Operation(OperationDefinition::SelectionSet(set)) => Some(set),
        _ => None,
    })
}

fn collect_selected(
    types: &Types<'_>,
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
                if let Some(inner) = returned(types, parent, &field.name) {
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
        let document = parse_schema::<Text>(sdl).unwrap().into_static();
        let text = reduced(&document).unwrap_or(document).to_string();
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
    fn of_one_that_leads_back_to_a_type_the_first_level_stays() {
        insta::assert_snapshot!(left(
            r#"
            type Query { user: User @join__field(graph: A, provides: "name friend { id }") }
            type User { id: ID name: String friend: User }
            "#
        ), @r#"user: User @join__field(graph: A, provides: "name")"#);
    }

    #[test]
    fn one_that_selects_differently_from_one_type_side_by_side_goes() {
        let sdl = r#"
            type Query { pair: Pair @join__field(graph: A, provides: "a { id } b { name }") }
            type Pair { a: User b: User }
            type User { id: ID name: String }
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
