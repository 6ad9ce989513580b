//! Carries a plan out and answers in parts: what is deferred comes behind the rest.
//!
//! The requests to subgraphs are those of an answer in one piece, and each starts as soon as those it
//! depends on have been answered; only what is written, and when, differs. Parts are written between
//! two answers of subgraphs, so nothing here needs a lock.
//!
//! Of a deferred fragment at a place, everything is in one part. Nothing waits for a fragment whose
//! place turned out to be null.

mod composer;
mod gate;
mod groups;
mod new_fields;
mod text;

use std::pin::pin;
use std::task::Poll;

use bytes::Bytes;
use futures_util::future::{join, join_all};

use crate::deferral::{Deferral, fetches};
use crate::error::GraphqlError;
use crate::execute::Run;
use crate::execution_state::State;
use crate::fetch::Fetch;
use crate::plan::Step;
use crate::policy::ErrorPolicies;
use crate::prepared::Prepared;
use crate::variables::Variables;
use composer::Composer;
use gate::Gate;
use groups::Delivery;
use text::Instance;

/// How parts say where they belong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartsFormat {
    /// By `path` and `label` (`deferSpec=20220824`). A part has all fields of its fragment.
    Path,
    /// By the id of what was announced as pending (`incrementalSpec=v0.2`). No leaf is sent twice.
    Pending,
}

/// One part of an answer.
#[derive(Debug, Clone, Default)]
pub struct Piece {
    /// A JSON object. The first one is the whole response when there are no more.
    pub body: Bytes,
    /// How many errors are in it.
    pub error_count: usize,
    /// Whether something is missing because of [`Bounds`](crate::Bounds).
    pub is_cut: bool,
    /// Whether there are more.
    pub has_next: bool,
    /// What is still to come behind it.
    pub open: Open,
    /// With the last part, the whole response, where costs are estimated.
    pub whole: Option<Bytes>,
}

/// What was announced and has not come.
#[derive(Debug, Clone, Default)]
pub struct Open(Vec<Instance>);

impl Open {
    /// The last part of an answer that has to end before its time: nothing comes of what is open, for
    /// this reason.
    #[must_use]
    pub fn end(&self, format: PartsFormat, reason: &GraphqlError) -> Bytes {
        let mut instances = self.0.clone();
        for instance in &mut instances {
            instance.errors.push(reason.clone());
        }
        let text = match format {
            PartsFormat::Path => text::by_path(&instances, false),
            PartsFormat::Pending => text::by_id(&instances, b"[]", false),
        };
        text.into()
    }
}

impl Prepared {
    /// Whether an answer to these variables may come in parts.
    #[must_use]
    pub fn defers(&self, variables: &Variables) -> bool {
        // The one comparison that operations without `@defer` pay.
        let Some(deferral) = &self.deferral else {
            return false;
        };
        Delivery::new(&self.checked, variables, deferral).is_divided()
    }

    /// Executes the operation and gives the answer in parts; done behind the last one.
    ///
    /// The future stays on this thread. Dropping it ends the requests under way.
    pub async fn execute_in_parts<F: Fetch>(
        &self,
        variables: &Variables,
        fetch: &F,
        policies: &ErrorPolicies,
        format: PartsFormat,
        give: impl Fn(Piece),
    ) {
        let Some(deferral) = &self.deferral else {
            return;
        };
        let run = Run {
            prepared: self,
            variables,
            fetch,
            state: State::new(self.bounds.answers_bytes).into(),
        };
        let parts = Parts {
            run: &run,
            deferral,
            gate: Gate::new(self.plan.fetches.len()),
        };
        let delivery = Delivery::new(&self.checked, variables, deferral);
        let mut composer = Composer::new((self, variables), (policies, format), delivery);
        let mut work = pin!(parts.all());
        let mut is_over = false;
        // Once the requests are over, each round gives a part or joins a group to another.
        while !is_over || composer.is_ready(&parts.gate) {
            std::future::poll_fn(|task| {
                is_over = is_over || work.as_mut().poll(task).is_ready();
                if is_over || composer.is_ready(&parts.gate) {
                    Poll::Ready(())
                } else {
                    Poll::Pending
                }
            })
            .await;
            // Put back below. Nothing else looks at it meanwhile: `work` is polled only above.
            let mut state = run.state.replace(State::new(0));
            let piece = composer.compose(&mut state, &parts.gate, fetch).await;
            run.state.replace(state);
            if let Some(mut piece) = piece {
                let has_next = piece.has_next;
                if !has_next && self.cost.is_some() {
                    let mut state = run.state.replace(State::new(0));
                    let (mut whole, _) = self.write_data(variables, fetch, &mut state).await;
                    whole.push(b'}');
                    piece.whole = Some(whole.into());
                }
                give(piece);
                if !has_next {
                    return;
                }
            }
        }
    }
}

/// The requests of an answer in parts.
struct Parts<'a, F> {
    run: &'a Run<'a, F>,
    deferral: &'a Deferral,
    gate: Gate,
}

impl<F: Fetch> Parts<'_, F> {
    /// Sends all of them, each when its time has come.
    async fn all(&self) {
        let first = async {
            if let Some(step) = &self.deferral.first {
                self.step(step).await;
            }
        };
        join(first, self.step(&self.deferral.rest)).await;
    }

    async fn step(&self, step: &Step) {
        match step {
            Step::Fetch(index) => {
                if let Some(before) = self.deferral.after.get(index) {
                    self.gate.wait_for(before).await;
                }
                self.run.fetch(*index).await;
                self.gate.open(*index);
            }
            Step::Sequence(steps) => {
                for step in steps {
                    Box::pin(self.step(step)).await;
                }
            }
            Step::Parallel(steps) => {
                join_all(steps.iter().map(|step| Box::pin(self.step(step)))).await;
            }
            Step::Condition {
                variable,
                if_true,
                if_false,
            } => {
                let is_true = self
                    .run
                    .prepared
                    .checked
                    .truth(*variable, self.run.variables);
                let (taken, left) = match is_true {
                    true => (if_true, if_false),
                    false => (if_false, if_true),
                };
                if let Some(step) = left {
                    // What is not asked holds nothing up.
                    let mut skipped = Vec::new();
                    fetches(step, &mut skipped);
                    skipped.into_iter().for_each(|index| self.gate.open(index));
                }
                if let Some(step) = taken {
                    Box::pin(self.step(step)).await;
                }
            }
        }
    }
}
