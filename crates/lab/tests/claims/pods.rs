//! Claims about the settings of pods in a cluster.

use serde_json::json;

use crate::{check, lab};

fn with(pods: &str) -> [(&str, &str); 1] {
    [("target: server\n", pods)]
}

#[test]
fn settings_of_pods_stay_as_they_are_written() {
    let lab = lab(&with("target: server
pods:
  generators:
    node-selector: {pool: load, kubernetes.io/arch: amd64}
    affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {matchExpressions: []}}]}}
    tolerations: [{key: load, operator: Exists, tolerationSeconds: 60}]
    topology-spread: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]
    priority-class: high
    runtime-class: gvisor
    service-account: runner
    image-pull-secrets: [registry]
    labels: {team: '1'}
    annotations: {note: 'true'}
    security-context: {runAsUser: 1000, supplementalGroups: [7]}
    container-security-context: {capabilities: {add: [SYS_NICE]}}
    requests: {cpu: 1, memory: 256Mi}
    limits: {cpu: 1.5}
    sidecars: on
  cluster-domain: corp.internal
"));
    let of = &lab.pods.generators;
    assert_eq!(
        of.node_selector,
        Some(json!({"pool": "load", "kubernetes.io/arch": "amd64"}))
    );
    let affinity = of.affinity.as_ref().unwrap();
    let preferred = &affinity["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"];
    assert_eq!(preferred[0]["weight"], 1);
    assert_eq!(
        of.tolerations,
        Some(json!([{"key": "load", "operator": "Exists", "tolerationSeconds": 60}]))
    );
    assert_eq!(of.topology_spread.as_ref().unwrap()[0]["maxSkew"], 1);
    let names = [&of.priority_class, &of.runtime_class, &of.service_account];
    assert_eq!(
        names.map(|name| name.as_deref().unwrap()),
        ["high", "gvisor", "runner"]
    );
    assert_eq!(of.image_pull_secrets, ["registry"]);
    assert_eq!(of.labels, Some(json!({"team": "1"})));
    assert_eq!(of.annotations, Some(json!({"note": "true"})));
    let pod = json!({"runAsUser": 1000, "supplementalGroups": [7]});
    assert_eq!(of.security_context, Some(pod));
    let container = json!({"capabilities": {"add": ["SYS_NICE"]}});
    assert_eq!(of.container_security_context, Some(container));
    assert_eq!(of.requests, Some(json!({"cpu": 1, "memory": "256Mi"})));
    assert_eq!(of.limits, Some(json!({"cpu": 1.5})));
    assert_eq!(of.sidecars, Some(true));
    assert_eq!(lab.pods.cluster_domain.as_deref(), Some("corp.internal"));
    assert_eq!(lab.pods.systems, lab::PodSettings::default());
}

#[test]
fn wrong_keys_and_values_are_named_with_their_lines() {
    let found = check(&with(
        "target: server
pods:
  generators: {nodeSelector: {pool: load}, labels: {team: 1, weighbridge/run: x}, tolerations: {key: a}}
  systems: {limits: {cpu: 1, memory: 64Mi}, priority-clas: high}
  cluster-domain: Cluster Local
",
    ));
    for (mistake, place) in [
        ("unknown key `nodeSelector`", "7:16"),
        ("expected text, found the number `1`", "7:59"),
        ("`weigh` itself sets the label `weighbridge/run`", "7:62"),
        ("expected a list, found a mapping", "7:96"),
        ("`pods.systems.limits` cannot contain `cpu`", "8:22"),
        ("`pods.systems.limits` cannot contain `memory`", "8:30"),
        ("unknown key `priority-clas`", "8:45"),
        ("`Cluster Local` is not a DNS domain", "9:19"),
    ] {
        let line = format!("error: {mistake}\n --> labs/x.yaml:{place}\n");
        assert!(found.contains(&line), "{line}{found}");
    }
    assert_eq!(found.matches("error: ").count(), 8, "{found}");
}
