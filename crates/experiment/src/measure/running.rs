//! A candidate's systems while they are up.

use model::InvalidKind;
use rig::Rig;

use crate::invalid::Invalid;
use crate::systems::RunningSystems;

/// A candidate's running systems, and their progress since the start. Borrows no data, so that several
/// candidates may be up at once and between rounds.
pub(super) struct Running {
    pub(super) systems: RunningSystems,
    /// True if the proof has passed. A proof holds until the systems are stopped. A second proof would see
    /// data that the first proof and the load have left behind.
    pub(super) is_proven: bool,
    /// True if the systems have received the preparing requests of a start.
    pub(super) is_prepared: bool,
    /// True if the systems have received the settling load of a start.
    pub(super) is_settled: bool,
    /// True if some systems were restarted after an earlier settling load. A short one then suffices, because
    /// systems with a slow start keep running.
    pub(super) has_settled_before: bool,
}

impl Running {
    /// Systems that have just become ready.
    pub(super) fn fresh(systems: RunningSystems) -> Running {
        Running {
            systems,
            is_proven: false,
            is_prepared: false,
            is_settled: false,
            has_settled_before: false,
        }
    }

    /// True if the start of a system took long, as with a just-in-time compiler.
    pub(super) fn compiles(&self) -> bool {
        self.systems.slow_to_start().next().is_some()
    }

    /// Describes the first process that has ended. Must be called before the systems are stopped, because
    /// afterwards all have ended.
    pub(super) fn ended(&self, rig: &mut Rig) -> Option<String> {
        self.systems.ended(rig)
    }

    pub(super) fn stop(self, rig: &mut Rig) {
        self.systems.stop(rig);
    }
}

/// If a process has ended, that is the reason, and the observed failure is a symptom. If the user stopped the
/// run, the reason stays unchanged.
pub(super) fn root_cause(ended: Option<String>, symptom: Invalid) -> Invalid {
    match ended {
        Some(ended) if symptom.kind != InvalidKind::Interrupted => {
            Invalid::new(InvalidKind::Crashed, ended)
        }
        _ => symptom,
    }
}
