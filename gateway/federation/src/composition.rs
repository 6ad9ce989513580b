//! The types, fields and keys of each subgraph, read from the directives of composition (`@join__…`).

use std::collections::{BTreeSet, HashMap, HashSet};

use graphql_tools::parser::schema::{Definition, Document, TypeDefinition, Value};
use hive_router_query_planner::ast::selection_item::SelectionItem;
use hive_router_query_planner::ast::selection_set::SelectionSet;

use crate::provides::selection;
use crate::schema::inner_name;
use crate::sdl::{self, Composite, composite};

/// Position of a subgraph in the supergraph.
pub(crate) type Graph = usize;

/// The types and fields of all subgraphs.
#[derive(Debug, Default)]
pub(crate) struct Composition {
    /// The types of each subgraph, by every name that its operations may use.
    types: HashSet<(Graph, String)>,
    /// The interface objects of each subgraph. Such an interface stands for all its objects.
    interface_objects: HashMap<Graph, BTreeSet<String>>,
    fields: HashMap<String, HashMap<String, ComposedField>>,
    /// The keys of each type with keys, in the order of the schema.
    keys: HashMap<String, Vec<EntityKey>>,
}

/// A key for entities of a type in one subgraph.
#[derive(Debug)]
struct EntityKey {
    graph: Graph,
    fields: SelectionSet,
    /// True if the subgraph resolves entities by this key.
    is_resolvable: bool,
}

/// A field of the supergraph.
#[derive(Debug)]
pub(crate) struct ComposedField {
    /// The name of the innermost type, without list and non-null markers.
    pub(crate) returns: String,
    /// The complete type of the field, such as `[ID!]!`.
    kind: String,
    /// The details per subgraph. `None` if every subgraph with the type has the field without special
    /// details.
    graphs: Option<HashMap<Graph, Share>>,
}

/// Details of a field in one subgraph.
#[derive(Debug, Default)]
struct Share {
    /// Type of the field in the subgraph, if it differs from the supergraph's type.
    kind: Option<String>,
    /// The fields of the entity that the subgraph requires for this field.
    requires: Option<SelectionSet>,
}

impl Composition {
    /// Reads a supergraph. `graphs` contains the values of `join__Graph` in their order.
    pub(crate) fn of(document: &Document<'static, String>, graphs: &[String]) -> Composition {
        let mut composition = Composition::default();
        let graph_of = |directive: &sdl::Applied| {
            let graph = sdl::graph(directive)?;
            graphs.iter().position(|it| it == graph)
        };
        for definition in &document.definitions {
            let Definition::TypeDefinition(definition) = definition else {
                continue;
            };
            let (name, directives) = match definition {
                TypeDefinition::Object(it) => (&it.name, &it.directives),
                TypeDefinition::Interface(it) => (&it.name, &it.directives),
                TypeDefinition::Union(it) => (&it.name, &it.directives),
                _ => continue,
            };
            for directive in directives.iter().filter(|it| it.name == "join__type") {
                let Some(graph) = graph_of(directive) else {
                    continue;
                };
                composition.types.insert((graph, name.clone()));
                let key = sdl::text(directive, "key").and_then(selection);
                if let Some(key) = key {
                    let resolvable = sdl::argument(directive, "resolvable");
                    let keys = composition.keys.entry(name.clone());
                    keys.or_default().push(EntityKey {
                        graph,
                        fields: key.into(),
                        is_resolvable: resolvable != Some(&Value::Boolean(false)),
                    });
                }
                let is_object = sdl::argument(directive, "isInterfaceObject");
                if is_object == Some(&Value::Boolean(true)) {
                    let interfaces = composition.interface_objects.entry(graph);
                    interfaces.or_default().insert(name.clone());
                }
            }
        }
        for composite in document.definitions.iter().filter_map(composite) {
            let fields = fields_of(composite, &graph_of);
            composition.fields.insert(composite.name.to_owned(), fields);
        }
        composition
    }

    /// True if a subgraph has a type.
    pub(crate) fn has(&self, graph: Graph, name: &str) -> bool {
        // This allocates a key for each lookup, because plans are checked rarely.
        self.types.contains(&(graph, name.to_owned()))
    }

    /// True if an interface stands for all its objects in a subgraph.
    pub(crate) fn is_interface_object(&self, graph: Graph, name: &str) -> bool {
        let interfaces = self.interface_objects.get(&graph);
        interfaces.is_some_and(|interfaces| interfaces.contains(name))
    }

    /// The keys for entities of a type in a subgraph.
    pub(crate) fn keys(&self, graph: Graph, name: &str) -> impl Iterator<Item = &SelectionSet> {
        self.keys_in(graph, name).map(|key| &key.fields)
    }

    /// The keys by which a subgraph resolves entities of a type.
    pub(crate) fn resolvable_keys(
        &self,
        graph: Graph,
        name: &str,
    ) -> impl Iterator<Item = &SelectionSet> {
        let keys = self.keys_in(graph, name).filter(|key| key.is_resolvable);
        keys.map(|key| &key.fields)
    }

    fn keys_in(&self, graph: Graph, name: &str) -> impl Iterator<Item = &EntityKey> {
        let keys = self.keys.get(name).into_iter().flatten();
        keys.filter(move |key| key.graph == graph)
    }

    /// True if a type has keys in no subgraph. Its objects are reached only through their parents.
    pub(crate) fn is_value_type(&self, name: &str) -> bool {
        !self.keys.contains_key(name)
    }

    /// True if a subgraph resolves all selections for objects of a type by itself.
    pub(crate) fn resolves(&self, graph: Graph, parent: &str, set: &SelectionSet) -> bool {
        self.has(graph, parent)
            && set.items.iter().all(|item| match item {
                SelectionItem::Field(field) if field.name == "__typename" => true,
                SelectionItem::Field(field) => self.field(parent, &field.name).is_some_and(|it| {
                    let is_leaf = field.selections.items.is_empty();
                    it.is_in(graph)
                        && it.requires(graph).is_none()
                        && (is_leaf || self.resolves(graph, &it.returns, &field.selections))
                }),
                SelectionItem::InlineFragment(inline) => {
                    self.resolves(graph, &inline.type_condition, &inline.selections)
                }
                SelectionItem::FragmentSpread(_) => false,
            })
    }

    /// True if a type has a single entity in a subgraph: one of its keys is only `__typename`.
    pub(crate) fn is_singleton(&self, graph: Graph, name: &str) -> bool {
        let is_typename = |item: &SelectionItem| matches!(item, SelectionItem::Field(field) if field.name == "__typename");
        let mut keys = self.keys(graph, name);
        keys.any(|key| key.items.iter().all(is_typename))
    }

    /// All interface objects of a subgraph, sorted by name.
    pub(crate) fn interface_objects(&self, graph: Graph) -> impl Iterator<Item = &String> {
        self.interface_objects.get(&graph).into_iter().flatten()
    }

    /// Finds a field of a type.
    pub(crate) fn field(&self, parent: &str, name: &str) -> Option<&ComposedField> {
        self.fields.get(parent)?.get(name)
    }
}

impl ComposedField {
    /// True if a subgraph with the type also has the field.
    pub(crate) fn is_in(&self, graph: Graph) -> bool {
        let graphs = self.graphs.as_ref();
        graphs.is_none_or(|graphs| graphs.contains_key(&graph))
    }

    /// The fields of the entity that the subgraph requires to resolve this field.
    pub(crate) fn requires(&self, graph: Graph) -> Option<&SelectionSet> {
        self.share(graph)?.requires.as_ref()
    }

    /// A subgraph with its required fields for this field. `None` unless every subgraph with the field
    /// requires other fields.
    pub(crate) fn requiring(&self) -> Option<(Graph, &SelectionSet)> {
        let mut least = None;
        for (graph, share) in self.graphs.as_ref()? {
            let required = share.requires.as_ref()?;
            // A map has no order. The smallest position makes the choice deterministic.
            if least.is_none_or(|(known, _)| *graph < known) {
                least = Some((*graph, required));
            }
        }
        least
    }

    /// The complete type of the field in a subgraph, such as `[ID!]!`.
    pub(crate) fn kind(&self, graph: Graph) -> &str {
        let own = self.share(graph).and_then(|share| share.kind.as_deref());
        own.unwrap_or(&self.kind)
    }

    fn share(&self, graph: Graph) -> Option<&Share> {
        self.graphs.as_ref()?.get(&graph)
    }
}

fn fields_of(
    composite: Composite<'_>,
    graph_of: &impl Fn(&sdl::Applied) -> Option<Graph>,
) -> HashMap<String, ComposedField> {
    let fields = composite.fields.iter().map(|field| {
        let shares: Vec<_> = field
            .directives
            .iter()
            .filter(|it| it.name == "join__field")
            .collect();
        // Without a graph, an interface object adds the field to its objects.
        let graphs = shares.iter().filter_map(|directive| {
            let requires = sdl::text(directive, "requires").and_then(selection);
            let share = Share {
                kind: sdl::text(directive, "type").map(str::to_owned),
                requires: requires.map(SelectionSet::from),
            };
            Some((graph_of(directive)?, share))
        });
        let composed = ComposedField {
            returns: inner_name(&field.field_type).to_owned(),
            kind: field.field_type.to_string(),
            graphs: (!shares.is_empty()).then(|| graphs.collect()),
        };
        (field.name.clone(), composed)
    });
    fields.collect()
}
