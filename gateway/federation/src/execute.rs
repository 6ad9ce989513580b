//! Executes a plan.
//!
//! Everything between two fetches is synchronous. A step borrows the merged data to write its request and
//! releases it while the subgraph works. It borrows the data again to merge the response. So fetches run
//! concurrently on one thread without a lock.

use std::cell::RefCell;

use bytes::Bytes;
use futures_util::future::join_all;

use crate::answer;
use crate::bounds::{Excess, ExecutionLimits};
use crate::entities::{self, Target, write_representations};
use crate::error::{GraphqlError, PathSegment, write_errors};
use crate::execution_state::State;
use crate::fetch::{Fetch, SubgraphRequest};
use crate::plan::{FetchPlan, Step};
use crate::policy::ErrorPolicies;
use crate::prepared::Prepared;
use crate::response::{Progress, Writer};
use crate::variables::Variables;

/// A complete GraphQL response with `data` and `errors`.
#[derive(Debug, Clone)]
pub struct Executed {
    body: Bytes,
    /// End of the value of `data`. It starts after `{"data":`.
    data_end: usize,
    /// End of the list of `errors` in the body.
    errors_end: usize,
    error_count: usize,
    is_cut: bool,
}

pub(crate) const DATA_OPENER: &[u8] = b"{\"data\":";
pub(crate) const ERRORS_OPENER: &[u8] = b",\"errors\":";

impl Executed {
    /// `{"data":…}`, with `errors` after it if there are any.
    #[must_use]
    pub fn body(&self) -> &Bytes {
        &self.body
    }

    /// Converts the response into its body.
    #[must_use]
    pub fn into_body(self) -> Bytes {
        self.body
    }

    /// The JSON value of `data`: an object or null.
    #[must_use]
    pub fn data(&self) -> &[u8] {
        &self.body[DATA_OPENER.len()..self.data_end]
    }

    /// The JSON list of `errors`. `None` without errors.
    #[must_use]
    pub fn errors(&self) -> Option<&[u8]> {
        if self.error_count == 0 {
            return None;
        }
        let start = self.data_end + ERRORS_OPENER.len();
        self.body.get(start..self.errors_end)
    }

    /// Number of entries in `errors`.
    #[must_use]
    pub fn error_count(&self) -> usize {
        self.error_count
    }

    /// True if data is missing because of [`ExecutionLimits`](crate::ExecutionLimits).
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }
}

/// Minimum size of a large body in bytes. After a large body, other requests of the thread may run, because
/// reading it takes a fraction of a millisecond.
const LARGE_BODY: usize = 256 << 10;

impl Prepared {
    /// Executes the operation. The future stays on this thread.
    pub async fn execute<F: Fetch>(
        &self,
        variables: &Variables,
        fetch: &F,
        policies: &ErrorPolicies,
    ) -> Executed {
        let mut run = Run {
            prepared: self,
            variables,
            fetch,
            state: RefCell::new(State::new(self.bounds.answers_bytes)),
        };
        match &self.plan.root {
            Some(Step::Fetch(index)) => run.fetch(*index).await,
            Some(step) => run.step(step).await,
            None => {}
        }
        let state = run.state.get_mut();
        let (out, violations) = self.write_data(variables, fetch, state).await;
        self.respond(policies, state, out, violations)
    }

    /// The request that opens a subscription. `None` if the operation is no subscription or no subgraph
    /// answers its root field.
    ///
    /// For each event of the subgraph, the caller runs [`execute`](Self::execute). Its [`Fetch`] returns the
    /// event as the response to the request of kind [`Subscription`](crate::OperationKind::Subscription) and
    /// sends all other requests.
    #[must_use]
    pub fn subscription(&self, variables: &Variables) -> Option<SubgraphRequest<'_>> {
        let plan = self.plan.subscription()?;
        let nothing = State::new(self.bounds.answers_bytes);
        // A request without representations cannot exceed a bound.
        let request = write_request(plan, variables, &self.bounds, &nothing).ok()??;
        Some(self.request(0, plan, request.body, request.variables))
    }

    fn request<'a>(
        &'a self,
        index: usize,
        plan: &'a FetchPlan,
        body: Bytes,
        variables: Option<std::ops::Range<usize>>,
    ) -> SubgraphRequest<'a> {
        let subgraph = &self.supergraph.subgraphs()[plan.subgraph];
        SubgraphRequest {
            subgraph: plan.subgraph,
            name: &subgraph.name,
            url: &subgraph.url,
            operation: &plan.operation,
            operation_name: plan.operation_name.as_deref(),
            kind: plan.kind,
            fetch_index: index,
            body,
            variables,
        }
    }

    /// Writes the response up to the end of `data`. Also returns the errors about values that the schema does
    /// not allow.
    pub(crate) async fn write_data<F: Fetch>(
        &self,
        variables: &Variables,
        fetch: &F,
        state: &mut State,
    ) -> (Vec<u8>, Vec<GraphqlError>) {
        let presences = self.checked.presences(variables);
        let bytes_max = self.bounds.response_bytes;
        // The data is a selection of the subgraphs' text. So this capacity is nearly always enough.
        let capacity = state.store.raw().len().min(bytes_max);
        let mut out = Vec::with_capacity(DATA_OPENER.len() + capacity + 64);
        out.extend_from_slice(DATA_OPENER);
        // A `null` from a fetch of root fields makes the whole data null only if no other fetch returned
        // data. Otherwise the fields of this fetch are null one by one.
        if state.root_is_null && !state.root_has_data {
            out.extend_from_slice(b"null");
            return (out, Vec::new());
        }
        let store = &state.store;
        let mut writer = Writer::new(&self.checked, variables, store, &presences, out, bytes_max);
        let mut progress = writer.root(state.root);
        while progress == Progress::Paused {
            fetch.give_way().await;
            progress = writer.root(state.root);
        }
        if progress == Progress::TooLarge {
            state.excesses.push(Excess::Response(bytes_max).error());
            return ([DATA_OPENER, b"null"].concat(), Vec::new());
        }
        state.left_out += writer.left_out;
        (writer.out, writer.errors)
    }

    /// Applies the error policies to the errors of fetches.
    pub(crate) fn permitted(
        &self,
        mut errors: Vec<(usize, GraphqlError)>,
        policies: &ErrorPolicies,
    ) -> Vec<GraphqlError> {
        // Parallel fetches end in any order. After sorting, the same request returns the same list. The sort
        // is stable and keeps each subgraph's own order.
        errors.sort_by_key(|(fetch, _)| *fetch);
        let subgraphs = self.supergraph.subgraphs();
        let errors = errors.into_iter().map(|(fetch, mut error)| {
            let subgraph = self.plan.fetches[fetch].subgraph;
            policies.apply(subgraph, &subgraphs[subgraph].name, &mut error);
            error
        });
        errors.collect()
    }

    /// Takes the values that the schema does not allow out of the errors, unless they are errors.
    pub(crate) fn completion(&self, violations: &mut Vec<GraphqlError>) -> Vec<GraphqlError> {
        if self.value_errors {
            return Vec::new();
        }
        let mut completion = std::mem::take(violations);
        for value in &mut completion {
            value.extensions.clear();
        }
        completion
    }

    fn respond(
        &self,
        policies: &ErrorPolicies,
        state: &mut State,
        mut out: Vec<u8>,
        mut violations: Vec<GraphqlError>,
    ) -> Executed {
        let data_end = out.len();
        // An error that explains a null prevents a second error about the same null.
        let known = state.errors.iter().map(|(_, error)| error);
        let known = known.chain(&state.excesses);
        violations.retain(|violation| !known.clone().any(|error| explains(&error.path, violation)));
        // The gateway itself reports the fields that authorization removed. So no policy for a subgraph hides
        // these errors.
        let mut errors = self.unauthorized.in_errors().to_vec();
        let of_fetches = std::mem::take(&mut state.errors);
        errors.extend(self.permitted(of_fetches, policies));
        // Violations of the schema come last. No policy applies to them, because their text comes from the
        // client's schema and not from a subgraph.
        let is_cut = !state.excesses.is_empty();
        errors.append(&mut state.excesses);
        let completion = self.completion(&mut violations);
        errors.append(&mut violations);
        errors.extend(state.left_out_error());
        if !errors.is_empty() {
            out.extend_from_slice(ERRORS_OPENER);
            write_errors(&errors, &mut out);
        }
        let errors_end = out.len();
        self.unauthorized.write_extensions(&completion, &mut out);
        out.push(b'}');
        Executed {
            body: Bytes::from(out),
            data_end,
            errors_end,
            error_count: errors.len(),
            is_cut,
        }
    }
}

/// True if a subgraph's error is on the path to a place, or below it.
pub(crate) fn explains(path: &[PathSegment], violation: &GraphqlError) -> bool {
    path.iter().zip(&violation.path).all(|(theirs, ours)| {
        // `fetch_path` writes `@` for a list. It stands for any item.
        theirs == ours || matches!(theirs, PathSegment::Key(key) if key == "@")
    })
}

/// One running execution of an operation.
pub(crate) struct Run<'a, F> {
    pub(crate) prepared: &'a Prepared,
    pub(crate) variables: &'a Variables,
    pub(crate) fetch: &'a F,
    pub(crate) state: RefCell<State>,
}

impl<F: Fetch> Run<'_, F> {
    async fn step(&self, step: &Step) {
        match step {
            Step::Fetch(index) => self.fetch(*index).await,
            Step::Sequence(steps) => {
                for step in steps {
                    // `step` is recursive, so a nested step needs a box. A fetch does not, and most steps are
                    // fetches.
                    match step {
                        Step::Fetch(index) => self.fetch(*index).await,
                        step => Box::pin(self.step(step)).await,
                    }
                }
            }
            Step::Parallel(steps) => {
                // One task polls all of them. So responses are merged one at a time, in the order of their
                // arrival.
                join_all(steps.iter().map(|step| Box::pin(self.step(step)))).await;
            }
            Step::Condition {
                variable,
                if_true,
                if_false,
            } => {
                let clause = if self.prepared.checked.truth(*variable, self.variables) {
                    if_true
                } else {
                    if_false
                };
                if let Some(step) = clause {
                    Box::pin(self.step(step)).await;
                }
            }
        }
    }

    pub(crate) async fn fetch(&self, index: usize) {
        let Some(plan) = self.prepared.plan.fetches.get(index) else {
            return;
        };
        let truth = |variable| self.prepared.checked.truth(variable, self.variables);
        if !plan.asked.holds(&truth) {
            return;
        }
        let bounds = &self.prepared.bounds;
        // The borrow ends with this statement. If it lasted across the `await` below, the merge of another
        // response would panic.
        let request = write_request(plan, self.variables, bounds, &self.state.borrow());
        let request = match request {
            Ok(Some(request)) => request,
            Ok(None) => return,
            Err(excess) => return self.state.borrow_mut().exceed(plan, excess),
        };
        let answer = self
            .fetch
            .fetch(
                self.prepared
                    .request(index, plan, request.body, request.variables),
            )
            .await;
        let is_large = answer.body.len() > LARGE_BODY;
        let targets = &request.targets;
        answer::absorb(
            self.prepared,
            index,
            &mut self.state.borrow_mut(),
            targets,
            answer,
        );
        if is_large {
            self.fetch.give_way().await;
        }
    }
}

struct Request {
    body: Bytes,
    variables: Option<std::ops::Range<usize>>,
    /// The waiting objects, one list per input of the plan.
    targets: Vec<Vec<Target>>,
}

/// Writes the request of a fetch. `None` if there is no entity to request.
fn write_request(
    plan: &FetchPlan,
    variables: &Variables,
    bounds: &ExecutionLimits,
    state: &State,
) -> Result<Option<Request>, Excess> {
    let mut out = Vec::with_capacity(plan.prefix.len() + 256);
    out.extend_from_slice(&plan.prefix);
    let before = out.len();
    out.extend_from_slice(b",\"variables\":");
    let start = out.len();
    out.push(b'{');
    let given = |index: usize| variables.json(index);
    for (index, opener) in &plan.variables {
        if let Some(json) = given(*index) {
            separate(&mut out, start);
            out.extend_from_slice(opener);
            out.extend_from_slice(json);
        }
    }
    let mut targets = Vec::with_capacity(plan.inputs.len());
    for input in &plan.inputs {
        let (store, root) = (&state.store, state.root);
        if input.is_root {
            targets.push(entities::roots(store, root, input)?);
            continue;
        }
        separate(&mut out, start);
        out.extend_from_slice(&input.opener);
        targets.push(write_representations(store, root, input, bounds, &mut out)?);
    }
    // No object has a complete key, so the subgraph could only respond with nulls.
    if !targets.is_empty() && targets.iter().all(Vec::is_empty) {
        return Ok(None);
    }
    let mut range = None;
    // Removed here, because only the writing shows if the client sent any variable.
    if out.len() == start + 1 {
        out.truncate(before);
    } else {
        out.push(b'}');
        range = Some(start..out.len());
    }
    out.push(b'}');
    Ok(Some(Request {
        body: Bytes::from(out),
        variables: range,
        targets,
    }))
}

fn separate(out: &mut Vec<u8>, start: usize) {
    if out.len() > start + 1 {
        out.push(b',');
    }
}
