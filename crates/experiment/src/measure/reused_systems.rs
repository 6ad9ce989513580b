//! Systems of a quick run that are not restarted in every round.
//!
//! In turn, all systems keep running. Side by side, systems with a fast start are still restarted in every
//! round, so that the intervals contain the variation between starts. Systems with a slow start keep running.
//! A program with a just-in-time compiler would otherwise be measured while it gets faster.

use std::collections::{BTreeMap, BTreeSet};

use lab::Setup;
use rig::Rig;

use super::candidate_id::CandidateId;
use super::running::Running;
use crate::record::Reuse;
use crate::systems::{self, RunningSystems};

/// The systems that are up between two turns of their candidates. Empty unless the run reuses systems.
pub(super) struct ReusedSystems {
    reuse: Reuse,
    up: BTreeMap<CandidateId, Running>,
    /// The systems that all candidates share.
    shared: Option<RunningSystems>,
}

impl ReusedSystems {
    pub(super) fn off() -> ReusedSystems {
        ReusedSystems {
            reuse: Reuse::Nothing,
            up: BTreeMap::new(),
            shared: None,
        }
    }

    pub(super) fn on() -> ReusedSystems {
        ReusedSystems {
            reuse: Reuse::All,
            ..ReusedSystems::off()
        }
    }

    /// True if any system keeps running from round to round.
    pub(super) fn is_on(&self) -> bool {
        !matches!(self.reuse, Reuse::Nothing)
    }

    pub(super) fn reuse(&self) -> &Reuse {
        &self.reuse
    }

    /// From now on keeps only systems that were slow to start in any candidate, and systems that must be kept
    /// with them. Selected by name, so that all candidates are treated equally. No effect in a run without
    /// reuse.
    pub(super) fn keep_slow_only(&mut self, setups: &[&Setup]) {
        if !self.is_on() {
            return;
        }
        let running = self.up.values();
        let slow = running.flat_map(|running| running.systems.slow_to_start());
        let slow = slow.map(str::to_owned).collect();
        let kept = systems::closed(slow, setups);
        // No system would be restarted, so all are kept.
        if setups.iter().all(|setup| kept.contains(&setup.system)) {
            return;
        }
        tracing::debug!(?kept, "these systems run on from round to round");
        self.reuse = Reuse::Only(kept);
    }

    /// From now on keeps all systems, if the run reuses any.
    pub(super) fn keep_all(&mut self) {
        if self.is_on() {
            self.reuse = Reuse::All;
        }
    }

    /// Takes the systems of a candidate, if they are still up from an earlier turn.
    pub(super) fn take(&mut self, candidate: CandidateId) -> Option<Running> {
        self.up.remove(&candidate)
    }

    /// Keeps the systems for the candidate's next turn, if they are well and the run reuses systems.
    /// Otherwise stops them.
    pub(super) fn keep_or_stop(
        &mut self,
        rig: &mut Rig,
        candidate: CandidateId,
        running: Running,
        is_well: bool,
    ) {
        if is_well && self.is_on() {
            let other = self.up.insert(candidate, running);
            assert!(other.is_none(), "a candidate's systems are up once");
        } else {
            running.stop(rig);
        }
    }

    /// Takes the systems that all candidates share, if they are still up from an earlier round.
    pub(super) fn take_shared(&mut self) -> Option<RunningSystems> {
        self.shared.take()
    }

    /// Like [`ReusedSystems::keep_or_stop`], for the systems that all candidates share.
    pub(super) fn keep_or_stop_shared(
        &mut self,
        rig: &mut Rig,
        shared: RunningSystems,
        is_well: bool,
    ) {
        if self.is_on() && is_well {
            self.shared = Some(shared);
        } else {
            shared.stop(rig);
        }
    }

    /// Stops all systems, and ends the reuse.
    pub(super) fn turn_off(&mut self, rig: &mut Rig) {
        self.stop_all(rig);
        self.reuse = Reuse::Nothing;
    }

    /// Stops all kept systems, the shared systems last.
    pub(super) fn stop_all(&mut self, rig: &mut Rig) {
        // Removed one by one, because stopping consumes them.
        while let Some((_, running)) = self.up.pop_first() {
            running.stop(rig);
        }
        // Stopped last, because the other systems depend on them.
        if let Some(shared) = self.shared.take() {
            shared.stop(rig);
        }
    }
}

impl Reuse {
    /// The kept systems, if some of these setups must be restarted.
    pub(super) fn partly(&self, setups: &[Setup]) -> Option<&BTreeSet<String>> {
        match self {
            Reuse::Only(kept) => {
                let is_new = |setup: &Setup| !kept.contains(&setup.system);
                setups.iter().any(is_new).then_some(kept)
            }
            Reuse::Nothing | Reuse::All => None,
        }
    }
}
