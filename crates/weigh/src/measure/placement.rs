//! Which core a system runs on, where all variants of a round are up at once.
//!
//! The scheduler places the processes of each start anew, and what a request costs depends on it:
//! whether two systems of a stack share a core, and who else works there. Between two starts of the
//! same variant that makes up to half of its latency, and none of it is a difference between variants.
//! So a system that may use one core at most runs on one core, the same for every variant.

use std::collections::BTreeMap;

use lab::{Lab, Setup, Variant};
use model::Order;

/// The core of each system that runs on one; at least one system does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cores(BTreeMap<String, usize>);

impl Cores {
    /// Some of the cores that may be used. None where nothing is to be placed: the lab says so, the load
    /// is not sent to all at once, or no system is known to need one core at most.
    ///
    /// Without a warm-up before the first round nothing would show whether the cores suffice, so such a
    /// lab is left to the scheduler as well.
    pub(super) fn of(lab: &Lab, allowed: &[usize]) -> Option<Cores> {
        let is_wanted = lab.placement == lab::Placement::OneCore
            && lab.order().0 == Order::SideBySide
            && lab.is_loaded_at_once()
            && !lab.warmup.is_zero();
        let systems = one_core_systems(lab);
        // On a single core there is nothing to choose.
        let is_possible = allowed.len() > 1 && !systems.is_empty();
        (is_wanted && is_possible).then(|| Cores::dealt(systems, allowed))
    }

    /// Systems in the order of the stack, whose neighbors get different cores as far as there are such.
    fn dealt(systems: Vec<String>, allowed: &[usize]) -> Cores {
        let cores = allowed.iter().copied().cycle();
        Cores(systems.into_iter().zip(cores).collect())
    }

    /// The core of a system; none where the scheduler places it.
    pub(super) fn of_system(&self, system: &str) -> Option<usize> {
        self.0.get(system).copied()
    }

    /// The setup with its core.
    pub(super) fn placed(&self, setup: &Setup) -> Setup {
        let core = self.of_system(&setup.system);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbors_of_a_stack_are_on_different_cores() {
        let on = |cores: &[usize]| {
            let stack = ["origin", "gateway", "helper"];
            let Cores(cores) = Cores::dealt(stack.map(str::to_owned).to_vec(), cores);
            stack.map(|system| cores[system])
        };
        assert_eq!(on(&[2, 5]), [2, 5, 2]);
        assert_eq!(on(&[3]), [3, 3, 3]);
    }
}
