//! Rounds of their own in which systems are sampled: after all others, so that nothing that is
//! measured has a sampler beside it, and counted nowhere.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lab::{Setup, Text};
use load::Job;
use model::InvalidKind;
use report::flame::{self, Scale, Stacks};
use report::recording::Profile;
use rig::Usage;

use super::Experiment;
use crate::environment;
use crate::perf::{Perf, RATE_HZ, Sampling};
use crate::prove::Subject;
use crate::record;
use crate::stack::{Invalid, Stack};

/// The folder of drawings, in the recording's.
const FOLDER: &str = "flamegraphs";

/// Functions kept in the recording.
const HOTTEST: usize = 50;

/// A sampled round lasts at least and at most so long: enough samples, and no more.
const LENGTHS: (Duration, Duration) = (Duration::from_secs(3), Duration::from_secs(10));

/// Beyond this share of samples without a name, the profile says how to get names.
const NAMELESS_MAX: f64 = 0.3;

/// What makes programs that compile as they run tell the names of their functions. It slows them a
/// little, which is one more reason why these rounds do not count.
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

/// One system that was sampled.
struct Sampled {
    profile: Profile,
    stacks: Stacks,
}

impl Experiment<'_> {
    /// Samples every system of every variant that has a number so far, and draws where their time
    /// goes into `folder`.
    pub(super) fn profiles(&mut self, folder: &Path) -> Vec<Profile> {
        let scratch = folder.join(FOLDER);
        let perf = Perf::find(&scratch);
        if let Err(reason) = &perf {
            self.progress.note(&format!("no flamegraphs: {reason}"));
        }
        let mut sampled: Vec<Sampled> = Vec::new();
        for index in 0..self.candidates.len() {
            if self.stop.is_asked() {
                break;
            }
            let candidate = &self.candidates[index];
            if candidate.invalid.is_some() || candidate.proven.is_none() {
                continue;
            }
            let name = candidate.variant.name.clone();
            let found = match &perf {
                Ok(perf) => self.sampled_round(perf, index),
                Err(reason) => Err(Invalid::new(InvalidKind::NotReady, reason.clone())),
            };
            match found {
                Ok(found) => sampled.extend(found),
                Err(invalid) => sampled.extend(self.unsampled(index, &invalid.reason)),
            }
            self.progress.note(&format!("sampled {name}"));
        }
        let profiles = draw(&sampled, folder);
        tidy(&scratch);
        profiles
    }

    /// Every system of a variant, with why it was not sampled.
    fn unsampled(&self, index: usize, reason: &str) -> Vec<Sampled> {
        let candidate = &self.candidates[index];
        candidate
            .setups
            .iter()
            .map(|setup| Sampled {
                profile: empty(&candidate.variant.name, &setup.system, reason),
                stacks: Stacks::default(),
            })
            .collect()
    }

    fn sampled_round(&mut self, perf: &Perf, index: usize) -> Result<Vec<Sampled>, Invalid> {
        let plain = self.candidates[index].setups.clone();
        self.candidates[index].setups = plain.iter().map(named).collect();
        let started = self.start(index, "flamegraph");
        self.candidates[index].setups = plain;
        let stack = started?;
        let pids = stack.processes(&self.rig);
        let seen = self.sampled_load(perf, &stack, index);
        let ended = stack.ended(&mut self.rig);
        stack.stop(&mut self.rig);
        let seen = seen.map_err(|invalid| super::because(ended, invalid))?;
        let name = self.candidates[index].variant.name.clone();
        let found = seen
            .into_iter()
            .map(|one| one.folded(&name, perf))
            .collect();
        forget_names(&pids);
        Ok(found)
    }

    fn samplings(
        &self,
        perf: &Perf,
        stack: &Stack,
        index: usize,
    ) -> Vec<(String, Result<Sampling, String>)> {
        let attach = |(name, pids): (String, Vec<i32>)| {
            let file = record::file_name(&format!("{index}-{name}"));
            let sampling = perf.attach(&pids, &file);
            (name, sampling)
        };
        let systems = stack.processes(&self.rig);
        systems.into_iter().map(attach).collect()
    }

    fn sampled_load(
        &mut self,
        perf: &Perf,
        stack: &Stack,
        index: usize,
    ) -> Result<Vec<Seen>, Invalid> {
        let candidate = &self.candidates[index];
        let proven = candidate
            .proven
            .as_ref()
            .expect("only proven variants are sampled");
        proven.repeat(Subject {
            lab: self.lab,
            variant: candidate.variant,
            stack,
        })?;
        let job = self.job(stack.target(), candidate.variant, proven, self.rounds_begun);
        let job = Job {
            load: of_length(&job.load),
            ..job
        };
        let label = format!("sampling {}", self.candidates[index].variant.name);
        self.warm_up(&job, &label)?;
        let mut samplings = self.samplings(perf, stack, index);
        for sampling in samplings
            .iter_mut()
            .filter_map(|(_, one)| one.as_mut().ok())
        {
            sampling.wait();
        }
        let before = stack.usage(&self.rig);
        let loaded = self
            .progress
            .during(&label, |live| load::run(&job, live, self.stop.flag()));
        let after = stack.usage(&self.rig);
        let samplings: Vec<(String, Result<PathBuf, String>)> = samplings
            .into_iter()
            .map(|(name, sampling)| (name, sampling.and_then(Sampling::finish)))
            .collect();
        let loaded =
            loaded.map_err(|error| Invalid::new(InvalidKind::LoadFailed, error.to_string()))?;
        if let Some(reason) = record::wrong_in(&loaded) {
            return Err(Invalid::new(InvalidKind::Mismatched, reason));
        }
        let completed = loaded.outcomes.passed;
        let used = usage_between(&before, &after);
        Ok(samplings
            .into_iter()
            .map(|(system, data)| Seen {
                cpu_us_per_request: used
                    .get(&system)
                    .filter(|_| completed > 0)
                    .map(|used| used.as_secs_f64() * 1e6 / completed as f64),
                system,
                data,
            })
            .collect())
    }
}

/// One system after its sampled load.
struct Seen {
    system: String,
    cpu_us_per_request: Option<f64>,
    data: Result<PathBuf, String>,
}

impl Seen {
    fn folded(self, variant: &str, perf: &Perf) -> Sampled {
        let script = self.data.and_then(|data| {
            let script = Perf::script(&data);
            // Large, and of no use without the programs' maps, which are gone.
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
            missing.push("the system was never found at work".to_owned());
        } else if stacks.nameless_share() > NAMELESS_MAX {
            missing.push(format!(
                "{:.0} % of the samples are in code without names: build it with symbols \
                 (`strip = false`, `debug = \"line-tables-only\"`) and frame pointers \
                 (`-C force-frame-pointers=yes`, `-fno-omit-frame-pointer`)",
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

/// A setup whose program tells the names of what it compiles as it runs.
fn named(setup: &Setup) -> Setup {
    let mut setup = setup.clone();
    for (variable, flags) in NAMING {
        match setup.env.iter_mut().find(|(name, _)| name == variable) {
            Some((_, value)) => *value = value.followed_by(&format!(" {flags}")),
            None => {
                let inherited = environment::inherited(variable).unwrap_or_default();
                let text = format!("{inherited} {flags}");
                let value = Text::default().followed_by(text.trim_start());
                setup.env.push((variable.to_owned(), value));
            }
        }
    }
    setup
}

/// The same load for as long as sampling takes.
fn of_length(load: &model::Load) -> model::Load {
    let (least, most) = LENGTHS;
    match load {
        model::Load::Closed { connections, stop } => model::Load::Closed {
            connections: *connections,
            stop: model::Stop {
                requests: None,
                duration: Some(stop.duration.unwrap_or(least).clamp(least, most)),
            },
        },
        open @ model::Load::Open { .. } => open.clone(),
    }
}

/// Processor time of each system between two readings.
fn usage_between(
    before: &[(String, Option<Usage>)],
    after: &[(String, Option<Usage>)],
) -> BTreeMap<String, Duration> {
    let pairs = before.iter().zip(after);
    pairs
        .filter_map(|((name, before), (_, after))| {
            let used = after.as_ref()?.cpu.checked_sub(before.as_ref()?.cpu)?;
            Some((name.clone(), used))
        })
        .collect()
}

/// Writes folded stacks and drawings, those of the differences too. The first of a system's name is
/// the baseline's.
fn draw(sampled: &[Sampled], folder: &Path) -> Vec<Profile> {
    let mut baselines: BTreeMap<&str, &Sampled> = BTreeMap::new();
    let baseline_name = sampled.first().map(|one| one.profile.variant.clone());
    let mut profiles = Vec::new();
    for one in sampled {
        let mut profile = one.profile.clone();
        let (variant, system) = (&profile.variant, &profile.system);
        if profile.samples > 0 {
            let name = record::file_name(&format!("{variant}-{system}"));
            let scale = Scale::new(&one.stacks, profile.cpu_us_per_request);
            let title = format!("{system} of {variant}");
            let mut files = vec![
                (
                    format!("{name}.svg"),
                    flame::svg(&title, &one.stacks, &scale),
                ),
                (format!("{name}.folded"), one.stacks.folded()),
            ];
            if Some(variant) == baseline_name.as_ref() {
                baselines.insert(&one.profile.system, one);
            } else if let Some(baseline) = baselines.get(&**system) {
                let before = &baseline.profile;
                let before_scale = Scale::new(&baseline.stacks, before.cpu_us_per_request);
                let title = format!("{system} of {variant} against {}", before.variant);
                let drawn = flame::difference_svg(
                    &title,
                    (&one.stacks, &scale),
                    (&baseline.stacks, &before_scale),
                );
                files.push((format!("{name}-difference.svg"), drawn));
            }
            for (file, text) in files {
                match record::write(&folder.join(FOLDER), &file, &text) {
                    Ok(()) => profile.files.push(format!("{FOLDER}/{file}")),
                    Err(failure) => profile.missing = Some(failure.message),
                }
            }
        }
        profiles.push(profile);
    }
    profiles
}

/// The maps of names that our systems have left in `/tmp`.
fn forget_names(systems: &[(String, Vec<i32>)]) {
    for pid in systems.iter().flat_map(|(_, pids)| pids) {
        // There is none for most programs.
        let _ = fs::remove_file(format!("/tmp/perf-{pid}.map"));
    }
}

/// What `perf` said is of interest only where nothing came of it.
fn tidy(scratch: &Path) {
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
    // Only when it is empty.
    let _ = fs::remove_dir(scratch);
}
