//! Systems that run on from round to round, when an answer should come soon.

use std::collections::BTreeMap;

use rig::Rig;

use super::candidate::CandidateId;
use super::running::Running;
use crate::systems::RunningSystems;

/// The systems that are up between two turns of their candidates; none unless the run reuses any.
pub(super) struct ReusedSystems {
    is_on: bool,
    up: BTreeMap<CandidateId, Running>,
    /// Those that all candidates share.
    shared: Option<RunningSystems>,
}

impl ReusedSystems {
    pub(super) fn off() -> ReusedSystems {
        ReusedSystems {
            is_on: false,
            up: BTreeMap::new(),
            shared: None,
        }
    }

    pub(super) fn on() -> ReusedSystems {
        ReusedSystems {
            is_on: true,
            ..ReusedSystems::off()
        }
    }

    pub(super) fn is_on(&self) -> bool {
        self.is_on
    }

    /// The systems of a candidate, if they are still up from an earlier turn.
    pub(super) fn take(&mut self, candidate: CandidateId) -> Option<Running> {
        self.up.remove(&candidate)
    }

    /// Keeps the systems for the next turn of their candidate, if they are well and the run reuses
    /// any; else stops them.
    pub(super) fn keep_or_stop(
        &mut self,
        rig: &mut Rig,
        candidate: CandidateId,
        running: Running,
        is_well: bool,
    ) {
        if self.is_on && is_well {
            let other = self.up.insert(candidate, running);
            assert!(other.is_none(), "a candidate's systems are up once");
        } else {
            running.stop(rig);
        }
    }

    /// The systems that all candidates share, if they are still up from an earlier round.
    pub(super) fn take_shared(&mut self) -> Option<RunningSystems> {
        self.shared.take()
    }

    /// As [`ReusedSystems::keep_or_stop`], for the systems that all candidates share.
    pub(super) fn keep_or_stop_shared(
        &mut self,
        rig: &mut Rig,
        shared: RunningSystems,
        is_well: bool,
    ) {
        if self.is_on && is_well {
            self.shared = Some(shared);
        } else {
            shared.stop(rig);
        }
    }

    /// Keeps none from here on.
    pub(super) fn turn_off(&mut self, rig: &mut Rig) {
        self.stop_all(rig);
        self.is_on = false;
    }

    /// Stops all of them.
    pub(super) fn stop_all(&mut self, rig: &mut Rig) {
        // Taken out one by one, because stopping consumes them.
        while let Some((_, running)) = self.up.pop_first() {
            running.stop(rig);
        }
        // Last, since the others depend on them.
        if let Some(shared) = self.shared.take() {
            shared.stop(rig);
        }
    }
}
