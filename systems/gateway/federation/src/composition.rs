//! What each subgraph knows, read from the directives of composition (`@join__…`).

use std::collections::{BTreeSet, HashMap, HashSet};

use graphql_tools::parser::schema::{Definition, Document, TypeDefinition, Value};
use hive_router_query_planner::ast::selection_set::SelectionSet;

use crate::provides::selection;
use crate::schema::inner_name;
use crate::sdl::{self, Composite, composite};

/// Position of a subgraph among those of the supergraph.
pub(crate) type Graph = usize;

/// The types and fields of all subgraphs.
#[derive(Debug, Default)]
pub(crate) struct Composition {
    /// Which types a subgraph has, by any name that its operations may use.
    types: HashSet<(Graph, String)>,
    /// Interfaces that stand for all their objects, and where.
    interface_objects: HashMap<Graph, BTreeSet<String>>,
    fields: HashMap<String, HashMap<String, ComposedField>>,
    /// What a subgraph may be asked for entities of a type by, in the order of its schema.
    keys: HashMap<(Graph, String), Vec<SelectionSet>>,
}

/// A field of the supergraph.
#[derive(Debug)]
pub(crate) struct ComposedField {
    /// The name of the type at the heart of its type.
    pub(crate) returns: String,
    /// Its whole type, such as `[ID!]!`.
    kind: String,
    /// What single subgraphs say of it; nothing when it is the same wherever its type is.
    graphs: Option<HashMap<Graph, Share>>,
}

/// What one subgraph says of a field.
#[derive(Debug, Default)]
struct Share {
    /// Its type there, when that is another one.
    kind: Option<String>,
    /// What it must be given of the entity.
    requires: Option<SelectionSet>,
}

impl Composition {
    /// Reads a supergraph. `graphs` are the values of `join__Graph` in their order.
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
                if let Some(key) = key.map(SelectionSet::from) {
                    let keys = composition.keys.entry((graph, name.clone()));
                    keys.or_default().push(key);
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

    /// Whether a subgraph has a type.
    pub(crate) fn has(&self, graph: Graph, name: &str) -> bool {
        // Without `&str` lookups in a set of pairs: plans are checked rarely.
        self.types.contains(&(graph, name.to_owned()))
    }

    /// Whether an interface stands for all its objects in a subgraph.
    pub(crate) fn is_interface_object(&self, graph: Graph, name: &str) -> bool {
        let interfaces = self.interface_objects.get(&graph);
        interfaces.is_some_and(|interfaces| interfaces.contains(name))
    }

    /// The keys by which a subgraph knows entities of a type.
    pub(crate) fn keys(&self, graph: Graph, name: &str) -> &[SelectionSet] {
        let keys = self.keys.get(&(graph, name.to_owned()));
        keys.map_or(&[], Vec::as_slice)
    }

    /// All interfaces that stand for their objects in a subgraph, in the order of their names.
    pub(crate) fn interface_objects(&self, graph: Graph) -> impl Iterator<Item = &String> {
        self.interface_objects.get(&graph).into_iter().flatten()
    }

    /// A field of a type.
    pub(crate) fn field(&self, parent: &str, name: &str) -> Option<&ComposedField> {
        self.fields.get(parent)?.get(name)
    }
}

impl ComposedField {
    /// Whether a subgraph that has the type has the field, too.
    pub(crate) fn is_in(&self, graph: Graph) -> bool {
        let graphs = self.graphs.as_ref();
        graphs.is_none_or(|graphs| graphs.contains_key(&graph))
    }

    /// What the subgraph must be given of the entity to answer it.
    pub(crate) fn requires(&self, graph: Graph) -> Option<&SelectionSet> {
        self.share(graph)?.requires.as_ref()
    }

    /// A subgraph that must be given something, and what, where every subgraph that has it must.
    pub(crate) fn requiring(&self) -> Option<(Graph, &SelectionSet)> {
        let mut least = None;
        for (graph, share) in self.graphs.as_ref()? {
            let required = share.requires.as_ref()?;
            // Always the same one: a map has no order.
            if least.is_none_or(|(known, _)| *graph < known) {
                least = Some((*graph, required));
            }
        }
        least
    }

    /// Its type in a subgraph, such as `[ID!]!`.
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
        // Without a graph, the field is one that an interface object gives to its objects.
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
