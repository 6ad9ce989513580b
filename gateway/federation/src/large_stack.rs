//! Runs recursive work of a library on a thread with a large stack. A panic there does not end the process.
//!
//! Parsing, validating and planning recurse over text from clients. Its depth is bounded (see `limits`), but
//! the stack of a worker is too small for this bound. The planner also has assertions that can fail. The
//! thread costs about 30 us, once per distinct operation.

/// Bytes of stack for one piece of work. They are reserved, not allocated.
const STACK_BYTES: usize = 64 * 1024 * 1024;

/// The work panicked, or the system could not start a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WorkFailed;

/// Runs the work on a new thread and waits for it.
pub(crate) fn run<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, WorkFailed> {
    // A scoped thread may borrow from the caller, because the caller waits for it.
    std::thread::scope(|scope| {
        std::thread::Builder::new()
            .name("prepare".to_owned())
            .stack_size(STACK_BYTES)
            // `join` turns a panic into an error. Unlike `catch_unwind`, it does not require unwind safety.
            .spawn_scoped(scope, work)
            .map_err(|_| WorkFailed)?
            .join()
            .map_err(|_| WorkFailed)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_answer() {
        assert_eq!(run(|| -> u8 { panic!("as expected") }), Err(WorkFailed));
        assert_eq!(run(|| 7), Ok(7));
    }
}
