//! Rounds of `--why`. They follow all other rounds and do not count.
//!
//! Each round starts each variant and sends two equal loads: one without samplers and one with them. The
//! difference between the two is the cost of `--why`. The order of the two changes from round to round.

mod gathered;
mod loads;

use std::path::Path;
use std::time::Duration;

use lab::Setup;
use load::{Job, Measurement};
use model::InvalidKind;
use recording::{WhyLoad, WhyPair, WhyRecord, WhyUse};
use rig::Rig;

use super::Experiment;
use super::profile::{append, forget_names, named, tidy};
use super::running::{Running, root_cause};
use super::session::load_failed;
use super::variant_run::VariantRun;
use crate::connections::OpenedConnections;
use crate::environment::instant;
use crate::invalid::Invalid;
use crate::perf::{Perf, RATE_HZ};
use crate::record;
use crate::runtimes::{self, Counters};
use crate::systems::{SystemProcesses, UsageReading};
use crate::waits::{self, WaitTimes};
use gathered::Gathered;
use loads::{Samplers, Taken, Tools, of_length, period};

/// Number of rounds. Six pairs are the fewest that have an interval.
const ROUNDS: u32 = 6;

/// The folder for the files of samplers, inside the recording's folder.
const FOLDER: &str = "why";

/// One start of one variant.
struct WhyRound<'t> {
    tools: Tools<'t>,
    run: VariantRun<'t>,
    rig: &'t mut Rig,
    round: u32,
}

/// The samples of one start.
struct Found {
    pair: WhyPair,
    taken: Vec<Taken>,
    /// The counters of runtimes in both loads, by system.
    runtimes: Vec<(String, Counters)>,
}

/// One load with the counters of its systems.
struct Loaded {
    measurement: Measurement,
    /// The counters before the load and with its last response.
    usage: [Vec<UsageReading>; 2],
    connections_of_systems: Option<u64>,
    /// The counters of the runtime of each system.
    runtimes: Vec<(String, Counters)>,
}

impl Experiment<'_> {
    /// Samples every variant that still has a number.
    pub(super) fn ask_why(&mut self, folder: &Path) -> WhyRecord {
        let began = instant();
        let scratch = folder.join(FOLDER);
        let perf = Perf::find(&scratch);
        let mut gathered = Gathered::default();
        gathered.say(source_of_stacks(&perf));
        let refusal = perf.as_ref().ok().and_then(Perf::refuses_switches);
        let tools = Tools {
            traces: perf.is_ok() && refusal.is_none(),
            perf: perf.as_ref().ok(),
            period: period(&self.session.load),
        };
        gathered.say(source_of_switches(tools, refusal));
        for round in 0..ROUNDS {
            for id in self.candidates.ids() {
                let candidate = self.candidates.get(id);
                let is_left = candidate.invalid().is_none() && candidate.is_proven();
                if self.session.stop.is_asked() || !is_left {
                    continue;
                }
                // All variants of a round get the same arrivals.
                let seed = self.rounds.arrival_seed_after().wrapping_add(round.into());
                let found = WhyRound {
                    tools,
                    run: VariantRun::of_why(&self.session, candidate, seed),
                    rig: &mut self.rig,
                    round,
                }
                .carry_out(&mut gathered);
                if let Err(invalid) = found {
                    let name = candidate.name();
                    gathered.say(format!("`{name}` could not be sampled: {}", invalid.reason));
                }
            }
            let line = format!("looked for causes, round {} of {ROUNDS}", round + 1);
            self.session.progress.note(&line);
        }
        tidy(&scratch);
        let took = instant().duration_since(began).as_secs();
        gathered.say(format!("The extra rounds took {took} s."));
        gathered.record()
    }
}

/// A setup with variables that make runtimes export the names of functions, and report their collections.
fn traced(setup: &Setup) -> Setup {
    let mut setup = named(setup);
    let (variable, flags, separator) = runtimes::GO;
    append(&mut setup, variable, flags, separator);
    setup
}

/// A sentence about the source of stacks.
fn source_of_stacks(perf: &Result<Perf, String>) -> String {
    match perf {
        Err(reason) => format!("There are no stacks of functions: {reason}."),
        Ok(perf) => {
            let limit = perf
                .blind_spot()
                .map_or_else(String::new, |limit| format!(" In it, {limit}."));
            format!("Functions: `perf` took {RATE_HZ} stacks per second of processor time.{limit}")
        }
    }
}

/// A sentence about the source of the functions that wait.
fn source_of_switches(tools: Tools<'_>, refusal: Option<String>) -> String {
    if tools.traces {
        return match tools.period {
            1 => "Functions that wait: `perf` traced every switch of the scheduler.".to_owned(),
            period => format!(
                "Functions that wait: `perf` traced one of {period} switches of the scheduler."
            ),
        };
    }
    let reason = refusal.unwrap_or_else(|| "`perf` cannot sample".to_owned());
    format!(
        "Functions that wait are unknown, because the scheduler cannot be traced ({reason}). Run as root \
         with a mounted tracefs."
    )
}

impl WhyRound<'_> {
    fn carry_out(self, gathered: &mut Gathered) -> Result<(), Invalid> {
        let candidate = self.run.candidate;
        let setups: Vec<Setup> = candidate.variant.systems().iter().map(traced).collect();
        let mut running = self.run.start_as(self.rig, &setups)?;
        let own = running.systems.processes(self.rig);
        let found = self.pair(&mut running);
        let ended = running.ended(self.rig);
        // Stopped before the samples are read, because some programs write their names only at exit.
        running.stop(self.rig);
        let found = found.map_err(|symptom| root_cause(ended, symptom))?;
        gathered.add(found);
        // Only programs that this run has started. The maps of others belong to others.
        forget_names(&own);
        Ok(())
    }

    /// Sends the two loads of one start.
    fn pair(&self, running: &mut Running) -> Result<Found, Invalid> {
        let run = self.run;
        run.prove_once(running)?;
        run.settle_once(running)?;
        let job = run.job(running);
        let job = Job {
            load: of_length(&job.load),
            ..job
        };
        run.warm_up(&job)?;
        let processes = running.systems.processes_watched(self.rig);
        let sampled_first = self.round % 2 == 1;
        let early = match sampled_first {
            true => None,
            false => Some(self.load(running, &job, &processes)?),
        };
        let samplers = self.samplers(&processes);
        let loaded = self.load(running, &job, &processes);
        // Finishes every sampler, even if the load failed.
        let taken = samplers.finish();
        let loaded = loaded?;
        let slowest = loaded.measurement.latency.max_ns().unwrap_or(0);
        let taken = taken.within(Duration::from_nanos(slowest));
        let plain = match early {
            Some(early) => early,
            None => self.load(running, &job, &processes)?,
        };
        let waits: Vec<(&str, &WaitTimes)> = taken
            .iter()
            .map(|one| (one.system.as_str(), &one.waits))
            .collect();
        Ok(Found {
            pair: WhyPair {
                variant: run.candidate.name().to_owned(),
                round: self.round,
                sampled_first,
                plain: plain.record(&[]),
                sampled: loaded.record(&waits),
            },
            runtimes: [plain.runtimes, loaded.runtimes].concat(),
            taken,
        })
    }

    /// Starts the samplers of all systems.
    fn samplers(&self, processes: &[SystemProcesses]) -> Samplers {
        let name = |system: &str| {
            let number = self.round;
            recording::file_name(&format!("{number}-{}-{system}", self.run.candidate.name()))
        };
        Samplers::start(self.tools, processes, name, self.run.session.seed)
    }

    /// Sends one load.
    fn load(
        &self,
        running: &Running,
        job: &Job,
        processes: &[SystemProcesses],
    ) -> Result<Loaded, Invalid> {
        let session = self.run.session;
        session.go_on()?;
        let pids: Vec<i32> = processes.iter().flat_map(|one| one.pids.clone()).collect();
        let opened = OpenedConnections::read(&pids);
        let before = running.systems.usage(self.rig);
        let counters: Vec<Counters> = processes.iter().map(runtimes::read).collect();
        let look = || {
            (
                running.systems.usage(self.rig),
                OpenedConnections::read(&pids),
            )
        };
        let sent = session.progress.during(&self.run.label(), |live| {
            load::run_and_look(job, live, session.stop.flag(), look)
        });
        let (measurement, (after, opened_after)) = sent.map_err(|error| load_failed(&error))?;
        if measurement.interrupted {
            return Err(Invalid::interrupted());
        }
        if let Some(reason) = record::wrong_in(&measurement) {
            return Err(Invalid::new(InvalidKind::Mismatched, reason));
        }
        let of_generator = measurement.connect.len();
        let both = processes.iter().zip(&counters);
        let grown = both.map(|(one, before)| {
            let grown = runtimes::since(before, &runtimes::read(one));
            (one.system.clone(), grown)
        });
        Ok(Loaded {
            connections_of_systems: opened_after.since(&opened, of_generator),
            runtimes: grown.collect(),
            measurement,
            usage: [before, after],
        })
    }
}

impl Loaded {
    /// The record of the load. `waits` is empty without samplers.
    fn record(&self, waits: &[(&str, &WaitTimes)]) -> WhyLoad {
        let [before, after] = &self.usage;
        let systems = before.iter().zip(after).map(|(before, after)| {
            let used = before.usage.as_ref().zip(after.usage.as_ref());
            let used = used.map(|(before, after)| record::usage("", before, after));
            let own = waits.iter().find(|(system, _)| *system == after.system);
            WhyUse {
                name: after.system.clone(),
                cpu_us: used.and_then(|used| used.cpu_us),
                waits_us: own.map_or_else(Default::default, |(_, waits)| waits.by_kind.clone()),
            }
        });
        WhyLoad {
            answered: self.measurement.latency.len(),
            elapsed_us: model::micros(self.measurement.elapsed),
            latency_us_mean: self.measurement.latency.mean_ns().unwrap_or(0.0) / 1e3,
            connections: self.measurement.connect.len(),
            connections_of_systems: self.connections_of_systems,
            systems: systems.collect(),
        }
    }
}

/// A sentence about the source of waits.
fn source_of_waits(processes: &[SystemProcesses]) -> String {
    let first = processes.iter().flat_map(|one| &one.pids).next();
    let refused = first.and_then(|pid| waits::refusal(*pid));
    match refused {
        None => "Waits: `/proc/PID/task/TID/syscall` of every thread, about 100 times a second. It shows the \
                 system call that blocks, and no function of the program. A wait in user space, such as a \
                 lock of goroutines, looks like a wait for another thread or for input."
            .to_owned(),
        Some(reason) => format!(
            "Waits: only the kernel's function in `wchan`, because the system call cannot be read ({reason}). \
             A lock then looks like a wait for another thread. Run as root to see the difference."
        ),
    }
}
