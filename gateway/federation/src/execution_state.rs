//! The state of an execution: merged data and errors.

use crate::bounds::{ERRORS_MAX, Excess};
use crate::entities::fetch_path;
use crate::error::GraphqlError;
use crate::plan::FetchPlan;
use crate::store::{ObjectId, Store};

/// Maximum bytes of all errors in one response, unless there is a single error.
const ERROR_BYTES_MAX: usize = 16 << 20;

/// The data and errors of the fetches that have ended.
pub(crate) struct State {
    pub(crate) store: Store,
    pub(crate) root: ObjectId,
    /// Errors of subgraphs, each with the index of its fetch.
    pub(crate) errors: Vec<(usize, GraphqlError)>,
    /// Approximate size of `errors` in bytes.
    error_bytes: usize,
    /// Exceeded bounds. No policy hides them, unlike the errors of subgraphs.
    pub(crate) excesses: Vec<GraphqlError>,
    /// The number of errors beyond [`ERRORS_MAX`] and [`ERROR_BYTES_MAX`].
    pub(crate) left_out: usize,
    /// True if `left_out` is a lower bound.
    pub(crate) is_left_out_partial: bool,
    /// True if a subgraph sent `"data": null` for a fetch of root fields.
    pub(crate) root_is_null: bool,
    /// True if a fetch of root fields returned data.
    pub(crate) root_has_data: bool,
}

impl State {
    pub(crate) fn new(answers_bytes: usize) -> State {
        let mut store = Store::bounded(answers_bytes);
        let root = store.empty_object();
        State {
            store,
            root,
            errors: Vec::new(),
            error_bytes: 0,
            excesses: Vec::new(),
            left_out: 0,
            is_left_out_partial: false,
            root_is_null: false,
            root_has_data: false,
        }
    }

    /// Records an error of a fetch.
    pub(crate) fn fail(&mut self, fetch: usize, error: GraphqlError) {
        let weight = error.weight();
        if self.has_room(weight) {
            self.error_bytes += weight;
            self.errors.push((fetch, error));
        } else {
            self.left_out += 1;
        }
    }

    /// True if an error of this weight would be stored.
    pub(crate) fn has_room(&self, weight: usize) -> bool {
        let is_full =
            self.errors.len() >= ERRORS_MAX || self.error_bytes + weight > ERROR_BYTES_MAX;
        // The first error is always stored, whatever its size. A failed response must not look like a
        // success.
        !is_full || self.errors.is_empty()
    }

    /// Returns one error that stands for all errors that were left out.
    pub(crate) fn left_out_error(&mut self) -> Option<GraphqlError> {
        let left_out = std::mem::take(&mut self.left_out);
        if left_out == 0 {
            return None;
        }
        let least = if self.is_left_out_partial {
            "at least "
        } else {
            ""
        };
        let message = format!("{least}{left_out} more errors are left out");
        Some(GraphqlError::new(message, "TOO_MANY_ERRORS"))
    }

    /// Records that a fetch exceeded a bound.
    pub(crate) fn exceed(&mut self, plan: &FetchPlan, excess: Excess) {
        let mut error = excess.error();
        error.path = plan.inputs.first().map(fetch_path).unwrap_or_default();
        self.excesses.push(error);
    }
}
