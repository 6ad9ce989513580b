//! Plans a checked operation.
//!
//! The plans of the planner's library are proven before they are used (see `proof`). If a plan does not
//! answer the operation, the planner receives the operation in other forms.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use graphql_tools::parser::query::{Definition, OperationDefinition};
use hive_router_query_planner::ast::operation::OperationDefinition as PlannedOperation;
use hive_router_query_planner::ast::selection_set::SelectionSet;
use hive_router_query_planner::planner::Planner;
use hive_router_query_planner::planner::plan_nodes::{ParallelNode, PlanNode, SequenceNode};
use hive_router_query_planner::state::supergraph_state::OperationKind as PlannedKind;

use crate::apart;
use crate::by_type::by_type;
use crate::check::Chosen;
use crate::defer::Groups;
use crate::deferral::{Deferral, Deferring};
use crate::divide;
use crate::effort::Work;
use crate::fetch::OperationKind;
use crate::interface_objects::{Raises, above_fragments};
use crate::limits::{QueryDocument, selection_set};
use crate::merged_conditions::merged;
use crate::normalize::normalize;
use crate::override_labels::Overrides;
use crate::plan::Plan;
use crate::plan_compiler::{self, Compiled, PlanInputs};
use crate::proof::{MissingField, PlanGoal, ProofError};
use crate::refusal::Refusal;
use crate::requiring::RequiresSplit;
use crate::supergraph::Supergraph;
use crate::told_types::told;
use crate::unselected;
use crate::unserved;
use crate::variables::Declared;

/// Maximum number of fields and fragments of an operation after it was rewritten into another form.
const WRITTEN_MAX: usize = 2_000;

/// Maximum number of fields of an operation that are planned separately.
const SEPARATE_MAX: usize = 8;

/// Maximum nesting of required fields that require further fields.
const REQUIRED_LEVELS: usize = 4;

/// Inputs for planning an operation.
pub(crate) struct Planning<'a> {
    pub(crate) supergraph: &'a Arc<Supergraph>,
    pub(crate) overrides: &'a Overrides,
    pub(crate) work: &'a Work<'a>,
    /// The deferred fragments. `None` if the response must come in one piece or no fragment is deferred.
    pub(crate) groups: Option<&'a Groups>,
}

/// A plan, for a response in one piece and for a response in parts.
#[derive(Debug, Default)]
pub(crate) struct Planned {
    pub(crate) plan: Plan,
    pub(crate) deferral: Option<Deferral>,
}

impl Planning<'_> {
    /// Returns the plan. It is empty if the gateway answers the operation itself.
    ///
    /// # Errors
    /// If no plan was found that answers the operation, or the time limit is over.
    pub(crate) fn plan(
        &self,
        document: &QueryDocument,
        chosen: &Chosen<'_>,
        declared: &[Declared],
    ) -> Result<Planned, Refusal> {
        // Authorization can remove all fields. The planner does not handle this case.
        if document.definitions.iter().all(is_empty) {
            return Ok(Planned::default());
        }
        let undeferred = unserved::without_defer(document);
        let normalized = normalize(self.supergraph, &undeferred, chosen.name);
        let mut operation = normalized.map_err(|error| Refusal::unplanned(error.to_string()))?;
        // Empty if the operation contains only introspection or `__typename`. The gateway answers these
        // itself.
        if operation.selection_set.is_empty() {
            return Ok(Planned::default());
        }
        let root_type = self.supergraph.schema.root(chosen.kind);
        unselected::fill(
            &mut operation.selection_set,
            root_type,
            &self.supergraph.schema,
            &self.supergraph.composition,
        );
        let inputs = PlanInputs {
            schema: &self.supergraph.schema,
            subgraphs: self.supergraph.subgraphs(),
            composition: &self.supergraph.composition,
            declared,
            operation_name: chosen.name,
            are_objects_apart: false,
        };
        let goal = PlanGoal {
            schema: &self.supergraph.schema,
            composition: &self.supergraph.composition,
            declared,
            root_type,
            asked: &operation.selection_set,
            work: self.work,
        };
        let mut first = None;
        for way in Way::ALL {
            self.work.go_on()?;
            let planned = self.attempt(way, &operation, &goal);
            // Checked first, because the planner has many different messages for a cancelled operation.
            self.work.go_on()?;
            let node = match planned {
                Attempt::Node(node) => node,
                Attempt::NothingToAsk => return Ok(Planned::default()),
                Attempt::NotThisWay => continue,
                Attempt::Failed(reason) => {
                    first.get_or_insert(reason);
                    continue;
                }
            };
            let inputs = PlanInputs {
                are_objects_apart: matches!(way, Way::Apart { .. }),
                ..inputs
            };
            match self.proven(*node, &operation, &inputs, &goal) {
                Ok(compiled) => {
                    let planned = self.in_parts_too(compiled, document, chosen, &goal);
                    if self.groups.is_some() && planned.deferral.is_none() {
                        // After a timeout, a later attempt might still find the parts. A cached plan without
                        // them would produce responses in one piece until it leaves the cache.
                        self.work.go_on_without()?;
                    }
                    return Ok(planned);
                }
                Err(reason) => drop(first.get_or_insert(reason)),
            }
        }
        self.work.go_on()?;
        // The error about the operation as written, not about another form of it.
        Err(Refusal::unplanned(first.unwrap_or_default()))
    }

    /// The plan. If fragments are deferred, it includes the plan for a response in parts.
    fn in_parts_too(
        &self,
        compiled: Compiled,
        document: &QueryDocument,
        chosen: &Chosen<'_>,
        goal: &PlanGoal<'_>,
    ) -> Planned {
        let Compiled {
            mut plan,
            documents,
        } = compiled;
        let deferring = self.groups.map(|groups| Deferring {
            supergraph: self.supergraph,
            document,
            // Authorization can have replaced the operation by a smaller one of the same name.
            operation: only_operation(document).unwrap_or(chosen.operation),
            name: chosen.name,
            groups,
        });
        let deferral = deferring.and_then(|it| it.divide(&mut plan, &documents, goal));
        Planned { plan, deferral }
    }

    /// Returns the plan if it answers the operation.
    fn proven(
        &self,
        node: PlanNode,
        operation: &PlannedOperation,
        inputs: &PlanInputs<'_>,
        goal: &PlanGoal<'_>,
    ) -> Result<Compiled, String> {
        let error = match prove(&node, inputs, goal)? {
            Ok(compiled) => return Ok(compiled),
            Err(error) => error,
        };
        let reason = error.to_string();
        match error.missing {
            // The root fields of a mutation must not run twice. A subscription must not subscribe twice.
            Some(missing) if is_query(operation) => self
                .plan_separately(node, missing, operation, inputs, goal)
                .ok_or(reason),
            _ => Err(reason),
        }
    }

    /// Plans the fields that the first plan gets wrong separately: `missing`, and the fields that later
    /// proofs find. `None` if this does not help.
    fn plan_separately(
        &self,
        mut node: PlanNode,
        mut missing: MissingField,
        operation: &PlannedOperation,
        inputs: &PlanInputs<'_>,
        goal: &PlanGoal<'_>,
    ) -> Option<Compiled> {
        // The fields that are planned together. `node` is their plan.
        let mut together = operation.clone();
        let mut separate = Vec::new();
        for _ in 0..SEPARATE_MAX {
            self.work.go_on().ok()?;
            let (schema, root) = (goal.schema, goal.root_type);
            let of = |selection_set: SelectionSet| PlannedOperation {
                selection_set,
                ..operation.clone()
            };
            let alone = divide::only(schema, root, goal.asked, &missing)?;
            let alone = self.whole(&of(alone)).ok().flatten()?;
            separate.push(divide::entities_of(alone)?);
            if missing.is_asked {
                let set = &together.selection_set;
                let set = by_type(schema, root, set, WRITTEN_MAX).unwrap_or_else(|| set.clone());
                together = of(divide::without(schema, root, &set, &missing));
                node = self.whole(&together).ok().flatten()?;
            }
            let nodes = std::iter::once(&node).chain(&separate).cloned();
            let whole = PlanNode::Sequence(SequenceNode {
                nodes: nodes.collect(),
            });
            match prove(&whole, inputs, goal).ok()? {
                Ok(compiled) => return Some(compiled),
                Err(error) => missing = error.missing?,
            }
        }
        None
    }

    /// The planner's plan for one form of the operation.
    fn attempt(&self, way: Way, operation: &PlannedOperation, goal: &PlanGoal<'_>) -> Attempt {
        let whole = |operation: &PlannedOperation| match self.whole(operation) {
            Ok(Some(node)) => Attempt::Node(Box::new(node)),
            Ok(None) => Attempt::NothingToAsk,
            Err(reason) => Attempt::Failed(reason),
        };
        match way {
            Way::Whole => whole(operation),
            Way::InParts => self.in_parts(operation),
            Way::Behind(split) => self.behind(operation, goal, split, REQUIRED_LEVELS),
            Way::Apart { levels } => self.apart(operation, goal, levels),
            Way::ByType | Way::Merged | Way::Told => {
                let (schema, root) = (goal.schema, goal.root_type);
                let asked = match way {
                    Way::Merged => merged(schema, root, goal.asked),
                    Way::Told => told(schema, root, goal.asked),
                    _ => by_type(schema, root, goal.asked, WRITTEN_MAX),
                };
                // The root fields of a mutation must not change places.
                let is_moved = matches!(way, Way::Merged) && !is_query(operation);
                let asked = asked.filter(|_| !is_moved);
                asked.map_or(Attempt::NotThisWay, |selection_set| {
                    whole(&PlannedOperation {
                        selection_set,
                        ..operation.clone()
                    })
                })
            }
        }
    }

    /// A plan of the whole operation. `None` if it needs no subgraph.
    ///
    /// # Errors
    /// The planner's reason if it has no plan.
    fn whole(&self, operation: &PlannedOperation) -> Result<Option<PlanNode>, String> {
        let node = match self.ask(&self.supergraph.planner, operation) {
            Ok(node) => node,
            Err(reason) => {
                // A cancelled operation needs no other planner.
                let may_go_on = self.work.go_on().is_ok();
                return match may_go_on.then(|| self.one_way(operation)).flatten() {
                    Some(node) => Ok(node),
                    None => Err(reason),
                };
            }
        };
        if let (Some(careful), Some(first)) = (&self.supergraph.careful, &node)
            && !careful.permissions.allow(first, &self.supergraph.schema)
            // If the careful planner has no plan, the first plan stays. It is correct except for fields that
            // the subgraph does not provide.
            && let Ok(Some(other)) = self.ask(&careful.planner, operation)
        {
            return Ok(Some(other));
        }
        Ok(node)
    }

    /// The plan of one planner.
    fn ask(
        &self,
        planner: &Planner,
        operation: &PlannedOperation,
    ) -> Result<Option<PlanNode>, String> {
        let overrides = self.overrides.for_planner();
        let planned =
            || planner.plan_from_normalized_operation(operation, overrides, &self.work.token);
        // Some operations violate assertions of the planner. It may still have a plan for another form of the
        // operation.
        match catch_unwind(AssertUnwindSafe(planned)) {
            Ok(planned) => planned
                .map(|planned| planned.node)
                .map_err(|error| error.to_string()),
            Err(_) => Err("the planner failed an assertion of its own".to_owned()),
        }
    }

    /// The plan of the planner for operations from interface objects. `None` if there is no such planner, or it
    /// has no plan.
    fn one_way(&self, operation: &PlannedOperation) -> Option<Option<PlanNode>> {
        let planner = self.supergraph.one_way_planner()?;
        let schema = &self.supergraph.schema;
        let root = schema.root(match operation.operation_kind {
            None | Some(PlannedKind::Query) => OperationKind::Query,
            Some(PlannedKind::Mutation) => OperationKind::Mutation,
            Some(PlannedKind::Subscription) => OperationKind::Subscription,
        });
        [Raises::Bare, Raises::All].into_iter().find_map(|raises| {
            let asked = &operation.selection_set;
            let raised = above_fragments(schema, root, asked, raises);
            // A field can now be above its fragment with and without a condition.
            let united = (raises == Raises::All && is_query(operation))
                .then(|| merged(schema, root, &raised))
                .flatten();
            let operation = PlannedOperation {
                selection_set: united.unwrap_or(raised),
                ..operation.clone()
            };
            self.work.go_on().ok()?;
            self.ask(planner, &operation).ok()
        })
    }

    /// A plan of the required fields, followed by the requests for the fields that require them. Required
    /// fields can require further fields, which are planned in the same way.
    fn behind(
        &self,
        operation: &PlannedOperation,
        goal: &PlanGoal<'_>,
        way: Behind,
        levels_left: usize,
    ) -> Attempt {
        let asked = &operation.selection_set;
        // The last of the three also works on merged selections, so that each field is divided once.
        let united = (way == Behind::Renamed && is_query(operation))
            .then(|| merged(goal.schema, goal.root_type, asked))
            .flatten();
        let asked = united.as_ref().unwrap_or(asked);
        let by_type = by_type(goal.schema, goal.root_type, asked, WRITTEN_MAX);
        let split = RequiresSplit {
            schema: goal.schema,
            composition: goal.composition,
            subgraphs: self.supergraph.subgraphs(),
            variables: operation.variable_definitions.as_deref().unwrap_or(&[]),
            splits_values: way == Behind::Values,
            renames: way == Behind::Renamed,
            renamed: RefCell::default(),
        };
        let divided = split.divide(goal.root_type, by_type.as_ref().unwrap_or(asked));
        // The first request of a subscription must be the subscription itself.
        let is_subscription = operation.operation_kind == Some(PlannedKind::Subscription);
        let Some(divided) = divided.filter(|_| !is_subscription) else {
            return Attempt::NotThisWay;
        };
        let rest = PlannedOperation {
            selection_set: divided.rest,
            ..operation.clone()
        };
        let node = match self.whole(&rest) {
            Ok(Some(node)) => node,
            Ok(None) => return Attempt::NotThisWay,
            Err(reason) => match levels_left.checked_sub(1) {
                Some(left) if self.work.go_on().is_ok() => {
                    match self.behind(&rest, goal, way, left) {
                        Attempt::Node(node) => *node,
                        other => return other,
                    }
                }
                _ => return Attempt::Failed(reason),
            },
        };
        let mut nodes = vec![node];
        nodes.extend(divided.behind);
        Attempt::Node(Box::new(PlanNode::Sequence(SequenceNode { nodes })))
    }

    /// A plan of the operation without conflicting fields, followed by the requests for entities of each
    /// conflicting field.
    fn apart(&self, operation: &PlannedOperation, goal: &PlanGoal<'_>, levels: usize) -> Attempt {
        let by_type = by_type(goal.schema, goal.root_type, goal.asked, WRITTEN_MAX);
        let asked = by_type.as_ref().unwrap_or(goal.asked);
        let conflicts = apart::conflicts(asked, levels);
        // The root fields of a mutation must not change places.
        if conflicts.is_empty() || conflicts.len() > SEPARATE_MAX || !is_query(operation) {
            return Attempt::NotThisWay;
        }
        let plan = |selection_set: SelectionSet| {
            self.whole(&PlannedOperation {
                selection_set,
                ..operation.clone()
            })
        };
        let mut nodes = match plan(apart::without(asked, &conflicts)) {
            Ok(Some(node)) => vec![node],
            Ok(None) => return Attempt::NotThisWay,
            Err(reason) => return Attempt::Failed(reason),
        };
        for conflict in &conflicts {
            if self.work.go_on().is_err() {
                return Attempt::NotThisWay;
            }
            let node = match plan(apart::only(asked, conflict)) {
                Ok(Some(node)) => node,
                Ok(None) => return Attempt::NotThisWay,
                Err(reason) => return Attempt::Failed(reason),
            };
            if apart::add_root_fields(&mut nodes[0], &node).is_none() {
                return Attempt::NotThisWay;
            }
            nodes.extend(divide::entities_of(node));
        }
        Attempt::Node(Box::new(PlanNode::Sequence(SequenceNode { nodes })))
    }

    /// A plan that combines one plan per root field. Root fields depend only on their order, and the
    /// planner's optimizations merge fetches of different root fields.
    fn in_parts(&self, operation: &PlannedOperation) -> Attempt {
        let items = &operation.selection_set.items;
        // A single root field cannot be divided.
        if items.len() < 2 {
            return Attempt::NotThisWay;
        }
        let mut nodes = Vec::new();
        for item in items {
            let part = PlannedOperation {
                selection_set: SelectionSet {
                    items: vec![item.clone()],
                },
                ..operation.clone()
            };
            // After the deadline, planning in parts would use up the time again.
            if self.work.go_on().is_err() {
                return Attempt::NotThisWay;
            }
            match self.whole(&part) {
                Ok(node) => nodes.extend(node),
                Err(reason) => return Attempt::Failed(reason),
            }
        }
        Attempt::Node(Box::new(match operation.operation_kind {
            // The GraphQL specification requires that the root fields of a mutation run one after the other.
            Some(PlannedKind::Mutation) => PlanNode::Sequence(SequenceNode { nodes }),
            _ => PlanNode::Parallel(ParallelNode { nodes }),
        }))
    }
}

/// The forms of an operation, in the order of planning. The next form is tried if there is no plan, or if the
/// plan does not answer the operation.
#[derive(Clone, Copy)]
enum Way {
    /// The operation unchanged.
    Whole,
    /// Each root field separately.
    InParts,
    /// One fragment for each object type.
    ByType,
    /// Required fields first, then the fields that require them.
    Behind(Behind),
    /// Selections of one field that differ only in their conditions become one selection.
    Merged,
    /// One plan for each of several fields with one name and different arguments, or for the fields this number
    /// of levels above them.
    Apart { levels: usize },
    /// The types of all objects that fragments select from, without the conditions of the fragments.
    Told,
}

impl Way {
    const ALL: [Way; 11] = [
        Way::Whole,
        Way::InParts,
        Way::ByType,
        Way::Behind(Behind::Required),
        Way::Behind(Behind::Values),
        Way::Merged,
        Way::Behind(Behind::Renamed),
        Way::Apart { levels: 0 },
        Way::Apart { levels: 1 },
        Way::Apart { levels: 2 },
        Way::Told,
    ];
}

/// The fields that come second.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Behind {
    /// Fields that require other fields.
    Required,
    /// Objects without a key, too.
    Values,
    /// Fields that require other fields, which have keys of their own in the data. Fields can require one field
    /// with different arguments.
    Renamed,
}

/// Result of planning one form of the operation.
enum Attempt {
    Node(Box<PlanNode>),
    /// The operation needs no subgraph.
    NothingToAsk,
    /// This form equals another form, or the operation cannot have it.
    NotThisWay,
    Failed(String),
}

fn is_query(operation: &PlannedOperation) -> bool {
    matches!(operation.operation_kind, None | Some(PlannedKind::Query))
}

/// Compiles a plan and proves that it answers the operation.
///
/// # Errors
/// If the plan cannot be compiled.
fn prove(
    node: &PlanNode,
    inputs: &PlanInputs<'_>,
    goal: &PlanGoal<'_>,
) -> Result<Result<Compiled, ProofError>, String> {
    let mut compiled = plan_compiler::compile(node, inputs).map_err(|error| error.to_string())?;
    let held = goal.prove(&compiled.plan, &compiled.documents);
    Ok(held.map(|replaced| {
        for (fetch, replaced) in compiled.plan.fetches.iter_mut().zip(replaced) {
            fetch.replaced = replaced;
        }
        compiled
    }))
}

/// The operation of a document with a single operation.
fn only_operation(document: &QueryDocument) -> Option<&OperationDefinition<'static, String>> {
    let mut operations = document.definitions.iter().filter_map(|it| match it {
        Definition::Operation(operation) => Some(operation),
        Definition::Fragment(_) => None,
    });
    operations.next().filter(|_| operations.next().is_none())
}

fn is_empty(definition: &Definition<'static, String>) -> bool {
    match definition {
        Definition::Operation(operation) => selection_set(operation).items.is_empty(),
        Definition::Fragment(_) => true,
    }
}
