//! Labs in a cluster, on the real node of `ci/cluster/cluster.sh`. If its programs are not built
//! (`./setup kubernetes`), or without the rights for it, these claims are NOT RUN.

use std::fs;
use std::path::Path;
use std::process::{Child, Output, Stdio};
use std::time::Duration;

use e2e::{wait_until, weigh, weigh_command};
use serde_json::Value;
use tempfile::TempDir;

use crate::node::Node;

/// The image of weigh, which runs generator and target here.
pub(crate) const IMAGE: &str = "localhost/weigh:test";

impl Node {
    /// All objects of a run in the cluster.
    pub(crate) fn left(&self) -> String {
        self.left_in("default")
    }

    /// All objects of a run in a namespace.
    pub(crate) fn left_in(&self, namespace: &str) -> String {
        let kinds = "pods,jobs,deployments,statefulsets,services,configmaps,secrets";
        self.kubectl(&[
            "get",
            kinds,
            "-n",
            namespace,
            "-o",
            "name",
            "-l",
            "app.kubernetes.io/managed-by=weighbridge",
        ])
    }

    /// Starts a lab of two null servers in pods, the second one 2 ms later.
    pub(crate) fn lab(&self, folder: &Path, seconds: u32, rounds: u32) -> Child {
        self.lab_of(
            folder,
            &format!("rate: 100/s, duration: {seconds}s"),
            rounds,
        )
    }

    /// Starts the lab under another load. In a closed loop it has no limits, because limits are granted in
    /// periods and slices would cut them.
    fn lab_of(&self, folder: &Path, load: &str, rounds: u32) -> Child {
        let limits = match load.starts_with("rate") {
            true => "    limits: {cpus: 0.2, memory: 64MiB}\n",
            false => "",
        };
        let text = format!(
            "question: Are two milliseconds found?\n\
             load: {{{load}, path: /}}\n\
             generators: 2\n\
             target: server\n\
             systems:\n  server:\n    settings: {{delay: 1ms}}\n    image: {IMAGE}\n    pull: never\n    port: 8080\n\
             \x20   command: \"null-server --listen {{{{addr}}}} --delay {{{{delay}}}}\"\n\
             {limits}\
             baseline: {{name: early}}\n\
             variants: [{{name: late, with: {{server.delay: 3ms}}}}]\n\
             expect: {{status: 200, same-as: baseline}}\n"
        );
        fs::write(folder.join("two.yaml"), text).expect("a file");
        self.start(folder, rounds)
    }

    /// Starts the lab of a folder.
    pub(crate) fn start(&self, folder: &Path, rounds: u32) -> Child {
        self.start_in(folder, rounds, "default")
    }

    /// Starts the lab of a folder in a namespace.
    pub(crate) fn start_in(&self, folder: &Path, rounds: u32, namespace: &str) -> Child {
        weigh_command()
            .current_dir(folder)
            .env("KUBECONFIG", self.state.join("kubeconfig"))
            .args([
                "lab",
                "two.yaml",
                "--on",
                "kubernetes",
                "--generator-image",
                IMAGE,
            ])
            .args(["--namespace", namespace, "--rounds", &rounds.to_string()])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("weigh starts")
    }
}

/// Starts the cluster with the image of weigh, or records why the calling test does not run.
#[track_caller]
pub(crate) fn node() -> Option<Node> {
    let node = Node::up()?;
    node.image(IMAGE, &weigh());
    Some(node)
}

/// All words of a run on one line.
pub(crate) fn words(output: &Output) -> String {
    let all = [&output.stdout[..], &output.stderr].concat();
    let text = String::from_utf8_lossy(&all).into_owned();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

pub(crate) fn recording(folder: &Path) -> Value {
    let runs = fs::read_dir(folder.join("recordings")).expect("a folder of recordings");
    let run = runs.flatten().next().expect("a recording").path();
    let text = fs::read_to_string(run.join("recording.json")).expect("its file");
    serde_json::from_str(&text).expect("JSON")
}

/// The measurements that count. A disturbed measurement was repeated, and is kept as evidence.
pub(crate) fn counted(recording: &Value) -> Vec<&Value> {
    let rounds = recording["rounds"].as_array().expect("rounds");
    let counts = rounds.iter().filter(|round| round["disturbed"] != true);
    counts.collect()
}

fn sum(generators: &Value, of: &str) -> u64 {
    let all = generators.as_array().into_iter().flatten();
    all.filter_map(|one| one[of].as_u64()).sum()
}

/// Adds the last item to a `List` of manifests: an API that starts only if it finds its database at this URL.
/// `IMAGE` becomes the image of weigh.
pub(crate) fn with_api(list: &str, listen: &str, account: &str, database: &str) -> String {
    let api = format!(
        "  - apiVersion: v1
    kind: Pod
    metadata: {{name: api, labels: {{app: api}}}}
    spec:
      serviceAccountName: {account}
      containers:
        - name: api
          image: IMAGE
          imagePullPolicy: Never
          args: [null-server, --listen, '{listen}']
          startupProbe:
            exec: {{command: [/bin/weigh, load, '{database}', -n, '20', -c, '1', --timeout, 2s]}}
            periodSeconds: 1
            timeoutSeconds: 10
            failureThreshold: 50
"
    );
    format!("{list}{api}").replace("IMAGE", IMAGE)
}

#[test]
fn two_generators_in_pods_count_what_one_plan_holds_and_leave_nothing() {
    let Some(node) = node() else { return };
    let folder = TempDir::new().expect("a folder");
    let output = node
        .lab(folder.path(), 2, 2)
        .wait_with_output()
        .expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    // Exit code 7: a check may withhold the verdict on a busy machine.
    assert!(matches!(output.status.code(), Some(0 | 7)), "{said}");
    let recording = recording(folder.path());
    let rounds = counted(&recording);
    assert_eq!(rounds.len(), 4, "two variants in two rounds");
    for round in rounds {
        assert_eq!(round["planned"], 200);
        assert_eq!(round["outcomes"]["passed"], 200, "{round}");
        assert_eq!(round["generators"].as_array().map(Vec::len), Some(2));
        assert_eq!(sum(&round["generators"], "planned"), 200);
        assert!(
            round["network"]["round_trip_ns_hdr"].is_string()
                || round["network"]["round_trip_ns_hdr"].is_object()
        );
    }
    assert_eq!(recording["cluster"]["nodes"][0]["name"], "node1");
    let placed = recording["cluster"]["placed"].as_array().expect("places");
    assert!(
        placed.iter().any(|one| one["quality"] == "Guaranteed"),
        "{placed:?}"
    );
    assert_eq!(node.left(), "");
}

#[test]
fn a_closed_loop_of_two_generators_moves_from_variant_to_variant_together() {
    let Some(node) = node() else { return };
    let folder = TempDir::new().expect("a folder");
    let load = "connections: 4, duration: 2s";
    let output = node
        .lab_of(folder.path(), load, 2)
        .wait_with_output()
        .expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(matches!(output.status.code(), Some(0 | 7)), "{said}");
    let recording = recording(folder.path());
    let rounds = counted(&recording);
    assert_eq!(rounds.len(), 4, "two variants in two rounds: {said}");
    let completed = |name: &str| -> u64 {
        let own = rounds.iter().filter(|round| round["variant"] == name);
        own.filter_map(|round| round["outcomes"]["passed"].as_u64())
            .sum()
    };
    for round in &rounds {
        assert_eq!(round["generators"].as_array().map(Vec::len), Some(2));
        let passed = round["outcomes"]["passed"].as_u64();
        assert_eq!(Some(sum(&round["generators"], "completed")), passed);
        let discarded = round["slices"]["discarded"]["passed"].as_u64();
        assert!(discarded > Some(0), "beginnings do not count: {round}");
    }
    // A response takes 1 ms from one and 3 ms from the other, regardless of the variant that has the load.
    let (early, late) = (completed("early"), completed("late"));
    assert!(late > 0 && early > 3 * late / 2, "{early} and {late}");
    assert_eq!(node.left(), "");
}

/// Without its file, the gateway listens elsewhere and refuses introspection.
#[test]
fn configuration_files_reach_the_pods_of_their_variants() {
    let Some(node) = node() else { return };
    node.image("localhost/gateway:test", &e2e::gateway());
    let folder = TempDir::new().expect("a folder");
    let planets =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../services/planets/supergraph.graphql");
    fs::copy(planets, folder.path().join("planets.graphql")).expect("a file");
    let text = "question: Do files reach pods?
load: {rate: 20/s, duration: 2s, path: /, requests: [{name: fields, query: '{ __schema { queryType { name } } }'}]}
target: gateway
systems:
  gateway:
    settings: {depth: 50}
    image: localhost/gateway:test
    pull: never
    port: 4000
    files:
      conf/gateway.yaml: {text: '{supergraph: {listen: \"0.0.0.0:{{port}}\", introspection: true}, limits: {max_depth: {{depth}} }}'}
      planets.graphql: {path: planets.graphql, raw: true}
    command: --config {{file.conf/gateway.yaml}} --supergraph {{file.planets.graphql}}
baseline: {name: shallow}
variants:
  - {name: deep, with: {gateway.depth: 60}}
expect: {status: 200, graphql: no-errors}
";
    fs::write(folder.path().join("two.yaml"), text).expect("a file");
    let output = node
        .start(folder.path(), 1)
        .wait_with_output()
        .expect("it ends");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let recording = recording(folder.path());
    let variants = recording["variants"].as_array().expect("variants");
    for variant in variants {
        assert_eq!(variant["status"]["state"], "measured", "{said}");
    }
    let digest = |variant: usize| &variants[variant]["systems"][0]["files"]["conf/gateway.yaml"];
    assert_ne!(digest(0), digest(1));
    assert_eq!(node.left(), "");
}

#[test]
fn a_killed_weigh_leaves_nothing_in_the_cluster() {
    let Some(node) = node() else { return };
    let folder = TempDir::new().expect("a folder");
    let mut weigh = node.lab(folder.path(), 60, 1);
    wait_until("generators", Duration::from_secs(120), || {
        node.left().contains("generators-r1-")
    });
    weigh.kill().expect("SIGKILL");
    weigh.wait().expect("it ends");
    wait_until("nothing is left", Duration::from_secs(60), || {
        node.left().is_empty()
    });
}

/// Takes the second generator away in the middle of a load. The round must be measured again. The recording must
/// name pod and node, and report its fate in one of the given texts.
fn take_away_a_generator(node: &Node, take: impl Fn(&str), said_of_it: &[&str]) {
    let folder = TempDir::new().expect("a folder");
    let weigh = node.lab(folder.path(), 15, 1);
    let running = || {
        let pods = node.kubectl(&[
            "get",
            "pods",
            "-o",
            "name",
            "--field-selector",
            "status.phase=Running",
        ]);
        let mut names = pods.lines().map(str::to_owned);
        names.find(|name| name.contains("generators-r1-1-"))
    };
    wait_until(
        "the second generator runs",
        Duration::from_secs(120),
        || running().is_some(),
    );
    let pod = running().expect("it runs");
    let name = pod.trim_start_matches("pod/");
    take(name);
    let output = weigh.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(matches!(output.status.code(), Some(0 | 7)), "{said}");
    let recording = recording(folder.path());
    assert_eq!(counted(&recording).len(), 2, "each variant once: {said}");
    let lost = recording["cluster"]["lost_rounds"].as_array();
    assert_eq!(lost.map(Vec::len), Some(1), "{said}");
    let words = recording["cluster"]["lost_rounds"][0]
        .as_str()
        .expect("a reason");
    let named = format!("round 1: generator 2 of 2, pod `{name}` on node `node1`, ");
    let became = words
        .strip_prefix(&named)
        .unwrap_or_else(|| panic!("{words}"));
    assert!(
        said_of_it.iter().any(|it| became.starts_with(it)),
        "{words}"
    );
    assert_eq!(node.left(), "");
}

#[test]
fn a_round_with_a_generator_that_is_taken_away_is_measured_again() {
    let Some(node) = node() else { return };
    let take = |name: &str| {
        node.kubectl(&["delete", "pod", name, "--grace-period=0", "--force"]);
    };
    take_away_a_generator(&node, take, &["was removed", "is being removed"]);
}

#[test]
fn a_round_with_a_generator_that_is_evicted_is_measured_again() {
    let Some(node) = node() else { return };
    let folder = TempDir::new().expect("a folder");
    let order = folder.path().join("eviction.json");
    // Evicts a pod, as the drain of a node does.
    let take = |name: &str| {
        let text = serde_json::json!({
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name},
        });
        fs::write(&order, text.to_string()).expect("a file");
        let of_pod = format!("/api/v1/namespaces/default/pods/{name}/eviction");
        node.kubectl(&[
            "create",
            "--raw",
            &of_pod,
            "-f",
            &order.display().to_string(),
        ]);
    };
    take_away_a_generator(&node, take, &["was evicted: Eviction API: evicting"]);
}

/// A server behind the name of another. The front takes its delay from a ConfigMap, and both have a Service.
/// Every variant has all of these objects.
const MANIFESTS: &str = "
apiVersion: v1
kind: Service
metadata: {name: server}
spec: {selector: {app: server}, ports: [{port: 80, targetPort: web}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: delays}
data: {delay: 1ms}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: server}
spec:
  replicas: 2
  selector: {matchLabels: {app: server}}
  template:
    metadata: {labels: {app: server}}
    spec:
      serviceAccountName: server
      containers:
        - name: server
          image: IMAGE
          imagePullPolicy: Never
          args: [null-server, --listen, '0.0.0.0:8080', --delay, '$(DELAY)']
          env: [{name: DELAY, valueFrom: {configMapKeyRef: {name: delays, key: delay}}}]
          ports: [{name: web, containerPort: 8080}]
          readinessProbe: {tcpSocket: {port: web}, periodSeconds: 1}
          resources: {requests: {cpu: 50m, memory: 32Mi}, limits: {cpu: 200m, memory: 64Mi}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: beside}
spec:
  serviceName: server
  selector: {matchLabels: {app: beside}}
  template:
    metadata: {labels: {app: beside}}
    spec:
      containers:
        - name: beside
          image: IMAGE
          imagePullPolicy: Never
          args: [null-server, --listen, '0.0.0.0:8080']
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: server}
";

#[test]
fn manifests_of_a_user_are_measured_as_they_are_and_leave_nothing() {
    let Some(node) = node() else { return };
    let folder = TempDir::new().expect("a folder");
    let manifests = MANIFESTS.replace("IMAGE", IMAGE);
    fs::write(folder.path().join("server.yaml"), manifests).expect("a file");
    let lab = "question: Are five milliseconds found?\n\
        load: {rate: 100/s, duration: 2s, path: /}\ngenerators: 1\ntarget: server\n\
        systems:\n  server:\n    settings: {delay: 1ms}\n    manifests:\n      files: server.yaml\n      \
        service: server\n      workload: server\n      without: ServiceAccount\n      \
        changes: {server: {env: {DELAY: '{{delay}}'}}}\n\
        baseline: {name: early}\nvariants: [{name: late, with: {server.delay: 6ms}}]\n\
        expect: {status: 200, same-as: baseline}\n";
    fs::write(folder.path().join("two.yaml"), lab).expect("a file");
    let weigh = node.start(folder.path(), 2);
    let output = weigh.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(matches!(output.status.code(), Some(0 | 7)), "{said}");
    let recording = recording(folder.path());
    let rounds = counted(&recording);
    assert_eq!(rounds.len(), 4, "two variants in two rounds: {said}");
    for round in rounds {
        assert_eq!(round["outcomes"]["passed"], 200, "{round}");
    }
    let digest = &recording["variants"][0]["systems"][0]["manifests"];
    assert_eq!(digest.as_str().map(str::len), Some(64), "{digest}");
    let placed = recording["cluster"]["placed"].as_array().expect("places");
    let of_server = placed.iter().filter(|one| one["system"] == "server");
    // Three pods of each variant in each of two rounds.
    assert_eq!(of_server.count(), 12, "{placed:?}");
    assert_eq!(node.left(), "");
}

/// Two Services that run already, each with a pod. The second one answers later.
const DEPLOYED: &str = "
apiVersion: v1
kind: Pod
metadata: {name: plain, labels: {app: plain}}
spec:
  containers: [{name: server, image: IMAGE, imagePullPolicy: Never, args: [null-server, --listen, '0.0.0.0:8080', --delay, 1ms]}]
---
apiVersion: v1
kind: Pod
metadata: {name: later, labels: {app: later}}
spec:
  containers: [{name: server, image: IMAGE, imagePullPolicy: Never, args: [null-server, --listen, '0.0.0.0:8080', --delay, 3ms]}]
---
apiVersion: v1
kind: Service
metadata: {name: plain}
spec: {selector: {app: plain}, ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: v1
kind: Service
metadata: {name: later}
spec: {selector: {app: later}, ports: [{port: 80, targetPort: 8080}]}
";

impl Node {
    /// Creates the two Services, and waits for their pods.
    fn deploy(&self, folder: &Path) {
        let objects = folder.join("deployed.yaml");
        fs::write(&objects, DEPLOYED.replace("IMAGE", IMAGE)).expect("a file");
        self.kubectl(&["apply", "--filename", &objects.display().to_string()]);
        self.kubectl(&[
            "wait",
            "--for=condition=Ready",
            "pod/plain",
            "pod/later",
            "--timeout=60s",
        ]);
    }
}

#[test]
fn a_load_of_two_generators_is_one_recording_and_leaves_nothing() {
    let Some(node) = node() else { return };
    let folder = TempDir::new().expect("a folder");
    node.deploy(folder.path());
    fs::write(folder.path().join("q.json"), "{}").expect("a file");
    let output = weigh_command()
        .current_dir(folder.path())
        .env("KUBECONFIG", node.state.join("kubeconfig"))
        .args([
            "load",
            "http://plain/",
            "-r",
            "200",
            "-z",
            "5s",
            "-D",
            "q.json",
        ])
        .args([
            "--on",
            "kubernetes",
            "--generators",
            "2",
            "--generator-image",
            IMAGE,
        ])
        .args(["--record", "load.json"])
        .output()
        .expect("weigh ends");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(matches!(output.status.code(), Some(0 | 7)), "{said}");
    let text = fs::read_to_string(folder.path().join("load.json")).expect("a recording");
    let recording: Value = serde_json::from_str(&text).expect("JSON");
    let round = &recording["rounds"][0];
    assert_eq!(round["planned"], 1_000);
    assert_eq!(round["outcomes"]["passed"], 1_000, "{round}");
    assert_eq!(recording["cluster"]["generators"], 2);
    let placed = recording["cluster"]["placed"].as_array().map(Vec::len);
    assert_eq!(placed, Some(2), "{}", recording["cluster"]);
    assert_eq!(node.left(), "");
}

#[test]
fn two_services_that_run_already_are_compared_by_their_names() {
    let Some(node) = node() else { return };
    let folder = TempDir::new().expect("a folder");
    node.deploy(folder.path());
    let asked = |attach: &str| {
        weigh_command()
            .current_dir(folder.path())
            .env("KUBECONFIG", node.state.join("kubeconfig"))
            .args([
                "ab",
                "http://plain/",
                "http://later.default.svc/",
                "--rate",
                "100",
            ])
            .args(["--duration", "48s", "--rounds", "2", "--on", "kubernetes"])
            .args(["--generator-image", IMAGE, "--attach-a", "app=plain"])
            .args(["--attach-b", attach])
            .args(["--yes-load", "plain", "--yes-load", "later.default.svc"])
            .output()
            .expect("weigh ends")
    };
    let refused = asked("app=nobody");
    let said = String::from_utf8_lossy(&refused.stdout).into_owned();
    assert_eq!(refused.status.code(), Some(5), "{said}");
    assert!(
        said.contains("no pod with the labels `app=nobody`"),
        "{said}"
    );
    fs::remove_dir_all(folder.path().join("recordings")).expect("a folder");

    let output = asked("app=later");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(matches!(output.status.code(), Some(0 | 7)), "{said}");
    let recording = recording(folder.path());
    let rounds = counted(&recording);
    assert_eq!(rounds.len(), 4, "two variants in two rounds: {said}");
    for round in rounds {
        assert_eq!(round["outcomes"]["passed"], 2_400, "{round}");
        let usage = &round["systems"][0];
        assert!(usage["cpu_us"].as_u64() > Some(0), "{usage}");
        assert!(usage["memory_peak_bytes"].as_u64() > Some(0), "{usage}");
    }
    let placed = recording["cluster"]["placed"].as_array().expect("places");
    let of_later = placed.iter().find(|one| one["pod"] == "later");
    assert_eq!(
        of_later.map(|one| &one["node"]),
        Some(&Value::from("node1"))
    );
    assert_eq!(node.left(), "", "what ran already is not of this run");
    let kept = node.kubectl(&["get", "pods", "--no-headers"]);
    assert_eq!(
        kept.lines().filter(|line| line.contains("Running")).count(),
        2,
        "{kept}"
    );
}
