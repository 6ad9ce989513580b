//! Labs on two real nodes of `ci/cluster/cluster.sh`: clocks that differ, and nodes and pods that go away during a
//! run. Without the programs of the cluster they are NOT RUN.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Output};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use e2e::{wait_until, weigh};
use serde_json::Value;
use tempfile::TempDir;

use crate::kubernetes::{IMAGE, counted, recording, words};
use crate::node::Node;

/// The node that is taken away. The other one has the control plane.
const OTHER: &str = "node2";
/// The time limit for two generators and two systems to run, with all images on their nodes.
const STARTED: Duration = Duration::from_secs(120);
/// The time limit for the cluster to count a node as lost. It does so after 50 s.
const KNOWN: Duration = Duration::from_secs(90);
/// The time limit for the reason, after the cluster has decided.
const PRINTED: Duration = Duration::from_secs(30);

/// Two nodes with the image of weigh, and a folder for a lab.
struct Two {
    node: Node,
    folder: TempDir,
}

impl Two {
    #[track_caller]
    fn up() -> Option<Two> {
        let node = Node::with(2)?;
        node.image(IMAGE, &weigh());
        let folder = TempDir::new().expect("a folder");
        Some(Two { node, folder })
    }

    /// Starts a lab of two null servers, the second one 2 ms later. A generator is on each node that is in use.
    fn lab(&self, seconds: u32, rounds: u32) -> Child {
        let text = format!(
            "question: Are two milliseconds found?\n\
             load: {{rate: 100/s, duration: {seconds}s, path: /}}\ngenerators: 2\ntarget: server\n\
             pods:\n  generators:\n    labels: {{part: load}}\n    topology-spread:\n      \
             - {{maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule, \
             nodeTaintsPolicy: Honor, labelSelector: {{matchLabels: {{part: load}}}}}}\n\
             systems:\n  server:\n    settings: {{delay: 1ms}}\n    image: {IMAGE}\n    pull: never\n    \
             port: 8080\n    command: \"null-server --listen {{{{addr}}}} --delay {{{{delay}}}}\"\n    \
             limits: {{cpus: 0.2, memory: 64MiB}}\n\
             baseline: {{name: early}}\nvariants: [{{name: late, with: {{server.delay: 3ms}}}}]\n\
             expect: {{status: 200, same-as: baseline}}\n"
        );
        write(self.folder.path(), "two.yaml", &text);
        self.node.start(self.folder.path(), rounds)
    }

    /// Pods of a round that run, as lines of their name and node.
    fn running(&self, part_of_name: &str) -> Vec<(String, String)> {
        let columns = "custom-columns=:metadata.name,:spec.nodeName";
        let pods = self.node.kubectl(&[
            "get",
            "pods",
            "--no-headers",
            "--field-selector",
            "status.phase=Running",
            "-o",
            columns,
        ]);
        let pods = pods.lines().filter_map(|line| {
            let mut words = line.split_whitespace();
            Some((words.next()?.to_owned(), words.next()?.to_owned()))
        });
        pods.filter(|(name, _)| name.contains(part_of_name))
            .collect()
    }

    /// Waits until both generators of a round run. Returns their names and nodes.
    fn generators(&self, round: u32) -> Vec<(String, String)> {
        let name = format!("generators-r{round}-");
        let mut found = Vec::new();
        wait_slowly("both generators run", STARTED, || {
            found = self.running(&name);
            found.len() == 2
        });
        found
    }
}

/// Waits with pauses, because each question starts a program.
fn wait_slowly(what: &str, limit: Duration, mut condition: impl FnMut() -> bool) {
    wait_until(what, limit, || {
        let is_so = condition();
        if !is_so {
            std::thread::park_timeout(Duration::from_millis(300));
        }
        is_so
    });
}

/// The messages of a run while it lasts.
fn messages(weigh: &mut Child) -> Arc<Mutex<String>> {
    let said = Arc::new(Mutex::new(String::new()));
    let (from, to) = (weigh.stderr.take().expect("stderr"), Arc::clone(&said));
    std::thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            let mut said = to.lock().expect("no panic");
            said.push_str(&line);
            said.push('\n');
        }
    });
    said
}

/// Reasons of the lost rounds in a recording.
fn lost_rounds(recording: &Value) -> Vec<String> {
    let lost = recording["cluster"]["lost_rounds"].as_array();
    let lost = lost.into_iter().flatten().filter_map(Value::as_str);
    lost.map(str::to_owned).collect()
}

/// Checks that a run has this many whole rounds with all requests, and that no object is left.
fn is_whole(two: &Two, output: &Output, rounds: usize, requests: u64) -> Value {
    let said = words(output);
    // Exit code 7: a check may withhold the verdict on a busy machine.
    assert!(matches!(output.status.code(), Some(0 | 7)), "{said}");
    let recording = recording(two.folder.path());
    let counted = counted(&recording);
    assert_eq!(
        counted.len(),
        2 * rounds,
        "each variant in each round: {said}"
    );
    for round in counted {
        assert_eq!(round["outcomes"]["passed"], requests, "{said}");
    }
    assert_eq!(two.node.left(), "");
    recording
}

/// The numbers of segments that a process sent, over time. Pods have their own counters.
struct Sent {
    process: u32,
    counts: Vec<(Instant, u64)>,
}

impl Sent {
    /// The time of the last request of a load, by the last rise of at least half of the usual steepness.
    fn last(&self) -> Instant {
        let window = 20;
        let rises = self.counts.windows(window).map(|seen| {
            let (from, to) = (seen[0], seen[window - 1]);
            (to.0, to.1 - from.1)
        });
        let rises: Vec<(Instant, u64)> = rises.collect();
        let mut sizes: Vec<u64> = rises
            .iter()
            .map(|rise| rise.1)
            .filter(|it| *it > 0)
            .collect();
        sizes.sort_unstable();
        let usual = sizes[sizes.len() / 2];
        let steep = rises.iter().rev().find(|rise| 2 * rise.1 >= usual);
        steep.expect("it sent something").0
    }
}

/// The processes of generators on this machine.
fn generator_processes() -> Vec<u32> {
    let processes = fs::read_dir("/proc").expect("processes").flatten();
    let ids = processes.filter_map(|it| it.file_name().to_str()?.parse::<u32>().ok());
    let is_generator = |id: &u32| {
        let words = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&words).contains("generator\0/etc/weigh/job.json")
    };
    ids.filter(is_generator).collect()
}

fn segments_of(process: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{process}/net/snmp")).ok()?;
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Tcp: "));
    let (names, values) = (lines.next()?, lines.next()?);
    let at = names.split(' ').position(|name| name == "OutSegs")?;
    values.split(' ').nth(at)?.parse().ok()
}

/// Watches two generators until they end.
#[expect(
    clippy::disallowed_methods,
    reason = "the moments of sends are the claim"
)]
fn watch_two() -> [Sent; 2] {
    let mut processes = Vec::new();
    wait_until("two generators", STARTED, || {
        processes = generator_processes();
        processes.len() == 2
    });
    let mut sent = [0, 1].map(|index: usize| Sent {
        process: processes[index],
        counts: Vec::new(),
    });
    loop {
        for one in &mut sent {
            match segments_of(one.process) {
                Some(count) => one.counts.push((Instant::now(), count)),
                None => return sent,
            }
        }
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

#[test]
fn two_generators_with_different_clocks_begin_together_and_the_offset_is_recorded() {
    let Some(two) = Two::up() else { return };
    // Far more than the 0.7 s from the agreement to the start.
    two.node.call(&["clock", OTHER, "2.5"]);
    let weigh = two.lab(5, 1);
    let [one, other] = watch_two();
    let output = weigh.wait_with_output().expect("it ends");
    let recording = is_whole(&two, &output, 1, 500);
    for round in counted(&recording) {
        let generators = round["generators"].as_array().expect("generators");
        let second = &generators[1];
        let nodes = [&generators[0]["node"], &second["node"]];
        assert_ne!(nodes[0], nodes[1], "{second}");
        // The lead of the clock of the first generator.
        let planted = if nodes[0] == OTHER { 2.5e6 } else { -2.5e6 };
        let found = second["clock_ahead_us"].as_f64().expect("an offset");
        let error = second["clock_error_us"].as_f64().expect("its error");
        assert!(error < 20_000.0, "{second}");
        assert!((found - planted).abs() <= error + 1.0, "{found} {error}");
    }
    let (one, other) = (one.last(), other.last());
    let apart = one.max(other).duration_since(one.min(other));
    assert!(apart < Duration::from_millis(500), "{apart:?}");
}

#[test]
fn a_round_with_a_system_that_is_evicted_is_measured_again() {
    let Some(two) = Two::up() else { return };
    let weigh = two.lab(15, 1);
    two.generators(1);
    let systems = two.running("-server-r1");
    let (pod, node) = systems.first().expect("a system runs");
    two.node.call(&["evict", pod]);
    let output = weigh.wait_with_output().expect("it ends");
    let recording = is_whole(&two, &output, 1, 1_500);
    let lost = lost_rounds(&recording);
    let named = format!("round 1: pod `{pod}` on node `{node}`: was evicted: ");
    assert!(lost.len() == 1 && lost[0].starts_with(&named), "{lost:?}");
    let said = words(&output);
    assert!(
        said.contains("Lost: the cluster took a pod away, or its result, in 1 attempt"),
        "{said}"
    );
}

#[test]
fn a_round_with_a_generator_that_is_evicted_from_its_own_node_is_measured_again() {
    let Some(two) = Two::up() else { return };
    let weigh = two.lab(15, 1);
    let generators = two.generators(1);
    let there = generators.iter().find(|(_, node)| node == OTHER);
    let (pod, node) = there.unwrap_or_else(|| panic!("one on each node: {generators:?}"));
    two.node.call(&["evict", pod]);
    let output = weigh.wait_with_output().expect("it ends");
    let recording = is_whole(&two, &output, 1, 1_500);
    let lost = lost_rounds(&recording);
    let named = format!("of 2, pod `{pod}` on node `{node}`, was evicted: ");
    assert!(lost.len() == 1 && lost[0].contains(&named), "{lost:?}");
}

#[test]
fn a_run_goes_on_without_a_node_that_is_drained() {
    let Some(two) = Two::up() else { return };
    let weigh = two.lab(15, 1);
    two.generators(1);
    two.node.call(&["drain", OTHER]);
    let output = weigh.wait_with_output().expect("it ends");
    let recording = is_whole(&two, &output, 1, 1_500);
    let lost = lost_rounds(&recording);
    assert!((1..=2).contains(&lost.len()), "{lost:?}");
    let named = format!("on node `{OTHER}`");
    assert!(
        lost[0].contains(&named) && lost[0].contains("was evicted"),
        "{lost:?}"
    );
    for round in counted(&recording) {
        for generator in round["generators"].as_array().expect("generators") {
            assert_eq!(generator["node"], "node1");
        }
    }
}

#[test]
fn a_run_goes_on_without_a_node_that_is_lost() {
    let Some(two) = Two::up() else { return };
    let mut weigh = two.lab(15, 2);
    let said = messages(&mut weigh);
    two.generators(2);
    two.node.call(&["lose", OTHER]);
    let ready = "jsonpath={.status.conditions[?(@.type==\"Ready\")].status}";
    wait_slowly("the cluster knows it", KNOWN, || {
        let status = two.node.kubectl(&["get", "node", OTHER, "-o", ready]);
        status == "Unknown"
    });
    wait_until("the reason is printed", PRINTED, || {
        let said = said.lock().expect("no panic");
        said.contains("was lost with its node") && said.contains(OTHER)
    });
    let output = weigh.wait_with_output().expect("it ends");
    let recording = is_whole(&two, &output, 2, 1_500);
    let lost = lost_rounds(&recording);
    assert_eq!(lost.len(), 1, "{lost:?}");
    assert!(lost[0].starts_with("round 2: "), "{lost:?}");
    let named = format!("on node `{OTHER}`");
    assert!(
        lost[0].contains(&named) && lost[0].contains("Kubelet stopped"),
        "{lost:?}"
    );
}

#[test]
fn an_api_server_that_is_restarted_during_a_run_on_two_nodes_changes_nothing() {
    let Some(two) = Two::up() else { return };
    let weigh = two.lab(20, 1);
    two.generators(1);
    two.node.call(&["restart", "kube-apiserver", "10"]);
    let output = weigh.wait_with_output().expect("it ends");
    let recording = is_whole(&two, &output, 1, 2_000);
    assert_eq!(lost_rounds(&recording), Vec::<String>::new());
    let nodes = recording["cluster"]["nodes"].as_array().map(Vec::len);
    assert_eq!(nodes, Some(2), "{}", recording["cluster"]);
}

/// A server on a node that its file names.
fn server_on(node: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Service\nmetadata: {{name: server}}\n\
         spec: {{selector: {{app: server}}, ports: [{{port: 8080}}]}}\n---\n\
         apiVersion: v1\nkind: Pod\nmetadata: {{name: server, labels: {{app: server}}}}\n\
         spec:\n  nodeSelector: {{kubernetes.io/hostname: {node}}}\n  containers:\n    \
         - {{name: server, image: {IMAGE}, imagePullPolicy: Never, args: [null-server, --listen, '0.0.0.0:8080']}}\n"
    )
}

fn write(folder: &Path, name: &str, text: &str) {
    fs::write(folder.join(name), text).expect("a file");
}

#[test]
fn a_variant_that_always_has_another_node_than_its_baseline_has_no_verdict() {
    let Some(two) = Two::up() else { return };
    let folder = two.folder.path();
    write(folder, "here.yaml", &server_on("node1"));
    write(folder, "there.yaml", &server_on(OTHER));
    let lab = "question: Is a node a variant?\nload: {rate: 100/s, duration: 5s, path: /}\n\
        target: server\nsystems:\n  server:\n    settings: {place: here}\n    manifests:\n      \
        files: '{{place}}.yaml'\n      service: server\n      workload: server\n\
        baseline: {name: one}\nvariants: [{name: other, with: {server.place: there}}]\n\
        expect: {status: 200}\n";
    write(folder, "two.yaml", lab);
    let weigh = two.node.start(folder, 2);
    let output = weigh.wait_with_output().expect("it ends");
    let said = words(&output);
    assert_eq!(output.status.code(), Some(7), "{said}");
    assert!(said.contains("placement"), "{said}");
    let recording = recording(folder);
    let placed = recording["cluster"]["placed"].as_array().expect("places");
    let of = |variant: &str| -> Vec<&str> {
        let own = placed.iter().filter(|pod| pod["variant"] == variant);
        own.filter_map(|pod| pod["node"].as_str()).collect()
    };
    assert_eq!(of("one"), ["node1", "node1"]);
    assert_eq!(of("other"), [OTHER, OTHER]);
    assert_eq!(two.node.left(), "");
}
