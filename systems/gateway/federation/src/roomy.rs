//! Runs recursive work of a foreign library where it can neither exhaust a stack nor take
//! the process down.
//!
//! Parsing, validating and planning recurse over what a stranger wrote. The depth is
//! bounded before (see `limits`), yet a worker's stack is smaller than that bound needs,
//! and the planner has assertions of its own. A thread with room and a boundary for panics
//! costs some 30 us, paid once per distinct operation.

/// Bytes of stack for one piece of work. Reserved, not used.
const STACK_BYTES: usize = 64 * 1024 * 1024;

/// The work panicked, or no thread could be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GaveUp;

/// Does the work on a thread of its own and waits for it.
pub(crate) fn run<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, GaveUp> {
    std::thread::scope(|scope| {
        std::thread::Builder::new()
            .name("prepare".to_owned())
            .stack_size(STACK_BYTES)
            .spawn_scoped(scope, work)
            .map_err(|_| GaveUp)?
            .join()
            .map_err(|_| GaveUp)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_answer() {
        assert_eq!(run(|| -> u8 { panic!("as expected") }), Err(GaveUp));
        assert_eq!(run(|| 7), Ok(7));
    }
}
