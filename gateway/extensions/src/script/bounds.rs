//! Limits of a callback: `rhai.limits`.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use gateway_config::RhaiLimits;
use rhai::{Dynamic, Engine, EvalAltResult};
use tokio::time::Instant;

/// Number of operations between two readings of the clock. A power of two.
const OPERATIONS_PER_LOOK: u64 = 64;

/// The time limit of the running script. A worker's engine runs one script at a time.
#[derive(Clone)]
pub(super) struct Deadline {
    at: Rc<Cell<Instant>>,
    timeout: Duration,
}

impl Deadline {
    /// Starts the time limit now.
    pub(super) fn start(&self) {
        self.at.set(Instant::now() + self.timeout);
    }
}

/// Sets the limits of an engine.
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
    // Called at each operation. Most calls cost only one comparison.
    engine.on_progress(move |operations| {
        let is_over = operations % OPERATIONS_PER_LOOK == 0 && Instant::now() >= at.get();
        is_over.then_some(Dynamic::UNIT)
    });
    deadline
}

/// The key of the limit that caused an error, at any depth of calls. A script cannot catch such an error.
pub(super) fn exceeded(error: &EvalAltResult) -> Option<&'static str> {
    match error {
        EvalAltResult::ErrorInFunctionCall(_, _, inner, _)
        | EvalAltResult::ErrorInModule(_, inner, _) => exceeded(inner),
        EvalAltResult::ErrorTerminated(..) => Some("timeout"),
        EvalAltResult::ErrorTooManyOperations(..) => Some("max_operations"),
        EvalAltResult::ErrorStackOverflow(..) => Some("max_call_depth"),
        // The error contains the name of the limit as text only.
        EvalAltResult::ErrorDataTooLarge(..) => Some("max_*_size"),
        _ => None,
    }
}
