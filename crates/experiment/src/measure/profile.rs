//! Sampled rounds for flamegraphs. They follow all other rounds, so that the sampler disturbs no measurement.
//! They do not count.

mod draw;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lab::{Setup, Text};
use load::Job;
use model::InvalidKind;
use recording::Profile;
use report::flame::{self, Stacks};
use rig::Rig;

use super::Experiment;
use super::candidate::Candidate;
use super::running::{Running, root_cause};
use super::session::load_failed;
use super::variant_run::VariantRun;
use crate::environment;
use crate::invalid::Invalid;
use crate::perf::{Perf, RATE_HZ, Sampling};
use crate::record;
use crate::systems::{SystemProcesses, UsageReading};
use draw::draw;

/// The folder of the flamegraphs, inside the recording's folder.
const FOLDER: &str = "flamegraphs";

/// Maximum number of functions in the recording.
const HOTTEST: usize = 50;

/// Minimum length of a sampled round, for enough samples.
const SHORTEST: Duration = Duration::from_secs(3);
/// Maximum length of a sampled round. More samples add no information.
const LONGEST: Duration = Duration::from_secs(10);

/// Above this share of samples without a name, the profile explains how to get names.
const NAMELESS_MAX: f64 = 0.3;

/// Variables that make just-in-time compilers export function names. They slow programs down a little, which
/// is one more reason why these rounds do not count.
const NAMING: [(&str, &str); 2] = [
    (
        "NODE_OPTIONS",
        "--perf-basic-prof --interpreted-frames-native-stack",
    ),
    (
        "JAVA_TOOL_OPTIONS",
        "-XX:+PreserveFramePointer -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit",
    ),
];

/// The samples of one system.
struct Sampled {
    profile: Profile,
    stacks: Stacks,
}

/// One system during sampling.
struct Attached {
    system: String,
    sampling: Result<Sampling, String>,
}

/// One system after its sampled load.
struct Seen {
    system: String,
    cpu_us_per_request: Option<f64>,
    /// The file with the samples, or the reason why it is missing.
    data: Result<PathBuf, String>,
}

/// A candidate's sampled round.
struct SampledRound<'t> {
    perf: &'t Perf,
    run: VariantRun<'t>,
    rig: &'t mut Rig,
    /// Distinguishes its files from the files of other candidates.
    number: usize,
}

impl Experiment<'_> {
    /// Samples every system of every variant that still has a number, and draws their flamegraphs into
    /// `folder`.
    pub(super) fn profile(&mut self, folder: &Path) -> Vec<Profile> {
        let scratch = folder.join(FOLDER);
        let perf = Perf::find(&scratch);
        if let Err(reason) = &perf {
            let line = format!("no flamegraphs: {reason}");
            self.session.progress.note(&line);
        }
        let mut sampled: Vec<Sampled> = Vec::new();
        for (number, id) in self.candidates.ids().enumerate() {
            if self.session.stop.is_asked() {
                break;
            }
            let candidate = self.candidates.get(id);
            // A candidate without a number has no result to explain.
            if candidate.invalid().is_some() || !candidate.is_proven() {
                continue;
            }
            // All candidates get the same arrivals, so that their profiles can be compared.
            let seed = self.rounds.arrival_seed_after();
            let found = match &perf {
                Ok(perf) => SampledRound {
                    perf,
                    run: VariantRun::of_flamegraph(&self.session, candidate, seed),
                    rig: &mut self.rig,
                    number,
                }
                .carry_out(),
                Err(reason) => Err(Invalid::new(InvalidKind::NotReady, reason.clone())),
            };
            sampled.extend(found.unwrap_or_else(|invalid| unsampled(candidate, &invalid.reason)));
            let line = format!("sampled `{}`", candidate.name());
            self.session.progress.note(&line);
        }
        let profiles = draw(&sampled, folder);
        tidy(&scratch);
        profiles
    }
}

impl SampledRound<'_> {
    fn carry_out(self) -> Result<Vec<Sampled>, Invalid> {
        let candidate = self.run.candidate;
        let setups: Vec<Setup> = candidate.variant.systems().iter().map(named).collect();
        let mut running = self.run.start_as(self.rig, &setups)?;
        // Read before the stop. The process ids locate the files with function names.
        let processes = running.systems.processes(self.rig);
        let seen = self.load(&mut running);
        let ended = running.ended(self.rig);
        // Stopped before the samples are read, because some programs write their names only at exit.
        running.stop(self.rig);
        let seen = seen.map_err(|symptom| root_cause(ended, symptom))?;
        let found = seen
            .into_iter()
            .map(|seen| seen.folded(candidate.name(), self.perf))
            .collect();
        forget_names(&processes);
        Ok(found)
    }

    /// Sends the load while all systems are sampled.
    fn load(&self, running: &mut Running) -> Result<Vec<Seen>, Invalid> {
        let run = self.run;
        run.prove_once(running)?;
        let job = run.job(running);
        let job = Job {
            load: of_length(&job.load),
            ..job
        };
        run.warm_up(&job)?;
        let attached = self.attach(running);
        // Read after the samplers have started, so that their start is excluded.
        let before = running.systems.usage(self.rig);
        let session = run.session;
        let loaded = session.progress.during(&run.label(), |live| {
            load::run(&job, live, session.stop.flag())
        });
        let after = running.systems.usage(self.rig);
        // Finishes every sampler, even if the load failed.
        let finished: Vec<(String, Result<PathBuf, String>)> = attached
            .into_iter()
            .map(|one| (one.system, one.sampling.and_then(Sampling::finish)))
            .collect();
        let loaded = loaded.map_err(|error| load_failed(&error))?;
        if let Some(reason) = record::wrong_in(&loaded) {
            return Err(Invalid::new(InvalidKind::Mismatched, reason));
        }
        let completed = loaded.outcomes.passed;
        let used = cpu_between(&before, &after);
        let seen = finished.into_iter().map(|(system, data)| Seen {
            cpu_us_per_request: used
                // Figures are per request, so a load without a complete response has no figures.
                .get(&system)
                .filter(|_| completed > 0)
                .map(|used| used.as_secs_f64() * 1e6 / completed as f64),
            system,
            data,
        });
        Ok(seen.collect())
    }

    /// Samples every system. Returns after all samplers have started.
    fn attach(&self, running: &Running) -> Vec<Attached> {
        // Read after the warm-up, because servers have started their workers then.
        let processes = running.systems.processes(self.rig);
        let attach = |one: &SystemProcesses| {
            let file = recording::file_name(&format!("{}-{}", self.number, one.system));
            Attached {
                system: one.system.clone(),
                sampling: self.perf.attach(&one.pids, &file),
            }
        };
        // All samplers are started before `weigh` waits for the first, because each takes a while to start.
        let mut attached: Vec<Attached> = processes.iter().map(attach).collect();
        for one in &mut attached {
            if let Ok(sampling) = &mut one.sampling {
                sampling.wait();
            }
        }
        attached
    }
}

impl Seen {
    fn folded(self, variant: &str, perf: &Perf) -> Sampled {
        let script = self.data.and_then(|data| {
            let script = Perf::script(&data);
            // The file is large, and useless without the programs' maps, which are gone.
            let _ = fs::remove_file(data);
            script
        });
        let stacks = match script {
            Ok(script) => flame::stacks(&script),
            Err(reason) => {
                return Sampled {
                    profile: empty(variant, &self.system, &reason),
                    stacks: Stacks::default(),
                };
            }
        };
        let mut missing: Vec<String> = perf.blind_spot().map(str::to_owned).into_iter().collect();
        if stacks.samples() == 0 {
            // An idle system is not a mistake, but an empty flamegraph would look like a mistake.
            missing.push("no sample found the system at work".to_owned());
        } else if stacks.nameless_share() > NAMELESS_MAX {
            missing.push(format!(
                "{:.0} % of the samples are in code without names. Build the system with symbols \
                 (`strip = false`, `debug = \"line-tables-only\"`) and frame pointers (`-C \
                 force-frame-pointers=yes`, `-fno-omit-frame-pointer`)",
                stacks.nameless_share() * 100.0
            ));
        }
        Sampled {
            profile: Profile {
                samples: stacks.samples(),
                rate_hz: RATE_HZ,
                cpu_us_per_request: self.cpu_us_per_request,
                hottest: stacks.hottest(HOTTEST),
                missing: (!missing.is_empty()).then(|| missing.join("; ")),
                ..empty(variant, &self.system, "")
            },
            stacks,
        }
    }
}

/// Every system of a candidate, with the reason why it was not sampled.
fn unsampled(candidate: &Candidate<'_>, reason: &str) -> Vec<Sampled> {
    let setups = candidate.variant.systems().iter();
    setups
        .map(|setup| Sampled {
            profile: empty(candidate.name(), &setup.system, reason),
            stacks: Stacks::default(),
        })
        .collect()
}

fn empty(variant: &str, system: &str, missing: &str) -> Profile {
    Profile {
        variant: variant.to_owned(),
        system: system.to_owned(),
        samples: 0,
        rate_hz: RATE_HZ,
        cpu_us_per_request: None,
        hottest: Vec::new(),
        files: Vec::new(),
        missing: Some(missing.to_owned()),
    }
}

/// A setup with variables that make its program export the names of functions compiled at run time.
pub(super) fn named(setup: &Setup) -> Setup {
    let mut setup = setup.clone();
    for (variable, flags) in NAMING {
        append(&mut setup, variable, flags, ' ');
    }
    setup
}

/// Adds flags to the value of a variable.
pub(super) fn append(setup: &mut Setup, variable: &str, flags: &str, separator: char) {
    match setup.env.iter_mut().find(|(name, _)| name == variable) {
        Some((_, value)) => *value = value.followed_by(&format!("{separator}{flags}")),
        None => {
            // The system would inherit this variable. The new value keeps the inherited text.
            let inherited = environment::inherited(variable).unwrap_or_default();
            let text = format!("{inherited}{separator}{flags}");
            let value = Text::default().followed_by(text.trim_start_matches(separator));
            setup.env.push((variable.to_owned(), value));
        }
    }
}

/// Returns the load with the length of a sampled round.
fn of_length(load: &model::Load) -> model::Load {
    match load {
        model::Load::Closed { connections, stop } => model::Load::Closed {
            connections: *connections,
            stop: model::Stop {
                requests: None,
                duration: Some(stop.duration.unwrap_or(SHORTEST).clamp(SHORTEST, LONGEST)),
            },
        },
        // The rate determines the work of the systems, so an open loop stays unchanged.
        open @ model::Load::Open { .. } => open.clone(),
    }
}

/// Processor time of each system between two readings.
fn cpu_between(before: &[UsageReading], after: &[UsageReading]) -> BTreeMap<String, Duration> {
    let pairs = before.iter().zip(after);
    pairs
        .filter_map(|(before, after)| {
            let (before_cpu, after_cpu) = (before.usage.as_ref()?.cpu, after.usage.as_ref()?.cpu);
            // A lower value means that a process has ended and its time is lost.
            Some((after.system.clone(), after_cpu.checked_sub(before_cpu)?))
        })
        .collect()
}

/// Deletes the files with function names that our systems left in `/tmp`.
pub(super) fn forget_names(systems: &[SystemProcesses]) {
    for pid in systems.iter().flat_map(|system| &system.pids) {
        // Most programs have no such file.
        let _ = fs::remove_file(format!("/tmp/perf-{pid}.map"));
    }
}

/// Deletes the output of `perf`. It is only useful if sampling failed.
pub(super) fn tidy(scratch: &Path) {
    for entry in fs::read_dir(scratch).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_scratch = path.extension().is_some_and(|end| {
            ["data", "log", "old", "fifo"]
                .iter()
                .any(|known| end == *known)
        });
        if is_scratch {
            let _ = fs::remove_file(path);
        }
    }
    // Succeeds only if the folder is empty.
    let _ = fs::remove_dir(scratch);
}
