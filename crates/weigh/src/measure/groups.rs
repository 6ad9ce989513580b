//! Which candidates are up together in a round side by side.
//!
//! Candidates that use much of the machine change what it does to those beside them, so they are
//! split into groups, each with the baselines of its members. What decides is processor time, read
//! while all were up and loaded as planned; a latency never does.

use super::candidate_id::CandidateId;
use super::placement::Cores;
use super::stopping_rule::ROUNDS_MAX;

/// Beyond this share of a core the systems that are placed on it would wait for one another. A variant
/// that is alone with its baseline may use more than [`GROUP_SHARE`].
const PLACED_SHARE: f64 = 0.65;
/// The share of the cores that the candidates of one group may use together. The rest is for the
/// generator, for the peaks of one while another works, and for the kernel.
const GROUP_SHARE: f64 = 0.5;
/// Beyond this share a variant and its baseline would crowd each other already.
const PAIR_SHARE: f64 = 0.8;
/// A candidate that uses more than this share of the cores is heavy, if the others are not.
const HEAVY_SHARE: f64 = 0.15;
/// How many times as much as the median of all candidates a heavy one uses, at least.
const HEAVY_TIMES: f64 = 4.0;

/// Processor time per second that a candidate's systems use.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct CoresUsed(Vec<Part>);

/// What one system uses.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Part {
    pub(super) system: String,
    /// The cores that it may run on; none for all of them.
    pub(super) on: Option<Vec<usize>>,
    /// In cores.
    pub(super) used: f64,
}

/// A candidate that is compared, or a baseline.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) id: CandidateId,
    pub(super) name: String,
    /// None for a baseline.
    pub(super) baseline: Option<CandidateId>,
    /// None where it was not seen.
    pub(super) used: Option<CoresUsed>,
}

/// The groups of a run.
#[derive(Clone, Debug)]
pub(super) struct Groups {
    /// The variants of each, without the baselines. At least one.
    variants: Vec<Vec<CandidateId>>,
    /// In which order a round measures them.
    orders: Vec<Vec<usize>>,
    /// Why there are several; none for one, and where the lab names them.
    pub(super) because: Option<String>,
}

/// The candidates that are up together.
#[derive(Clone, Debug)]
pub(super) struct Group {
    /// Its number from 0, and how many there are; none for the only one.
    pub(super) number: Option<(u32, u32)>,
    /// The variants, without the baselines.
    pub(super) variants: Vec<CandidateId>,
}

/// What the first round came to.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Crowd {
    /// All fit together.
    Fits(Fill),
    /// The groups, and why there are several.
    Splits(Vec<(Vec<CandidateId>, Fill)>, String),
    /// Not even a variant and its baseline fit together.
    PairDoesNotFit {
        /// Why.
        because: String,
        /// The part of the planned rate at which all pairs would fit.
        fits_at: f64,
    },
}

/// How full those that are up together make the fullest of all sets of cores, as a share of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Fill(f64);

impl Group {
    /// Its number from 0; none for the only one.
    pub(super) fn index(&self) -> Option<u32> {
        self.number.map(|(index, _)| index)
    }
}

impl CoresUsed {
    pub(super) fn new(parts: Vec<Part>) -> CoresUsed {
        CoresUsed(parts)
    }

    /// In cores.
    pub(super) fn total(&self) -> f64 {
        self.0.iter().map(|part| part.used).sum()
    }

    /// The same, with systems placed on these cores.
    pub(super) fn on(&self, cores: &Cores) -> CoresUsed {
        let placed = self.0.iter().cloned().map(|part| Part {
            on: part
                .on
                .or_else(|| Some(vec![cores.of_system(&part.system)?])),
            ..part
        });
        CoresUsed(placed.collect())
    }

    /// The same proportions, with another total.
    pub(super) fn scaled_to(self, total: f64) -> CoresUsed {
        let own = self.total();
        // There are no proportions to keep, so no cores are named.
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

    /// Of all together, on so many cores: pins make a few cores narrow while others are idle.
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
    /// Whether systems that are placed on a core each have room on it.
    fn is_room(self) -> bool {
        self.0 <= PLACED_SHARE
    }
}

impl Crowd {
    /// How many groups it takes; none where no number of groups is enough.
    pub(super) fn groups(&self) -> usize {
        match self {
            Crowd::Fits(_) => 1,
            Crowd::Splits(groups, _) => groups.len(),
            Crowd::PairDoesNotFit { .. } => usize::MAX,
        }
    }

    /// Whether each system has room on the one core that it is placed on.
    pub(super) fn has_room(&self) -> bool {
        match self {
            Crowd::Fits(fill) => fill.is_room(),
            Crowd::Splits(groups, _) => groups.iter().all(|(_, fill)| fill.is_room()),
            Crowd::PairDoesNotFit { .. } => false,
        }
    }
}

impl Groups {
    /// All candidates in one.
    pub(super) fn whole(variants: Vec<CandidateId>) -> Groups {
        // One group has one order, whatever the seed.
        Groups::of(vec![variants], None, 0)
    }

    /// These variants, in an order that the seed shuffles from round to round.
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

    /// The variants of each group, where there are several.
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

/// Whether all of these together have room on the cores that their systems are placed on; not where one
/// was not seen.
pub(super) fn has_room(members: &[Member], placed_on: &Cores, cores: usize) -> bool {
    placed(members, placed_on).is_some_and(|members| {
        let used: Vec<&CoresUsed> = members.iter().filter_map(|it| it.used.as_ref()).collect();
        CoresUsed::fill(&used, cores as f64).is_room()
    })
}

/// The same candidates with their systems placed on these cores; none where one was not seen.
pub(super) fn placed(members: &[Member], on: &Cores) -> Option<Vec<Member>> {
    let placed = members.iter().map(|member| {
        Some(Member {
            used: Some(member.used.as_ref()?.on(on)),
            ..member.clone()
        })
    });
    placed.collect()
}

/// Splits candidates into the fewest groups that do not crowd the machine of so many cores, by first
/// fit: the heaviest first, heavy ones apart from light ones.
pub(super) fn split(members: &[Member], cores: f64) -> Crowd {
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
        return Crowd::PairDoesNotFit {
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
    // Stable, so that equals stay in the order of the report.
    variants.sort_by(|one, other| total(other).total_cmp(&total(one)));
    let mut groups: Vec<(Vec<&Member>, Fill)> = Vec::new();
    for variant in variants {
        let place = groups.iter_mut().find_map(|(group, own)| {
            let with: Vec<&Member> = group.iter().copied().chain([variant]).collect();
            let filled = fill(&with);
            // A group is all heavy or all light, so its first member speaks for it.
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
        return Crowd::Fits(all);
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
    Crowd::Splits(named(&groups, members), because)
}

/// How full the machine is with these variants and their baselines.
fn fill(variants: &[&Member], members: &[Member], cores: f64) -> Fill {
    let mut ids: Vec<CandidateId> = variants.iter().map(|member| member.id).collect();
    ids.extend(variants.iter().filter_map(|member| member.baseline));
    let is_up = |member: &&Member| ids.contains(&member.id);
    // Each member once: variants may have the same baseline.
    let up = members.iter().filter(is_up);
    let used: Vec<&CoresUsed> = up.filter_map(|member| member.used.as_ref()).collect();
    CoresUsed::fill(&used, cores)
}

/// The groups by what names their members, in the order of the members.
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

/// The lower of the two in the middle where there are two.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len().saturating_sub(1) / 2;
    values.get(middle).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests;
