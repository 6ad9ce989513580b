//! The harness of the end-to-end tests. A [`World`] is a temporary folder with a lab in it. Running it gives
//! a [`Run`] with the results.
//!
//! The harness uses `weigh` as a user does: by its command line, exit code, output and files. It does not
//! link the instrument.

mod believed;
mod browser;
mod processes;
mod program;
mod scrape;
mod server;
mod terminal;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::rc::Rc;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

pub use believed::{ATTEMPTS, MACHINE_CHECKS, MACHINE_UNFIT, believed, rounds_of, summary_of};
pub use browser::{Browser, View, url_of};
pub use processes::{
    Hogs, cgroups_of_dead_runs, children_of, freeze, processes_mentioning, threads_of, wait_until,
};
pub use program::{
    catalog, fixture, gateway, graphql_server, modern, planets, ratelimiter, route_webhook, runner,
    shop, weigh, weigh_command, xtask,
};
pub use scrape::{Collector, free_port, get, sample};
pub use server::Server;
pub use terminal::{on_a_terminal, on_a_terminal_of};

/// A temporary folder with a lab file of the [`fixture`] server in it.
#[derive(Debug)]
pub struct World {
    /// Shared with its runs, because they read the recordings in it.
    folder: Rc<TempDir>,
    variants: Vec<String>,
    rounds: u32,
    duration: &'static str,
    warmup: &'static str,
    /// The arrival of requests, in the syntax of a lab file.
    arrivals: &'static str,
    /// The limits of the system, in the syntax of a lab file.
    limits: &'static str,
    /// The core that the system may run on.
    pin: Option<usize>,
    baseline: String,
    leaves_daemons: bool,
    /// A lab file instead of the usual one.
    own_lab: Option<String>,
}

impl World {
    /// A world with a lab file of its own. In its text, `SHOP` stands for the path of the server with a
    /// memory, and `MARKER` for the value of [`World::marker`].
    #[must_use]
    pub fn of_lab(text: &str) -> World {
        let world = World::new();
        let text = text.replace("SHOP", &shop().display().to_string());
        World {
            own_lab: Some(text.replace("MARKER", &world.marker())),
            ..world
        }
    }

    /// Adds a file to the folder of the lab.
    ///
    /// # Panics
    ///
    /// If it cannot be written.
    #[must_use]
    pub fn file(self, name: &str, text: &str) -> World {
        fs::write(self.path().join(name), text).expect("the file can be written");
        self
    }

    /// A world with the honest fixture as baseline.
    #[must_use]
    pub fn new() -> World {
        World {
            folder: Rc::new(TempDir::with_prefix("weighbridge-e2e-").expect("a temporary folder")),
            variants: Vec::new(),
            rounds: 6,
            duration: "100ms",
            warmup: "20ms",
            arrivals: "connections: 4",
            limits: "",
            pin: None,
            baseline: String::new(),
            leaves_daemons: false,
            own_lab: None,
        }
    }

    /// Adds a variant that differs from the baseline in the fixture's `settings`,
    /// written as in a lab file: `server.answer: errors`.
    #[must_use]
    pub fn variant(mut self, name: &str, settings: &str) -> World {
        self.variants
            .push(format!("  - {{name: {name}, with: {{{settings}}}}}\n"));
        self
    }

    /// Rounds of the lab (default: 6).
    #[must_use]
    pub fn rounds(mut self, rounds: u32) -> World {
        self.rounds = rounds;
        self
    }

    /// Length of one measurement (default: 100 ms).
    #[must_use]
    pub fn duration(mut self, duration: &'static str) -> World {
        self.duration = duration;
        self
    }

    /// The arrival of requests. The default is `connections: 4`.
    #[must_use]
    pub fn arrivals(mut self, arrivals: &'static str) -> World {
        self.arrivals = arrivals;
        self
    }

    /// Limits of each server, for example `cpus: 0.2`.
    #[must_use]
    pub fn limits(mut self, limits: &'static str) -> World {
        self.limits = limits;
        self
    }

    /// The only core that each server may run on.
    #[must_use]
    pub fn pin(mut self, cpu: usize) -> World {
        self.pin = Some(cpu);
        self
    }

    /// Settings of the baseline that differ from an honest fixture.
    #[must_use]
    pub fn baseline(mut self, settings: &str) -> World {
        self.baseline = format!(", with: {{{settings}}}");
        self
    }

    /// Makes every fixture leave a process behind, in a session of its own and without a parent.
    #[must_use]
    pub fn leaves_daemons(mut self) -> World {
        self.leaves_daemons = true;
        self
    }

    /// A text that appears only in the command lines of the processes of this world's systems.
    ///
    /// # Panics
    ///
    /// Never, because a temporary folder has a name.
    #[must_use]
    pub fn marker(&self) -> String {
        let name = self.path().file_name().expect("a folder has a name");
        format!("of-{}", name.to_string_lossy())
    }

    /// True if a system has been started for this round (from 1).
    #[must_use]
    pub fn has_logged_round(&self, round: u32) -> bool {
        let occasion = format!("round-{round}");
        let Ok(recordings) = fs::read_dir(self.path().join("recordings")) else {
            return false;
        };
        recordings.flatten().any(|recording| {
            fs::read_dir(recording.path().join("logs"))
                .into_iter()
                .flatten()
                .flatten()
                .any(|variant| variant.path().join(&occasion).join("server.log").exists())
        })
    }

    /// The folder of this world.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Writes the lab file and returns its path.
    #[must_use]
    pub fn lab(&self) -> PathBuf {
        let path = self.path().join("truth.yaml");
        if let Some(text) = &self.own_lab {
            fs::write(&path, text).expect("the lab file can be written");
            return path;
        }
        let text = format!(
            "question: does the instrument tell the truth?\n\
             load:\n  {arrivals}\n  duration: {duration}\n  path: /graphql\n  \
             timeout: 2s\n  requests:\n    - {{name: test, query: \"{{ test {{ id }} }}\"}}\n\
             rounds: {rounds}\n\
             warmup: {warmup}\n\
             target: server\n\
             systems:\n  server:\n    \
             settings: {{program: {fixture}, answer: ok, honest: 0, delay: 0, slower: 0, burn: 0}}\n    \
             limits: {{{limits}}}\n{pin}    \
             run: \"{{{{program}}}} --listen {{{{addr}}}} --answer {{{{answer}}}} \
             --honest-first {{{{honest}}}} --delay-us {{{{delay}}}} \
             --slower-by-us {{{{slower}}}} --burn-us {{{{burn}}}} --tag {tag}{daemon}\"\n    \
             ready: {{path: /health, within: 10s}}\n\
             expect: {{status: 200, graphql: no-errors, same-as: baseline}}\n\
             baseline: {{name: honest{baseline}}}\n\
             variants:\n{variants}",
            arrivals = self.arrivals,
            limits = self.limits,
            pin = match self.pin {
                Some(cpu) => format!("    pin: {cpu}\n"),
                None => String::new(),
            },
            duration = self.duration,
            rounds = self.rounds,
            warmup = self.warmup,
            fixture = fixture().display(),
            tag = self.marker(),
            daemon = if self.leaves_daemons {
                " --leave-daemon"
            } else {
                ""
            },
            baseline = self.baseline,
            variants = self.variants.concat(),
        );
        fs::write(&path, text).expect("the lab file can be written");
        path
    }

    /// Runs `weigh lab` on this world's lab to its end.
    #[must_use]
    pub fn run(&self) -> Run {
        self.run_with(&[])
    }

    /// Runs the lab until no check withholds a verdict (see [`believed`]).
    ///
    /// # Panics
    ///
    /// If a run fails for another reason, or no run has a verdict although the machine was fit.
    #[must_use]
    #[track_caller]
    pub fn believed(&self) -> Option<Run> {
        believed(|attempt| {
            let out = format!("recordings/{attempt}");
            let run = Run {
                folder_name: out.clone(),
                ..self.run_with(&["--out", &out])
            };
            let recording = run.recording_folder();
            (run, recording)
        })
    }

    /// Like [`World::run`], with further flags.
    #[must_use]
    pub fn run_with(&self, flags: &[&str]) -> Run {
        let output = self
            .command("lab")
            .args(flags)
            .output()
            .expect("weigh starts");
        Run {
            output,
            folder: Some(Rc::clone(&self.folder)),
            folder_name: "recordings".to_owned(),
        }
    }

    /// Starts `weigh lab` and leaves it running.
    #[must_use]
    pub fn start(&self) -> Child {
        self.command("lab")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("weigh starts")
    }

    /// The command `weigh SUBCOMMAND LAB`, not yet started.
    #[must_use]
    pub fn command(&self, subcommand: &str) -> Command {
        let lab = self.lab();
        let mut command = weigh_command();
        command.arg(subcommand).arg(lab).current_dir(self.path());
        // A lab may build its systems, and builds must not see these variables.
        for variable in program::OF_THE_TEST {
            command.env_remove(variable);
        }
        command
    }

    /// Waits for a started `weigh lab` and returns its results.
    #[must_use]
    pub fn finish(&self, child: Child) -> Run {
        Run {
            output: child.wait_with_output().expect("weigh can be waited for"),
            folder: Some(Rc::clone(&self.folder)),
            folder_name: "recordings".to_owned(),
        }
    }
}

impl Default for World {
    fn default() -> World {
        World::new()
    }
}

/// The text with one space for each run of spaces and line breaks. The line breaks of `weigh` depend on the
/// name of the processor, the length of a path and the width of the terminal. A claim about a sentence must
/// not depend on them.
#[must_use]
pub fn unwrapped(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// One finished run of `weigh`.
#[derive(Debug)]
pub struct Run {
    output: Output,
    folder: Option<Rc<TempDir>>,
    folder_name: String,
}

impl Run {
    /// Wraps the output of a command that does not write a recording.
    #[must_use]
    pub fn of(output: Output) -> Run {
        Run {
            output,
            folder: None,
            folder_name: String::new(),
        }
    }

    /// Standard output as text.
    #[must_use]
    pub fn answer(&self) -> String {
        String::from_utf8_lossy(&self.output.stdout).into_owned()
    }

    /// Standard output as one line (see [`unwrapped`]).
    #[must_use]
    pub fn text(&self) -> String {
        unwrapped(&self.answer())
    }

    /// Claims that standard output contains these words, regardless of line breaks.
    ///
    /// # Panics
    ///
    /// With standard output, if it does not.
    #[track_caller]
    pub fn shows(&self, words: &str) {
        let answer = self.answer();
        let is_shown = unwrapped(&answer).contains(words);
        assert!(is_shown, "no `{words}` on stdout:\n{answer}");
    }

    /// Every table of the recording of this run, as text.
    ///
    /// # Panics
    ///
    /// If the run has no readable recording.
    #[must_use]
    pub fn full(&self) -> String {
        let mut command = weigh_command();
        command
            .arg("report")
            .arg(self.recording_folder())
            .arg("--full");
        Run::of(command.output().expect("weigh starts")).answer()
    }

    /// Claims that the full report contains these words, regardless of line breaks.
    ///
    /// # Panics
    ///
    /// If it does not.
    pub fn shows_in_full(&self, words: &str) {
        let full = self.full();
        assert!(unwrapped(&full).contains(words), "no `{words}` in\n{full}");
    }

    /// Claims that standard error contains these words, regardless of line breaks.
    ///
    /// # Panics
    ///
    /// With standard error, if it does not.
    #[track_caller]
    pub fn says(&self, words: &str) {
        let talk = self.talk();
        let is_said = unwrapped(&talk).contains(words);
        assert!(is_said, "no `{words}` on stderr:\n{talk}");
    }

    /// Standard error as text.
    #[must_use]
    pub fn talk(&self) -> String {
        String::from_utf8_lossy(&self.output.stderr).into_owned()
    }

    /// Exit status of the process.
    #[must_use]
    pub fn status(&self) -> ExitStatus {
        self.output.status
    }

    /// Claims the exit code.
    ///
    /// # Panics
    ///
    /// With the complete output, if it is another one.
    pub fn exits_with(self, code: i32) -> Run {
        assert_eq!(
            self.output.status.code(),
            Some(code),
            "exit code\n--- stdout\n{}\n--- stderr\n{}",
            self.answer(),
            self.talk()
        );
        self
    }

    /// Claims that the run was carried out. A check may have withheld a verdict because the machine was
    /// disturbed, and that does not affect this claim.
    ///
    /// # Panics
    ///
    /// With the complete output, if the run ended otherwise.
    pub fn ran(self) -> Run {
        match self.output.status.code() {
            Some(7) => self,
            _ => self.exits_with(0),
        }
    }

    /// Claims that the table, or a reason next to it, contains `variant` with all of `words`.
    ///
    /// # Panics
    ///
    /// With the table, if it has no such row.
    pub fn row(self, variant: &str, words: &[&str]) -> Run {
        let answer = self.answer();
        // A reason that does not fit into the table is printed below it, folded.
        let unfolded = answer.replace("\n  ", " ");
        let has_words = |text: &str| words.iter().all(|word| text.contains(word));
        let quoted = format!("`{variant}`");
        let is_row = unfolded.lines().any(|line| {
            let is_own =
                line.starts_with(variant) || line.starts_with("- ") && line.contains(&quoted);
            is_own && has_words(line)
        });
        // The first paragraph has the reason of a single variant, and of a baseline without a number.
        let first = unwrapped(answer.split("\n\n").next().unwrap_or_default());
        let is_there = is_row || first.contains(&quoted) && has_words(&first);
        assert!(is_there, "no row `{variant}` with {words:?} in\n{answer}");
        self
    }

    /// Claims that the recording's summary contains no latency of `variant`.
    ///
    /// # Panics
    ///
    /// If it contains one.
    pub fn no_number_for(self, variant: &str) -> Run {
        let summary = self.json();
        let row = summary["variants"]
            .as_array()
            .expect("the summary lists variants")
            .iter()
            .find(|row| row["name"] == variant)
            .unwrap_or_else(|| panic!("no `{variant}` in {summary:#}"));
        assert!(
            row["metrics"]
                .as_object()
                .is_some_and(|metrics| metrics.is_empty()),
            "`{variant}` has numbers: {row:#}"
        );
        self
    }

    /// Claims that `variant` has numbers, unless other programs used the processors.
    ///
    /// # Panics
    ///
    /// If it has no numbers.
    #[track_caller]
    pub fn number_for(self, variant: &str) -> Run {
        judged::expect_alone();
        let summary = self.json();
        let rows = summary["variants"]
            .as_array()
            .expect("the summary lists variants");
        let row = rows
            .iter()
            .find(|row| row["name"] == variant)
            .expect("a row");
        if row["metrics"]["requests_per_s"]["value"].is_f64() {
            judged::ran();
            return self;
        }
        assert!(believed::is_machine_unfit(&summary), "{row:#}");
        judged::not_run(MACHINE_UNFIT);
        self
    }

    /// True if other programs used the processors, so that figures were withheld and cannot be checked.
    ///
    /// # Panics
    ///
    /// If the run has no recording.
    #[must_use]
    pub fn is_machine_unfit(&self) -> bool {
        believed::is_machine_unfit(&self.json())
    }

    /// The verdict on `variant` in one word: `slower`, `no-difference-shown`, `invalid`, …
    ///
    /// # Panics
    ///
    /// If the summary has no such variant.
    #[must_use]
    pub fn verdict_of(&self, variant: &str) -> String {
        judged::expect_alone();
        let summary = self.json();
        let rows = summary["variants"]
            .as_array()
            .expect("the summary lists variants");
        let row = rows.iter().find(|row| row["name"] == variant);
        let state = row.and_then(|row| row["verdict"]["state"].as_str());
        state
            .unwrap_or_else(|| panic!("no `{variant}` in {summary:#}"))
            .to_owned()
    }

    /// The only recording folder of this world.
    ///
    /// # Panics
    ///
    /// If there is not exactly one.
    #[must_use]
    pub fn recording_folder(&self) -> PathBuf {
        let folder = self.folder.as_ref().expect("a run of a world");
        let recordings = folder.path().join(&self.folder_name);
        let folders: Vec<PathBuf> = fs::read_dir(&recordings)
            .unwrap_or_else(|error| panic!("{}: {error}\n{}", recordings.display(), self.talk()))
            .flatten()
            .map(|entry| entry.path())
            .collect();
        assert_eq!(folders.len(), 1, "{folders:?}");
        folders[0].clone()
    }

    /// `recording.json` of this run.
    ///
    /// # Panics
    ///
    /// If it is missing or not JSON.
    #[must_use]
    pub fn recording(&self) -> Value {
        let path = self.recording_folder().join("recording.json");
        serde_json::from_slice(&fs::read(path).expect("a recording")).expect("JSON")
    }

    /// The summary of this run, from `weigh report --format json`.
    ///
    /// # Panics
    ///
    /// If it cannot be created.
    #[must_use]
    pub fn json(&self) -> Value {
        summary_of(&self.recording_folder())
    }
}

/// Time limit for events that should happen at once.
pub const PATIENCE: Duration = Duration::from_secs(20);
