//! Sidecars that an admission webhook injects, in both kinds: an additional container that never ends, and an
//! init container that is restarted for ever. They run on the real node of `ci/cluster/cluster.sh`, or are NOT RUN.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use e2e::wait_until;
use serde_json::Value;
use tempfile::TempDir;

use crate::kubernetes::{IMAGE, counted, node, recording, words};
use crate::node::Node;

/// The machine's end of the link to the node.
const MACHINE: &str = "10.199.0.1";

const LAB: &str = "question: Are two milliseconds found?
load: {rate: 100/s, duration: 2s, path: /}
generators: 2
pods: {generators: {sidecars: SIDECARS}}
target: server
systems:
  server:
    settings: {delay: 1ms}
    image: IMAGE
    pull: never
    port: 8080
    command: \"null-server --listen {{addr}} --delay {{delay}}\"
    limits: {cpus: 0.2, memory: 64MiB}
baseline: {name: early}
variants: [{name: late, with: {server.delay: 3ms}}]
expect: {status: 200, same-as: baseline}
";

/// A process of a test, which ends with it.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ended = self.0.kill();
        let _status = self.0.wait();
    }
}

/// The webhook, and a namespace for each of its kinds.
struct Injector {
    node: Node,
    folder: TempDir,
    _server: Ended,
}

impl Injector {
    #[track_caller]
    fn up() -> Option<Injector> {
        let node = node()?;
        let folder = TempDir::new().expect("a folder");
        let identity = rcgen::generate_simple_self_signed([MACHINE.to_owned()]).expect("keys");
        let (certificate, key) = (folder.path().join("crt"), folder.path().join("key"));
        fs::write(&certificate, identity.cert.pem()).expect("a file");
        fs::write(&key, identity.signing_key.serialize_pem()).expect("a file");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/systems/injector.py");
        let mut server = Command::new("python3")
            .args([&script, Path::new(MACHINE), &certificate, &key])
            .arg(IMAGE)
            .stdout(Stdio::piped())
            .spawn()
            .expect("Python starts");
        let output = server.stdout.take().expect("its output");
        let server = Ended(server);
        let mut hooks = String::new();
        BufReader::new(output).read_line(&mut hooks).expect("text");
        let file = folder.path().join("hooks.json");
        fs::write(&file, hooks).expect("a file");
        node.kubectl(&["create", "namespace", "old"]);
        node.kubectl(&["create", "namespace", "native"]);
        let said = node.kubectl(&["apply", "--filename", &file.display().to_string()]);
        assert!(said.contains("created"), "{said}");
        Some(Injector {
            node,
            folder,
            _server: server,
        })
    }

    /// Measures the lab in a namespace. Checks that all requests were counted and no object is left. Returns the
    /// states of each pod.
    fn pods_of_run(&self, namespace: &str, sidecars: &str) -> BTreeMap<String, Vec<Value>> {
        let folder = self.folder.path().join(format!("{namespace}-{sidecars}"));
        fs::create_dir(&folder).expect("a folder");
        let lab = LAB.replace("IMAGE", IMAGE).replace("SIDECARS", sidecars);
        fs::write(folder.join("two.yaml"), lab).expect("a file");
        let seen = folder.join("seen.json");
        let watch = Command::new(self.node.state.join("bin/kubectl"))
            .env("KUBECONFIG", self.node.state.join("kubeconfig"))
            .args(["get", "pods", "-n", namespace, "--watch", "-o", "json"])
            .stdout(File::create(&seen).expect("a file"))
            .spawn();
        let watch = Ended(watch.expect("kubectl starts"));
        let mut weigh = self.node.start_in(&folder, 1, namespace);
        // A run that waits for a sidecar ends at its deadline, after more than 5 minutes.
        wait_until("the end of the run", Duration::from_secs(90), || {
            weigh.try_wait().expect("a state").is_some()
        });
        let output = weigh.wait_with_output().expect("it ends");
        drop(watch);
        // Exit code 7: a check may withhold the verdict on a busy machine.
        let said = words(&output);
        assert!(matches!(output.status.code(), Some(0 | 7)), "{said}");
        assert_eq!(self.node.left_in(namespace), "");
        let recording = recording(&folder);
        assert!(
            recording["cluster"]["lost_rounds"]
                .as_array()
                .is_none_or(Vec::is_empty),
            "{said}"
        );
        let rounds = counted(&recording);
        assert_eq!(rounds.len(), 2, "two variants in a round: {said}");
        for round in rounds {
            assert_eq!(round["outcomes"]["passed"], 200, "{round}");
            assert_eq!(round["generators"].as_array().map(Vec::len), Some(2));
        }
        states(&fs::read_to_string(&seen).expect("a file"))
    }
}

/// The states of each pod that had a node, in the output of `kubectl get --watch`.
fn states(seen: &str) -> BTreeMap<String, Vec<Value>> {
    let mut pods: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for pod in serde_json::Deserializer::from_str(seen).into_iter::<Value>() {
        // The end of the watch cuts an object off.
        let Ok(pod) = pod else { break };
        let name = pod["metadata"]["name"].as_str().expect("a name").to_owned();
        if pod["spec"]["nodeName"].is_string() {
            pods.entry(name).or_default().push(pod);
        }
    }
    pods
}

/// The names of containers in a list.
fn names(containers: &Value) -> Vec<&str> {
    let containers = containers.as_array().into_iter().flatten();
    containers.filter_map(|it| it["name"].as_str()).collect()
}

/// Checks that both pods of a kind have these containers, and that each pod once had a state.
fn check(
    pods: &BTreeMap<String, Vec<Value>>,
    kind: &str,
    containers: [&[&str]; 2],
    once: impl Fn(&Value) -> bool,
) {
    let mut count = 0;
    for (name, states) in pods.iter().filter(|(name, _)| name.contains(kind)) {
        count += 1;
        let spec = &states[0]["spec"];
        assert_eq!(names(&spec["initContainers"]), containers[0], "{name}");
        assert_eq!(names(&spec["containers"]), containers[1], "{name}");
        assert!(states.iter().any(&once), "{name}: {states:?}");
    }
    assert_eq!(count, 2, "{kind}: {:?}", pods.keys());
}

/// The state of a container: `running`, `terminated` or `waiting`, in a list of states.
fn is(states: &Value, name: &str, state: &str) -> bool {
    let mut states = states.as_array().into_iter().flatten();
    states.any(|it| it["name"] == name && it["state"][state].is_object())
}

#[test]
fn generators_have_injected_sidecars_if_they_are_on_and_end_without_them() {
    let Some(injector) = Injector::up() else {
        return;
    };
    let generators = "-generators-";
    let is_running = |pod: &Value| is(&pod["status"]["containerStatuses"], "sidecar", "running");

    // The namespace injects the systems, and generators refuse it by default.
    let pods = injector.pods_of_run("old", "off");
    check(&pods, "-server-", [&[], &["sidecar", "system"]], is_running);
    check(&pods, generators, [&[], &["generator"]], |_| true);

    // This sidecar never ends by itself, so the run did not wait for the end of the pod.
    let pods = injector.pods_of_run("old", "on");
    let containers: [&[&str]; 2] = [&[], &["sidecar", "generator"]];
    check(&pods, generators, containers, is_running);

    let pods = injector.pods_of_run("native", "on");
    check(&pods, generators, [&["sidecar"], &["generator"]], |pod| {
        is(
            &pod["status"]["initContainerStatuses"],
            "sidecar",
            "running",
        )
    });
}
