//! How the rounds of a run measure its candidates: side by side where they can be up together, else in
//! turn, with the reason.
//!
//! The load is looked at first ([`lab::Lab::order`]), what the first start showed next, and in the
//! first round how much processor time all use ([`super::groups`]).

use std::collections::BTreeSet;

use lab::{Setup, Variant};
use model::Order;
use report::recording::Measured;

use super::Experiment;
use super::candidate::{Candidate, Candidates};
use super::candidate_id::CandidateId;
use super::footprint::memory_of_all;
use super::groups::{Group, Groups};
use super::placement::Cores;

/// How rounds measure the candidates.
pub(super) struct Design {
    pub(super) order: Order,
    /// Why in turn, where that was not asked for.
    pub(super) because: Option<String>,
    /// Side by side, who is up together; none until that is known.
    pub(super) groups: Option<Groups>,
    /// The systems that run on one core each; none where the scheduler places all.
    cores: Option<Cores>,
    /// The numbers of the groups, of those that the lab names, for which one core a system is too narrow.
    narrow: BTreeSet<Option<u32>>,
}

impl Design {
    /// What the lab says.
    pub(super) fn of(lab: &lab::Lab, cores: &[usize]) -> Design {
        let (order, because) = lab.order();
        Design {
            order,
            because: because.map(str::to_owned),
            groups: None,
            cores: Cores::of(lab, cores),
            narrow: BTreeSet::new(),
        }
    }

    /// All of these together, side by side, on machines that are not this one.
    pub(super) fn elsewhere(variants: Vec<CandidateId>) -> Design {
        Design {
            order: Order::SideBySide,
            because: None,
            groups: Some(Groups::whole(variants)),
            cores: None,
            narrow: BTreeSet::new(),
        }
    }

    /// Where systems run that are started before any group; none where the scheduler places all.
    pub(super) fn cores(&self) -> Option<&Cores> {
        self.cores.as_ref()
    }

    /// Where the systems of a group run; none where the scheduler places them.
    pub(super) fn cores_of(&self, group: &Group) -> Option<&Cores> {
        let is_narrow = self.narrow.contains(&group.index());
        self.cores.as_ref().filter(|_| !is_narrow)
    }

    /// Leaves the systems of this group to the scheduler from now on.
    pub(super) fn place_none_of(&mut self, group: &Group) {
        self.narrow.insert(group.index());
    }

    /// Whether it is known that all candidates are up together.
    pub(super) fn is_one_group(&self) -> bool {
        let groups = self.groups.as_ref();
        groups.is_some_and(|groups| groups.several().is_none())
    }

    /// For the recording.
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
                    // Its own numbers: those of the seed order the candidates.
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
            // What runs on from turn to turn would be in the way of what starts.
            self.reused.turn_off(&mut self.rig);
        }
    }

    /// Measures in turn from now on.
    pub(super) fn measure_in_turn(&mut self, because: String) {
        let line = format!("measured in turn, not side by side: {because}");
        self.session.progress.note(&line);
        // In turn each variant has the machine for itself.
        self.place_none();
        // In turn nothing is started anew, so nothing else may be recorded.
        self.reused.keep_all();
        self.design = Design {
            order: Order::InTurn,
            because: Some(because),
            groups: None,
            cores: None,
            narrow: BTreeSet::new(),
        };
    }

    /// Leaves all to the scheduler from now on.
    pub(super) fn place_none(&mut self) {
        if self.design.cores.take().is_some() {
            // What runs on would stay where it is.
            self.reused.stop_all(&mut self.rig);
        }
    }

    /// Why candidates cannot be up together, as far as their first start has shown.
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
                    // Systems that are kept from round to round are up already.
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

/// More instances than cores: they would compete although each variant alone has room.
fn too_many_instances(candidates: &[&Candidate<'_>], cores: usize) -> Option<String> {
    let of_setup = |setup: &Setup| match setup.replicas {
        // A single one behind a balancer is a system like any other.
        None | Some(1) => 0.0,
        Some(count) => f64::from(count) * setup.limits.cpus.unwrap_or(1.0),
    };
    let setups = candidates.iter().flat_map(|one| one.variant.systems());
    let wanted: f64 = setups.map(of_setup).sum();
    (wanted > cores as f64).then(|| {
        format!("the instances of all variants together need {wanted} cores, but there are {cores}")
    })
}

/// Two candidates with a system on the same fixed address.
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

/// Memory that does not suffice for all.
fn too_much_memory(candidates: &[&Candidate<'_>], available: u64) -> Option<String> {
    let needed = memory_of_all(candidates.iter().map(|one| &one.footprint));
    // Alone, a candidate has no choice.
    (candidates.len() > 1 && needed > available).then(|| {
        let mib = |bytes: u64| bytes.div_ceil(1 << 20);
        format!(
            "the systems of all variants together may use {} MiB of memory, but only {} MiB are free",
            mib(needed),
            mib(available)
        )
    })
}
