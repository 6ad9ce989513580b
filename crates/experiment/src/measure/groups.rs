//! Groups of candidates that are up together in a round side by side.
//!
//! Candidates that use much of the machine disturb the other candidates, so `weigh` splits them into groups.
//! Each group contains the baselines of its members. Processor time decides, read while all candidates were
//! up and loaded as planned. Latency never decides.

use super::candidate_id::CandidateId;
use super::placement::Cores;
use super::stopping_rule::ROUNDS_MAX;

/// Limit of the use of one core by the systems placed on it. Above it they would wait for one another. A
/// variant that is alone with its baseline may use more than [`GROUP_SHARE`].
const PLACED_SHARE: f64 = 0.65;
/// The share of the cores that the candidates of one group may use together. The rest is for the generator,
/// for simultaneous peaks, and for the kernel.
const GROUP_SHARE: f64 = 0.5;
/// Above this share a variant and its baseline alone would already disturb each other.
const PAIR_SHARE: f64 = 0.8;
/// A heavy candidate uses more than this share of the cores, and [`HEAVY_TIMES`] the median.
const HEAVY_SHARE: f64 = 0.15;
/// A heavy candidate uses more than this multiple of the median of all candidates.
const HEAVY_TIMES: f64 = 4.0;

/// Processor time per second of a candidate's systems.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct CoresUsed(Vec<Part>);

/// The processor use of one system.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Part {
    pub(super) system: String,
    /// The cores that it may run on. `None` for all cores.
    pub(super) on: Option<Vec<usize>>,
    /// Processor time per second, in cores.
    pub(super) used: f64,
}

/// A variant or a baseline, as a member of a group.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) id: CandidateId,
    pub(super) name: String,
    /// `None` for a baseline.
    pub(super) baseline: Option<CandidateId>,
    /// `None` if its use was not measured.
    pub(super) used: Option<CoresUsed>,
}

/// The groups of a run.
#[derive(Clone, Debug)]
pub(super) struct Groups {
    /// The variants of each group, without the baselines. At least one group.
    variants: Vec<Vec<CandidateId>>,
    /// Orders of the groups, one for each round.
    orders: Vec<Vec<usize>>,
    /// The reason for several groups. `None` for a single group, and if the lab sets the groups.
    pub(super) because: Option<String>,
}

/// The candidates that are up together.
#[derive(Clone, Debug)]
pub(super) struct Group {
    /// The group's number from 0 and the number of groups. `None` for a single group.
    pub(super) number: Option<(u32, u32)>,
    /// The variants, without the baselines.
    pub(super) variants: Vec<CandidateId>,
}

/// The result of the first round: one group or several.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum CoreFit {
    /// All candidates fit into one group.
    Fits(Fill),
    /// The groups and the reason for them.
    Splits(Vec<(Vec<CandidateId>, Fill)>, String),
    /// Not even a variant and its baseline fit together.
    PairTooLarge {
        /// The reason, with the variant and its use.
        because: String,
        /// The part of the planned rate that would let all pairs fit.
        fits_at: f64,
    },
}

/// The use of the fullest set of cores by running candidates, as a share of that set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Fill(f64);

impl Group {
    /// The group's number from 0. `None` for a single group.
    pub(super) fn index(&self) -> Option<u32> {
        self.number.map(|(index, _)| index)
    }
}

impl CoresUsed {
    pub(super) fn new(parts: Vec<Part>) -> CoresUsed {
        CoresUsed(parts)
    }

    /// The sum over all systems, in cores.
    pub(super) fn total(&self) -> f64 {
        self.0.iter().map(|part| part.used).sum()
    }

    /// Returns this use with the systems placed on these cores.
    pub(super) fn on(&self, cores: &Cores) -> CoresUsed {
        let placed = self.0.iter().cloned().map(|part| Part {
            on: part
                .on
                .or_else(|| Some(vec![cores.of_system(&part.system)?])),
            ..part
        });
        CoresUsed(placed.collect())
    }

    /// Returns the same proportions with another total.
    pub(super) fn scaled_to(self, total: f64) -> CoresUsed {
        let own = self.total();
        // Without proportions to keep, no cores are named.
        if own <= 0.0 {
            let part = Part {
                system: String::new(),
                on: None,
                used: total,
            };
            return CoresUsed(vec![part]);
        }
        let scaled = self.0.into_iter().map(|part| Part {
            used: part.used * total / own,
            ..part
        });
        CoresUsed(scaled.collect())
    }

    /// Fill of all together on `cores` cores. Pins can fill a few cores while other cores are idle.
    fn fill(all: &[&CoresUsed], cores: f64) -> Fill {
        let parts = || all.iter().flat_map(|one| &one.0);
        let total: f64 = parts().map(|part| part.used).sum();
        let sets = parts().filter_map(|part| part.on.as_ref());
        let of_set = |set: &Vec<usize>| {
            let is_within =
                |on: &&Vec<usize>| !set.is_empty() && on.iter().all(|core| set.contains(core));
            let inside = parts().filter(|part| part.on.as_ref().filter(is_within).is_some());
            inside.map(|part| part.used).sum::<f64>() / set.len().max(1) as f64
        };
        Fill(sets.map(of_set).fold(total / cores, f64::max))
    }
}

impl Fill {
    /// True if systems that are each placed on one core have room on it.
    fn is_room(self) -> bool {
        self.0 <= PLACED_SHARE
    }
}

impl CoreFit {
    /// The number of groups that are needed. `usize::MAX` if no number is enough.
    pub(super) fn groups(&self) -> usize {
        match self {
            CoreFit::Fits(_) => 1,
            CoreFit::Splits(groups, _) => groups.len(),
            CoreFit::PairTooLarge { .. } => usize::MAX,
        }
    }

    /// True if each system has room on its single core.
    pub(super) fn has_room(&self) -> bool {
        match self {
            CoreFit::Fits(fill) => fill.is_room(),
            CoreFit::Splits(groups, _) => groups.iter().all(|(_, fill)| fill.is_room()),
            CoreFit::PairTooLarge { .. } => false,
        }
    }
}

impl Groups {
    /// A single group with all candidates.
    pub(super) fn whole(variants: Vec<CandidateId>) -> Groups {
        // One group has one order, whatever the seed.
        Groups::of(vec![variants], None, 0)
    }

    /// These groups, in an order that the seed shuffles from round to round.
    pub(super) fn of(
        variants: Vec<Vec<CandidateId>>,
        because: Option<String>,
        seed: u64,
    ) -> Groups {
        assert!(!variants.is_empty(), "a lab has a variant");
        Groups {
            orders: schedule::round_order(variants.len(), ROUNDS_MAX, seed),
            variants,
            because,
        }
    }

    /// The variants of each group, if there are several groups.
    pub(super) fn several(&self) -> Option<&[Vec<CandidateId>]> {
        (self.variants.len() > 1).then_some(&*self.variants)
    }

    /// The groups of a round, in its order.
    pub(super) fn in_round(&self, round: usize) -> Vec<Group> {
        let count = u32::try_from(self.variants.len()).expect("no lab has so many variants");
        let order = &self.orders[round % self.orders.len()];
        let group = |index: &usize| Group {
            number: (count > 1).then(|| {
                let number = u32::try_from(*index).expect("below their count");
                (number, count)
            }),
            variants: self.variants[*index].clone(),
        };
        order.iter().map(group).collect()
    }
}

/// True if all these members together have room on the cores of their systems. False if one was not measured.
pub(super) fn has_room(members: &[Member], placed_on: &Cores, cores: usize) -> bool {
    placed(members, placed_on).is_some_and(|members| {
        let used: Vec<&CoresUsed> = members.iter().filter_map(|it| it.used.as_ref()).collect();
        CoresUsed::fill(&used, cores as f64).is_room()
    })
}

/// Returns the members with their systems placed on these cores. `None` if one was not measured.
pub(super) fn placed(members: &[Member], on: &Cores) -> Option<Vec<Member>> {
    let placed = members.iter().map(|member| {
        Some(Member {
            used: Some(member.used.as_ref()?.on(on)),
            ..member.clone()
        })
    });
    placed.collect()
}

/// Splits candidates into the fewest groups that do not crowd `cores` cores. First fit, the heaviest first,
/// with heavy and light candidates in different groups.
pub(super) fn split(members: &[Member], cores: f64) -> CoreFit {
    let total = |member: &Member| member.used.as_ref().map_or(0.0, CoresUsed::total);
    let fill = |variants: &[&Member]| fill(variants, members, cores);
    let mut variants: Vec<&Member> = members
        .iter()
        .filter(|member| member.baseline.is_some())
        .collect();
    let pairs = variants.iter().map(|variant| {
        let Fill(pair) = fill(&[*variant]);
        (variant, pair)
    });
    let fullest = pairs.max_by(|(_, one), (_, other)| one.total_cmp(other));
    if let Some((variant, pair)) = fullest.filter(|(_, pair)| *pair > PAIR_SHARE) {
        return CoreFit::PairTooLarge {
            because: format!(
                "`{}` and its baseline together would use {:.0} % of their cores",
                variant.name,
                pair * 100.0
            ),
            fits_at: GROUP_SHARE / pair,
        };
    }
    let median = median(members.iter().map(total).collect());
    let is_heavy = |member: &Member| {
        total(member) > HEAVY_SHARE * cores && total(member) > HEAVY_TIMES * median
    };
    let all = fill(&variants);
    let heavy: Vec<String> = variants
        .iter()
        .filter(|variant| is_heavy(variant))
        .map(|variant| format!("`{}` uses {:.2}", variant.name, total(variant)))
        .collect();
    // The sort is stable, so equal candidates keep the order of the report.
    variants.sort_by(|one, other| total(other).total_cmp(&total(one)));
    let mut groups: Vec<(Vec<&Member>, Fill)> = Vec::new();
    for variant in variants {
        let place = groups.iter_mut().find_map(|(group, own)| {
            let with: Vec<&Member> = group.iter().copied().chain([variant]).collect();
            let filled = fill(&with);
            // A group is all heavy or all light, so its first member represents it.
            let is_alike = is_heavy(group[0]) == is_heavy(variant);
            (is_alike && filled.0 <= GROUP_SHARE).then_some((group, own, filled))
        });
        match place {
            Some((group, own, filled)) => {
                group.push(variant);
                *own = filled;
            }
            None => groups.push((vec![variant], fill(&[variant]))),
        }
    }
    if groups.len() < 2 {
        return CoreFit::Fits(all);
    }
    let because = match heavy.is_empty() {
        true => format!(
            "all variants together would use {:.0} % of their cores",
            all.0 * 100.0
        ),
        false => format!(
            "{} of {cores} cores, the median of all is {median:.2}",
            heavy.join(" and ")
        ),
    };
    CoreFit::Splits(named(&groups, members), because)
}

/// The fill of the machine with these variants and their baselines.
fn fill(variants: &[&Member], members: &[Member], cores: f64) -> Fill {
    let mut ids: Vec<CandidateId> = variants.iter().map(|member| member.id).collect();
    ids.extend(variants.iter().filter_map(|member| member.baseline));
    let is_up = |member: &&Member| ids.contains(&member.id);
    // Each member counts once, because variants may share a baseline.
    let up = members.iter().filter(is_up);
    let used: Vec<&CoresUsed> = up.filter_map(|member| member.used.as_ref()).collect();
    CoresUsed::fill(&used, cores)
}

/// The groups as member ids, in the order of the members.
fn named(groups: &[(Vec<&Member>, Fill)], members: &[Member]) -> Vec<(Vec<CandidateId>, Fill)> {
    let order = |id: &CandidateId| members.iter().position(|member| member.id == *id);
    let named = groups.iter().map(|(group, fill)| {
        let mut ids: Vec<CandidateId> = group.iter().map(|member| member.id).collect();
        ids.sort_by_key(order);
        (ids, *fill)
    });
    let mut named: Vec<(Vec<CandidateId>, Fill)> = named.collect();
    named.sort_by_key(|(group, _)| order(&group[0]));
    named
}

/// The median. Of two middle values, the lower one.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len().saturating_sub(1) / 2;
    values.get(middle).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests;
