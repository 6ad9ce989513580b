//! Compiles the planner's plan for execution.
//!
//! Subgraph operations have the format of Apollo's gateways (see [`operation_text`](crate::operation_text)).
//! In the selections that identify entities, `__typename` and the keys come first.

use hive_router_query_planner::ast::document::Document;
use hive_router_query_planner::ast::selection_item::SelectionItem;
use hive_router_query_planner::ast::selection_set::SelectionSet;
use hive_router_query_planner::planner::plan_nodes::{
    BatchFetchNode, FetchNode, FetchNodePathSegment, FetchRewrite, FlattenNodePath,
    FlattenNodePathSegment, PlanNode,
};
use hive_router_query_planner::state::supergraph_state::OperationKind as PlannedKind;

use crate::asked::Asked;
use crate::composition::{Composition, Graph};
use crate::fetch::OperationKind;
use crate::key_order;
use crate::operation_text::{fetch_name, render};
use crate::optional_fields::OptionalFields;
use crate::plan::{
    Change, FetchPlan, Input, Need, Output, PathStep, Place, Plan, Rewrite, RewriteStep, Step,
    TypeSet, Unsupported, opener, response_keys,
};
use crate::required::{Sources, needs};
use crate::schema::Schema;
use crate::supergraph::Subgraph;
use crate::variables::Declared;

/// The parts of the operation and the supergraph that the compiler needs.
#[derive(Clone, Copy)]
pub(crate) struct PlanInputs<'a> {
    pub(crate) schema: &'a Schema,
    pub(crate) subgraphs: &'a [Subgraph],
    pub(crate) composition: &'a Composition,
    pub(crate) declared: &'a [Declared],
    pub(crate) operation_name: Option<&'a str>,
    /// See [`Input::are_objects_apart`].
    pub(crate) are_objects_apart: bool,
}

/// A plan, and the planner's document for each of its fetches.
pub(crate) struct Compiled {
    pub(crate) plan: Plan,
    pub(crate) documents: Vec<Document>,
}

pub(crate) fn compile(node: &PlanNode, inputs: &PlanInputs<'_>) -> Result<Compiled, Unsupported> {
    let mut compiler = Compiler {
        inputs,
        documents: Vec::new(),
        required: Vec::new(),
        plan: Plan::default(),
    };
    // In this order: the needs depend on the documents of all fetches, and the order of keys
    // depends on the needs.
    let root = compiler.step(node)?;
    compiler.plan.root = Some(root);
    compiler.plan.check_subscription()?;
    compiler.find_needs()?;
    compiler.part_places();
    compiler.finish();
    Ok(Compiled {
        plan: compiler.plan,
        documents: compiler.documents,
    })
}

struct Compiler<'a> {
    inputs: &'a PlanInputs<'a>,
    /// The planner's document for each fetch.
    documents: Vec<Document>,
    /// The requirements of each input from the planner: fetch, input and selection.
    required: Vec<(usize, usize, SelectionSet)>,
    plan: Plan,
}

impl Compiler<'_> {
    fn step(&mut self, node: &PlanNode) -> Result<Step, Unsupported> {
        Ok(match node {
            PlanNode::Fetch(fetch) => Step::Fetch(self.fetch(fetch, None)?),
            PlanNode::Flatten(flatten) => match flatten.node.as_ref() {
                PlanNode::Fetch(fetch) => Step::Fetch(self.fetch(fetch, Some(&flatten.path))?),
                _ => return Err(Unsupported("flattens something else than a fetch")),
            },
            PlanNode::BatchFetch(batch) => Step::Fetch(self.batch(batch)?),
            PlanNode::Sequence(it) => Step::Sequence(self.steps(&it.nodes)?),
            PlanNode::Parallel(it) => Step::Parallel(self.steps(&it.nodes)?),
            PlanNode::Condition(it) => Step::Condition {
                variable: self.variable(&it.condition)?,
                if_true: self.clause(it.if_clause.as_deref())?,
                if_false: self.clause(it.else_clause.as_deref())?,
            },
            // `compile` checks its position at the end.
            PlanNode::Subscription(it) => Step::Fetch(self.fetch(&it.primary, None)?),
            PlanNode::Defer(_) => return Err(Unsupported("defers")),
        })
    }

    fn steps(&mut self, nodes: &[PlanNode]) -> Result<Vec<Step>, Unsupported> {
        nodes.iter().map(|node| self.step(node)).collect()
    }

    fn clause(&mut self, node: Option<&PlanNode>) -> Result<Option<Box<Step>>, Unsupported> {
        node.map(|node| self.step(node).map(Box::new)).transpose()
    }

    fn variable(&self, name: &str) -> Result<usize, Unsupported> {
        let declared = self.inputs.declared;
        declared
            .iter()
            .position(|it| it.name == name)
            .ok_or(Unsupported("depends on a variable that is not declared"))
    }

    fn fetch(
        &mut self,
        fetch: &FetchNode,
        path: Option<&FlattenNodePath>,
    ) -> Result<usize, Unsupported> {
        let schema = self.inputs.schema;
        let output_rewrites = rewrites(fetch.output_rewrites.as_deref(), schema);
        let (inputs, outputs, rewrites) = match (path, &fetch.requires) {
            (Some(path), Some(requires)) => {
                let input = Input {
                    is_root: false,
                    is_singleton: false,
                    opener: opener("representations"),
                    places: vec![place(path, schema)],
                    rewrites: rewrites(fetch.input_rewrites.as_deref(), schema),
                    are_places_apart: false,
                    are_objects_apart: self.inputs.are_objects_apart,
                };
                // The index that `push` assigns below.
                let index = self.plan.fetches.len();
                self.required.push((index, 0, requires.clone()));
                let output = Output {
                    key: b"_entities".to_vec(),
                    input: 0,
                    rewrites: output_rewrites,
                };
                (vec![input], vec![output], Vec::new())
            }
            (None, None) => (Vec::new(), Vec::new(), output_rewrites),
            // The data leads back to a query root.
            (Some(path), None) => {
                let input = Input {
                    is_root: true,
                    is_singleton: false,
                    opener: Vec::new(),
                    places: vec![place(path, schema)],
                    rewrites: Vec::new(),
                    are_places_apart: false,
                    are_objects_apart: self.inputs.are_objects_apart,
                };
                let output = Output {
                    key: Vec::new(),
                    input: 0,
                    rewrites: output_rewrites,
                };
                (vec![input], vec![output], Vec::new())
            }
            (None, Some(_)) => {
                return Err(Unsupported("has an entity fetch without a path"));
            }
        };
        let kind = match fetch.operation_kind {
            None | Some(PlannedKind::Query) => OperationKind::Query,
            Some(PlannedKind::Mutation) => OperationKind::Mutation,
            Some(PlannedKind::Subscription) => OperationKind::Subscription,
        };
        let index = self.push(&fetch.service_name, kind, &fetch.operation.document)?;
        let plan = &mut self.plan.fetches[index];
        plan.inputs = inputs;
        plan.outputs = outputs;
        plan.rewrites = rewrites;
        self.name_interface_objects(index);
        Ok(index)
    }

    fn batch(&mut self, batch: &BatchFetchNode) -> Result<usize, Unsupported> {
        let schema = self.inputs.schema;
        let mut inputs: Vec<Input> = Vec::new();
        let mut outputs = Vec::new();
        for alias in &batch.entity_batch.aliases {
            // Aliases with one variable also share its input.
            let opener = opener(&alias.representations_variable_name);
            let known = inputs.iter().position(|input| input.opener == opener);
            let input = known.unwrap_or_else(|| {
                let paths = alias.merge_paths.iter();
                inputs.push(Input {
                    is_root: false,
                    is_singleton: false,
                    opener,
                    places: paths.map(|path| place(path, schema)).collect(),
                    rewrites: rewrites(alias.input_rewrites.as_deref(), schema),
                    are_places_apart: false,
                    are_objects_apart: self.inputs.are_objects_apart,
                });
                let (fetch, input) = (self.plan.fetches.len(), inputs.len() - 1);
                self.required.push((fetch, input, alias.requires.clone()));
                input
            });
            outputs.push(Output {
                key: alias.alias.as_bytes().to_vec(),
                input,
                rewrites: rewrites(alias.output_rewrites.as_deref(), schema),
            });
        }
        let document = &batch.operation.document;
        let index = self.push(&batch.service_name, OperationKind::Query, document)?;
        let plan = &mut self.plan.fetches[index];
        plan.inputs = inputs;
        plan.outputs = outputs;
        self.name_interface_objects(index);
        Ok(index)
    }

    /// Names objects by their interface if the subgraph contains only the interface. The planner omits this in
    /// some fetches.
    fn name_interface_objects(&mut self, index: usize) {
        let fetch = &mut self.plan.fetches[index];
        for interface in self.inputs.composition.interface_objects(fetch.subgraph) {
            for input in &mut fetch.inputs {
                let types = TypeSet::of([interface], self.inputs.schema);
                input.rewrites.push(Rewrite {
                    path: vec![
                        RewriteStep::Types(types),
                        RewriteStep::Key(b"__typename".to_vec()),
                    ],
                    change: Change::Set(interface.as_bytes().to_vec()),
                });
            }
        }
    }

    fn push(
        &mut self,
        service: &str,
        kind: OperationKind,
        document: &Document,
    ) -> Result<usize, Unsupported> {
        let subgraphs = self.inputs.subgraphs;
        let subgraph = subgraphs
            .iter()
            .position(|it| it.name == service)
            .ok_or(Unsupported("asks a subgraph that the supergraph lacks"))?;
        let index = self.plan.fetches.len();
        let variables = document.operation.variable_definitions.iter().flatten();
        let declared = self.inputs.declared;
        self.plan.fetches.push(FetchPlan {
            subgraph,
            kind,
            operation: String::new(),
            operation_name: self
                .inputs
                .operation_name
                .map(|name| fetch_name(name, service, index)),
            prefix: Vec::new(),
            // A variable that the client has not declared contains representations.
            variables: variables
                .filter_map(|variable| {
                    let index = declared.iter().position(|it| it.name == variable.name)?;
                    Some((index, opener(&variable.name)))
                })
                .collect(),
            asked: match kind {
                // Its events are asked for without a fetch.
                OperationKind::Subscription => Asked::Always,
                _ => Asked::of(&document.operation.selection_set, declared),
            },
            inputs: Vec::new(),
            outputs: Vec::new(),
            rewrites: Vec::new(),
            replaced: Vec::new(),
        });
        self.documents.push(document.clone());
        Ok(index)
    }

    /// Finds the fields that identify each entity. All fetches must be complete.
    fn find_needs(&mut self) -> Result<(), Unsupported> {
        let schema = self.inputs.schema;
        let (mut found, mut singletons) = (Vec::new(), Vec::new());
        for (fetch, input, required) in &self.required {
            let places = &self.plan.fetches[*fetch].inputs[*input].places;
            let optional_fields = self.optional_fields(*fetch, *input);
            for (index, place) in places.iter().enumerate() {
                let sources = Sources::at(&self.plan.fetches, &self.documents, &place.path);
                let mut needs = needs(required, None, schema, &sources)?;
                optional_fields.leave_open(&mut needs);
                let graph = self.plan.fetches[*fetch].subgraph;
                singletons.extend(
                    is_singleton(self.inputs.composition, graph, &needs)
                        .then_some((*fetch, *input)),
                );
                found.push((*fetch, *input, index, needs));
            }
        }
        for (fetch, input) in singletons {
            self.plan.fetches[fetch].inputs[input].is_singleton = true;
        }
        for (fetch, input, place, needs) in found {
            self.plan.fetches[fetch].inputs[input].places[place].needs = needs;
        }
        Ok(())
    }

    /// The required and optional fields for the entities of an input.
    fn optional_fields(&self, fetch: usize, input: usize) -> OptionalFields<'_> {
        let (plan, document) = (&self.plan.fetches[fetch], &self.documents[fetch]);
        let mut optional_fields = OptionalFields::new(self.inputs.composition, plan.subgraph);
        for item in &document.operation.selection_set.items {
            let SelectionItem::Field(field) = item else {
                continue;
            };
            let key = field.selection_identifier().as_bytes();
            let mut outputs = plan.outputs.iter().filter(|it| it.input == input);
            if outputs.any(|it| it.key == key) {
                optional_fields.take(document, &field.selections, None, false);
            }
        }
        optional_fields
    }

    /// Finds the inputs with places that must not share objects.
    fn part_places(&mut self) {
        let fetches = &self.plan.fetches;
        // A second fetch of root fields can return objects at any place.
        let roots = fetches.iter().filter(|it| it.inputs.is_empty()).count();
        let each = |(fetch, plan): (usize, &FetchPlan)| {
            let inputs = 0..plan.inputs.len();
            inputs.map(|input| (fetch, input)).collect::<Vec<_>>()
        };
        let all: Vec<_> = fetches.iter().enumerate().flat_map(each).collect();
        let of = |(fetch, input): (usize, usize)| &fetches[fetch].inputs[input];
        let is_apart = |own: &(usize, usize)| {
            let others = all.iter().filter(|other| *other != own);
            let mut places = others.flat_map(|other| &of(*other).places);
            of(*own).places.len() > 1
                && (roots > 1 || places.any(|place| of(*own).is_touched_by(place)))
        };
        let apart: Vec<_> = all.iter().copied().filter(is_apart).collect();
        for (fetch, input) in apart {
            self.plan.fetches[fetch].inputs[input].are_places_apart = true;
        }
    }

    /// Orders keys and renders texts. All fetches must be complete.
    fn finish(&mut self) {
        key_order::keys_first(&self.plan.fetches, &mut self.documents);
        for (fetch, document) in self.plan.fetches.iter_mut().zip(&self.documents) {
            let name = fetch.operation_name.as_deref();
            // Rendered here once. A request then only copies bytes and escapes no text.
            fetch.operation = render(document, fetch.kind, name);
            fetch.prefix.extend_from_slice(b"{\"query\":");
            json_text::write_string(&fetch.operation, &mut fetch.prefix);
            if let Some(name) = name {
                fetch.prefix.extend_from_slice(b",\"operationName\":");
                json_text::write_string(name, &mut fetch.prefix);
            }
        }
    }
}

impl Plan {
    /// Checks that a subscription is the first step, the only subscription, and has no condition. The
    /// following steps run for each of its events.
    fn check_subscription(&self) -> Result<(), Unsupported> {
        let subscribing = self.fetches.iter().enumerate();
        let subscribing = subscribing.filter(|(_, it)| it.kind == OperationKind::Subscription);
        let indexes: Vec<usize> = subscribing.map(|(index, _)| index).collect();
        let begins = match &self.root {
            Some(Step::Fetch(0)) => true,
            Some(Step::Sequence(steps)) => matches!(steps.first(), Some(Step::Fetch(0))),
            _ => false,
        };
        match indexes.as_slice() {
            [] => Ok(()),
            [0] if begins => Ok(()),
            _ => Err(Unsupported("subscribes elsewhere than at its beginning")),
        }
    }
}

impl Input {
    /// True if `other` writes at one of these places, or below it.
    fn is_touched_by(&self, other: &Place) -> bool {
        let other = response_keys(&other.path);
        self.places
            .iter()
            .any(|own| other.starts_with(&response_keys(&own.path)))
    }
}

/// True if representations need only the names of types, and each of these types has a single entity in the
/// subgraph.
fn is_singleton(composition: &Composition, graph: Graph, needs: &[Need]) -> bool {
    let is_single = |need: &Need| match need {
        Need::Typename => true,
        Need::Field { .. } => false,
        Need::Fragment { name, needs, .. } => {
            needs.iter().all(|need| matches!(need, Need::Typename))
                && composition.is_singleton(graph, name)
        }
    };
    let is_fragment = |need: &Need| matches!(need, Need::Fragment { .. });
    needs.iter().any(is_fragment) && needs.iter().all(is_single)
}

/// A place without its needs, which are found later.
fn place(path: &FlattenNodePath, schema: &Schema) -> Place {
    Place {
        path: path_steps(path, schema),
        needs: Vec::new(),
    }
}

fn path_steps(path: &FlattenNodePath, schema: &Schema) -> Vec<PathStep> {
    path.as_slice()
        .iter()
        .map(|segment| match segment {
            FlattenNodePathSegment::Field(name) => PathStep::Key(name.as_bytes().to_vec()),
            FlattenNodePathSegment::List => PathStep::List,
            FlattenNodePathSegment::TypeCondition(names) => {
                PathStep::Types(TypeSet::of(names, schema))
            }
        })
        .collect()
}

fn rewrites(planned: Option<&[FetchRewrite]>, schema: &Schema) -> Vec<Rewrite> {
    let steps = |path: &[FetchNodePathSegment]| {
        path.iter()
            .map(|segment| match segment {
                FetchNodePathSegment::Key(name) => RewriteStep::Key(name.as_bytes().to_vec()),
                FetchNodePathSegment::TypenameEquals(names) => {
                    RewriteStep::Types(TypeSet::of(names, schema))
                }
            })
            .collect()
    };
    let planned = planned.unwrap_or(&[]).iter();
    planned
        .map(|rewrite| match rewrite {
            FetchRewrite::ValueSetter(setter) => Rewrite {
                path: steps(&setter.path),
                change: Change::Set(setter.set_value_to.as_bytes().to_vec()),
            },
            FetchRewrite::KeyRenamer(renamer) => Rewrite {
                path: steps(&renamer.path),
                change: Change::Rename(renamer.rename_key_to.as_bytes().to_vec()),
            },
        })
        .collect()
}
