//! Whether a plan answers its operation.
//!
//! The planner is a library, and for some operations it makes plans that leave out fields, ask the
//! wrong objects or give a subgraph something else than a field requires. Such a plan gives wrong
//! data without an error. So every plan is carried out once without data before it is used: for each
//! object type that can be at a place there is one object there, and of each object it is known which
//! member came from which field with which arguments. Whatever the operation asks for must have come.
//!
//! Conditions with variables are taken as given: a plan is carried out for each combination of them,
//! or for some, where there are many. Absent on purpose: errors and nulls of subgraphs, which no plan
//! can know, and the order of fetches that run at once.

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

/// Variables of conditions of which every combination is tried.
const COMBINED_MAX: usize = 4;

/// Of many variables, those of which each is tried alone.
const ALONE_MAX: usize = 32;

/// Objects of one trial. An operation with so many kinds of places is believed: with ten types at each
/// of five levels it would have a hundred thousand, and planning would take seconds.
const OBJECTS_MAX: usize = 50_000;

/// Objects after which it is asked whether there is time left: some hundred microseconds.
const OBJECTS_BETWEEN_LOOKS: usize = 256;

/// Why a plan does not answer its operation.
#[derive(Debug, thiserror::Error)]
#[error("no plan was found that answers it: {text}")]
pub(crate) struct Gap {
    text: String,
    /// The field that does not come, where one is to blame.
    pub(crate) missing: Option<Missing>,
}

/// A field that a plan does not bring, or asks for without what it requires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Missing {
    /// The response keys on the way to the object.
    pub(crate) path: Vec<Vec<u8>>,
    /// The object's type.
    pub(crate) real: String,
    /// The field's response key.
    pub(crate) key: Vec<u8>,
    /// Whether it is asked for in a wrong way, and not only left out.
    pub(crate) is_asked: bool,
}

/// How a trial ended early.
enum Halt {
    Gap(Gap),
    /// It would need more than [`OBJECTS_MAX`].
    TooLarge,
    /// The operation has had its time.
    Ended,
}

impl From<Gap> for Halt {
    fn from(gap: Gap) -> Halt {
        Halt::Gap(gap)
    }
}

fn gap(text: String) -> Gap {
    let missing = None;
    Gap { text, missing }
}

/// The keys that each fetch of a plan replaces ([`FetchPlan::replaced`]).
type Replaced = Vec<Vec<Vec<u8>>>;

/// What a plan is held against.
#[derive(Clone, Copy)]
pub(crate) struct Claim<'a> {
    pub(crate) schema: &'a Schema,
    pub(crate) composition: &'a Composition,
    pub(crate) declared: &'a [Declared],
    pub(crate) root_type: &'a str,
    /// What the client asks, normalized.
    pub(crate) asked: &'a SelectionSet,
    /// What may be spent on it.
    pub(crate) work: &'a Work<'a>,
}

impl Claim<'_> {
    /// Carries a plan out for this operation. `documents` are those of the plan's fetches.
    ///
    /// Gives the keys that each fetch replaces ([`FetchPlan::replaced`]).
    ///
    /// # Errors
    /// The first thing that is missing or wrong.
    pub(crate) fn holds(&self, plan: &Plan, documents: &[Document]) -> Result<Replaced, Gap> {
        self.tried(plan, documents).map(|(replaced, _)| replaced)
    }

    /// The same; nothing where a part of it was believed.
    ///
    /// # Errors
    /// As above.
    pub(crate) fn holds_wholly(
        &self,
        plan: &Plan,
        documents: &[Document],
    ) -> Result<Option<Replaced>, Gap> {
        let (replaced, is_whole) = self.tried(plan, documents)?;
        Ok(is_whole.then_some(replaced))
    }

    fn tried(&self, plan: &Plan, documents: &[Document]) -> Result<(Replaced, bool), Gap> {
        let mut replaced = vec![Vec::new(); plan.fetches.len()];
        for (fetch, document) in plan.fetches.iter().zip(documents) {
            shapes::check(self, fetch.subgraph, document)?;
        }
        let mut names = BTreeSet::new();
        conditions(self.asked, &mut names);
        // What is asked may be a part of what the plan is for, whose requests depend on more.
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
                claim: self,
                plan,
                documents,
                truths,
                objects: Objects::default(),
                replaced: &mut replaced,
                is_beside_others: false,
            };
            match trial.run() {
                Ok(()) => {}
                Err(Halt::Gap(gap)) => return Err(gap),
                Err(Halt::TooLarge) => {
                    is_whole = false;
                    break;
                }
                // The caller asks for itself, and has the words for it.
                Err(Halt::Ended) => {
                    return Err(gap("there was no time to check it".to_owned()));
                }
            }
        }
        Ok((replaced, is_whole))
    }
}

impl<'a> Claim<'a> {
    /// The variables on which steps depend.
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

/// The variables on which a selection depends.
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

/// The truths of variables to try: all combinations of few; of many all true, all false, and each
/// alone the one and the other.
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

/// One time that a plan is carried out.
struct Trial<'a> {
    claim: &'a Claim<'a>,
    plan: &'a Plan,
    documents: &'a [Document],
    truths: HashMap<&'a str, bool>,
    objects: Objects<'a>,
    /// Of each fetch.
    replaced: &'a mut Vec<Vec<Vec<u8>>>,
    /// Whether other fetches may come to their end before or after the one under way. Then nothing may
    /// replace what they might need.
    is_beside_others: bool,
}

/// A fetch under way.
#[derive(Clone, Copy)]
struct Asking<'a> {
    graph: Graph,
    /// How its operation is called in messages: it is named after the subgraph.
    operation: &'a str,
    document: &'a Document,
}

/// What an object is to the subgraph that is asked about it.
#[derive(Clone, Copy)]
struct Seen<'a> {
    /// Its type there: its own, or the interface that stands for it.
    name: &'a str,
    /// What the representation holds, and the object it was made of; none below it.
    given: Option<(&'a [Need], Id)>,
}

impl<'a> Trial<'a> {
    fn run(&mut self) -> Result<(), Halt> {
        let root = self.objects.add(self.claim.root_type);
        if let Some(step) = &self.plan.root {
            self.step(step, root)?;
        }
        let mut path = Vec::new();
        self.check(self.claim.asked, root, self.claim.root_type, &mut path)?;
        Ok(())
    }

    fn is_included(&self, skip: Option<&str>, include: Option<&str>) -> bool {
        let truth = |name: &str| self.truths.get(name).copied().unwrap_or(false);
        !skip.is_some_and(truth) && include.is_none_or(truth)
    }

    fn step(&mut self, step: &'a Step, root: Id) -> Result<(), Halt> {
        match step {
            Step::Fetch(index) => self.fetch(*index, root),
            Step::Sequence(steps) => steps.iter().try_for_each(|step| self.step(step, root)),
            Step::Parallel(steps) => {
                let outside = self.is_beside_others;
                // Fetches alone have all been written before the first answer is merged.
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
                let declared = self.claim.declared.get(*variable);
                let holds = declared.is_some_and(|it| self.is_included(None, Some(&it.name)));
                let clause = if holds { if_true } else { if_false };
                clause.as_ref().map_or(Ok(()), |step| self.step(step, root))
            }
        }
    }

    /// Whether an object has what is asked of it.
    fn check(
        &self,
        set: &'a SelectionSet,
        object: Id,
        parent: &str,
        path: &mut Vec<Vec<u8>>,
    ) -> Result<(), Gap> {
        let schema = self.claim.schema;
        let real = self.objects.real(object);
        // Without its name, the answer cannot tell which of several types it is.
        let tells_types = set.items.iter().any(|item| match item {
            SelectionItem::Field(field) => field.name == "__typename",
            SelectionItem::InlineFragment(_) => true,
            SelectionItem::FragmentSpread(_) => false,
        });
        if tells_types
            && !schema.is_object(parent.as_bytes())
            && self.objects.name(object) != Some(real)
        {
            return Err(gap(format!(
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
    ) -> Result<(), Gap> {
        let real = self.objects.real(object);
        if field.name == "__typename" {
            return Ok(());
        }
        let key = field.selection_identifier();
        let Some(member) = self.objects.member(object, key.as_bytes()) else {
            return Err(Gap {
                text: format!("nothing brings `{key}` of `{real}`"),
                missing: Some(Missing {
                    path: path.clone(),
                    real: real.to_owned(),
                    key: key.as_bytes().to_vec(),
                    is_asked: false,
                }),
            });
        };
        if !member.is_of(field) {
            return Err(gap(format!("`{key}` of `{real}` is another field")));
        }
        let definition = self.claim.composition.field(parent, &field.name);
        let definition = definition.or_else(|| self.claim.composition.field(real, &field.name));
        let Some(definition) = definition else {
            return Ok(());
        };
        path.push(key.as_bytes().to_vec());
        for below in &member.below {
            // Objects that clients may not see are not written.
            if self.claim.schema.named(self.objects.real(*below)).is_some() {
                self.check(&field.selections, *below, &definition.returns, path)?;
            }
        }
        path.pop();
        Ok(())
    }
}
