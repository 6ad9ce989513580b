//! Assigns the subgraph requests of a plan to the first part and to the deferred fragments.
//!
//! The requests are the requests of the plan in one piece, each sent once. The proof finds the requests that
//! a part needs. A part does not wait for a request if the remaining requests still answer this part and the
//! parts before it.

use std::collections::HashMap;

use graphql_tools::parser::query::OperationDefinition;
use hive_router_query_planner::ast::document::Document;

use crate::defer::{Groups, restricted};
use crate::limits::QueryDocument;
use crate::normalize::normalize;
use crate::plan::{Plan, Step};
use crate::proof::PlanGoal;
use crate::supergraph::Supergraph;

/// Maximum number of trials for one operation. Each takes about ten microseconds. Beyond this limit, the
/// response comes in one piece.
const TRIALS_MAX: usize = 600;

/// A plan for a response in parts.
#[derive(Debug)]
pub(crate) struct Deferral {
    /// The requests that the first part needs.
    pub(crate) first: Option<Step>,
    /// All requests except the requests of the first part.
    pub(crate) rest: Step,
    /// The earlier requests of the first part, for each request in `rest`.
    pub(crate) after: HashMap<usize, Vec<usize>>,
    /// The requests in `rest` that each group needs, including the needs of its surrounding groups. Indexed
    /// by group number minus one. Empty for a group that arrives together with its surrounding group.
    pub(crate) needs: Vec<Vec<usize>>,
}

impl Deferral {
    /// Approximate size of the deferral in bytes.
    pub(crate) fn weight(&self) -> usize {
        let needs = self.needs.iter().map(|it| 32 + 8 * it.len());
        let after = self.after.values().map(|it| 64 + 8 * it.len());
        size_of::<Self>() + needs.sum::<usize>() + after.sum::<usize>()
    }

    /// True if a group's data arrives together with the data of its surrounding group.
    pub(crate) fn is_idle(&self, groups: &Groups, group: usize) -> bool {
        let needs = |number: usize| number.checked_sub(1).map(|index| &self.needs[index]);
        let own = needs(group).map_or(0, Vec::len);
        own == needs(groups.get(group).parent).map_or(0, Vec::len)
    }
}

/// Inputs for dividing a plan into parts.
pub(crate) struct Deferring<'a> {
    pub(crate) supergraph: &'a Supergraph,
    pub(crate) document: &'a QueryDocument,
    pub(crate) operation: &'a OperationDefinition<'static, String>,
    pub(crate) name: Option<&'a str>,
    pub(crate) groups: &'a Groups,
}

impl Deferring<'_> {
    /// Divides a plan into parts. `None` if the first part needs all requests.
    pub(crate) fn divide(
        &self,
        plan: &mut Plan,
        documents: &[Document],
        goal: &PlanGoal<'_>,
    ) -> Option<Deferral> {
        let root = plan.root.take()?;
        let deferral = self.divided(&root, plan, documents, goal);
        plan.root = Some(root);
        deferral
    }

    fn divided(
        &self,
        root: &Step,
        plan: &mut Plan,
        documents: &[Document],
        goal: &PlanGoal<'_>,
    ) -> Option<Deferral> {
        let mut trials = Trials {
            plan,
            documents,
            left: TRIALS_MAX,
        };
        let all: Vec<usize> = (0..trials.plan.fetches.len()).collect();
        let first = self.needed(&mut trials, root, goal, &all, &[], &|group| group == 0)?;
        let others: Vec<usize> = all
            .iter()
            .copied()
            .filter(|it| !first.contains(it))
            .collect();
        if others.is_empty() {
            return None;
        }
        let mut needs: Vec<Vec<usize>> = Vec::new();
        for group in self.groups.numbers() {
            let parent = self.groups.get(group).parent;
            let around = parent.checked_sub(1).map(|index| needs[index].clone());
            let known = [first.clone(), around.unwrap_or_default()].concat();
            let keeps = |number: usize| number == 0 || self.groups.is_within(group, number);
            let own = self.needed(&mut trials, root, goal, &others, &known, &keeps)?;
            needs.push(own.into_iter().filter(|it| !first.contains(it)).collect());
        }
        let deferral = Deferral {
            first: with(root, &|fetch| first.contains(&fetch)),
            rest: with(root, &|fetch| !first.contains(&fetch))?,
            after: after(root, &first),
            needs,
        };
        // Requests of the two halves can now finish in another order than in one piece.
        let both = [deferral.first.as_ref(), Some(&deferral.rest)];
        let side_by_side = both.into_iter().flatten().map(copy).collect();
        let replaced = trials.replaced(Step::Parallel(side_by_side), goal)?;
        let mut fetches = trials.plan.fetches.iter();
        let nothing_is_replaced =
            fetches.all(|it| it.replaced.is_empty()) && replaced.iter().all(Vec::is_empty);
        let defers = self
            .groups
            .numbers()
            .any(|it| !deferral.is_idle(self.groups, it));
        (nothing_is_replaced && defers).then_some(deferral)
    }

    /// Returns the requests that are necessary to answer the operation for these groups, out of `open` and
    /// `known`. The requests in `known` are always necessary.
    fn needed(
        &self,
        trials: &mut Trials<'_>,
        root: &Step,
        goal: &PlanGoal<'_>,
        open: &[usize],
        known: &[usize],
        keeps: &dyn Fn(usize) -> bool,
    ) -> Option<Vec<usize>> {
        let document = restricted(
            goal.schema,
            goal.root_type,
            self.document,
            self.operation,
            self.groups,
            keeps,
        );
        let operation = normalize(self.supergraph, &document, self.name).ok()?;
        let goal = PlanGoal {
            asked: &operation.selection_set,
            ..*goal
        };
        let mut needed: Vec<usize> = open.to_vec();
        needed.extend(known.iter().filter(|it| !open.contains(it)));
        needed.sort_unstable();
        // From the last request, because a request can become unnecessary after its dependents are removed.
        for fetch in open.iter().rev().filter(|it| !known.contains(it)) {
            let without: Vec<usize> = needed.iter().copied().filter(|it| it != fetch).collect();
            if trials.answers(root, &without, &goal)? {
                needed = without;
            }
        }
        // All necessary requests together must answer the operation. If they do not, the proof itself is in
        // doubt.
        trials.answers(root, &needed, &goal)?.then_some(needed)
    }
}

struct Trials<'a> {
    plan: &'a mut Plan,
    documents: &'a [Document],
    left: usize,
}

impl Trials<'_> {
    /// True if these requests answer the operation. `None` if the proof is not certain.
    fn answers(&mut self, root: &Step, kept: &[usize], goal: &PlanGoal<'_>) -> Option<bool> {
        let step = with(root, &|fetch| kept.contains(&fetch));
        self.left = self.left.checked_sub(1)?;
        self.plan.root = step;
        let held = goal.prove_wholly(self.plan, self.documents);
        self.plan.root = None;
        match held {
            Ok(Some(_)) => Some(true),
            // The proof accepted a part without a check.
            Ok(None) => None,
            Err(_) => goal.work.go_on().ok().map(|()| false),
        }
    }

    fn replaced(&mut self, step: Step, goal: &PlanGoal<'_>) -> Option<Vec<Vec<Vec<u8>>>> {
        self.plan.root = Some(step);
        let held = goal.prove_wholly(self.plan, self.documents);
        self.plan.root = None;
        held.ok().flatten()
    }
}

fn copy(step: &Step) -> Step {
    with(step, &|_| true).expect("every step has a request")
}

/// A step with only some of its requests. `None` if no request remains.
fn with(step: &Step, keeps: &dyn Fn(usize) -> bool) -> Option<Step> {
    let all = |steps: &[Step]| -> Vec<Step> {
        steps.iter().filter_map(|step| with(step, keeps)).collect()
    };
    let only = |mut steps: Vec<Step>, several: fn(Vec<Step>) -> Step| match steps.len() {
        0 => None,
        1 => steps.pop(),
        _ => Some(several(steps)),
    };
    match step {
        Step::Fetch(index) => keeps(*index).then_some(Step::Fetch(*index)),
        Step::Sequence(steps) => only(all(steps), Step::Sequence),
        Step::Parallel(steps) => only(all(steps), Step::Parallel),
        Step::Condition {
            variable,
            if_true,
            if_false,
        } => {
            let clause = |clause: &Option<Box<Step>>| {
                let clause = clause.as_ref().and_then(|step| with(step, keeps));
                clause.map(Box::new)
            };
            let (if_true, if_false) = (clause(if_true), clause(if_false));
            (if_true.is_some() || if_false.is_some()).then_some(Step::Condition {
                variable: *variable,
                if_true,
                if_false,
            })
        }
    }
}

/// Collects the requests of a step.
pub(crate) fn fetches(step: &Step, out: &mut Vec<usize>) {
    match step {
        Step::Fetch(index) => out.push(*index),
        Step::Sequence(steps) | Step::Parallel(steps) => {
            steps.iter().for_each(|step| fetches(step, out));
        }
        Step::Condition {
            if_true, if_false, ..
        } => {
            let clauses = [if_true, if_false].into_iter().flatten();
            clauses.for_each(|step| fetches(step, out));
        }
    }
}

/// The earlier requests of the first part, for each request outside of the first part.
fn after(root: &Step, first: &[usize]) -> HashMap<usize, Vec<usize>> {
    fn walk(
        step: &Step,
        before: &mut Vec<usize>,
        first: &[usize],
        out: &mut HashMap<usize, Vec<usize>>,
    ) {
        match step {
            Step::Fetch(index) if first.contains(index) => {}
            Step::Fetch(index) => drop(out.insert(*index, before.clone())),
            Step::Sequence(steps) => {
                let length = before.len();
                for step in steps {
                    walk(step, before, first, out);
                    let mut done = Vec::new();
                    fetches(step, &mut done);
                    before.extend(done.into_iter().filter(|it| first.contains(it)));
                }
                before.truncate(length);
            }
            Step::Parallel(steps) => {
                steps.iter().for_each(|step| walk(step, before, first, out));
            }
            Step::Condition {
                if_true, if_false, ..
            } => {
                let clauses = [if_true, if_false].into_iter().flatten();
                clauses.for_each(|step| walk(step, before, first, out));
            }
        }
    }
    let mut out = HashMap::new();
    walk(root, &mut Vec::new(), first, &mut out);
    out
}
