//! The samples of all rounds, added up by variant and system.

use std::collections::BTreeMap;

use recording::{SampledSystem, WaitKind, WhyPair, WhyRecord, float};

use super::Found;

/// Maximum number of distinct stacks of a system in the recording.
const STACKS_MAX: usize = 2000;

/// The stack that replaces rare stacks.
const OTHERS: &str = "[rare stacks]";

/// The samples until now.
#[derive(Default)]
pub(super) struct Gathered {
    sources: Vec<String>,
    pairs: Vec<WhyPair>,
    /// In the order of their first sample, by variant and system.
    systems: Vec<OfSystem>,
}

struct OfSystem {
    variant: String,
    system: String,
    stacks: BTreeMap<String, u64>,
    waits_us: BTreeMap<WaitKind, BTreeMap<String, u64>>,
    blocked_us: BTreeMap<String, f64>,
    runtime: BTreeMap<String, f64>,
    missing: Option<String>,
}

impl Gathered {
    /// Adds a sentence about a source, once.
    pub(super) fn say(&mut self, sentence: String) {
        if !self.sources.contains(&sentence) {
            self.sources.push(sentence);
        }
    }

    /// Adds the samples of one start.
    pub(super) fn add(&mut self, found: Found) {
        let variant = found.pair.variant.clone();
        for mut taken in found.taken {
            self.say(taken.source.clone());
            let stacks = taken.stacks();
            let blocked = taken.blocked();
            let own = self.system(&variant, &taken.system);
            match stacks {
                None => {}
                Some(Err(reason)) => own.missing = Some(reason),
                Some(Ok(stacks)) => {
                    for (stack, count) in stacks.counts() {
                        *own.stacks.entry(stack).or_default() += count;
                    }
                }
            }
            match blocked {
                None => {}
                Some(Err(reason)) => own.missing = Some(reason),
                Some(Ok(blocked)) => {
                    for (stack, us) in blocked {
                        *own.blocked_us.entry(stack).or_default() += us;
                    }
                }
            }
            for (kind, stack, us) in taken.waits() {
                let of_kind = own.waits_us.entry(kind).or_default();
                *of_kind.entry(stack.to_owned()).or_default() += us;
            }
        }
        for (system, counters) in found.runtimes {
            let own = self.system(&variant, &system);
            for (name, grown) in counters {
                *own.runtime.entry(name.to_owned()).or_default() += grown;
            }
        }
        self.pairs.push(found.pair);
    }

    fn system(&mut self, variant: &str, system: &str) -> &mut OfSystem {
        let mut known = self.systems.iter();
        let place = known.position(|one| one.variant == variant && one.system == system);
        let place = place.unwrap_or_else(|| {
            self.systems.push(OfSystem {
                variant: variant.to_owned(),
                system: system.to_owned(),
                stacks: BTreeMap::new(),
                waits_us: BTreeMap::new(),
                blocked_us: BTreeMap::new(),
                runtime: BTreeMap::new(),
                missing: None,
            });
            self.systems.len() - 1
        });
        &mut self.systems[place]
    }

    /// The record of all samples.
    pub(super) fn record(self) -> WhyRecord {
        let systems = self.systems.into_iter();
        let pairs = &self.pairs;
        WhyRecord {
            systems: systems.map(|one| one.record(pairs)).collect(),
            sources: self.sources,
            pairs: self.pairs,
        }
    }
}

impl OfSystem {
    fn record(self, pairs: &[WhyPair]) -> SampledSystem {
        let own = || pairs.iter().filter(|pair| pair.variant == self.variant);
        let answered: u64 = own().map(|pair| pair.sampled.answered).sum();
        let in_both: u64 = own()
            .map(|pair| pair.sampled.answered + pair.plain.answered)
            .sum();
        let runtime = self.runtime.into_iter();
        let runtime = runtime.map(|(name, all)| (name, all / float(in_both.max(1))));
        let cpu_us = own().map(|pair| pair.sampled.system(&self.system)?.cpu_us);
        let cpu_us: Option<u64> = cpu_us.sum();
        let per_request = |us: u64| float(us) / float(answered.max(1));
        let waits = self.waits_us.into_iter().map(|(kind, stacks)| {
            let stacks = stacks.into_iter();
            let stacks = stacks.map(|(stack, us)| (stack, per_request(us)));
            (kind, stacks.collect())
        });
        SampledSystem {
            cpu_us_per_request: cpu_us.filter(|_| answered > 0).map(per_request),
            variant: self.variant,
            system: self.system,
            stacks: without_rare(self.stacks, STACKS_MAX),
            waits: waits.collect(),
            blocked: longest(self.blocked_us, answered),
            runtime: runtime.collect(),
            missing: self.missing,
        }
    }
}

/// The stacks with the longest waits, per response. Short waits are left out.
fn longest(blocked_us: BTreeMap<String, f64>, answered: u64) -> BTreeMap<String, f64> {
    let answered = float(answered.max(1));
    let mut all: Vec<(String, f64)> = blocked_us.into_iter().collect();
    all.sort_by(|one, other| other.1.total_cmp(&one.1));
    all.truncate(STACKS_MAX);
    let per_response = all.into_iter().map(|(stack, us)| (stack, us / answered));
    per_response.collect()
}

/// The most frequent stacks. The others become one stack, so that the sum stays.
fn without_rare(stacks: BTreeMap<String, u64>, most: usize) -> BTreeMap<String, u64> {
    if stacks.len() <= most {
        return stacks;
    }
    let mut by_count: Vec<(String, u64)> = stacks.into_iter().collect();
    by_count.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
    let rare = by_count.split_off(most - 1);
    let rest = rare.iter().map(|(_, count)| count).sum();
    by_count.push((OTHERS.to_owned(), rest));
    by_count.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rare_stacks_become_one_and_the_sum_stays() {
        let stacks: BTreeMap<String, u64> = [("a", 5), ("b", 1), ("c", 9), ("d", 2)]
            .map(|(stack, count)| (stack.to_owned(), count))
            .into();
        assert_eq!(without_rare(stacks.clone(), 4), stacks);
        let kept = without_rare(stacks, 3);
        let expected = [("a", 5), ("c", 9), (OTHERS, 3)];
        assert_eq!(
            kept,
            expected
                .map(|(stack, count)| (stack.to_owned(), count))
                .into()
        );
    }
}
