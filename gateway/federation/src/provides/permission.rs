//! Checks that a plan requests from each subgraph only fields that it can resolve at that place.

use std::collections::{HashMap, HashSet};

use graphql_tools::parser::query::{Selection, SelectionSet as QuerySet, TypeCondition};
use graphql_tools::parser::schema::{Definition, Document, TypeDefinition, Value};
use hive_router_query_planner::ast::document::Document as PlannedDocument;
use hive_router_query_planner::ast::selection_item::SelectionItem;
use hive_router_query_planner::ast::selection_set::SelectionSet;
use hive_router_query_planner::planner::plan_nodes::PlanNode;
use hive_router_query_planner::state::supergraph_state::OperationKind;

use super::{Text, selection};
use crate::schema::{Schema, inner_name};
use crate::sdl::{self, Applied, argument, composite};

/// A field in the subgraphs.
#[derive(Debug, Default)]
struct Known {
    returns: String,
    /// Graphs that return the field only below a `@provides`.
    external: HashSet<String>,
    /// The selection that the field provides, by graph.
    provides: HashMap<String, QuerySet<'static, Text>>,
}

/// The fields that each subgraph can resolve, with their places.
#[derive(Debug)]
pub(crate) struct Permissions {
    /// The fields, by type and name.
    known: HashMap<(String, String), Known>,
    /// Key fields by graph, type and field. The graph can return them even if they are external.
    keys: HashSet<(String, String, String)>,
    /// The graph of each subgraph, by name.
    graphs: HashMap<String, String>,
}

/// One operation of a plan for one subgraph.
struct PlannedFetch<'a> {
    permissions: &'a Permissions,
    graph: &'a str,
    document: &'a PlannedDocument,
}

impl Permissions {
    pub(crate) fn of(document: &Document<'static, Text>) -> Permissions {
        let mut permissions = Permissions {
            known: HashMap::new(),
            keys: HashSet::new(),
            graphs: HashMap::new(),
        };
        for definition in &document.definitions {
            if let Definition::TypeDefinition(TypeDefinition::Enum(it)) = definition
                && it.name == "join__Graph"
            {
                let graphs = it.values.iter().filter_map(|value| {
                    let mut directives = value.directives.iter();
                    let name = directives.find_map(|it| text(it, "join__graph", "name"))?;
                    Some((name.to_owned(), value.name.clone()))
                });
                permissions.graphs = graphs.collect();
            }
            permissions.note(definition);
        }
        permissions
    }

    fn note(&mut self, definition: &Definition<'static, Text>) {
        let Some(composite) = composite(definition) else {
            return;
        };
        let name = composite.name;
        for directive in composite.directives {
            let key = text(directive, "join__type", "key").and_then(selection);
            if let (Some(graph), Some(key)) = (sdl::graph(directive), key) {
                for item in key.items {
                    if let Selection::Field(field) = item {
                        let key = (graph.to_owned(), name.to_owned(), field.name);
                        self.keys.insert(key);
                    }
                }
            }
        }
        for field in composite.fields {
            let mut known = Known {
                returns: inner_name(&field.field_type).to_owned(),
                ..Known::default()
            };
            for directive in field
                .directives
                .iter()
                .filter(|it| it.name == "join__field")
            {
                let Some(graph) = sdl::graph(directive) else {
                    continue;
                };
                if argument(directive, "external") == Some(&Value::Boolean(true)) {
                    known.external.insert(graph.to_owned());
                }
                if let Some(set) = text(directive, "join__field", "provides").and_then(selection) {
                    known.provides.insert(graph.to_owned(), set);
                }
            }
            self.known
                .insert((name.to_owned(), field.name.clone()), known);
        }
    }

    /// True if each fetch of a plan requests only fields that its subgraph can resolve there.
    pub(crate) fn allow(&self, node: &PlanNode, schema: &Schema) -> bool {
        let ask = |service: &str, kind: Option<&OperationKind>, document| {
            let root = match kind {
                Some(OperationKind::Mutation) => schema.mutation_root(),
                Some(OperationKind::Subscription) => schema.subscription_root(),
                _ => Some(schema.query_root()),
            };
            // Unknown subgraphs are refused in another place.
            let (Some(graph), Some(root)) = (self.graphs.get(service), root) else {
                return true;
            };
            let fetch = PlannedFetch {
                permissions: self,
                graph,
                document,
            };
            fetch.allows(root, &document.operation.selection_set, &[])
        };
        match node {
            PlanNode::Fetch(it) => {
                let document = &it.operation.document;
                ask(&it.service_name, it.operation_kind.as_ref(), document)
            }
            PlanNode::BatchFetch(it) => ask(&it.service_name, None, &it.operation.document),
            PlanNode::Flatten(it) => self.allow(&it.node, schema),
            PlanNode::Sequence(it) => it.nodes.iter().all(|node| self.allow(node, schema)),
            PlanNode::Parallel(it) => it.nodes.iter().all(|node| self.allow(node, schema)),
            PlanNode::Condition(it) => [&it.if_clause, &it.else_clause]
                .into_iter()
                .flatten()
                .all(|node| self.allow(node, schema)),
            PlanNode::Subscription(it) => {
                let primary = &it.primary;
                let document = &primary.operation.document;
                let kind = Some(&OperationKind::Subscription);
                ask(&primary.service_name, kind, document)
            }
            PlanNode::Defer(_) => true,
        }
    }
}

impl PlannedFetch<'_> {
    /// True if a subgraph can resolve a selection below fields that provide these selections.
    fn allows(
        &self,
        parent: &str,
        set: &SelectionSet,
        provided: &[&QuerySet<'static, Text>],
    ) -> bool {
        set.items.iter().all(|item| match item {
            SelectionItem::InlineFragment(inline) => {
                self.allows(&inline.type_condition, &inline.selections, provided)
            }
            SelectionItem::FragmentSpread(name) => {
                let mut fragments = self.document.fragments.iter();
                fragments
                    .find(|it| it.name == *name)
                    .is_none_or(|it| self.allows(&it.type_condition, &it.selection_set, provided))
            }
            // Below `_entities`, fragments contain the type names.
            SelectionItem::Field(field) if field.name == "_entities" => {
                self.allows("", &field.selections, &[])
            }
            SelectionItem::Field(field) => {
                let place = (parent.to_owned(), field.name.clone());
                let Some(known) = self.permissions.known.get(&place) else {
                    return true;
                };
                let mut below = Vec::new();
                for set in provided {
                    collect(set, parent, &field.name, &mut below);
                }
                let (parent, name) = place;
                if known.external.contains(self.graph)
                    && below.is_empty()
                    && !self
                        .permissions
                        .keys
                        .contains(&(self.graph.to_owned(), parent, name))
                {
                    return false;
                }
                below.extend(known.provides.get(self.graph));
                self.allows(&known.returns, &field.selections, &below)
            }
        })
    }
}

/// Collects the selections below a field of a type.
fn collect<'a>(
    set: &'a QuerySet<'static, Text>,
    parent: &str,
    name: &str,
    found: &mut Vec<&'a QuerySet<'static, Text>>,
) {
    for item in &set.items {
        match item {
            Selection::Field(field) if field.name == name => found.push(&field.selection_set),
            Selection::InlineFragment(inline) => {
                let applies = match &inline.type_condition {
                    Some(TypeCondition::On(condition)) => condition == parent,
                    None => true,
                };
                if applies {
                    collect(&inline.selection_set, parent, name, found);
                }
            }
            Selection::Field(_) | Selection::FragmentSpread(_) => {}
        }
    }
}

fn text<'a>(directive: &'a Applied, name: &str, key: &str) -> Option<&'a str> {
    sdl::text(directive, key).filter(|_| directive.name == name)
}
