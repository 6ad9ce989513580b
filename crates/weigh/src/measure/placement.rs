//! Which core a system runs on, where all variants of a round are up at once.
//!
//! The scheduler places the processes of each start anew, and what a request costs depends on it:
//! whether two systems of a stack share a core, and who else works there. Between two starts of the
//! same variant that makes up to half of its latency, and none of it is a difference between variants.
//! So a system that may use one core at most runs on one core, the same for every variant.

use std::collections::BTreeMap;

use lab::{Lab, Setup, Variant};
use model::Order;

/// Which systems run on one core, and on which.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Placement {
    /// In the order of the stack.
    systems: Vec<String>,
    /// Those that they may have. At least two.
    cores: Vec<usize>,
}

/// The core of each placed system; empty where the scheduler places all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Cores(BTreeMap<String, usize>);

impl Placement {
    /// On these cores. None where nothing is to be placed: the lab says so, the load is not sent to all
    /// at once, or no system is known to need one core at most.
    ///
    /// Without a warm-up before the first round nothing would show whether the cores suffice, and groups
    /// that the lab names are not looked at; so these are left to the scheduler as well.
    pub(super) fn of(lab: &Lab, cores: &[usize]) -> Option<Placement> {
        let is_wanted = lab.placement == lab::Placement::OneCore
            && lab.order().0 == Order::SideBySide
            && lab.is_loaded_at_once()
            && lab.groups.is_none()
            && !lab.warmup.is_zero();
        let systems = one_core_systems(lab);
        // On a single core there is nothing to choose.
        let is_possible = cores.len() > 1 && !systems.is_empty();
        let cores = cores.to_vec();
        (is_wanted && is_possible).then_some(Placement { systems, cores })
    }

    /// The core of each: neighbors in the stack are on different ones as far as there are such.
    pub(super) fn cores(&self) -> Cores {
        let placed = self.systems.iter().zip(self.cores.iter().cycle());
        Cores(
            placed
                .map(|(system, core)| (system.clone(), *core))
                .collect(),
        )
    }
}

/// The systems that are known to need one core at most, in every variant that has them.
fn one_core_systems(lab: &Lab) -> Vec<String> {
    let setups = || lab.all().flat_map(Variant::systems);
    let mut systems: Vec<String> = Vec::new();
    for setup in setups() {
        let mut of_name = setups().filter(|other| other.system == setup.system);
        // Of one variant alone it would be a difference between variants.
        if !systems.contains(&setup.system) && of_name.all(needs_one_core) {
            systems.push(setup.system.clone());
        }
    }
    systems
}

/// Whether the lab says that it uses one core at most, and does not say which.
fn needs_one_core(setup: &Setup) -> bool {
    let is_one = setup.limits.cpus.is_some_and(|cpus| cpus <= 1.0);
    let is_alone = setup.replicas.is_none() && setup.balances.is_none() && !setup.is_shared;
    is_one && is_alone && setup.pin.is_none()
}

impl Cores {
    /// The core of a system; none where the scheduler places it.
    pub(super) fn of(&self, system: &str) -> Option<usize> {
        self.0.get(system).copied()
    }

    /// The setup with its core.
    pub(super) fn placed(&self, setup: &Setup) -> Setup {
        let core = self.of(&setup.system);
        Setup {
            pin: setup.pin.clone().or_else(|| core.map(|core| vec![core])),
            ..setup.clone()
        }
    }

    /// For the recording: those of a variant with these systems.
    pub(super) fn record(&self, setups: &[Setup]) -> BTreeMap<String, usize> {
        let placed = self.0.iter();
        let is_own = |system: &String| setups.iter().any(|setup| setup.system == *system);
        placed
            .filter(|(system, _)| is_own(system))
            .map(|(system, core)| (system.clone(), *core))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbors_of_a_stack_are_on_different_cores() {
        let on = |cores: &[usize]| {
            let placement = Placement {
                systems: ["origin", "gateway", "helper"].map(str::to_owned).to_vec(),
                cores: cores.to_vec(),
            };
            let Cores(cores) = placement.cores();
            ["origin", "gateway", "helper"].map(|system| cores[system])
        };
        assert_eq!(on(&[2, 5]), [2, 5, 2]);
        assert_eq!(on(&[3]), [3, 3, 3]);
    }
}
