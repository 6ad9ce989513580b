//! Runs recursive work of a foreign library on a thread with a large stack, where a panic
//! does not end the process.
//!
//! Parsing, validating and planning recurse over text from outside. Its depth is bounded (see
//! `limits`), but a worker's stack is smaller than that bound needs, and the planner has
//! assertions of its own. The thread costs about 30 us, paid once per distinct operation.

/// Bytes of stack for one piece of work. Reserved, not used.
const STACK_BYTES: usize = 64 * 1024 * 1024;

/// The work panicked, or no thread could be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WorkFailed;

/// Does the work on a thread of its own and waits for it.
pub(crate) fn run<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, WorkFailed> {
    // A scoped thread may borrow from the caller, which waits in any case.
    std::thread::scope(|scope| {
        std::thread::Builder::new()
            .name("prepare".to_owned())
            .stack_size(STACK_BYTES)
            // `join` turns a panic into an error, without the unwind safety that `catch_unwind`
            // demands.
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
