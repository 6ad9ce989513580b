//! A candidate's systems while they are up.

use model::InvalidKind;
use rig::Rig;

use crate::invalid::Invalid;
use crate::systems::RunningSystems;

/// A candidate's systems while they are up, and what they have been through since they were started.
/// Borrows nothing, so that several candidates may be up at once and between rounds.
pub(super) struct Running {
    pub(super) systems: RunningSystems,
    /// Whether they have been seen to do their work. A proof holds until they are stopped; given
    /// again, it would find what it and the load have left behind.
    pub(super) is_proven: bool,
    /// Whether they have been sent what is sent once after a start.
    pub(super) is_prepared: bool,
    /// Whether they have had the load that comes once after a start.
    pub(super) is_settled: bool,
    /// Whether some of them have been started anew since a load like that. Those that take long to
    /// get fast run on, so a short one is enough.
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

    /// True if the start of a system took long, as that of a program that compiles as it runs.
    pub(super) fn compiles(&self) -> bool {
        self.systems.slow_to_start().next().is_some()
    }

    /// The first process that has ended, in words. To be asked before they are stopped: after that
    /// all have ended.
    pub(super) fn ended(&self, rig: &mut Rig) -> Option<String> {
        self.systems.ended(rig)
    }

    pub(super) fn stop(self, rig: &mut Rig) {
        self.systems.stop(rig);
    }
}

/// When a process has ended, that is the reason, and what was seen of it a symptom. A run that the
/// user stopped has no other reason.
pub(super) fn root_cause(ended: Option<String>, symptom: Invalid) -> Invalid {
    match ended {
        Some(ended) if symptom.kind != InvalidKind::Interrupted => {
            Invalid::new(InvalidKind::Crashed, ended)
        }
        _ => symptom,
    }
}
