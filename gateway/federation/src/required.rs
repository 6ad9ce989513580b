//! Finds the fields that identify an entity, and their keys in the merged data.
//!
//! A required field usually has its own name as key. The key differs if the client requests the same field
//! with other arguments. The planner then gives one of the two an alias, but it does not rename all the
//! places that read the field. So fields with arguments are looked up in the operations that fetched them.

use hive_router_query_planner::ast::document::Document;
use hive_router_query_planner::ast::selection_item::SelectionItem;
use hive_router_query_planner::ast::selection_set::{FieldSelection, SelectionSet};

use crate::plan::{FetchPlan, Need, PathStep, Place, TypeSet, Unsupported, opener, response_keys};
use crate::schema::{Schema, inner_name};

/// The selections of all fetches for the objects at one place.
pub(crate) struct Sources<'a> {
    fetches: &'a [FetchPlan],
    documents: &'a [Document],
    path: Vec<Vec<u8>>,
    sources: Vec<Source<'a>>,
}

#[derive(Clone, Copy)]
struct Source<'a> {
    document: &'a Document,
    set: &'a SelectionSet,
}

impl<'a> Sources<'a> {
    /// The selections for the objects at the end of a path.
    pub(crate) fn at(
        fetches: &'a [FetchPlan],
        documents: &'a [Document],
        path: &[PathStep],
    ) -> Self {
        let path = response_keys(path);
        let path = path.into_iter().map(<[u8]>::to_vec).collect();
        Self::at_keys(fetches, documents, path)
    }

    fn at_keys(fetches: &'a [FetchPlan], documents: &'a [Document], path: Vec<Vec<u8>>) -> Self {
        let steps: Vec<&[u8]> = path.iter().map(Vec::as_slice).collect();
        let mut sources = Vec::new();
        for (fetch, document) in fetches.iter().zip(documents) {
            let root = Source {
                document,
                set: &document.operation.selection_set,
            };
            if fetch.inputs.is_empty() {
                root.descend(&steps, &mut sources);
            }
            for output in &fetch.outputs {
                let own = fetch.inputs.get(output.input);
                for Place { path: own, .. } in own.into_iter().flat_map(|input| &input.places) {
                    if let Some(rest) = steps.strip_prefix(response_keys(own).as_slice()) {
                        // Below an `_entities` field, the path starts again with the response key of that
                        // field. A query root is the response itself.
                        let is_root = fetch.inputs[output.input].is_root;
                        let key = (!is_root).then_some(output.key.as_slice());
                        let steps: Vec<&[u8]> =
                            key.into_iter().chain(rest.iter().copied()).collect();
                        root.descend(&steps, &mut sources);
                    }
                }
            }
        }
        Sources {
            fetches,
            documents,
            path,
            sources,
        }
    }

    /// The selections for the objects below a key.
    fn below(&self, key: &[u8]) -> Self {
        let mut path = self.path.clone();
        path.push(key.to_vec());
        Self::at_keys(self.fetches, self.documents, path)
    }

    /// The response key of a field with these arguments.
    fn key_of(&self, name: &str, asked: &FieldSelection) -> Option<&'a str> {
        let mut found = None;
        for source in &self.sources {
            source.each_field(&mut |_, field| {
                if field.name == name && field.arguments() == asked.arguments() {
                    // The first fetch decides, because equal fields with equal arguments have equal values.
                    found.get_or_insert(field.selection_identifier());
                }
            });
        }
        found
    }
}

impl<'a> Source<'a> {
    fn each_field(self, visit: &mut impl FnMut(Source<'a>, &'a FieldSelection)) {
        for item in &self.set.items {
            let set = match item {
                SelectionItem::Field(field) => {
                    visit(self, field);
                    continue;
                }
                SelectionItem::InlineFragment(inline) => Some(&inline.selections),
                SelectionItem::FragmentSpread(name) => self
                    .document
                    .fragments
                    .iter()
                    .find(|fragment| fragment.name == *name)
                    .map(|fragment| &fragment.selection_set),
            };
            if let Some(set) = set {
                Source { set, ..self }.each_field(visit);
            }
        }
    }

    fn descend(self, path: &[&[u8]], into: &mut Vec<Source<'a>>) {
        let Some((first, rest)) = path.split_first() else {
            into.push(self);
            return;
        };
        let mut below = Vec::new();
        self.each_field(&mut |source, field| {
            if field.selection_identifier().as_bytes() == *first {
                let set = &field.selections;
                below.push(Source { set, ..source });
            }
        });
        for source in below {
            source.descend(rest, into);
        }
    }
}

/// Compiles the selection that identifies an entity.
pub(crate) fn needs(
    set: &SelectionSet,
    parent: Option<&str>,
    schema: &Schema,
    sources: &Sources<'_>,
) -> Result<Vec<Need>, Unsupported> {
    let mut needs: Vec<Need> = Vec::new();
    for item in &set.items {
        match item {
            SelectionItem::Field(field) if field.name == "__typename" => {
                // `__typename` comes first, independent of the planner's order.
                needs.insert(0, Need::Typename);
            }
            SelectionItem::Field(field) => {
                let need = self::field(field, parent, schema, sources)?;
                if needs.iter().any(|known| is_rival(known, &need)) {
                    return Err(Unsupported(
                        "requires one field of an entity with two sets of arguments at once",
                    ));
                }
                needs.push(need);
            }
            SelectionItem::InlineFragment(inline) => needs.push(Need::Fragment {
                name: inline.type_condition.clone(),
                types: TypeSet::of([&inline.type_condition], schema),
                needs: self::needs(
                    &inline.selections,
                    Some(&inline.type_condition),
                    schema,
                    sources,
                )?,
            }),
            // Inputs are not minified. So they have no named fragments.
            SelectionItem::FragmentSpread(_) => {}
        }
    }
    Ok(needs)
}

fn field(
    field: &FieldSelection,
    parent: Option<&str>,
    schema: &Schema,
    sources: &Sources<'_>,
) -> Result<Need, Unsupported> {
    // The alias is the name of the field in the subgraph. The name is the key that the planner chose for the
    // value.
    let known_as = field.alias.as_deref().unwrap_or(&field.name);
    let definition = parent
        .and_then(|parent| schema.named(parent))
        .and_then(|parent| parent.field(known_as));
    let inner = definition.map(|it| inner_name(&it.field_type));
    let key = match field.arguments() {
        // A field without arguments has one value, under the field's name.
        Some(_) => sources.key_of(known_as, field).unwrap_or(&field.name),
        None => &field.name,
    };
    let needs = if field.selections.items.is_empty() {
        Vec::new()
    } else {
        let below = sources.below(key.as_bytes());
        needs(&field.selections, inner, schema, &below)?
    };
    Ok(Need::Field {
        key: key.as_bytes().to_vec(),
        opener: opener(known_as),
        // The client's schema lacks inaccessible fields. They count as nullable, and the subgraph decides
        // about a null.
        non_null: definition.is_some_and(|it| it.field_type.to_string().ends_with('!')),
        is_optional: false,
        needs,
    })
}

/// True if two fields would be one member of a representation with two values.
fn is_rival(one: &Need, other: &Need) -> bool {
    match (one, other) {
        (
            Need::Field { key, opener, .. },
            Need::Field {
                key: other_key,
                opener: other_opener,
                ..
            },
        ) => opener == other_opener && key != other_key,
        _ => false,
    }
}
