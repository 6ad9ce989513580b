//! Clusters without IPv4, and clusters with both families of addresses. They run on the real node of
//! `ci/cluster/cluster.sh`, or are NOT RUN.

use std::fs;
use std::net::IpAddr;
use std::path::Path;

use e2e::{weigh, weigh_command};
use serde_json::Value;
use tempfile::TempDir;

use crate::kubernetes::{IMAGE, counted, recording, with_api, words};
use crate::node::Node;

/// Starts a cluster of this family with the image of weigh, or records why the calling test does not run.
#[track_caller]
fn node_of(family: &str) -> Option<Node> {
    let node = Node::up_with(&["1", "--family", family])?;
    node.image(IMAGE, &weigh());
    Some(node)
}

/// The addresses of all pods in a recording, which has at least one pod.
fn addresses(recording: &Value) -> Vec<IpAddr> {
    let placed = recording["cluster"]["placed"].as_array().expect("places");
    assert!(!placed.is_empty(), "{recording}");
    let parsed = placed.iter().map(|pod| {
        let address = pod["address"].as_str().unwrap_or_else(|| panic!("{pod}"));
        address.parse().unwrap_or_else(|_| panic!("{pod}"))
    });
    parsed.collect()
}

/// Checks that two variants have all requests in each round, and that no object is left. Returns the recording.
fn is_whole(node: &Node, folder: &Path, output: &std::process::Output, planned: u64) -> Value {
    let said = words(output);
    // Exit code 7: a check may withhold the verdict on a busy machine.
    assert!(matches!(output.status.code(), Some(0 | 7)), "{said}");
    let recording = recording(folder);
    let rounds = counted(&recording);
    assert_eq!(rounds.len(), 4, "two variants in two rounds: {said}");
    for round in rounds {
        assert_eq!(round["planned"], planned);
        assert_eq!(round["outcomes"]["passed"], planned, "{round}");
    }
    assert_eq!(node.left(), "");
    recording
}

/// The Services of an API and its database, which listens on IPv6 only.
const LIST: &str = "
apiVersion: v1
kind: List
items:
  - {apiVersion: v1, kind: Service, metadata: {name: api}, spec: {selector: {app: api}, ports: [{port: 80, targetPort: 8080}]}}
  - {apiVersion: v1, kind: Service, metadata: {name: db}, spec: {clusterIP: None, selector: {app: db}, ports: [{port: 8080}]}}
  - apiVersion: apps/v1
    kind: StatefulSet
    metadata: {name: db}
    spec:
      serviceName: db
      selector: {matchLabels: {app: db}}
      template:
        metadata: {labels: {app: db}}
        spec: {containers: [{name: db, image: IMAGE, imagePullPolicy: Never, args: [null-server, --listen, '[::]:8080']}]}
";

#[test]
fn a_cluster_without_ipv4_runs_labs_of_images_and_of_manifests() {
    let Some(node) = node_of("ipv6") else { return };
    let folder = TempDir::new().expect("a folder");
    let run = node.lab(folder.path(), 2, 2);
    let output = run.wait_with_output().expect("it ends");
    let recording = is_whole(&node, folder.path(), &output, 200);
    assert_eq!(recording["cluster"]["generators"], 2);
    let pods = addresses(&recording);
    assert_eq!(
        pods.len(),
        8,
        "two systems and two generators in each round"
    );
    assert!(pods.iter().all(IpAddr::is_ipv6), "{pods:?}");

    let folder = TempDir::new().expect("a folder");
    let manifests = with_api(
        LIST,
        "[::]:8080",
        "default",
        "http://db-0.db.default.svc.cluster.local:8080/",
    );
    fs::write(folder.path().join("api.yaml"), manifests).expect("a file");
    let lab = "question: Is nothing found?\n\
        load: {rate: 100/s, duration: 2s, path: /}\ntarget: api\n\
        systems: {api: {manifests: {files: api.yaml, service: api, workload: api}, ready: {within: 60s}}}\n\
        baseline: {name: one}\nvariants: [{name: other}]\nexpect: {status: 200}\n";
    fs::write(folder.path().join("two.yaml"), lab).expect("a file");
    let run = node.start(folder.path(), 2);
    let output = run.wait_with_output().expect("it ends");
    let recording = is_whole(&node, folder.path(), &output, 200);
    let pods = addresses(&recording);
    assert!(pods.iter().all(IpAddr::is_ipv6), "{pods:?}");
}

/// Services of one pod: with an address of IPv6 only, and with addresses of both families, IPv6 first.
const SERVICES: &str = "
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec: {containers: [{name: server, image: IMAGE, imagePullPolicy: Never, args: [null-server, --listen, '[::]:8080']}]}
---
apiVersion: v1
kind: Service
metadata: {name: six}
spec: {ipFamilies: [IPv6], selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: v1
kind: Service
metadata: {name: both}
spec: {ipFamilyPolicy: RequireDualStack, ipFamilies: [IPv6, IPv4], selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
";

#[test]
fn a_cluster_with_both_families_loads_its_services_of_ipv6_by_name_and_by_address() {
    let Some(node) = node_of("dual") else { return };
    let folder = TempDir::new().expect("a folder");
    let objects = folder.path().join("objects.yaml");
    fs::write(&objects, SERVICES.replace("IMAGE", IMAGE)).expect("a file");
    node.kubectl(&["apply", "--filename", &objects.display().to_string()]);
    node.kubectl(&["wait", "--for=condition=Ready", "pod/web", "--timeout=60s"]);
    let address = node.kubectl(&["get", "service", "both", "-o", "jsonpath={.spec.clusterIP}"]);
    assert!(matches!(address.parse(), Ok(IpAddr::V6(_))), "{address}");
    let host = format!("[{address}]");
    let output = weigh_command()
        .current_dir(folder.path())
        .env("KUBECONFIG", node.state.join("kubeconfig"))
        .args(["ab", "http://six.default.svc/", &format!("http://{host}/")])
        .args(["--rate", "100", "--duration", "4s", "--rounds", "2"])
        .args(["--on", "kubernetes", "--generator-image", IMAGE])
        .args(["--yes-load", "six.default.svc", "--yes-load", &host])
        .output()
        .expect("weigh ends");
    let said = words(&output);
    let recording = is_whole(&node, folder.path(), &output, 200);
    assert!(said.contains(&host), "{said}");
    // The pods have an address of the first family.
    let pods = addresses(&recording);
    assert!(pods.iter().all(IpAddr::is_ipv4), "{pods:?}");
}
