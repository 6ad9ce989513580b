//! Pairs of loads of a variant and of its baseline, matched by round.

use std::collections::BTreeMap;

use recording::{WaitKind, WhyLoad, WhyPair, WhyRecord, float};
use stats::paired::{Estimate, location};

use crate::confidence::CONFIDENCE;

/// The smallest relative change of a share of time that is not a background thread's.
const SHARE_CHANGE_MIN: f64 = 0.1;

/// The rounds with both a variant and its baseline.
pub(super) struct Pairs<'a> {
    /// Baseline and variant of each round.
    rounds: Vec<[OnePair<'a>; 2]>,
}

/// The two loads of one start.
#[derive(Clone, Copy)]
pub(super) struct OnePair<'a> {
    pub(super) plain: &'a WhyLoad,
    pub(super) sampled: &'a WhyLoad,
}

impl<'a> Pairs<'a> {
    /// `None` if no round has both.
    pub(super) fn of(why: &'a WhyRecord, variant: &str, baseline: &str) -> Option<Self> {
        let of = |name: &str| {
            let own = why.pairs.iter().filter(|pair| pair.variant == name);
            let usable = own.filter(|pair| pair.plain.answered > 0 && pair.sampled.answered > 0);
            usable
                .map(|pair| (pair.round, OnePair::of(pair)))
                .collect::<BTreeMap<u32, OnePair<'a>>>()
        };
        let (baselines, own) = (of(baseline), of(variant));
        let both = own
            .into_iter()
            .filter_map(|(round, own)| Some([*baselines.get(&round)?, own]));
        let rounds: Vec<_> = both.collect();
        (!rounds.is_empty()).then_some(Self { rounds })
    }

    /// The difference of the variant from the baseline. `None` if the amount is unknown in a round.
    pub(super) fn difference(
        &self,
        amount: impl Fn(&OnePair<'a>) -> Option<f64>,
    ) -> Option<Estimate> {
        let one = |[baseline, own]: &[OnePair<'a>; 2]| Some(amount(own)? - amount(baseline)?);
        let differences: Option<Vec<f64>> = self.rounds.iter().map(one).collect();
        location(&differences?, CONFIDENCE)
    }

    /// True if a system waits for a clearly different share of the time than in the baseline. A background
    /// thread waits for the same share, however many requests there are.
    pub(super) fn is_share_different(&self, system: &str, kind: WaitKind) -> bool {
        let share = |pair: &OnePair<'a>| pair.wait_share(system, kind).unwrap_or(0.0);
        let sum = |side: usize| -> f64 { self.rounds.iter().map(|both| share(&both[side])).sum() };
        let (baseline, own) = (sum(0), sum(1));
        (own - baseline).abs() >= SHARE_CHANGE_MIN * own.max(baseline)
    }

    /// Names of the systems of both. The systems of the variant come first.
    pub(super) fn systems(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        let loads = self
            .rounds
            .iter()
            .flat_map(|[baseline, own]| [own, baseline]);
        for used in loads.flat_map(|pair| &pair.plain.systems) {
            if !names.contains(&used.name) {
                names.push(used.name.clone());
            }
        }
        names
    }
}

impl<'a> OnePair<'a> {
    fn of(pair: &'a WhyPair) -> Self {
        Self {
            plain: &pair.plain,
            sampled: &pair.sampled,
        }
    }

    /// Processor time per response.
    pub(super) fn cpu_us(&self, system: &str) -> Option<f64> {
        match self.plain.system(system) {
            Some(used) => Some(float(used.cpu_us?) / float(self.plain.answered)),
            // A variant without this system spends no time there.
            None => Some(0.0),
        }
    }

    /// Time of blocked threads per response.
    pub(super) fn wait_us(&self, system: &str, kind: WaitKind) -> Option<f64> {
        let used = self.sampled.system(system);
        let us = used.and_then(|used| used.waits_us.get(&kind));
        Some(float(us.copied().unwrap_or(0)) / float(self.sampled.answered))
    }

    /// Time of blocked threads, as a share of the length of the load. It is above 1 with several threads.
    pub(super) fn wait_share(&self, system: &str, kind: WaitKind) -> Option<f64> {
        let per_request = self.wait_us(system, kind)?;
        let length_us = float(self.sampled.elapsed_us.max(1));
        Some(per_request * float(self.sampled.answered) / length_us)
    }

    /// New connections per response, of generator and systems.
    pub(super) fn connections(&self) -> f64 {
        let of_systems = self.plain.connections_of_systems.unwrap_or(0);
        float(self.plain.connections + of_systems) / float(self.plain.answered)
    }
}
