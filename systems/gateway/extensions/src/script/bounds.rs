//! What a callback may take: `rhai.limits`.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use gateway_config::RhaiLimits;
use rhai::{Dynamic, Engine, EvalAltResult};
use tokio::time::Instant;

/// So many operations pass between two looks at the clock; a power of two.
const OPERATIONS_PER_LOOK: u64 = 64;

/// When the script that runs now has to be over. A worker's engine runs one at a time.
#[derive(Clone)]
pub(super) struct Deadline {
    at: Rc<Cell<Instant>>,
    timeout: Duration,
}

impl Deadline {
    /// From now on.
    pub(super) fn start(&self) {
        self.at.set(Instant::now() + self.timeout);
    }
}

/// Gives an engine its bounds.
pub(super) fn set(engine: &mut Engine, limits: &RhaiLimits) -> Deadline {
    engine
        .set_max_operations(limits.max_operations.get())
        .set_max_call_levels(limits.max_call_depth.get())
        .set_max_string_size(limits.max_string_size.0.0)
        .set_max_array_size(limits.max_array_size)
        .set_max_map_size(limits.max_map_size);
    let deadline = Deadline {
        at: Rc::new(Cell::new(Instant::now())),
        timeout: limits.timeout.0,
    };
    let at = Rc::clone(&deadline.at);
    // Called at each operation: all but a few cost a comparison.
    engine.on_progress(move |operations| {
        let is_over = operations % OPERATIONS_PER_LOOK == 0 && Instant::now() >= at.get();
        is_over.then_some(Dynamic::UNIT)
    });
    deadline
}

/// The key of the limit that an error is about, however deep in calls it was reached. A script
/// cannot catch such an error.
pub(super) fn exceeded(error: &EvalAltResult) -> Option<&'static str> {
    match error {
        EvalAltResult::ErrorInFunctionCall(_, _, inner, _)
        | EvalAltResult::ErrorInModule(_, inner, _) => exceeded(inner),
        EvalAltResult::ErrorTerminated(..) => Some("timeout"),
        EvalAltResult::ErrorTooManyOperations(..) => Some("max_operations"),
        EvalAltResult::ErrorStackOverflow(..) => Some("max_call_depth"),
        // The error names which of them in words.
        EvalAltResult::ErrorDataTooLarge(..) => Some("max_*_size"),
        _ => None,
    }
}
