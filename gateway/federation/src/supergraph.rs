//! A supergraph: its text, its subgraphs, the schema that clients see and the planner.

use std::sync::Arc;

use graphql_tools::parser::schema::{Definition, Document, EnumType, TypeDefinition};
use hive_router_query_planner::planner::{Planner, QueryPlannerOptions};
use hive_router_query_planner::utils::parsing::safe_parse_schema;

use crate::access_rules::Rules;
use crate::composition::Composition;
use crate::cost::{self, Costs};
use crate::error::one_line;
use crate::features::{self, Names};
use crate::interface_objects::OneWay;
use crate::large_stack;
use crate::override_labels::Labelled;
use crate::provided_typename;
use crate::provides::{self, Permissions};
use crate::schema::Schema;
use crate::schema_description::Described;
use crate::sdl::{self, Composite};
use crate::supergraph_error::SupergraphError;
use crate::unserved;
use crate::unstated;

/// A service behind the gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subgraph {
    /// The name from composition.
    pub name: String,
    /// The routing URL. May be empty if the configuration overrides it.
    pub url: String,
}

/// A supergraph for preparing operations.
pub struct Supergraph {
    sdl: String,
    subgraphs: Vec<Subgraph>,
    pub(crate) schema: Arc<Schema>,
    /// Access rules. `None` if every request may see everything.
    pub(crate) rules: Option<Rules>,
    pub(crate) planner: Planner,
    /// Fields that move with labels of `@override`. `None` if there are no labels.
    pub(crate) labelled: Option<Labelled>,
    /// A second planner. `None` if the first cannot confuse the provided fields.
    pub(crate) careful: Option<Careful>,
    /// A planner for operations from interface objects to their objects. `None` without interface objects.
    one_way: Option<OneWay>,
    /// The parts of the supergraph that the proof of a plan needs.
    pub(crate) composition: Composition,
    /// The cost directives.
    pub(crate) costs: Costs,
}

/// A planner for operations with a plan that requests more than a subgraph provides.
pub(crate) struct Careful {
    pub(crate) permissions: Permissions,
    /// A planner with fewer provisions, which it cannot confuse.
    pub(crate) planner: Planner,
}

impl std::fmt::Debug for Supergraph {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Supergraph")
            .field("subgraphs", &self.subgraphs)
            .finish_non_exhaustive()
    }
}

impl Supergraph {
    /// Reads a composed supergraph.
    ///
    /// # Errors
    /// If the text is not SDL or has no `join__Graph` or no query type. Also if it uses an unsupported
    /// specification, or if the planner refuses it.
    pub fn parse(sdl: &str) -> Result<Supergraph, SupergraphError> {
        // The parser and the builder of the planner's graph are recursive, and the text can be anything.
        let text = sdl.to_owned();
        large_stack::run(move || Self::build(text)).unwrap_or_else(|_| {
            let text = sdl.to_owned();
            // Reading the same text again needs a large stack again.
            let place = large_stack::run(move || cost::unreadable(&text));
            Err(match place.ok().flatten() {
                Some((place, found)) => SupergraphError::Cost { place, found },
                None => SupergraphError::Unusable {
                    reason: "the planner gave up on it".to_owned(),
                },
            })
        })
    }

    fn build(sdl: String) -> Result<Supergraph, SupergraphError> {
        let described = Described::read(&sdl);
        let mut document =
            safe_parse_schema(&described.sdl).map_err(|error| SupergraphError::Syntax {
                reason: one_line(&error.to_string()),
            })?;
        provided_typename::remove(&mut document);
        unstated::state(&mut document);
        let subgraphs = subgraphs_of(&document)?;
        if subgraphs.is_empty() {
            return Err(SupergraphError::NotComposed {
                missing: "it has no enum `join__Graph`".to_owned(),
            });
        }
        check_query_root(&document)?;
        if let Some(place) = unserved::argument_from_context(&document) {
            return Err(SupergraphError::Unserved {
                directive: "@fromContext",
                place,
            });
        }
        features::check(&document)?;
        let planner = planner_of(&document)?;
        let careful = match provides::reduced(&document) {
            Some(reduced) => Some(Careful {
                permissions: Permissions::of(&document),
                planner: planner_of(&reduced)?,
            }),
            None => None,
        };
        let names = Names::of(&document);
        let rules = Rules::read(&document, &names)?;
        let mut client = unserved::with_defer(&planner.consumer_schema.document);
        features::hide(&mut client, &document, &names);
        let schema = Schema::new(Arc::new(client), &document);
        let schema = Arc::new(schema.described(described.description));
        let graphs = graphs_of(&document).map_or(&[][..], |graphs| &graphs.values);
        let graphs: Vec<String> = graphs.iter().map(|graph| graph.name.clone()).collect();
        let composition = Composition::of(&document, &graphs);
        Ok(Supergraph {
            sdl,
            subgraphs,
            rules,
            schema,
            planner,
            labelled: Labelled::of(&document),
            careful,
            one_way: OneWay::of(&document),
            composition,
            costs: Costs::of(&document, &features::cost_names(&document)),
        })
    }

    /// The planner for operations from interface objects to their objects. The first call builds it.
    pub(crate) fn one_way_planner(&self) -> Option<&Planner> {
        let one_way = self.one_way.as_ref()?;
        one_way.planner(|document| planner_of(document).ok())
    }

    /// The SDL text that was parsed.
    #[must_use]
    pub fn sdl(&self) -> &str {
        &self.sdl
    }

    /// True if parts of the supergraph have access rules.
    #[must_use]
    pub fn has_rules(&self) -> bool {
        self.rules.is_some()
    }

    /// The subgraphs, in the order of `join__Graph`.
    #[must_use]
    pub fn subgraphs(&self) -> &[Subgraph] {
        &self.subgraphs
    }
}

fn planner_of(document: &Document<'static, String>) -> Result<Planner, SupergraphError> {
    let planner = Planner::new_from_supergraph(document, QueryPlannerOptions::default());
    planner.map_err(|error| SupergraphError::Unusable {
        reason: error.to_string(),
    })
}

/// Fails if no subgraph serves queries. Every request would fail.
fn check_query_root(document: &Document<'static, String>) -> Result<(), SupergraphError> {
    let [root, ..] = sdl::roots(document);
    let mut types = document.definitions.iter().filter_map(sdl::composite);
    let root = root.and_then(|root| types.find(|it| it.name == root));
    let missing = match root {
        None => "it has no query type".to_owned(),
        Some(it) if it.directives.iter().any(|it| it.name == "join__type") => return Ok(()),
        Some(Composite { name, .. }) => {
            format!("its type `{name}` has no `@join__type`, so no subgraph serves it")
        }
    };
    Err(SupergraphError::NotComposed { missing })
}

/// The enum `join__Graph`. Its values are the subgraphs.
fn graphs_of<'a>(document: &'a Document<'static, String>) -> Option<&'a EnumType<'static, String>> {
    document.definitions.iter().find_map(|it| match it {
        Definition::TypeDefinition(TypeDefinition::Enum(it)) if it.name == "join__Graph" => {
            Some(it)
        }
        _ => None,
    })
}

/// One subgraph for each value of the enum, in its order. Plans refer to subgraphs by position.
fn subgraphs_of(document: &Document<'static, String>) -> Result<Vec<Subgraph>, SupergraphError> {
    let values = graphs_of(document).map_or(&[][..], |graphs| &graphs.values);
    let subgraphs = values.iter().map(|value| {
        let mut directives = value.directives.iter();
        let graph = directives.find(|it| it.name == "join__graph");
        let name = graph.and_then(|it| sdl::text(it, "name"));
        let (Some(graph), Some(name)) = (graph, name) else {
            return Err(SupergraphError::NotComposed {
                missing: format!(
                    "the value `{}` of `join__Graph` has no `@join__graph(name: …)`",
                    value.name
                ),
            });
        };
        Ok(Subgraph {
            name: name.to_owned(),
            url: sdl::text(graph, "url").unwrap_or_default().to_owned(),
        })
    });
    subgraphs.collect()
}
