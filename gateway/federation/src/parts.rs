//! Executes a plan and responds in parts. Deferred fragments follow the first part.
//!
//! The subgraph requests are the requests of a response in one piece. Each starts when the requests that it
//! depends on have finished. Only the content and the time of the writing differ. Parts are written between
//! two subgraph responses, so this needs no lock.
//!
//! All data of a deferred fragment at one place arrives in one part. The gateway does not wait for a fragment
//! if its place is null.

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

/// Format of the parts, which determines how a part refers to its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartsFormat {
    /// Places by `path` and `label` (`deferSpec=20220824`). A part contains all fields of its fragment.
    Path,
    /// Places by the id that was announced as pending (`incrementalSpec=v0.2`). No leaf is sent twice.
    Pending,
}

/// One part of a response.
#[derive(Debug, Clone, Default)]
pub struct Piece {
    /// A JSON object. If there is only one part, it is the whole response.
    pub body: Bytes,
    /// Number of errors in the part.
    pub error_count: usize,
    /// True if data is missing because of [`ExecutionLimits`](crate::ExecutionLimits).
    pub is_cut: bool,
    /// True if more parts follow.
    pub has_next: bool,
    /// The announced places that are still missing after this part.
    pub open: Open,
    /// The whole response. Only in the last part, and only if costs are estimated.
    pub whole: Option<Bytes>,
}

/// Announced places without data.
#[derive(Debug, Clone, Default)]
pub struct Open(Vec<Instance>);

impl Open {
    /// The last part of a response that must end early. It reports `reason` for each open place.
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
    /// True if the response to these variables may come in parts.
    #[must_use]
    pub fn defers(&self, variables: &Variables) -> bool {
        // Operations without `@defer` pay only for this comparison.
        let Some(deferral) = &self.deferral else {
            return false;
        };
        Delivery::new(&self.checked, variables, deferral).is_divided()
    }

    /// Executes the operation and passes each part of the response to `give`. Ends after the last part.
    ///
    /// The future stays on this thread. Dropping it ends the running requests.
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
        let mut composer = Composer::new(self, variables, policies, format, delivery);
        let mut work = pin!(parts.all());
        let mut is_over = false;
        // After the last request, each round gives a part or joins a group to another group.
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
            // The state is put back below. Only `work` uses it, and `work` is polled only above.
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

/// The requests of a response in parts.
struct Parts<'a, F> {
    run: &'a Run<'a, F>,
    deferral: &'a Deferral,
    gate: Gate,
}

impl<F: Fetch> Parts<'_, F> {
    /// Sends all requests. Each waits for the requests that it depends on.
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
                    // Skipped requests must not delay any part.
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
