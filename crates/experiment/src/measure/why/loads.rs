//! The samplers of one load, and its length.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use model::Load;
use recording::{WaitKind, float};
use report::flame::{self, Stacks};

use super::super::variant_run::at_constant_rate;
use super::source_of_waits;
use crate::perf::{Perf, Sampling};
use crate::systems::SystemProcesses;
use crate::waits::{Episodes, WaitSampler, WaitTimes};

/// Minimum length of a load, for enough samples.
const SHORTEST: Duration = Duration::from_millis(500);
/// Maximum length of a load. A round has two loads of each variant.
const LONGEST: Duration = Duration::from_secs(2);

/// The samplers of all systems of a variant.
pub(super) struct Samplers {
    systems: Vec<Attached>,
    waits: WaitSampler,
    period: u64,
    source: String,
}

struct Attached {
    system: String,
    /// `None` without `perf`.
    stacks: Option<Result<Sampling, String>>,
    /// `None` if the scheduler cannot be traced.
    switches: Option<Result<Sampling, String>>,
    has_processes: bool,
}

/// A file of `perf`, or the reason why it is missing. `None` without `perf`.
type Data = Option<Result<PathBuf, String>>;

/// The permitted samplers of `perf`.
#[derive(Clone, Copy)]
pub(super) struct Tools<'p> {
    /// `None` if it cannot sample.
    pub(super) perf: Option<&'p Perf>,
    /// True if it may trace the scheduler.
    pub(super) traces: bool,
    /// The traces contain each switch of this number.
    pub(super) period: u64,
}

/// The finished samplers of all systems.
pub(super) struct Finished {
    systems: Vec<(Attached, [Data; 2])>,
    period: u64,
    waits: Vec<Episodes>,
    source: String,
}

/// The samples of one system from one load.
pub(super) struct Taken {
    pub(super) system: String,
    stacks: Data,
    switches: Data,
    slowest: Duration,
    period: u64,
    pub(super) waits: WaitTimes,
    has_processes: bool,
    pub(super) source: String,
}

impl Samplers {
    /// Starts all samplers. Returns after all have started. `name` makes the name of a file from the name of
    /// a system.
    pub(super) fn start(
        tools: Tools<'_>,
        processes: &[SystemProcesses],
        name: impl Fn(&str) -> String,
        seed: u64,
    ) -> Samplers {
        let attach = |one: &SystemProcesses| {
            let perf = tools.perf.filter(|_| !one.pids.is_empty());
            let traced = perf.filter(|_| tools.traces);
            let file = name(&one.system);
            Attached {
                system: one.system.clone(),
                stacks: perf.map(|perf| perf.attach(&one.pids, &file)),
                switches: traced.map(|perf| {
                    perf.trace_switches(&one.pids, tools.period, &format!("{file}-switches"))
                }),
                has_processes: !one.pids.is_empty(),
            }
        };
        // All samplers are started before `weigh` waits for the first, because each takes a while to start.
        let mut systems: Vec<Attached> = processes.iter().map(attach).collect();
        let both = systems.iter_mut();
        let started = both.flat_map(|one| [&mut one.stacks, &mut one.switches]);
        for sampling in started.flatten().flatten() {
            sampling.wait();
        }
        let watched = processes.iter().map(|one| one.pids.clone());
        Samplers {
            systems,
            waits: WaitSampler::start(watched.collect(), seed),
            period: tools.period,
            source: source_of_waits(processes),
        }
    }

    /// Ends all samplers.
    pub(super) fn finish(self) -> Finished {
        let waits = self.waits.finish();
        let end = |mut one: Attached| {
            let both = [one.stacks.take(), one.switches.take()];
            let finish = |one: Option<Result<Sampling, String>>| {
                one.map(|sampling| sampling.and_then(Sampling::finish))
            };
            (one, both.map(finish))
        };
        Finished {
            systems: self.systems.into_iter().map(end).collect(),
            waits,
            period: self.period,
            source: self.source,
        }
    }
}

impl Finished {
    /// The samples, with the waits that a response of at most this latency can contain.
    pub(super) fn within(self, slowest: Duration) -> Vec<Taken> {
        let both = self.systems.into_iter().zip(&self.waits);
        both.map(|((attached, [stacks, switches]), waits)| Taken {
            system: attached.system,
            stacks,
            switches,
            slowest,
            period: self.period,
            waits: waits.within(slowest),
            has_processes: attached.has_processes,
            source: self.source.clone(),
        })
        .collect()
    }
}

impl Taken {
    /// The stacks on a core, or the reason why they are missing. `None` without `perf`.
    pub(super) fn stacks(&mut self) -> Option<Result<Stacks, String>> {
        if !self.has_processes {
            let reason = "its processes are not known. `attach` names the process of a system that runs \
                          already (`weigh ab --attach-a PID`)";
            return Some(Err(reason.to_owned()));
        }
        let data = self.stacks.take()?;
        Some(data.and_then(|data| {
            let script = Perf::script(&data);
            // The file is large, and useless without the programs' maps, which are gone.
            let _ = fs::remove_file(data);
            script.map(|script| flame::stacks(&script))
        }))
    }

    /// The time of blocked stacks in microseconds, or the reason why it is missing. `None` without traces.
    pub(super) fn blocked(&mut self) -> Option<Result<BTreeMap<String, f64>, String>> {
        let data = self.switches.take()?;
        Some(data.and_then(|data| {
            let script = Perf::script_of_switches(&data);
            // The file is large.
            let _ = fs::remove_file(data);
            let times = flame::blocked(&script?, self.slowest.as_secs_f64());
            let weight = 1e6 * float(self.period);
            let times = times.into_iter();
            Ok(times.map(|(stack, s)| (stack, s * weight)).collect())
        }))
    }

    /// The time of waits by kind and stack.
    pub(super) fn waits(&self) -> impl Iterator<Item = (WaitKind, &str, u64)> {
        let waits = self.waits.by_stack.iter();
        waits.map(|((kind, stack), us)| (*kind, stack.as_str(), *us))
    }
}

/// The number of switches per traced switch, so that a quick load does not fill the memory with stacks.
pub(super) fn period(load: &Load) -> u64 {
    /// A load with at most this many requests per second has all its switches traced.
    const RATE_TRACED: f64 = 500.0;
    match load {
        // The rate is not known before. A closed loop is usually quick.
        Load::Closed { .. } => 20,
        Load::Open { phases, .. } => {
            let rates = phases.iter().map(|phase| phase.from.per_second());
            let rate = rates.fold(1.0, f64::max);
            let mut period = 1;
            while rate / float(period) > RATE_TRACED {
                period += 1;
            }
            period
        }
    }
}

/// Returns the load with the length of a load of `--why`.
pub(super) fn of_length(load: &Load) -> Load {
    let whole = load.duration().unwrap_or(LONGEST);
    at_constant_rate(load, whole.clamp(SHORTEST, LONGEST))
}

#[cfg(test)]
mod tests {
    use model::{Arrival, Phase, Rate, Stop};

    use super::*;

    #[test]
    fn a_load_keeps_its_rate_and_gets_a_length_between_the_limits() {
        let rate = Rate::new(200.0).unwrap();
        let open = |length: Duration| Load::Open {
            phases: vec![Phase::constant(length, rate)],
            arrival: Arrival::Uniform,
            connections_max: 8,
            requests_max: None,
        };
        let long = Duration::from_secs(30);
        assert_eq!(of_length(&open(long)), open(LONGEST));
        assert_eq!(of_length(&open(Duration::from_millis(3))), open(SHORTEST));
        let closed = |requests, duration| Load::Closed {
            connections: 2,
            stop: Stop { requests, duration },
        };
        assert_eq!(
            of_length(&closed(Some(10), None)),
            closed(None, Some(LONGEST))
        );
    }
}
