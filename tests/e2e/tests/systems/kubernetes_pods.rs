//! The pods of a lab in a cluster: hardened namespaces, the settings of a lab, and objects of a mesh. They run
//! on the real node of `ci/cluster/cluster.sh`, or are NOT RUN.

use std::fs;
use std::path::Path;
use std::time::Duration;

use e2e::wait_until;
use serde_json::Value;
use tempfile::TempDir;

use crate::kubernetes::{IMAGE, node, recording, with_api};
use crate::node::Node;

/// A namespace that refuses pods with rights, and pods without limits.
const HARDENED: &str = "
apiVersion: v1
kind: Namespace
metadata:
  name: hardened
  labels: {pod-security.kubernetes.io/enforce: restricted}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: limits, namespace: hardened}
spec: {hard: {requests.cpu: '2', requests.memory: 2Gi, limits.cpu: '12', limits.memory: 12Gi}}
";

fn apply(node: &Node, folder: &Path, objects: &str) {
    let file = folder.join("objects.yaml");
    fs::write(&file, objects).expect("a file");
    node.kubectl(&["apply", "--filename", &file.display().to_string()]);
}

/// Measures the lab of a folder, and returns its recording.
fn measured(node: &Node, folder: &Path, lab: &str, namespace: &str) -> Value {
    fs::write(folder.join("two.yaml"), lab.replace("IMAGE", IMAGE)).expect("a file");
    let weigh = node.start_in(folder, 2, namespace);
    let output = weigh.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    // Exit code 7: a check may withhold the verdict on a busy machine.
    assert!(matches!(output.status.code(), Some(0 | 7)), "{said}");
    assert_eq!(node.left_in(namespace), "");
    recording(folder)
}

/// The pods of a system in the recording.
fn placed<'r>(recording: &'r Value, system: &str) -> Vec<&'r Value> {
    let placed = recording["cluster"]["placed"].as_array().expect("places");
    placed
        .iter()
        .filter(|pod| pod["system"] == system)
        .collect()
}

#[test]
fn a_hardened_namespace_with_a_quota_on_limits_runs_through() {
    let Some(node) = node() else { return };
    let folder = TempDir::new().expect("a folder");
    apply(&node, folder.path(), HARDENED);
    let lab = "question: Are two milliseconds found?\n\
        load: {rate: 100/s, duration: 2s, path: /}\ngenerators: 2\ntarget: server\n\
        pods: {generators: {labels: {team: load}}, systems: {node-selector: {kubernetes.io/os: linux}}}\n\
        systems:\n  server:\n    settings: {delay: 1ms}\n    image: IMAGE\n    pull: never\n    port: 8080\n    \
        user: '65532'\n    command: \"null-server --listen {{addr}} --delay {{delay}}\"\n    \
        limits: {cpus: 0.2, memory: 64MiB}\n\
        baseline: {name: early}\nvariants: [{name: late, with: {server.delay: 3ms}}]\n\
        expect: {status: 200, same-as: baseline}\n";
    let recording = measured(&node, folder.path(), lab, "hardened");
    for round in recording["rounds"].as_array().expect("rounds") {
        assert_eq!(round["outcomes"]["passed"], 200, "{round}");
    }
    for (system, count) in [("server", 4), ("generator", 4)] {
        let pods = placed(&recording, system);
        assert_eq!(pods.len(), count, "{pods:?}");
        for pod in pods {
            assert!(
                pod["image"]
                    .as_str()
                    .is_some_and(|it| it.contains("sha256:")),
                "{pod}"
            );
            assert!(matches!(pod["round"].as_u64(), Some(1 | 2)), "{pod}");
        }
    }
    let nodes = &recording["cluster"]["nodes"][0];
    assert!(
        nodes["architecture"].is_string() && nodes["kernel"].is_string(),
        "{nodes}"
    );
}

/// The definition of a kind of Istio without its rules, and a database with a headless Service behind an API.
const KIND: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: peerauthentications.security.istio.io}
spec:
  group: security.istio.io
  scope: Namespaced
  names: {kind: PeerAuthentication, plural: peerauthentications, singular: peerauthentication}
  versions:
    - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
";
const MESH: &str = "
apiVersion: v1
kind: List
items:
  - {apiVersion: v1, kind: ServiceAccount, metadata: {name: api}}
  - {apiVersion: v1, kind: Service, metadata: {name: api}, spec: {selector: {app: api}, ports: [{port: 80, targetPort: 8080}]}}
  - {apiVersion: v1, kind: Service, metadata: {name: db}, spec: {clusterIP: None, selector: {app: db}, ports: [{port: 8080}]}}
  - {apiVersion: security.istio.io/v1, kind: PeerAuthentication, metadata: {name: api}, spec: {mtls: {mode: STRICT}}}
  - apiVersion: apps/v1
    kind: StatefulSet
    metadata: {name: db}
    spec:
      serviceName: db
      selector: {matchLabels: {app: db}}
      template:
        metadata: {labels: {app: db}}
        spec: {containers: [{name: db, image: IMAGE, imagePullPolicy: Never, args: [null-server, --listen, '0.0.0.0:8080']}]}
";

#[test]
fn a_database_with_a_headless_service_and_an_object_of_a_mesh_leave_nothing() {
    let Some(node) = node() else { return };
    let folder = TempDir::new().expect("a folder");
    apply(&node, folder.path(), KIND);
    let manifests = with_api(MESH, "0.0.0.0:8080", "api", "http://db-0.db:8080/");
    fs::write(folder.path().join("api.yaml"), manifests).expect("a file");
    let lab = "question: Is nothing found?\n\
        load: {rate: 100/s, duration: 2s, path: /}\ntarget: api\n\
        systems: {api: {manifests: {files: api.yaml, service: api, workload: api}, ready: {within: 60s}}}\n\
        baseline: {name: one}\nvariants: [{name: other}]\nexpect: {status: 200}\n";
    let recording = measured(&node, folder.path(), lab, "default");
    assert_eq!(
        placed(&recording, "api").len(),
        8,
        "two pods of each variant in each round"
    );
    // A cluster that has just got a kind removes its objects later, up to 30 s after the run.
    wait_until("nothing is left", Duration::from_secs(60), || {
        let left = node.kubectl(&["get", "serviceaccounts,peerauthentications", "-o", "name"]);
        left.trim() == "serviceaccount/default"
    });
}
