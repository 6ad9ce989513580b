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
    assert_eq!(lab.pods.systems, model::PodSettings::default());
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

fn with_image(pods: &str) -> [(&str, &str); 2] {
    let run = "    run: serve {{stack}} --listen {{addr}}\n";
    let image = "    image: 'server:{{stack}}'\n    port: 80\n";
    [("target: server\n", pods), (run, image)]
}

#[test]
fn a_single_system_has_its_own_settings_over_those_of_all_systems() {
    let lab = lab(&with_image("target: server
pods:
  systems: {node-selector: {pool: systems, disk: hdd}, tolerations: [{key: a}], service-account: all}
  of:
    server: {node-selector: {disk: ssd}, tolerations: [{key: b}], limits: {nvidia.com/gpu: 1}}
"));
    let of = lab.pods.of_system("server");
    assert_eq!(
        of.node_selector,
        Some(json!({"pool": "systems", "disk": "ssd"}))
    );
    assert_eq!(of.tolerations, Some(json!([{"key": "b"}])));
    assert_eq!(of.service_account.as_deref(), Some("all"));
    assert_eq!(of.limits, Some(json!({"nvidia.com/gpu": 1})));
    assert_eq!(lab.pods.of_system("other"), &lab.pods.systems);
}

#[test]
fn a_single_system_that_is_no_pod_is_refused_by_name() {
    let found = check(&with_image(
        "target: server
pods:
  of:
    sever: {priority-class: high}
    server: {limits: {cpu: 1}, labels: {weighbridge/run: x}, prio: high}
",
    ));
    for (mistake, place) in [
        ("there is no system `sever`", "8:5"),
        ("`pods.of.server.limits` cannot contain `cpu`", "9:23"),
        ("`weigh` itself sets the label `weighbridge/run`", "9:41"),
        ("unknown key `prio`", "9:62"),
    ] {
        let line = format!("error: {mistake}\n --> labs/x.yaml:{place}\n");
        assert!(found.contains(&line), "{line}{found}");
    }
    assert!(found.contains("did you mean `server`?"), "{found}");
}

#[test]
fn a_single_system_without_an_image_has_no_pod_of_its_own() {
    let pods = "target: server\npods: {of: {server: {priority-class: high}}}\n";
    let found = check(&with(pods));
    assert!(
        found.contains("error: `weigh` creates no pod of `server`\n --> labs/x.yaml:6:13\n"),
        "{found}"
    );
    assert!(found.contains("only systems with an `image`"), "{found}");
}
