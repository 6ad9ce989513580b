//! Proves that a plan answers its operation.
//!
//! The planner is a library. For some operations its plans leave out fields, ask the wrong objects, or send a
//! subgraph other values than a field requires. Such a plan returns wrong data without an error. So every
//! plan is carried out once without data before it is used. In this trial, each possible object type at a
//! place has one object. For each object, the trial records the field and arguments that each member came
//! from. The plan is correct if every requested field arrives.
//!
//! The proof sets the variables in conditions itself. It carries a plan out for each combination of their
//! values, or for some combinations if there are many. The proof deliberately ignores errors and nulls of
//! subgraphs, because a plan cannot predict them. It also ignores the order of concurrent fetches.

mod fetching;
mod given;
mod objects;
mod shapes;

use std::collections::{BTreeSet, HashMap};

use hive_router_query_planner::ast::document::Document;
use hive_router_query_planner::ast::selection_item::SelectionItem;
use hive_router_query_planner::ast::selection_set::{FieldSelection, SelectionSet};

use crate::composition::{Composition, Graph};
use crate::effort::Work;
use crate::plan::{Need, Plan, Step};
use crate::schema::Schema;
use crate::variables::Declared;
use objects::{Id, Objects};

/// Maximum number of condition variables. Up to it, the proof tries every combination.
const COMBINED_MAX: usize = 4;

/// Maximum number of variables that are each tried alone, if there are more than [`COMBINED_MAX`].
const ALONE_MAX: usize = 32;

/// Maximum number of objects in one trial. Beyond it, the plan is accepted without a proof. Ten types at each
/// of five levels would need a hundred thousand objects, and planning would take seconds.
const OBJECTS_MAX: usize = 50_000;

/// Objects between two checks of the time limit. They take a few hundred microseconds.
const OBJECTS_BETWEEN_LOOKS: usize = 256;

/// Reason why a plan does not answer its operation.
#[derive(Debug, thiserror::Error)]
#[error("no plan was found that answers it: {text}")]
pub(crate) struct ProofError {
    text: String,
    /// The missing field, if a single field is the cause.
    pub(crate) missing: Option<MissingField>,
}

/// A field that a plan does not fetch, or requests without the fields that it requires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MissingField {
    /// The response keys on the path to the object.
    pub(crate) path: Vec<Vec<u8>>,
    /// The object type.
    pub(crate) real: String,
    /// The response key of the field.
    pub(crate) key: Vec<u8>,
    /// True if the plan requests the field incorrectly. False if the plan leaves it out.
    pub(crate) is_asked: bool,
}

/// Reason why a trial ended early.
enum TrialError {
    Proof(ProofError),
    /// The trial would need more than [`OBJECTS_MAX`] objects.
    TooLarge,
    /// The time limit of the operation is over.
    OutOfTime,
}

impl From<ProofError> for TrialError {
    fn from(error: ProofError) -> TrialError {
        TrialError::Proof(error)
    }
}

fn proof_error(text: String) -> ProofError {
    let missing = None;
    ProofError { text, missing }
}

/// The keys that each fetch of a plan replaces ([`FetchPlan::replaced`]).
type Replaced = Vec<Vec<Vec<u8>>>;

/// The operation that a plan must answer, with its schema and limits.
#[derive(Clone, Copy)]
pub(crate) struct PlanGoal<'a> {
    pub(crate) schema: &'a Schema,
    pub(crate) composition: &'a Composition,
    pub(crate) declared: &'a [Declared],
    pub(crate) root_type: &'a str,
    /// The client's selection, normalized.
    pub(crate) asked: &'a SelectionSet,
    /// The work limit of the operation.
    pub(crate) work: &'a Work<'a>,
}

impl PlanGoal<'_> {
    /// Carries a plan out for this operation. `documents` are the documents of the plan's fetches.
    ///
    /// Returns the keys that each fetch replaces ([`FetchPlan::replaced`]).
    ///
    /// # Errors
    /// The first missing or wrong field.
    pub(crate) fn prove(
        &self,
        plan: &Plan,
        documents: &[Document],
    ) -> Result<Replaced, ProofError> {
        self.tried(plan, documents).map(|(replaced, _)| replaced)
    }

    /// Like [`PlanGoal::prove`]. Returns `None` if a part was accepted without a proof.
    ///
    /// # Errors
    /// As for [`PlanGoal::prove`].
    pub(crate) fn prove_wholly(
        &self,
        plan: &Plan,
        documents: &[Document],
    ) -> Result<Option<Replaced>, ProofError> {
        let (replaced, is_whole) = self.tried(plan, documents)?;
        Ok(is_whole.then_some(replaced))
    }

    fn tried(&self, plan: &Plan, documents: &[Document]) -> Result<(Replaced, bool), ProofError> {
        let mut replaced = vec![Vec::new(); plan.fetches.len()];
        for (fetch, document) in plan.fetches.iter().zip(documents) {
            shapes::check(self, fetch.subgraph, document)?;
        }
        let mut names = BTreeSet::new();
        conditions(self.asked, &mut names);
        // `asked` can be a part of the plan's operation. So the plan's requests can depend on more variables.
        for document in documents {
            conditions(&document.operation.selection_set, &mut names);
            for fragment in &document.fragments {
                conditions(&fragment.selection_set, &mut names);
            }
        }
        if let Some(step) = &plan.root {
            self.conditions_of_steps(step, &mut names);
        }
        let mut is_whole = names.len() <= COMBINED_MAX;
        for truths in trials(&names.into_iter().collect::<Vec<_>>()) {
            let mut trial = Trial {
                goal: self,
                plan,
                documents,
                truths,
                objects: Objects::default(),
                replaced: &mut replaced,
                is_beside_others: false,
            };
            match trial.run() {
                Ok(()) => {}
                Err(TrialError::Proof(error)) => return Err(error),
                Err(TrialError::TooLarge) => {
                    is_whole = false;
                    break;
                }
                // The caller checks the time limit itself and has the error message for it.
                Err(TrialError::OutOfTime) => {
                    return Err(proof_error("there was no time to check it".to_owned()));
                }
            }
        }
        Ok((replaced, is_whole))
    }
}

impl<'a> PlanGoal<'a> {
    /// Collects the condition variables of steps.
    fn conditions_of_steps(&self, step: &Step, names: &mut BTreeSet<&'a str>) {
        match step {
            Step::Fetch(_) => {}
            Step::Sequence(steps) | Step::Parallel(steps) => {
                for step in steps {
                    self.conditions_of_steps(step, names);
                }
            }
            Step::Condition {
                variable,
                if_true,
                if_false,
            } => {
                let declared = self.declared.get(*variable);
                names.extend(declared.map(|it| it.name.as_str()));
                for clause in [if_true, if_false].into_iter().flatten() {
                    self.conditions_of_steps(clause, names);
                }
            }
        }
    }
}

/// Collects the condition variables of a selection.
fn conditions<'a>(set: &'a SelectionSet, names: &mut BTreeSet<&'a str>) {
    for item in &set.items {
        let (skip, include, below) = match item {
            SelectionItem::Field(it) => (&it.skip_if, &it.include_if, &it.selections),
            SelectionItem::InlineFragment(it) => (&it.skip_if, &it.include_if, &it.selections),
            SelectionItem::FragmentSpread(_) => continue,
        };
        names.extend(skip.as_deref());
        names.extend(include.as_deref());
        conditions(below, names);
    }
}

/// The values of variables to try. Few variables get all combinations. Many variables get all true, all
/// false, and each alone with both values.
fn trials<'a>(names: &[&'a str]) -> Vec<HashMap<&'a str, bool>> {
    let of = |truth: &dyn Fn(usize) -> bool| {
        let each = names.iter().enumerate();
        each.map(|(index, name)| (*name, truth(index))).collect()
    };
    if names.len() <= COMBINED_MAX {
        return (0..1_usize << names.len())
            .map(|bits| of(&|index| bits & (1 << index) != 0))
            .collect();
    }
    let mut trials = vec![of(&|_| true), of(&|_| false)];
    for alone in 0..names.len().min(ALONE_MAX) {
        trials.push(of(&|index| index == alone));
        trials.push(of(&|index| index != alone));
    }
    trials
}

/// One trial run of a plan.
struct Trial<'a> {
    goal: &'a PlanGoal<'a>,
    plan: &'a Plan,
    documents: &'a [Document],
    truths: HashMap<&'a str, bool>,
    objects: Objects<'a>,
    /// The replaced keys, one list per fetch.
    replaced: &'a mut Vec<Vec<Vec<u8>>>,
    /// True if other fetches may finish before or after the current fetch. Then it must not replace members
    /// that they might need.
    is_beside_others: bool,
}

/// The fetch that a trial carries out.
#[derive(Clone, Copy)]
struct Asking<'a> {
    graph: Graph,
    /// Name of its operation in messages. It is named after the subgraph.
    operation: &'a str,
    document: &'a Document,
}

/// An object as the requested subgraph sees it.
#[derive(Clone, Copy)]
struct Seen<'a> {
    /// Type of the object in the subgraph: its own type, or the interface that represents it.
    name: &'a str,
    /// The fields in the representation, and the object that they were read from. `None` for objects below
    /// the entity.
    given: Option<(&'a [Need], Id)>,
}

impl<'a> Trial<'a> {
    fn run(&mut self) -> Result<(), TrialError> {
        let root = self.objects.add(self.goal.root_type);
        if let Some(step) = &self.plan.root {
            self.step(step, root)?;
        }
        let mut path = Vec::new();
        self.check(self.goal.asked, root, self.goal.root_type, &mut path)?;
        Ok(())
    }

    fn is_included(&self, skip: Option<&str>, include: Option<&str>) -> bool {
        let truth = |name: &str| self.truths.get(name).copied().unwrap_or(false);
        !skip.is_some_and(truth) && include.is_none_or(truth)
    }

    fn step(&mut self, step: &'a Step, root: Id) -> Result<(), TrialError> {
        match step {
            Step::Fetch(index) => self.fetch(*index, root),
            Step::Sequence(steps) => steps.iter().try_for_each(|step| self.step(step, root)),
            Step::Parallel(steps) => {
                let outside = self.is_beside_others;
                // If all steps are fetches, the gateway writes all requests before it merges the first
                // response.
                let are_fetches = steps.iter().all(|step| matches!(step, Step::Fetch(_)));
                self.is_beside_others = outside || !are_fetches;
                let done = steps.iter().try_for_each(|step| self.step(step, root));
                self.is_beside_others = outside;
                done
            }
            Step::Condition {
                variable,
                if_true,
                if_false,
            } => {
                let declared = self.goal.declared.get(*variable);
                let holds = declared.is_some_and(|it| self.is_included(None, Some(&it.name)));
                let clause = if holds { if_true } else { if_false };
                clause.as_ref().map_or(Ok(()), |step| self.step(step, root))
            }
        }
    }

    /// Checks that an object has every requested field.
    fn check(
        &self,
        set: &'a SelectionSet,
        object: Id,
        parent: &str,
        path: &mut Vec<Vec<u8>>,
    ) -> Result<(), ProofError> {
        let schema = self.goal.schema;
        let real = self.objects.real(object);
        // Without its type name, the gateway cannot determine the type of the object.
        let tells_types = set.items.iter().any(|item| match item {
            SelectionItem::Field(field) => field.name == "__typename",
            SelectionItem::InlineFragment(_) => true,
            SelectionItem::FragmentSpread(_) => false,
        });
        if tells_types
            && !schema.is_object(parent.as_bytes())
            && self.objects.name(object) != Some(real)
        {
            return Err(proof_error(format!(
                "nothing says which objects of `{parent}` are `{real}`"
            )));
        }
        for item in &set.items {
            match item {
                SelectionItem::Field(field) => {
                    if self.is_included(field.skip_if.as_deref(), field.include_if.as_deref()) {
                        self.check_field(field, object, parent, path)?;
                    }
                }
                SelectionItem::InlineFragment(inline) => {
                    let is_included =
                        self.is_included(inline.skip_if.as_deref(), inline.include_if.as_deref());
                    if is_included && schema.possible(&inline.type_condition).contains(&real) {
                        let parent = &inline.type_condition;
                        self.check(&inline.selections, object, parent, path)?;
                    }
                }
                SelectionItem::FragmentSpread(_) => {}
            }
        }
        Ok(())
    }

    fn check_field(
        &self,
        field: &'a FieldSelection,
        object: Id,
        parent: &str,
        path: &mut Vec<Vec<u8>>,
    ) -> Result<(), ProofError> {
        let real = self.objects.real(object);
        if field.name == "__typename" {
            return Ok(());
        }
        let key = field.selection_identifier();
        let Some(member) = self.objects.member(object, key.as_bytes()) else {
            return Err(ProofError {
                text: format!("nothing brings `{key}` of `{real}`"),
                missing: Some(MissingField {
                    path: path.clone(),
                    real: real.to_owned(),
                    key: key.as_bytes().to_vec(),
                    is_asked: false,
                }),
            });
        };
        if !member.is_of(field) {
            return Err(proof_error(format!("`{key}` of `{real}` is another field")));
        }
        let definition = self.goal.composition.field(parent, &field.name);
        let definition = definition.or_else(|| self.goal.composition.field(real, &field.name));
        let Some(definition) = definition else {
            return Ok(());
        };
        path.push(key.as_bytes().to_vec());
        for below in &member.below {
            // The response does not contain objects of hidden types.
            if self.goal.schema.named(self.objects.real(*below)).is_some() {
                self.check(&field.selections, *below, &definition.returns, path)?;
            }
        }
        path.pop();
        Ok(())
    }
}
