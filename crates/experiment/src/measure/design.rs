//! The order of a run's rounds: side by side if the candidates can be up together, otherwise in turn, with
//! the reason.
//!
//! The load decides first ([`lab::Lab::order`]), then the results of the first start. In the first round, the
//! processor time of all candidates decides ([`super::groups`]).

use std::collections::BTreeSet;

use lab::{Setup, Variant};
use model::Order;
use recording::Measured;
use schedule::Spread;

use super::Experiment;
use super::candidate::{Candidate, Candidates};
use super::candidate_id::CandidateId;
use super::footprint::memory_of_all;
use super::groups::{Group, Groups};
use super::placement::Cores;

/// The order and placement of the candidates in all rounds.
pub(super) struct Design {
    pub(super) order: Order,
    /// The reason for measuring in turn, if the lab did not require it.
    pub(super) because: Option<String>,
    /// The groups of a run side by side. `None` until they are decided.
    pub(super) groups: Option<Groups>,
    /// The core of each placed system. `None` if the scheduler places all systems.
    cores: Option<Cores>,
    /// Numbers of the groups with systems that need more than one core each. Only for groups that the lab
    /// sets.
    narrow: BTreeSet<Option<u32>>,
    /// The part of a gap in which a request leaves. `None` until the first warm-up side by side has shown the
    /// latencies.
    pub(super) spread: Option<Spread>,
}

impl Design {
    /// The design that the lab requires.
    pub(super) fn of(lab: &lab::Lab, cores: &[usize]) -> Design {
        let (order, because) = lab.order();
        Design {
            order,
            because: because.map(str::to_owned),
            groups: None,
            cores: Cores::of(lab, cores),
            narrow: BTreeSet::new(),
            spread: None,
        }
    }

    /// All variants side by side in one group, on other machines.
    pub(super) fn elsewhere(variants: Vec<CandidateId>) -> Design {
        Design {
            order: Order::SideBySide,
            because: None,
            groups: Some(Groups::whole(variants)),
            cores: None,
            narrow: BTreeSet::new(),
            spread: None,
        }
    }

    /// The cores of systems that start before any group. `None` if the scheduler places all systems.
    pub(super) fn cores(&self) -> Option<&Cores> {
        self.cores.as_ref()
    }

    /// The cores of a group's systems. `None` if the scheduler places them.
    pub(super) fn cores_of(&self, group: &Group) -> Option<&Cores> {
        let is_narrow = self.narrow.contains(&group.index());
        self.cores.as_ref().filter(|_| !is_narrow)
    }

    /// Leaves the placement of this group to the scheduler from now on.
    pub(super) fn place_none_of(&mut self, group: &Group) {
        self.narrow.insert(group.index());
    }

    /// True if the decision was made that all candidates are up together.
    pub(super) fn is_one_group(&self) -> bool {
        let groups = self.groups.as_ref();
        groups.is_some_and(|groups| groups.several().is_none())
    }

    /// The design in the form of a recording.
    pub(super) fn record(&self, candidates: &Candidates<'_>) -> Measured {
        let groups = self.groups.as_ref();
        let names = |variants: &Vec<CandidateId>| {
            let ids = candidates.with_baselines(variants);
            let names = ids.into_iter().map(|id| candidates.get(id).name());
            names.map(str::to_owned).collect()
        };
        let several = groups.and_then(Groups::several).unwrap_or_default();
        Measured {
            order: self.order,
            because: self.because.clone(),
            groups: several.iter().map(names).collect(),
            groups_because: groups.and_then(|groups| groups.because.clone()),
            leaves_at_any_time: self.spread == Some(Spread::Gap),
        }
    }
}

impl Experiment<'_> {
    /// Decides after the first start of all candidates, before the first round.
    pub(super) fn choose_design(&mut self) {
        if self.design.order == Order::SideBySide {
            if let Some(names) = &self.session.lab.groups {
                let groups = self.candidates.grouped(names);
                if !groups.is_empty() {
                    // A different seed, because the seed itself already orders the candidates.
                    let seed = self.session.seed.wrapping_add(1);
                    self.design.groups = Some(Groups::of(groups, None, seed));
                }
            }
            if let Some(obstacle) = self.obstacle() {
                self.measure_in_turn(obstacle);
            }
        } else if let Some(because) = &self.design.because
            && self.session.lab.order_asked == Some(Order::SideBySide)
        {
            let line = format!("measured in turn, not side by side: {because}");
            self.session.progress.note(&line);
        }
        if self.design.order == Order::SideBySide {
            let setups: Vec<_> = self.session.lab.all().flat_map(Variant::systems).collect();
            self.reused.keep_slow_only(&setups);
        }
        let has_fixed = |candidate: &Candidate<'_>| candidate.footprint.has_fixed_address();
        if self.design.order == Order::InTurn && self.candidates.iter().any(has_fixed) {
            // Kept systems would occupy the fixed address of a starting system.
            self.reused.turn_off(&mut self.rig);
        }
    }

    /// Measures in turn from now on.
    pub(super) fn measure_in_turn(&mut self, because: String) {
        let line = format!("measured in turn, not side by side: {because}");
        self.session.progress.note(&line);
        // In turn, each variant has the whole machine.
        self.place_none();
        // In turn, no system is restarted, and the recording must show that.
        self.reused.keep_all();
        self.design = Design {
            order: Order::InTurn,
            because: Some(because),
            groups: None,
            cores: None,
            narrow: BTreeSet::new(),
            spread: None,
        };
    }

    /// Leaves all placement to the scheduler from now on.
    pub(super) fn place_none(&mut self) {
        if self.design.cores.take().is_some() {
            // Kept systems would stay on their cores.
            self.reused.stop_all(&mut self.rig);
        }
    }

    /// The reason why candidates cannot be up together, according to their first start.
    fn obstacle(&self) -> Option<String> {
        let groups = self.design.groups.as_ref().and_then(Groups::several);
        let together: Vec<Vec<&Candidate<'_>>> = match groups {
            Some(groups) => groups
                .iter()
                .map(|variants| self.still_in(&self.candidates.with_baselines(variants)))
                .collect(),
            None => vec![self.still_in(&self.candidates.ids().collect::<Vec<_>>())],
        };
        let cores = self.host.before.cpus_allowed;
        together.iter().find_map(|candidates| {
            too_many_instances(candidates, cores)
                .or_else(|| same_address(candidates))
                .or_else(|| {
                    // Systems that are kept from round to round already use their memory.
                    let available = (!self.reused.is_on()).then(rig::machine::memory_available);
                    too_much_memory(candidates, available.flatten()?)
                })
        })
    }

    fn still_in(&self, ids: &[CandidateId]) -> Vec<&Candidate<'_>> {
        let needed = ids.iter().filter(|id| !self.candidates.is_needless(**id));
        needed.map(|id| self.candidates.get(*id)).collect()
    }
}

/// Returns a reason if there are more instances than cores. They would compete, although each variant alone
/// has room.
fn too_many_instances(candidates: &[&Candidate<'_>], cores: usize) -> Option<String> {
    let of_setup = |setup: &Setup| match setup.replicas {
        // A single instance behind a balancer is an ordinary system.
        None | Some(1) => 0.0,
        Some(count) => f64::from(count) * setup.limits.cpus.unwrap_or(1.0),
    };
    let setups = candidates.iter().flat_map(|one| one.variant.systems());
    let wanted: f64 = setups.map(of_setup).sum();
    (wanted > cores as f64).then(|| {
        format!("the instances of all variants together need {wanted} cores, but there are {cores}")
    })
}

/// Returns a reason if two candidates have a system at the same fixed address.
fn same_address(candidates: &[&Candidate<'_>]) -> Option<String> {
    candidates.iter().enumerate().find_map(|(index, one)| {
        let mut others = candidates[index + 1..].iter();
        others.find_map(|other| {
            let address = one.footprint.address_of_both(&other.footprint)?;
            Some(format!(
                "systems of `{}` and of `{}` listen on the same fixed address, {address}",
                one.name(),
                other.name()
            ))
        })
    })
}

/// Returns a reason if the memory does not suffice for all.
fn too_much_memory(candidates: &[&Candidate<'_>], available: u64) -> Option<String> {
    let needed = memory_of_all(candidates.iter().map(|one| &one.footprint));
    // A single candidate has no alternative.
    (candidates.len() > 1 && needed > available).then(|| {
        let mib = |bytes: u64| bytes.div_ceil(1 << 20);
        format!(
            "the systems of all variants together may use {} MiB of memory, but only {} MiB are free",
            mib(needed),
            mib(available)
        )
    })
}
