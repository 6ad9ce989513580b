//! The assignment of systems to cores, for rounds with all variants up at once.
//!
//! The scheduler places the processes differently after each start. The cost of a request depends on that:
//! two systems of a stack may share a core, and other programs may work there. Between two starts of one
//! variant, this changes up to half of its latency. It is not a difference between variants. A system that
//! may use at most one core therefore gets a fixed core, the same for every variant.

use std::collections::BTreeMap;

use lab::{Lab, Setup, Variant};
use model::Order;

/// The core of each system with a fixed core. Contains at least one system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cores(BTreeMap<String, usize>);

impl Cores {
    /// Assigns allowed cores to systems. `None` if no system is placed. The reason may be the lab's setting,
    /// a load that does not reach all at once, or systems that may need more than one core.
    ///
    /// Without a warm-up before the first round, there is no evidence that the cores suffice. The scheduler
    /// then places the systems of such a lab too.
    pub(super) fn of(lab: &Lab, allowed: &[usize]) -> Option<Cores> {
        let is_wanted = lab.placement == lab::Placement::OneCore
            && lab.order().0 == Order::SideBySide
            && lab.is_loaded_at_once()
            && !lab.warmup.is_zero();
        let systems = one_core_systems(lab);
        // With a single core there is no choice.
        let is_possible = allowed.len() > 1 && !systems.is_empty();
        (is_wanted && is_possible).then(|| Cores::dealt(systems, allowed))
    }

    /// Assigns cores in the order of the stack. Neighbors get different cores if there are enough.
    fn dealt(systems: Vec<String>, allowed: &[usize]) -> Cores {
        let cores = allowed.iter().copied().cycle();
        Cores(systems.into_iter().zip(cores).collect())
    }

    /// The core of a system. `None` if the scheduler places it.
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

    /// The cores of a variant with these systems, for the recording.
    pub(super) fn record(&self, setups: &[Setup]) -> BTreeMap<String, usize> {
        let placed = self.0.iter();
        let is_own = |system: &String| setups.iter().any(|setup| setup.system == *system);
        placed
            .filter(|(system, _)| is_own(system))
            .map(|(system, core)| (system.clone(), *core))
            .collect()
    }
}

/// The systems with at most one core, in every variant that has them.
fn one_core_systems(lab: &Lab) -> Vec<String> {
    let setups = || lab.all().flat_map(Variant::systems);
    let mut systems: Vec<String> = Vec::new();
    for setup in setups() {
        let mut of_name = setups().filter(|other| other.system == setup.system);
        // If only one variant were placed, the placement would be a difference between variants.
        if !systems.contains(&setup.system) && of_name.all(needs_one_core) {
            systems.push(setup.system.clone());
        }
    }
    systems
}

/// True if the lab limits the system to one core and sets no pin.
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
