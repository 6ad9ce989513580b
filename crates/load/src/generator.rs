//! The engine of one generator thread, for either carrier.

use std::os::fd::OwnedFd;

use crate::fast::EpollEngine;
use crate::general::TokioEngine;
use crate::lane::Lane;
use crate::priority::Priority;
use crate::recorder::Recorder;
use crate::supply::Supply;

/// The sending engine: the fast carrier, or the general carrier.
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

    /// Sends all slots, one supply for each lane, and awaits their responses.
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

    /// Returns the open sockets of all connections. Empty if they cannot leave the thread.
    pub(crate) fn take_sockets(&mut self) -> Vec<OwnedFd> {
        match self {
            Generator::Fast(engine) => engine.take_sockets(),
            // Tokio's sockets are registered with its runtime, which ends with the thread.
            Generator::General(_) => Vec::new(),
        }
    }

    /// Returns the account of each lane, and true if the load was interrupted.
    pub(crate) fn finish(self) -> (Vec<Recorder>, bool) {
        let (lanes, was_interrupted) = match self {
            Generator::Fast(engine) => engine.finish(),
            Generator::General(engine) => engine.finish(),
        };
        let finish = |lane: Lane| lane.finish(was_interrupted);
        (lanes.into_iter().map(finish).collect(), was_interrupted)
    }
}
