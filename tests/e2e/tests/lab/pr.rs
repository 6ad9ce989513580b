//! `weigh pr`: a lab in two revisions of a repository.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use e2e::{Run, processes_mentioning, wait_until, weigh, weigh_command};
use serde_json::Value;
use tempfile::TempDir;

/// A lab without variants. It compares two revisions of its server.
const LAB: &str = "question: What does a change of the server cost?
load: {rate: 200/s, duration: 300ms, path: /}
warmup: 50ms
rounds: 6
target: server
gates: [typical overhead < 500us]
systems:
  server:
    build: ./build.sh
    folder: ..
    run: ./server {{addr}}
    ready: {path: /}
baseline: {name: server}
";

/// The build writes the server. A separate file contains the delay of the server.
const BUILD: &str = "#!/bin/sh
set -e
printf '#!/bin/sh\\nexec WEIGH null-server --listen $1 --delay=%s\\n' \"$(cat delay)\" > server
chmod +x server
";

/// A repository with a small HTTP service and a lab of it.
pub(crate) struct Repository {
    folder: TempDir,
}

impl Repository {
    pub(crate) fn new() -> Repository {
        let folder = TempDir::with_prefix("weighbridge-e2e-").expect("a temporary folder");
        let repository = Repository { folder };
        repository.git(&["init", "--quiet", "--initial-branch", "main"]);
        repository.git(&["config", "user.name", "Tester"]);
        repository.git(&["config", "user.email", "tester@example.com"]);
        let build = BUILD.replace("WEIGH", &weigh().display().to_string());
        repository.write("build.sh", &build);
        repository.write("delay", "100us");
        repository.write("labs/api.yaml", LAB);
        repository.write(".gitignore", "/server\n/recordings\n/state\n");
        let mut executable = Command::new("chmod");
        executable.arg("+x").arg(repository.path("build.sh"));
        assert!(executable.status().expect("chmod starts").success());
        repository.commit("a server");
        repository
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("it can be made");
        fs::write(path, text).expect("it can be written");
    }

    fn git(&self, words: &[&str]) -> String {
        let mut command = Command::new("git");
        let output = command.current_dir(self.folder.path()).args(words).output();
        let output = output.expect("git starts");
        assert!(output.status.success(), "git {words:?}: {output:?}");
        String::from_utf8(output.stdout).expect("text")
    }

    pub(crate) fn commit(&self, subject: &str) {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--message", subject]);
    }

    fn command(&self, flags: &[&str]) -> Command {
        let all = [&["api"], flags].concat();
        self.subcommand("pr", &all)
    }

    fn subcommand(&self, name: &str, flags: &[&str]) -> Command {
        let mut command = weigh_command();
        command.current_dir(self.folder.path());
        command.env("XDG_STATE_HOME", self.path("state"));
        for variable in ["GITHUB_BASE_REF", "CI_MERGE_REQUEST_DIFF_BASE_SHA"] {
            command.env_remove(variable);
        }
        command.env_remove("GITHUB_STEP_SUMMARY");
        command.arg(name).args(flags);
        command
    }

    fn weigh(&self, flags: &[&str]) -> Run {
        Run::of(self.command(flags).output().expect("weigh starts"))
    }

    pub(crate) fn recording(&self) -> Value {
        let mut folders: Vec<PathBuf> = fs::read_dir(self.path("recordings"))
            .expect("it was recorded")
            .map(|entry| entry.expect("it can be read").path())
            .collect();
        folders.sort();
        let last = folders.pop().expect("a recording").join("recording.json");
        serde_json::from_slice(&fs::read(last).expect("a recording")).expect("JSON")
    }

    /// True if the run left no worktree, in the repository or next to it.
    fn is_clean(&self) -> bool {
        let worktrees = self.git(&["worktree", "list", "--porcelain"]);
        let left = fs::read_dir(self.path("state/weighbridge/worktrees"));
        let is_known = self.path(".git/worktrees").read_dir();
        worktrees.matches("worktree ").count() == 1
            && left.map_or(0, Iterator::count) == 0
            && is_known.map_or(0, Iterator::count) == 0
    }

    fn expect_clean(&self) {
        assert!(self.is_clean(), "{}", self.git(&["worktree", "list"]));
    }
}

#[test]
fn a_change_that_costs_nothing_passes_and_says_what_is_the_same() {
    let repository = Repository::new();
    repository.write("README", "changed");
    repository.commit("a sentence");
    let run = repository.weigh(&["--base", "HEAD~1"]).exits_with(0);
    run.shows("(a server), HEAD~1. Head is ");
    run.shows("Both builds are equal byte for byte: `server`");
    run.shows("`typical overhead < 500us` on `head`: holds");
    run.says("measuring until the gates are decided, 6 to 24 rounds");
    assert_eq!(repository.recording()["decided"]["ended"], "reached");
    repository.expect_clean();
    let revisions = &repository.recording()["revisions"];
    assert_eq!(revisions["head"]["subject"], "a sentence");
    assert_eq!(revisions["head"]["uncommitted"], false);
    let head = repository.git(&["rev-parse", "HEAD"]);
    assert_eq!(revisions["head"]["commit"], head.trim());
}

#[test]
fn what_is_not_committed_counts_as_head_and_is_said() {
    let repository = Repository::new();
    repository.write("delay", "1500us");
    repository.write("not-yet-added", "");
    let run = repository.weigh(&[]).exits_with(4);
    run.shows("with uncommitted changes");
    run.shows("`typical overhead < 500us` on `head`: broken");
    // The user's git index is unchanged.
    let status = repository.git(&["status", "--porcelain"]);
    assert_eq!(status, " M delay\n?? not-yet-added\n");
    repository.expect_clean();
}

#[test]
fn a_slower_commit_breaks_the_gate_and_one_that_fails_is_not_run() {
    let repository = Repository::new();
    repository.write("delay", "1500us");
    repository.commit("slower");
    let flags = ["--base", "HEAD~1", "--format", "comment"];
    let page = repository.path("summary.md");
    let mut command = repository.command(&flags);
    command.env("GITHUB_STEP_SUMMARY", &page);
    let run = Run::of(command.output().expect("weigh starts")).exits_with(4);
    let comment = run.answer();
    assert!(
        comment.starts_with("<!-- weighbridge: api -->\n"),
        "{comment}"
    );
    assert!(comment.lines().count() <= 30, "{comment}");
    run.shows("❌ **Failed.** **api**: `head` costs a typical request 1,");
    run.shows("gate `typical overhead < 500us` on `head`: **broken**");
    let summary = fs::read_to_string(page).expect("the summary of the job");
    assert_eq!(summary.trim_end(), comment.trim_end());
    repository.write("build.sh", "#!/bin/sh\necho no compiler; exit 1\n");
    repository.commit("failing");
    // The missing number decides before a gate that cannot be judged.
    let run = repository.weigh(&["--base", "HEAD~1", "--undecided", "pass"]);
    let run = run.exits_with(5);
    run.shows("no compiler");
    repository.expect_clean();
}

#[test]
fn a_lab_that_is_new_or_was_broken_is_a_row_that_says_so() {
    let repository = Repository::new();
    repository.git(&["mv", "labs/api.yaml", "labs/other.yaml"]);
    repository.write("labs/api.yaml", LAB);
    repository.commit("another lab");
    let flags = ["other", "--base", "HEAD~1", "--undecided", "pass"];
    let mut command = repository.subcommand("pr", &flags);
    let run = Run::of(command.output().expect("weigh starts")).exits_with(0);
    run.shows("the lab is new: ");
    repository.write("labs/api.yaml", "question: [");
    repository.commit("broken");
    repository.write("labs/api.yaml", LAB);
    repository.commit("mended");
    let run = repository.weigh(&["--base", "HEAD~1", "--undecided", "pass"]);
    run.exits_with(0).shows("the lab has a mistake in ");
    repository.expect_clean();
}

#[test]
fn every_variant_is_compared_with_itself_where_that_is_asked_for() {
    let repository = Repository::new();
    let lab = format!(
        "{}variants:\n  - {{name: late, with: {{server.late: \"1500us\"}}}}\n",
        LAB.replace("{{addr}}", "{{addr}} {{late}}")
            .replace("    build:", "    settings: {late: \"100us\"}\n    build:")
    );
    repository.write("labs/api.yaml", &lab);
    repository.write(
        "build.sh",
        &fs::read_to_string(repository.path("build.sh"))
            .expect("the build")
            .replace("--delay=%s\\n' \"$(cat delay)\"", "--delay=$2\\n'"),
    );
    repository.commit("variants");
    let run = repository.weigh(&["--base", "HEAD", "--all-variants"]);
    run.shows("Both have the same files");
    let names: Vec<Value> = repository.recording()["variants"]
        .as_array()
        .expect("variants")
        .iter()
        .map(|variant| variant["name"].clone())
        .collect();
    let expected = ["server, base", "server, head", "late, base", "late, head"];
    assert_eq!(names, expected);
    let run = repository
        .weigh(&["--base", "HEAD", "--variants", "lat"])
        .exits_with(2);
    run.says("expected a variant of `api`, found `lat`");
    repository.expect_clean();
}

#[test]
fn the_first_slower_of_sixteen_commits_is_found_and_one_that_fails_is_skipped() {
    let repository = Repository::new();
    let build = fs::read_to_string(repository.path("build.sh")).expect("the build");
    let mut first_bad = String::new();
    for number in 1..=16 {
        repository.write("number", &number.to_string());
        // The first commit to measure is the eighth, and it cannot be built.
        let is_broken = number == 8;
        repository.write(
            "build.sh",
            if is_broken {
                "#!/bin/sh\nexit 1\n"
            } else {
                &build
            },
        );
        if number == 11 {
            repository.write("delay", "1500us");
        }
        repository.commit(&format!("commit {number}"));
        if number == 11 {
            first_bad = repository.git(&["rev-parse", "HEAD"]).trim().to_owned();
        }
    }
    let mut command = repository.subcommand("bisect", &["api", "--good", "HEAD~16"]);
    let run = Run::of(command.output().expect("weigh starts")).exits_with(0);
    run.shows(&format!("first bad commit: {first_bad} commit 11"));
    run.shows("skip ");
    assert_eq!(repository.git(&["status", "--porcelain"]), "");
    repository.expect_clean();
    let mut command = repository.subcommand("bisect", &["api", "--good", "HEAD~2"]);
    let run = Run::of(command.output().expect("weigh starts")).exits_with(7);
    run.says("expected a bad commit to start the search");
    repository.expect_clean();
}

#[test]
fn a_history_foretells_how_long_it_takes_and_a_gate_on_nobody_is_refused() {
    let repository = Repository::new();
    repository.write("readme", "another commit");
    repository.commit("words");
    let flags = ["--base", "HEAD~1", "--rounds", "6"];
    let history = |flags: &[&str]| {
        let mut command = repository.subcommand("history", flags);
        Run::of(command.output().expect("weigh starts")).exits_with(0)
    };
    let foretold = [&flags[..], &["--history", "history.jsonl"]].concat();
    let first = repository.weigh(&foretold).exits_with(0);
    first.says("`history.jsonl` does not exist yet");
    let recordings = fs::read_dir(repository.path("recordings")).expect("it was recorded");
    let last = recordings.last().expect("a recording").expect("readable");
    let last = last.path().display().to_string();
    history(&["add", "--file", "history.jsonl", &last]);
    let second = repository.weigh(&foretold).exits_with(0);
    second.says("by 1 earlier run of `api` on this machine, a run of 6 rounds takes about ");
    second.says(" ms (typical)");
    // The longest latency is never exact to a nanosecond.
    let never = ["--gate", "max overhead < 1ns"];
    let undecidable = [&foretold[..], &never].concat();
    let run = repository.weigh(&undecidable).exits_with(2);
    run.says("the gate `max overhead < 1ns` cannot be decided. By 1 earlier run of `api`, 6 rounds measure max to ±");
    let mut bisect = repository.subcommand(
        "bisect",
        &[
            "api",
            "--good",
            "HEAD~1",
            "--gate",
            "nobody typical overhead < 1us",
        ],
    );
    let run = Run::of(bisect.output().expect("weigh starts")).exits_with(2);
    run.says("names a variant that does not exist");
    repository.expect_clean();
}

#[test]
fn mistakes_are_told_before_anything_is_built() {
    let repository = Repository::new();
    let run = repository.weigh(&["--base", "nowhere"]).exits_with(2);
    run.says("found `nowhere`, which this repository does not have");
    let outside = TempDir::with_prefix("weighbridge-e2e-").expect("a temporary folder");
    fs::write(outside.path().join("lab.yaml"), LAB).expect("it can be written");
    let lab = outside.path().join("lab.yaml").display().to_string();
    let mut command = repository.subcommand("pr", &[&lab]);
    let run = Run::of(command.output().expect("weigh starts")).exits_with(2);
    run.says(" outside of it");
    let mut nowhere = weigh_command();
    nowhere.current_dir(outside.path()).args(["pr", &lab]);
    let run = Run::of(nowhere.output().expect("weigh starts")).exits_with(5);
    run.says("not a git repository");
    let mut alone = weigh_command();
    alone
        .current_dir(repository.folder.path())
        .args(["lab", "api"]);
    let run = Run::of(alone.output().expect("weigh starts")).exits_with(2);
    run.says("`weigh pr` compares two revisions of a lab");
    repository.expect_clean();
}

#[test]
fn no_worktree_is_left_whatever_way_it_ends() {
    let repository = Repository::new();
    for signal in ["INT", "KILL"] {
        let mut command = repository.command(&["--rounds", "500"]);
        let mut child = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("weigh starts");
        let worktrees = repository.path("state/weighbridge/worktrees");
        let is_built = || {
            let made = fs::read_dir(&worktrees).into_iter().flatten().flatten();
            made.into_iter()
                .any(|it| it.path().join("head/server").is_file())
        };
        wait_until("the head is built", Duration::from_secs(30), is_built);
        send(signal, &child);
        child.wait().expect("it ends");
        wait_until("all is removed", Duration::from_secs(30), || {
            repository.is_clean()
        });
        let mention = worktrees.display().to_string();
        wait_until("nothing runs", Duration::from_secs(30), || {
            is_free_of(&mention)
        });
    }
}

fn send(signal: &str, child: &Child) {
    let mut kill = Command::new("kill");
    kill.args(["-s", signal, &child.id().to_string()]);
    assert!(kill.status().expect("kill starts").success());
}

fn is_free_of(mention: &str) -> bool {
    processes_mentioning(mention).is_empty() && !Path::new(mention).join("pr-").exists()
}
