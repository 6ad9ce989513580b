//! The work of each instance behind a balancer. The balancer counts the responses, and the rig reads the
//! processor time.

use std::time::Duration;

use model::{InvalidKind, Throttled, micros};
use recording::InstanceUsage;
use rig::{ContextSwitches, Rig, Usage};

use super::balancer::answered;
use super::{BalancedSystem, RunningSystems};
use crate::invalid::Invalid;

/// The instances of one system at one moment.
pub(crate) struct Tally {
    system: String,
    instances: Vec<Instance>,
}

/// One instance at one moment.
struct Instance {
    name: String,
    /// Responses since its start.
    answers: u64,
    cpu: Option<Duration>,
}

/// The work of the instances of one system between two moments.
pub(crate) struct Shares {
    pub(crate) system: String,
    pub(crate) instances: Vec<InstanceUsage>,
}

impl RunningSystems {
    /// Reads the instances of every system behind a balancer.
    ///
    /// # Errors
    ///
    /// When a balancer does not return its counts.
    pub(crate) fn tallies(&self, rig: &Rig) -> Result<Vec<Tally>, Invalid> {
        let mut tallies = Vec::new();
        for running in &self.running {
            let Some(BalancedSystem { system, statistics }) = &running.balances else {
                continue;
            };
            let answered = answered(*statistics).map_err(|error| {
                let reason = format!(
                    "`{}` does not report its counts: {error}",
                    running.process.name()
                );
                Invalid::new(InvalidKind::NotProven, reason)
            })?;
            let with_cpu = answered.into_iter().map(|one| {
                let process = self
                    .running
                    .iter()
                    .find(|it| it.process.name() == one.instance);
                // An instance that has ended cannot be read. The proof detects its missing responses.
                let usage = process.and_then(|it| it.process.usage(rig));
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

/// The differences between two readings of the same systems.
pub(crate) fn between(before: &[Tally], after: &[Tally]) -> Vec<Shares> {
    assert_eq!(
        before.len(),
        after.len(),
        "both readings are of the same balancers"
    );
    let shares = |(before, after): (&Tally, &Tally)| {
        assert_eq!(before.system, after.system, "balancers keep their order");
        // HAProxy lists the servers in the order of its configuration, which does not change.
        let pairs = before.instances.iter().zip(&after.instances);
        let usage = |(before, after): (&Instance, &Instance)| InstanceUsage {
            name: after.name.clone(),
            // The count is lower if the balancer was restarted. The responses are then missing, and the proof
            // fails.
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

/// The sum of the usage of several processes. `None` if one of them is gone.
pub(super) fn together(usages: &[Option<Usage>]) -> Option<Usage> {
    let mut usages = usages.iter().cloned();
    let first = usages.next()??;
    // A sum without one process would look like a system with a lower usage.
    usages.try_fold(first, |sum, usage| Some(plus(sum, &usage?)))
}

fn plus(one: Usage, other: &Usage) -> Usage {
    fn sum<T>(one: Option<T>, other: Option<T>, add: fn(T, T) -> T) -> Option<T> {
        Some(add(one?, other?))
    }
    Usage {
        cpu: one.cpu + other.cpu,
        cpu_kernel: sum(one.cpu_kernel, other.cpu_kernel, |one, other| one + other),
        memory_peak: sum(one.memory_peak, other.memory_peak, |one, other| one + other),
        memory_now: sum(one.memory_now, other.memory_now, |one, other| one + other),
        memory_charged_peak: sum(
            one.memory_charged_peak,
            other.memory_charged_peak,
            |one, other| one + other,
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

    #[test]
    fn shares_are_what_was_done_between_two_readings() {
        let shares = between(&[tally(&[5, 5])], &[tally(&[25, 26])]);
        let shown: Vec<(u64, Option<u64>)> = shares[0]
            .instances
            .iter()
            .map(|instance| (instance.answers, instance.cpu_us))
            .collect();
        assert_eq!(shown, [(20, Some(600)), (21, Some(630))]);
    }

    #[test]
    fn what_instances_used_is_summed_and_one_that_is_gone_makes_it_unknown() {
        let usage = |cpu: u64, memory: Option<u64>| Usage {
            cpu: Duration::from_millis(cpu),
            cpu_kernel: None,
            memory_peak: memory,
            memory_now: None,
            memory_charged_peak: None,
            throttled: None,
            context_switches: None,
            waited_for_cpu: None,
            source: rig::UsageSource::CgroupV1,
        };
        let sum = together(&[Some(usage(2, Some(10))), Some(usage(3, Some(20)))]).unwrap();
        assert_eq!(sum.cpu, Duration::from_millis(5));
        assert_eq!(sum.memory_peak, Some(30));
        assert_eq!(together(&[Some(usage(2, None)), None]), None);
        assert_eq!(together(&[]), None);
    }
}
