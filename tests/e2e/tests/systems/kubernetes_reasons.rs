//! Runs in a cluster that cannot begin or cannot go on: the reason is named soon, and measured rounds are kept. Each
//! claim has its own namespace on the real node of `ci/cluster/cluster.sh`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use e2e::{wait_until, weigh, weigh_command};
use serde_json::Value;
use tempfile::TempDir;

use crate::kubernetes::{IMAGE, words};
use crate::node::Node;

/// A namespace for one claim, with a folder for its lab.
struct Space {
    node: Node,
    name: &'static str,
    folder: TempDir,
}

impl Space {
    #[track_caller]
    fn of(name: &'static str) -> Option<Space> {
        let node = Node::up()?;
        node.image(IMAGE, &weigh());
        node.kubectl(&["create", "namespace", name]);
        let folder = TempDir::new().expect("a folder");
        Some(Space { node, name, folder })
    }

    fn kubectl(&self, arguments: &[&str]) -> String {
        let mut all = vec!["-n", self.name];
        all.extend(arguments);
        self.node.kubectl(&all)
    }

    /// Creates a quota on the number of pods.
    fn quota(&self, pods: u32) {
        let hard = format!("--hard=pods={pods}");
        self.kubectl(&["create", "quota", "few", &hard]);
        let used = || self.kubectl(&["get", "quota", "few", "-o", "jsonpath={.status.used.pods}"]);
        wait_until("the quota counts", Duration::from_secs(30), || {
            !used().is_empty()
        });
    }

    /// The command that runs a lab of two null servers with two generators.
    fn weigh(&self, rounds: u32) -> Command {
        let text = format!(
            "question: Are two milliseconds found?\nload: {{rate: 100/s, duration: 2s, path: /}}\n\
             generators: 2\ntarget: server\nsystems:\n  server:\n    settings: {{delay: 1ms}}\n    \
             image: {IMAGE}\n    pull: never\n    port: 8080\n    \
             command: \"null-server --listen {{{{addr}}}} --delay {{{{delay}}}}\"\n    \
             limits: {{cpus: 0.2, memory: 64MiB}}\nbaseline: {{name: early}}\n\
             variants: [{{name: late, with: {{server.delay: 3ms}}}}]\n\
             expect: {{status: 200, same-as: baseline}}\n"
        );
        fs::write(self.folder.path().join("two.yaml"), text).expect("a file");
        let mut command = weigh_command();
        command
            .current_dir(self.folder.path())
            .env("KUBECONFIG", self.node.state.join("kubeconfig"))
            .args(["lab", "two.yaml", "--on", "kubernetes"])
            .args(["--namespace", self.name, "--generator-image", IMAGE])
            .args(["--rounds", &rounds.to_string()])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn recording(&self) -> Value {
        let run = recording_folder(self.folder.path()).expect("a recording");
        let text = fs::read_to_string(run.join("recording.json")).expect("its file");
        serde_json::from_str(&text).expect("JSON")
    }
}

impl Drop for Space {
    fn drop(&mut self) {
        self.node.kubectl(&["delete", "namespace", self.name]);
    }
}

fn recording_folder(folder: &Path) -> Option<PathBuf> {
    let runs = fs::read_dir(folder.join("recordings")).ok()?;
    runs.flatten().next().map(|run| run.path())
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "the length of the run is the claim"
)]
fn a_namespace_without_room_for_a_generator_says_so_at_once() {
    let Some(space) = Space::of("reasons-none") else {
        return;
    };
    space.quota(0);
    let began = Instant::now();
    let output = space.weigh(1).output().expect("it ends");
    let said = words(&output);
    assert_eq!(output.status.code(), Some(5), "{said}");
    assert!(began.elapsed() < Duration::from_secs(30), "{said}");
    assert!(
        said.contains("a quota of the namespace does not allow weigh to create the pod"),
        "{said}"
    );
    assert!(
        said.contains("exceeded quota: few") && said.contains("Raise the quota"),
        "{said}"
    );
    assert!(!said.contains("weigh-rbac.yaml"), "{said}");
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "the length of the run is the claim"
)]
fn a_second_generator_that_may_not_start_is_blamed_itself() {
    let Some(space) = Space::of("reasons-second") else {
        return;
    };
    // Two systems and one generator.
    space.quota(3);
    let began = Instant::now();
    let output = space.weigh(1).output().expect("it ends");
    let said = words(&output);
    assert_eq!(output.status.code(), Some(5), "{said}");
    assert!(began.elapsed() < Duration::from_secs(60), "{said}");
    assert!(
        said.contains("the cluster creates no pod of it: a quota of the namespace"),
        "{said}"
    );
    assert!(said.contains("exceeded quota: few"), "{said}");
}

#[test]
fn a_quota_that_comes_later_ends_the_run_and_keeps_its_rounds() {
    let Some(space) = Space::of("reasons-late") else {
        return;
    };
    let weigh = space.weigh(4).spawn().expect("weigh starts");
    let second = || {
        let pods = space.kubectl(&["get", "pods", "-o", "name"]);
        pods.contains("generators-r2-")
    };
    wait_until("the second round", Duration::from_secs(120), second);
    space.quota(0);
    let output = weigh.wait_with_output().expect("it ends");
    let said = words(&output);
    assert_eq!(output.status.code(), Some(5), "{said}");
    assert!(
        said.contains("INTERRUPTED: 2 of 4 rounds were measured before the run ended"),
        "{said}"
    );
    assert!(said.contains("exceeded quota: few"), "{said}");
    let recording = space.recording();
    assert_eq!(recording["interrupted"], true);
    let reason = recording["ended_because"].as_str().unwrap_or_default();
    assert!(reason.contains("exceeded quota: few"), "{reason}");
    let rounds = recording["rounds"].as_array().expect("rounds").iter();
    let counted = rounds.filter(|round| round["disturbed"] != true);
    assert_eq!(counted.count(), 4, "two variants in two rounds");
}
