//! Labs with a known truth, written and run.

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};
use serde_json::Value;

use super::figures::{Run, list, text};
use crate::bench;
use crate::repository::root;

/// Attempts to run a lab if checks withhold a number. Such a run is no evidence about the instrument.
const ATTEMPTS: u32 = 10;

/// Paths of the programs under test.
pub(super) struct Programs {
    pub(super) weigh: PathBuf,
    gateway: PathBuf,
    planets: PathBuf,
}

impl Programs {
    /// The programs in a folder.
    pub(super) fn of(folder: &Path) -> anyhow::Result<Programs> {
        let program = |name: &str| {
            let path = folder.join(name);
            fs::canonicalize(&path).with_context(|| format!("`{}` is a program", path.display()))
        };
        Ok(Programs {
            weigh: program("weigh")?,
            gateway: program("gateway")?,
            planets: program("planets")?,
        })
    }

    /// Builds the programs with the same profile as labs.
    pub(super) fn built() -> anyhow::Result<Programs> {
        Programs::of(&bench::programs(
            "release",
            &["weigh", "gateway", "planets"],
        )?)
    }
}

/// The folder, programs and settings of labs.
pub(super) struct Bench {
    pub(super) programs: Programs,
    /// The folder of the recordings.
    pub(super) folder: PathBuf,
    /// Length of the load of a round side by side, in seconds.
    pub(super) seconds: f64,
    /// Number of rounds of a run side by side, if its variants do not need more.
    pub(super) rounds: u32,
    /// Requests per second to each system side by side, in the current piece.
    pub(super) rate: Cell<u32>,
    /// Number of labs that were repeated because a check withheld a number.
    pub(super) withheld: Cell<u64>,
    /// Number of labs that were run.
    pub(super) runs: Cell<u64>,
}

impl Bench {
    /// Returns a sentence with the number of repeated labs, and resets the count.
    pub(super) fn withheld(&self) -> String {
        match self.withheld.take() {
            0 => String::new(),
            1 => "\nOne lab was run again because a check withheld a number.\n".to_owned(),
            many => format!("\n{many} labs were run again because a check withheld a number.\n"),
        }
    }

    /// Describes the rounds, for the text above a table.
    pub(super) fn setting(&self, variants: usize) -> String {
        format!(
            "{} rounds of {} s at {} requests/s",
            self.rounds(variants),
            self.seconds,
            self.rate.get()
        )
    }

    /// The number of rounds of a lab with this number of variants in addition to the baseline.
    pub(super) fn rounds(&self, variants: usize) -> usize {
        let asked = usize::try_from(self.rounds).expect("32 bits fit");
        stats::multiple::rounds_needed(0.95, variants).max(asked)
    }

    /// The beginning of every lab side by side. The systems behind the gateway follow it.
    pub(super) fn side_by_side(&self, variants: usize) -> String {
        format!(
            "question: Is what was planted found?\n\
             load: {{rate: {}/s, duration: {}s, requests: '{}'}}\n\
             order: side-by-side\nsettle: {{connections: 4, within: 1s}}\nwarmup: 300ms\n\
             rounds: {}\ntarget: gateway\n\
             systems:\n  planets:\n    run: \"'{}' --listen {{{{addr}}}} --workers 1\"\n    \
             ready: {{path: /health}}\n    limits: {{cpus: 1}}\n",
            self.rate.get(),
            self.seconds,
            root().join("services/planets/queries/*.json").display(),
            self.rounds(variants),
            self.programs.planets.display(),
        )
    }

    /// The gateway of a lab, started by that command, with these lines in its settings and in its
    /// environment.
    pub(super) fn gateway(&self, settings: &str, command: &str, environment: &str) -> String {
        format!(
            "  gateway:\n    settings: {{{settings}}}\n    run: {command}\n    env:\n      \
             APOLLO_ROUTER_SUPERGRAPH_PATH: '{}'\n      \
             APOLLO_ROUTER_LISTEN_ADDRESS: \"{{{{addr}}}}\"\n      GATEWAY_WORKERS: 1\n      \
             LISTEN: \"{{{{addr}}}}\"\n      PLANETS: \"{{{{planets.url}}}}\"\n{environment}    \
             ready: {{path: /health}}\n    limits: {{cpus: 1}}\n",
            root().join("services/planets/supergraph.graphql").display(),
        )
    }

    /// The command of the gateway itself, with a configuration.
    pub(super) fn gateway_command(&self, configuration: &Path) -> String {
        format!(
            "'{}' --config '{}'",
            self.programs.gateway.display(),
            configuration.display()
        )
    }

    /// Runs a lab until every row has a number.
    pub(super) fn lab(&self, name: &str, lab: &str, seed: u64) -> anyhow::Result<Run> {
        let path = self.folder.join(format!("{name}.yaml"));
        fs::write(&path, lab).context("a lab can be written")?;
        let path = path.to_string_lossy();
        for _ in 0..ATTEMPTS {
            let run = self.weigh(&[&path, "--seed", &seed.to_string()])?;
            let is_without = |row: &&Value| {
                let state = &row["verdict"]["state"];
                state == "invalid" || state == "withheld"
            };
            let Some(without) = list(&run.summary["variants"]).find(is_without) else {
                return Ok(run);
            };
            let why = text(without, "verdict_text");
            let verdict = &without["verdict"];
            if verdict["state"] == "invalid" && verdict["kind"] != "check-failed" {
                bail!("{name}, seed {seed}: {why}");
            }
            bench::say(&format!("{name}, seed {seed}: {why}"));
            self.withheld.set(self.withheld.get() + 1);
        }
        bail!("a check withheld a number {ATTEMPTS} times; free the machine, then run this again")
    }

    /// Runs `weigh lab` once, and reads its recording and its summary.
    pub(super) fn weigh(&self, arguments: &[&str]) -> anyhow::Result<Run> {
        self.runs.set(self.runs.get() + 1);
        // A folder of its own, so that the recording is the only one in it.
        let out = self.folder.join(format!("run-{}", self.runs.get()));
        let output = Command::new(&self.programs.weigh)
            .args(["lab", "--format", "json", "--out"])
            .arg(&out)
            .args(arguments)
            .current_dir(root())
            .stderr(Stdio::piped())
            .output()
            .context("weigh starts")?;
        let answer: Value = serde_json::from_slice(&output.stdout).with_context(|| {
            let talk = String::from_utf8_lossy(&output.stderr);
            format!("weigh ended with {} and said:\n{talk}", output.status)
        })?;
        let recorded = fs::read_dir(&out)?.next().context("weigh records")??;
        let recording = fs::read_to_string(recorded.path().join("recording.json"))?;
        Ok(Run {
            summary: answer["summary"].clone(),
            recording: serde_json::from_str(&recording)?,
            folder: recorded.path(),
        })
    }
}
