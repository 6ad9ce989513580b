//! From a checked operation to a plan that answers it.
//!
//! The planner is a library whose plans are proven before they are used (see `proof`); where one does
//! not answer the operation, the planner is asked in other ways.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use graphql_tools::parser::query::{Definition, OperationDefinition};
use hive_router_query_planner::ast::operation::OperationDefinition as PlannedOperation;
use hive_router_query_planner::ast::selection_set::SelectionSet;
use hive_router_query_planner::planner::Planner;
use hive_router_query_planner::planner::plan_nodes::{ParallelNode, PlanNode, SequenceNode};
use hive_router_query_planner::state::supergraph_state::OperationKind as PlannedKind;

use crate::by_type::by_type;
use crate::check::Chosen;
use crate::defer::Groups;
use crate::deferral::{Deferral, Deferring};
use crate::divide;
use crate::effort::Work;
use crate::limits::{QueryDocument, selection_set};
use crate::normalize::normalize;
use crate::override_labels::Overrides;
use crate::plan::Plan;
use crate::plan_compiler::{self, Compiled, PlanInputs};
use crate::proof::{Claim, Gap, Missing};
use crate::refusal::Refusal;
use crate::requiring::Parting;
use crate::supergraph::Supergraph;
use crate::unselected;
use crate::unserved;
use crate::variables::Declared;

/// Fields and fragments of an operation that is written in another way.
const WRITTEN_MAX: usize = 2_000;

/// Fields of an operation that are planned apart.
const APART_MAX: usize = 8;

/// How often what fields require may itself require others.
const REQUIRED_LEVELS: usize = 4;

/// What an operation is planned with.
pub(crate) struct Planning<'a> {
    pub(crate) supergraph: &'a Arc<Supergraph>,
    pub(crate) overrides: &'a Overrides,
    pub(crate) work: &'a Work<'a>,
    /// The deferred fragments, when answers may come in parts and there are any.
    pub(crate) groups: Option<&'a Groups>,
}

/// A plan, as it is carried out in one piece and in parts.
#[derive(Debug, Default)]
pub(crate) struct Planned {
    pub(crate) plan: Plan,
    pub(crate) deferral: Option<Deferral>,
}

impl Planning<'_> {
    /// The plan; it asks for nothing where the gateway answers the operation itself.
    ///
    /// # Errors
    /// When no plan was found that answers the operation, or its time is over.
    pub(crate) fn plan(
        &self,
        document: &QueryDocument,
        chosen: &Chosen<'_>,
        declared: &[Declared],
    ) -> Result<Planned, Refusal> {
        // Authorization may leave nothing to be asked, which the planner does not know.
        if document.definitions.iter().all(is_empty) {
            return Ok(Planned::default());
        }
        let failed = |reason: String| {
            Refusal::internal(&format!("the operation could not be planned: {reason}"))
        };
        let undeferred = unserved::without_defer(document);
        let normalized = normalize(self.supergraph, &undeferred, chosen.name);
        let mut operation = normalized.map_err(|error| failed(error.to_string()))?;
        // The operation asks only for introspection or `__typename`, which the gateway answers
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
        };
        let claim = Claim {
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
            let planned = self.attempt(way, &operation, &claim);
            // First whether it was ended from outside: the planner words that in many ways.
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
            match self.proven(*node, &operation, &inputs, &claim) {
                Ok(compiled) => {
                    let planned = self.in_parts_too(compiled, document, chosen, &claim);
                    if self.groups.is_some() && planned.deferral.is_none() {
                        // Where the time was over, there may be parts after all. Kept now, it would be
                        // answered in one piece for as long as it is remembered.
                        self.work.go_on_without()?;
                    }
                    return Ok(planned);
                }
                Err(reason) => drop(first.get_or_insert(reason)),
            }
        }
        self.work.go_on()?;
        // What is wrong with the operation as it was written, not with another form of it.
        Err(failed(first.unwrap_or_default()))
    }

    /// The plan, and how it is carried out in parts, where fragments are deferred.
    fn in_parts_too(
        &self,
        compiled: Compiled,
        document: &QueryDocument,
        chosen: &Chosen<'_>,
        claim: &Claim<'_>,
    ) -> Planned {
        let Compiled {
            mut plan,
            documents,
        } = compiled;
        let deferring = self.groups.map(|groups| Deferring {
            supergraph: self.supergraph,
            document,
            // Authorization may have left another one of the same name.
            operation: only_operation(document).unwrap_or(chosen.operation),
            name: chosen.name,
            groups,
        });
        let deferral = deferring.and_then(|it| it.divide(&mut plan, &documents, claim));
        Planned { plan, deferral }
    }

    /// The plan, if it answers the operation.
    fn proven(
        &self,
        node: PlanNode,
        operation: &PlannedOperation,
        inputs: &PlanInputs<'_>,
        claim: &Claim<'_>,
    ) -> Result<Compiled, String> {
        let gap = match prove(&node, inputs, claim)? {
            Ok(compiled) => return Ok(compiled),
            Err(gap) => gap,
        };
        let told = gap.to_string();
        // Root fields of a mutation must not be carried out twice, nor subscribed to.
        let is_query = matches!(operation.operation_kind, None | Some(PlannedKind::Query));
        match gap.missing {
            Some(missing) if is_query => self
                .apart(node, missing, operation, inputs, claim)
                .ok_or(told),
            _ => Err(told),
        }
    }

    /// A plan in which fields that the first one gets wrong are planned apart: `missing`, and those
    /// that are found wrong after it. `None` when that does not help.
    fn apart(
        &self,
        mut node: PlanNode,
        mut missing: Missing,
        operation: &PlannedOperation,
        inputs: &PlanInputs<'_>,
        claim: &Claim<'_>,
    ) -> Option<Compiled> {
        // What is planned together; `node` is its plan.
        let mut together = operation.clone();
        let mut apart = Vec::new();
        for _ in 0..APART_MAX {
            self.work.go_on().ok()?;
            let (schema, root) = (claim.schema, claim.root_type);
            let of = |selection_set: SelectionSet| PlannedOperation {
                selection_set,
                ..operation.clone()
            };
            let alone = divide::only(schema, root, claim.asked, &missing)?;
            let alone = self.whole(&of(alone)).ok().flatten()?;
            apart.push(divide::entities_of(alone)?);
            if missing.is_asked {
                let set = &together.selection_set;
                let set = by_type(schema, root, set, WRITTEN_MAX).unwrap_or_else(|| set.clone());
                together = of(divide::without(schema, root, &set, &missing));
                node = self.whole(&together).ok().flatten()?;
            }
            let nodes = std::iter::once(&node).chain(&apart).cloned();
            let whole = PlanNode::Sequence(SequenceNode {
                nodes: nodes.collect(),
            });
            match prove(&whole, inputs, claim).ok()? {
                Ok(compiled) => return Some(compiled),
                Err(gap) => missing = gap.missing?,
            }
        }
        None
    }

    /// The planner's plan, made in one of several ways.
    fn attempt(&self, way: Way, operation: &PlannedOperation, claim: &Claim<'_>) -> Attempt {
        let whole = |operation: &PlannedOperation| match self.whole(operation) {
            Ok(Some(node)) => Attempt::Node(Box::new(node)),
            Ok(None) => Attempt::NothingToAsk,
            Err(reason) => Attempt::Failed(reason),
        };
        match way {
            Way::Whole => whole(operation),
            Way::InParts => self.in_parts(operation),
            Way::Behind => self.behind(operation, claim, REQUIRED_LEVELS),
            Way::ByType => {
                let asked = by_type(claim.schema, claim.root_type, claim.asked, WRITTEN_MAX);
                asked.map_or(Attempt::NotThisWay, |selection_set| {
                    whole(&PlannedOperation {
                        selection_set,
                        ..operation.clone()
                    })
                })
            }
        }
    }

    /// A plan of the whole operation; nothing when no subgraph need be asked.
    ///
    /// # Errors
    /// Why the planner has none.
    fn whole(&self, operation: &PlannedOperation) -> Result<Option<PlanNode>, String> {
        let plan = |planner: &Planner| {
            let overrides = self.overrides.for_planner();
            let planned =
                || planner.plan_from_normalized_operation(operation, overrides, &self.work.token);
            // The planner has assertions that some operations do not meet. It may still have a plan
            // when it is asked in another way.
            match catch_unwind(AssertUnwindSafe(planned)) {
                Ok(planned) => planned
                    .map(|planned| planned.node)
                    .map_err(|error| error.to_string()),
                Err(_) => Err("the planner failed an assertion of its own".to_owned()),
            }
        };
        let node = plan(&self.supergraph.planner)?;
        if let (Some(careful), Some(first)) = (&self.supergraph.careful, &node)
            && !careful.permissions.allow(first, &self.supergraph.schema)
            // No plan of its own: the first one is right but for what was not provided.
            && let Ok(Some(other)) = plan(&careful.planner)
        {
            return Ok(Some(other));
        }
        Ok(node)
    }

    /// A plan of what fields require, and behind it the requests for the fields. What is required may
    /// itself require others, which are then planned in the same way.
    fn behind(
        &self,
        operation: &PlannedOperation,
        claim: &Claim<'_>,
        levels_left: usize,
    ) -> Attempt {
        let asked = &operation.selection_set;
        let by_type = by_type(claim.schema, claim.root_type, asked, WRITTEN_MAX);
        let parting = Parting {
            schema: claim.schema,
            composition: claim.composition,
            subgraphs: self.supergraph.subgraphs(),
            variables: operation.variable_definitions.as_deref().unwrap_or(&[]),
        };
        let parted = parting.part(claim.root_type, by_type.as_ref().unwrap_or(asked));
        // A subscription's first request may have nothing before it.
        let is_subscription = operation.operation_kind == Some(PlannedKind::Subscription);
        let Some(parted) = parted.filter(|_| !is_subscription) else {
            return Attempt::NotThisWay;
        };
        let rest = PlannedOperation {
            selection_set: parted.rest,
            ..operation.clone()
        };
        let node = match self.whole(&rest) {
            Ok(Some(node)) => node,
            Ok(None) => return Attempt::NotThisWay,
            Err(reason) => match levels_left.checked_sub(1) {
                Some(left) if self.work.go_on().is_ok() => match self.behind(&rest, claim, left) {
                    Attempt::Node(node) => *node,
                    other => return other,
                },
                _ => return Attempt::Failed(reason),
            },
        };
        let mut nodes = vec![node];
        nodes.extend(parted.behind);
        Attempt::Node(Box::new(PlanNode::Sequence(SequenceNode { nodes })))
    }

    /// A plan of each root field. They depend on nothing but their order, and the planner's
    /// optimizations merge fetches of different ones.
    fn in_parts(&self, operation: &PlannedOperation) -> Attempt {
        let items = &operation.selection_set.items;
        // One root field has no smaller parts.
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
            // After a deadline, parts would only use up the time again.
            if self.work.go_on().is_err() {
                return Attempt::NotThisWay;
            }
            match self.whole(&part) {
                Ok(node) => nodes.extend(node),
                Err(reason) => return Attempt::Failed(reason),
            }
        }
        Attempt::Node(Box::new(match operation.operation_kind {
            // The specification demands that mutations run one after the other.
            Some(PlannedKind::Mutation) => PlanNode::Sequence(SequenceNode { nodes }),
            _ => PlanNode::Parallel(ParallelNode { nodes }),
        }))
    }
}

/// How a plan is made. The planner is asked in another way when its plan does not answer the
/// operation, or when it has none.
#[derive(Clone, Copy)]
enum Way {
    /// As it was asked.
    Whole,
    /// Each root field for itself.
    InParts,
    /// With one fragment for each object type.
    ByType,
    /// Fields that require others behind a plan of what they require.
    Behind,
}

impl Way {
    const ALL: [Way; 4] = [Way::Whole, Way::InParts, Way::ByType, Way::Behind];
}

/// What came of one way.
enum Attempt {
    Node(Box<PlanNode>),
    /// No subgraph need be asked.
    NothingToAsk,
    /// The operation is the same in this way as in another one.
    NotThisWay,
    Failed(String),
}

/// Compiles a plan and holds it against the operation.
///
/// # Errors
/// When it cannot be compiled at all.
fn prove(
    node: &PlanNode,
    inputs: &PlanInputs<'_>,
    claim: &Claim<'_>,
) -> Result<Result<Compiled, Gap>, String> {
    let mut compiled = plan_compiler::compile(node, inputs).map_err(|error| error.to_string())?;
    let held = claim.holds(&compiled.plan, &compiled.documents);
    Ok(held.map(|replaced| {
        for (fetch, replaced) in compiled.plan.fetches.iter_mut().zip(replaced) {
            fetch.replaced = replaced;
        }
        compiled
    }))
}

/// The operation of a document that has one.
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
