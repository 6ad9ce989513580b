//! One generator thread's engine, whichever carrier it has.

use std::os::fd::OwnedFd;

use crate::fast::EpollEngine;
use crate::general::TokioEngine;
use crate::lane::Lane;
use crate::priority::Priority;
use crate::recorder::Recorder;
use crate::supply::Supply;

/// What sends: the fast carrier, or the general one.
pub(crate) enum Generator<'a> {
    Fast(Box<EpollEngine<'a>>),
    General(TokioEngine<'a>),
}

impl Generator<'_> {
    /// Opens all connections of a lane.
    pub(crate) fn open_all(&mut self, lane: usize) {
        match self {
            Generator::Fast(engine) => engine.open_all(lane),
            Generator::General(engine) => engine.open_all(lane),
        }
    }

    /// Sends all slots, one supply for each lane, and awaits their answers.
    pub(crate) fn run(&mut self, loads: Vec<(Supply, Recorder)>, priority: &mut Priority) {
        let start = |lanes: &mut [Lane]| {
            assert_eq!(lanes.len(), loads.len(), "each lane has a load");
            for (lane, (supply, recorder)) in lanes.iter_mut().zip(loads) {
                lane.start(supply, recorder);
            }
        };
        match self {
            Generator::Fast(engine) => {
                start(&mut engine.lanes);
                engine.run(priority);
            }
            Generator::General(engine) => {
                start(&mut engine.lanes());
                engine.run(priority);
            }
        }
    }

    /// The sockets of all connections, which stay open; none where they cannot leave the thread.
    pub(crate) fn take_sockets(&mut self) -> Vec<OwnedFd> {
        match self {
            Generator::Fast(engine) => engine.take_sockets(),
            // Tokio's sockets are registered with its runtime, which ends with the thread.
            Generator::General(_) => Vec::new(),
        }
    }

    /// The account of each lane, and whether the load was interrupted.
    pub(crate) fn finish(self) -> (Vec<Recorder>, bool) {
        let (lanes, was_interrupted) = match self {
            Generator::Fast(engine) => engine.finish(),
            Generator::General(engine) => engine.finish(),
        };
        let finish = |lane: Lane| lane.finish(was_interrupted);
        (lanes.into_iter().map(finish).collect(), was_interrupted)
    }
}
