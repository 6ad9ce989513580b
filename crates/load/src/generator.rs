//! One generator thread's engine, whichever protocol it speaks.

use std::os::fd::OwnedFd;

use crate::general::Crew;
use crate::priority::Priority;
use crate::recorder::Recorder;
use crate::supply::Supply;
use crate::worker::Worker;

/// Who sends: the fast path, or the general one.
pub(crate) enum Generator<'a> {
    Fast(Box<Worker<'a>>),
    General(Crew<'a>),
}

impl Generator<'_> {
    pub(crate) fn open_all(&mut self) {
        match self {
            Generator::Fast(worker) => worker.open_all(),
            Generator::General(crew) => crew.open_all(),
        }
    }

    pub(crate) fn run(&mut self, supply: Supply, recorder: Recorder, priority: &mut Priority) {
        match self {
            Generator::Fast(worker) => worker.run(supply, recorder, priority),
            Generator::General(crew) => crew.run(supply, recorder, priority),
        }
    }

    /// The sockets of all connections, which stay open; none where they cannot leave the thread.
    pub(crate) fn take_sockets(&mut self) -> Vec<OwnedFd> {
        match self {
            Generator::Fast(worker) => worker.take_sockets(),
            Generator::General(_) => Vec::new(),
        }
    }

    /// The account, and whether the load was interrupted.
    pub(crate) fn finish(self) -> (Recorder, bool) {
        match self {
            Generator::Fast(worker) => (worker.recorder, worker.was_interrupted),
            Generator::General(crew) => crew.finish(),
        }
    }
}
