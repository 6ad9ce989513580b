//! A group of candidates that are up together. `weigh` starts it next to the shared systems, measures it and
//! stops it. In the first round it also decides the groups.

use std::path::Path;

use lab::Setup;
use model::{InvalidKind, Load, Order};
use rig::Rig;

use super::Experiment;
use super::cores_used::first_rate;
use super::groups::{CoreFit, CoresUsed, Group, Groups, Member, has_room, placed, split};
use super::in_turn::in_round;
use super::placement::Cores;
use super::round::Round;
use super::running::root_cause;
use super::running_variant::{RoundFailure, RunningVariant};
use super::variant_run::RunPhase;
use crate::invalid::Invalid;
use crate::systems::{RunningSystems, UsageReading};

/// The log folder of shared systems. If a variant has this name, both write into one folder without a
/// conflict.
const SHARED: &str = "shared";

/// The reason why the scheduler places systems that could have had one core each.
const TOO_NARROW: &str = "one core for each system is too narrow, or not known to be enough";

/// The context of a running group: its members, shared systems and cores.
pub(super) struct GroupContext<'g> {
    pub(super) group: &'g Group,
    /// The shared systems. `None` if each candidate has its own systems.
    pub(super) shared: Option<RunningSystems>,
    /// The cores of the systems. `None` if the scheduler places all systems.
    pub(super) cores: Option<Cores>,
}

impl Experiment<'_> {
    /// Starts a group, measures it and stops it. If the groups are still undecided, it decides them from the
    /// warm-up. It then measures only if this group is final.
    pub(super) fn group(&mut self, round: &Round, group: &Group) {
        let shared = match self.bring_up_shared(round, group) {
            Ok(shared) => shared,
            Err(invalid) => return self.reject_all(group, &invalid),
        };
        let context = GroupContext {
            group,
            shared,
            cores: self.design.cores_of(group).cloned(),
        };
        let mut up = self.bring_up(round, &context);
        self.leave_needless(&mut up, &context);
        if !up.is_empty() {
            let loads = self.ready_together(round, &mut up, &context);
            let loads = loads.map_err(RoundFailure::from);
            if loads.is_ok() && !self.is_over() {
                self.look_at(round, &context, &up);
            }
            // Measured only if the group has its final members and cores.
            let is_placed = context.cores.as_ref() == self.design.cores_of(group);
            let is_final = self.design.order == Order::SideBySide
                && is_placed
                && (group.number.is_some() || self.design.is_one_group());
            if loads.is_ok() && !is_final && !self.is_over() {
                for RunningVariant {
                    position, running, ..
                } in up
                {
                    self.reused
                        .keep_or_stop(&mut self.rig, position.candidate, running, is_placed);
                }
            } else if let Some(capacity) = self.session.lab.capacity {
                match loads {
                    Ok(loads) => self.search_together(round, up, loads.jobs, capacity),
                    Err(failure) => self.give_up(up, &failure),
                }
            } else {
                let result =
                    loads.and_then(|loads| self.attempts_together(round, &up, &loads, &context));
                let ended = context.shared.as_ref();
                let ended = ended.and_then(|shared| shared.ended(&mut self.rig));
                match (result, ended) {
                    (Ok(result), None) => self.take_down(up, result),
                    (Err(failure), None) => self.give_up(up, &failure),
                    // A shared system ended. No single variant is at fault, so all are rejected.
                    (_, Some(ended)) => {
                        let invalid = Invalid::new(InvalidKind::Crashed, ended);
                        self.give_up(up, &RoundFailure::from(invalid));
                    }
                }
            }
        }
        // Stopped last, because the candidates may need it until they have ended.
        if let Some(shared) = context.shared {
            let is_well = shared.ended(&mut self.rig).is_none();
            self.reused
                .keep_or_stop_shared(&mut self.rig, shared, is_well);
        }
    }

    /// Starts the systems that all candidates of a group share. `None` if there are no shared systems.
    fn bring_up_shared(
        &mut self,
        round: &Round,
        group: &Group,
    ) -> Result<Option<RunningSystems>, Invalid> {
        if let Some(shared) = self.reused.take_shared() {
            return Ok(Some(shared));
        }
        let mut setups: Vec<Setup> = Vec::new();
        for id in self.candidates.with_baselines(&group.variants) {
            if self.candidates.is_needless_in(id, &group.variants) {
                continue;
            }
            let own = self.candidates.get(id).variant.systems().iter();
            for setup in own.filter(|setup| setup.is_shared) {
                // The shared setups are equal in all variants, and each follows its dependencies.
                if setups.iter().all(|known| known.system != setup.system) {
                    setups.push(setup.clone());
                }
            }
        }
        if setups.is_empty() {
            return Ok(None);
        }
        let number = group.number.map(|(number, _)| number);
        let folder = Path::new(SHARED).join(RunPhase::Round(round.number).folder_in(number));
        self.session
            .start(&mut self.rig, &setups, &folder, None)
            .map(Some)
    }

    /// Stops all systems of a failed round. The culprit is rejected and the other candidates get another
    /// round. If the user stops the run, the earlier measurements remain valid.
    pub(super) fn give_up(&mut self, up: Vec<RunningVariant>, failure: &RoundFailure) {
        let is_stopped = failure.invalid.kind == InvalidKind::Interrupted;
        for (
            index,
            RunningVariant {
                position, running, ..
            },
        ) in up.into_iter().enumerate()
        {
            let ended = running.ended(&mut self.rig);
            running.stop(&mut self.rig);
            let is_its_doing = failure.culprit.is_none_or(|culprit| culprit == index);
            if !is_stopped && (is_its_doing || ended.is_some()) {
                let invalid = root_cause(ended, failure.invalid.clone());
                self.reject(position.candidate, in_round(invalid, position.round));
            }
        }
    }

    /// Stops candidates that have no remaining comparison.
    pub(super) fn leave_needless(
        &mut self,
        up: &mut Vec<RunningVariant>,
        context: &GroupContext<'_>,
    ) {
        let is_over = self.is_over();
        let variants = &context.group.variants;
        let (stay, leave) = std::mem::take(up).into_iter().partition(|one| {
            let id = one.position.candidate;
            !is_over && !self.candidates.is_needless_in(id, variants)
        });
        *up = stay;
        for one in leave {
            let is_well = !is_over;
            let RunningVariant {
                position, running, ..
            } = one;
            self.reused
                .keep_or_stop(&mut self.rig, position.candidate, running, is_well);
        }
    }

    /// Rejects all remaining candidates of a group.
    fn reject_all(&mut self, group: &Group, invalid: &Invalid) {
        for id in self.candidates.with_baselines(&group.variants) {
            let is_in = self.candidates.get(id).invalid().is_none();
            // If the user stops the run, no candidate is at fault.
            if is_in && invalid.kind != InvalidKind::Interrupted {
                self.reject(id, invalid.clone());
            }
        }
    }

    /// Evaluates the warm-up of the first round, which decides groups and cores.
    fn look_at(&mut self, round: &Round, context: &GroupContext<'_>, up: &[RunningVariant]) {
        let is_named = self.session.lab.groups.is_some();
        if self.design.groups.is_none() {
            self.decide_groups(up);
        } else if let Some(cores) = &context.cores
            && is_named
            && round.number == 0
        {
            let is_wide = has_room(&self.members(up), cores, self.host.before.cpus_allowed);
            if !is_wide {
                tracing::debug!(group = ?context.group.index(), "{TOO_NARROW}");
                self.design.place_none_of(context.group);
            }
        }
    }

    /// The processor use of running candidates, in the order of the report. The order of the round would
    /// change from run to run.
    fn members(&self, up: &[RunningVariant]) -> Vec<Member> {
        let member = |one: &RunningVariant| {
            self.candidates
                .member(one.position.candidate, one.used.clone())
        };
        let mut members: Vec<Member> = up.iter().map(member).collect();
        members.sort_by_key(|member| member.id);
        for member in &members {
            let used = member.used.as_ref().map(CoresUsed::total);
            tracing::debug!(variant = member.name, cores = ?used, "processor time side by side");
        }
        members
    }

    /// Prints a note if no warm-up and no settling has shown the processor use, although there are variants
    /// to compare.
    fn tell_of_unknown_fit(&self, members: &[Member]) {
        let is_unknown = members.iter().all(|member| member.used.is_none());
        if is_unknown && members.len() > 1 && self.session.lab.warmup.is_zero() {
            self.session.progress.note(
                "`warmup` is 0s, so nothing shows before the first round if the variants fit on the cores \
                 side by side. `weigh check` predicts it",
            );
        }
    }

    /// Decides the groups of all rounds, by the processor use during the warm-up of all candidates.
    fn decide_groups(&mut self, up: &[RunningVariant]) {
        let members = self.members(up);
        self.tell_of_unknown_fit(&members);
        let cores = self.host.before.cpus_allowed as f64;
        let all = self.candidates.compared();
        let mut fit = split(&members, cores);
        if let Some(placed_on) = self.design.cores() {
            let placed = placed(&members, placed_on).map(|members| split(&members, cores));
            // The scheduler can choose from all cores. A placement that needs more groups makes a run longer,
            // or impossible.
            match placed {
                Some(placed) if placed.has_room() && placed.groups() <= fit.groups() => {
                    fit = placed;
                }
                _ => {
                    tracing::debug!("{TOO_NARROW}");
                    self.place_none();
                }
            }
        }
        match fit {
            CoreFit::Fits(_) => self.design.groups = Some(Groups::whole(all)),
            CoreFit::Splits(groups, because) => {
                let variants = groups.into_iter().map(|(variants, _)| variants).collect();
                // A different seed, because the seed itself already orders the candidates.
                let seed = self.session.seed.wrapping_add(1);
                let groups = Groups::of(variants, Some(because.clone()), seed);
                let count = groups.several().map_or(1, <[_]>::len);
                self.session.progress.note(&format!(
                    "measured in {count} groups, each with its baseline: {because}"
                ));
                self.design.groups = Some(groups);
            }
            CoreFit::PairTooLarge { because, fits_at } => {
                let remedy = self.lower_rate(fits_at);
                self.measure_in_turn(because + &remedy);
            }
        }
    }
}

impl Experiment<'_> {
    /// Suggests a rate that would fit side by side. Empty for a load with several rates.
    pub(super) fn lower_rate(&self, fits_at: f64) -> String {
        match &self.session.load {
            Load::Open { phases, .. } if phases.len() == 1 => {
                let planned = first_rate(&self.session.load).per_second();
                let fitting = schedule::fit::rounded_down(planned * fits_at);
                format!(" at {planned}/s. They would fit side by side at `rate: {fitting}/s`")
            }
            _ => String::new(),
        }
    }
}

impl GroupContext<'_> {
    /// A label such as `round 2, group 1 of 2, warming up`.
    pub(super) fn label(&self, round: &Round, what: &str) -> String {
        let number = round.number + 1;
        match self.group.number {
            None => format!("round {number}, {what}"),
            Some((group, count)) => {
                format!("round {number}, group {} of {count}, {what}", group + 1)
            }
        }
    }

    /// The usage of the shared systems since their start.
    pub(super) fn usage(&self, rig: &Rig) -> Vec<UsageReading> {
        let shared = self.shared.as_ref();
        shared.map_or_else(Vec::new, |shared| shared.usage(rig))
    }
}
