//! Systems that run on from round to round, when an answer should come soon.

use super::Experiment;
use crate::systems::{Invalid, RunningSystems};

/// A variant's systems, up.
pub(super) struct Kept {
    pub(super) systems: RunningSystems,
    /// Whether they have been seen to do their work. A proof holds until they are stopped; given
    /// again, it would find what it and the load have left behind.
    pub(super) is_proven: bool,
    /// Whether they have had the load that comes once after a start.
    pub(super) is_settled: bool,
}

impl Kept {
    /// Systems that have just become ready.
    pub(super) fn fresh(systems: RunningSystems) -> Kept {
        Kept {
            systems,
            is_proven: false,
            is_settled: false,
        }
    }
}

impl Experiment<'_> {
    /// Starts systems once, at their proof, and not anew in every round. What differs from start to
    /// start is then no part of the interval.
    pub(crate) fn keeping_systems(self) -> Self {
        Experiment {
            keeps_systems: true,
            ..self
        }
    }

    /// The systems of a variant for its turn: those that were kept, or new ones.
    pub(super) fn taken(&mut self, index: usize, occasion: &str) -> Result<Kept, Invalid> {
        match self.candidates[index].kept.take() {
            Some(kept) => Ok(kept),
            None => self.start(index, occasion).map(Kept::fresh),
        }
    }

    /// Keeps the systems for the next turn, if they are well and this run keeps any; else stops them.
    pub(super) fn keep_or_stop(&mut self, index: usize, kept: Kept, is_well: bool) {
        if self.keeps_systems && is_well {
            self.candidates[index].kept = Some(kept);
        } else {
            kept.systems.stop(&mut self.rig);
        }
    }

    /// Stops all that was kept.
    pub(super) fn let_go(&mut self) {
        for candidate in &mut self.candidates {
            if let Some(kept) = candidate.kept.take() {
                kept.systems.stop(&mut self.rig);
            }
        }
    }
}
