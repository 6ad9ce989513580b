//! What each instance behind a balancer has done: the balancer counts the answers, the rig the
//! processor time.

use std::time::Duration;

use model::{InvalidKind, Throttled};
use report::recording::{InstanceUsage, ProofSeen};
use rig::{ContextSwitches, Rig, Usage};

use super::{Invalid, Stack};
use crate::record::micros;

/// How the report calls what balancers prove.
pub(crate) const PROOF: &str = "requests by instance";

/// With so many requests for each instance, one without any is not in service.
const REQUESTS_TELLING: u64 = 10;

/// The instances of one system at one moment.
pub(crate) struct Tally {
    system: String,
    instances: Vec<Instance>,
}

/// One instance at one moment.
struct Instance {
    name: String,
    /// Since its start.
    answers: u64,
    cpu: Option<Duration>,
}

/// What the instances of one system did between two moments.
pub(crate) struct Shares {
    pub(crate) system: String,
    pub(crate) instances: Vec<InstanceUsage>,
}

impl Stack {
    /// The instances of every system that has a balancer before it.
    ///
    /// # Errors
    ///
    /// When a balancer does not tell.
    pub(crate) fn tallies(&self, rig: &Rig) -> Result<Vec<Tally>, Invalid> {
        let mut tallies = Vec::new();
        for running in &self.running {
            let Some((system, statistics)) = &running.balances else {
                continue;
            };
            let answered = rig::balancer::answered(*statistics).map_err(|error| {
                let reason = format!(
                    "`{}` does not tell what it has counted: {error}",
                    running.system.name()
                );
                Invalid::new(InvalidKind::NotProven, reason)
            })?;
            let with_cpu = answered.into_iter().map(|one| {
                let process = self
                    .running
                    .iter()
                    .find(|it| it.system.name() == one.instance);
                let usage = process.and_then(|it| rig.usage(&it.system).ok());
                Instance {
                    name: one.instance,
                    answers: one.answers,
                    cpu: usage.map(|usage| usage.cpu),
                }
            });
            tallies.push(Tally {
                system: system.clone(),
                instances: with_cpu.collect(),
            });
        }
        Ok(tallies)
    }
}

/// What happened between two readings of the same stack.
pub(crate) fn between(before: &[Tally], after: &[Tally]) -> Vec<Shares> {
    let shares = |(before, after): (&Tally, &Tally)| {
        let pairs = before.instances.iter().zip(&after.instances);
        let usage = |(before, after): (&Instance, &Instance)| InstanceUsage {
            name: after.name.clone(),
            answers: after.answers.saturating_sub(before.answers),
            cpu_us: before
                .cpu
                .zip(after.cpu)
                .map(|(before, after)| micros(after.saturating_sub(before))),
        };
        Shares {
            system: after.system.clone(),
            instances: pairs.map(usage).collect(),
        }
    };
    before.iter().zip(after).map(shares).collect()
}

/// Holds the answers of the target's instances against what the generator counted: each instance
/// serves, and together they gave every answer. `complete` and `sent` differ by requests that failed,
/// of which nobody knows whether they were answered.
pub(crate) fn judge(
    shares: &[Shares],
    target: &str,
    (complete, sent): (u64, u64),
) -> Option<Result<ProofSeen, Invalid>> {
    let shares = shares.iter().find(|it| it.system == target)?;
    let answers: Vec<String> = shares
        .instances
        .iter()
        .map(|it| it.answers.to_string())
        .collect();
    let sum: u64 = shares.instances.iter().map(|it| it.answers).sum();
    let idle = shares.instances.iter().find(|it| it.answers == 0);
    let is_telling = complete >= REQUESTS_TELLING * shares.instances.len() as u64;
    let seen = format!("{} = {sum} answers to {sent} requests", answers.join(" + "));
    let wrong = if !(complete..=sent).contains(&sum) {
        Some("expected as many answers as the generator got".to_owned())
    } else {
        idle.filter(|_| is_telling)
            .map(|it| format!("expected every instance to serve, `{}` did not", it.name))
    };
    Some(match wrong {
        None => Ok(ProofSeen {
            proof: PROOF.to_owned(),
            seen,
        }),
        Some(expected) => Err(Invalid::new(
            InvalidKind::NotProven,
            format!("did not do the work: {PROOF}: {expected}; saw {seen}"),
        )),
    })
}

/// What several processes have used together; nothing where one of them is gone.
pub(super) fn together(usages: &[Option<Usage>]) -> Option<Usage> {
    let mut usages = usages.iter().cloned();
    let first = usages.next()??;
    usages.try_fold(first, |sum, usage| Some(plus(sum, &usage?)))
}

fn plus(one: Usage, other: &Usage) -> Usage {
    fn sum<T>(one: Option<T>, other: Option<T>, add: fn(T, T) -> T) -> Option<T> {
        Some(add(one?, other?))
    }
    Usage {
        cpu: one.cpu + other.cpu,
        memory_peak: sum(one.memory_peak, other.memory_peak, u64::saturating_add),
        memory_now: sum(one.memory_now, other.memory_now, u64::saturating_add),
        memory_charged_peak: sum(
            one.memory_charged_peak,
            other.memory_charged_peak,
            u64::saturating_add,
        ),
        throttled: sum(one.throttled, other.throttled, Throttled::plus),
        context_switches: sum(
            one.context_switches,
            other.context_switches,
            |one, other| ContextSwitches {
                voluntary: one.voluntary + other.voluntary,
                involuntary: one.involuntary + other.involuntary,
            },
        ),
        waited_for_cpu: sum(one.waited_for_cpu, other.waited_for_cpu, |one, other| {
            one + other
        }),
        source: one.source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(counts: &[u64]) -> Tally {
        let instance = |(number, count): (u32, &u64)| Instance {
            name: format!("limiter-{number}"),
            answers: *count,
            cpu: Some(Duration::from_micros(count * 30)),
        };
        Tally {
            system: "limiter".to_owned(),
            instances: (1..).zip(counts).map(instance).collect(),
        }
    }

    fn words(counts: &[u64], complete: u64, sent: u64) -> String {
        let before = vec![tally(&vec![5; counts.len()])];
        let after: Vec<u64> = counts.iter().map(|count| count + 5).collect();
        let shares = between(&before, &[tally(&after)]);
        assert_eq!(shares[0].instances[0].cpu_us, Some(counts[0] * 30));
        match judge(&shares, "limiter", (complete, sent)).unwrap() {
            Ok(seen) => seen.seen,
            Err(invalid) => invalid.reason,
        }
    }

    #[test]
    fn the_answers_of_all_instances_sum_up() {
        insta::assert_snapshot!(words(&[20, 21], 41, 41), @"20 + 21 = 41 answers to 41 requests");
        // One failed, and nobody knows whether it was answered.
        insta::assert_snapshot!(words(&[20, 21], 40, 41), @"20 + 21 = 41 answers to 41 requests");
        insta::assert_snapshot!(words(&[20, 20], 41, 41), @"did not do the work: requests by instance: expected as many answers as the generator got; saw 20 + 20 = 40 answers to 41 requests");
        insta::assert_snapshot!(words(&[21, 21], 41, 41), @"did not do the work: requests by instance: expected as many answers as the generator got; saw 21 + 21 = 42 answers to 41 requests");
    }

    #[test]
    fn an_instance_without_a_request_is_named_when_there_were_enough() {
        insta::assert_snapshot!(words(&[20, 0], 20, 20), @"did not do the work: requests by instance: expected every instance to serve, `limiter-2` did not; saw 20 + 0 = 20 answers to 20 requests");
        insta::assert_snapshot!(words(&[19, 0], 19, 19), @"19 + 0 = 19 answers to 19 requests");
    }

    #[test]
    fn other_systems_are_counted_and_not_judged() {
        let shares = between(&[tally(&[0])], &[tally(&[7])]);
        assert!(judge(&shares, "gateway", (1, 1)).is_none());
    }

    #[test]
    fn what_instances_used_is_summed_and_one_that_is_gone_makes_it_unknown() {
        let usage = |cpu: u64, memory: Option<u64>| Usage {
            cpu: Duration::from_millis(cpu),
            memory_peak: memory,
            memory_now: None,
            memory_charged_peak: None,
            throttled: None,
            context_switches: None,
            waited_for_cpu: None,
            source: rig::Source::CgroupV1,
        };
        let sum = together(&[Some(usage(2, Some(10))), Some(usage(3, Some(20)))]).unwrap();
        assert_eq!(sum.cpu, Duration::from_millis(5));
        assert_eq!(sum.memory_peak, Some(30));
        assert_eq!(together(&[Some(usage(2, None)), None]), None);
        assert_eq!(together(&[]), None);
    }
}
