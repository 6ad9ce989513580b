//! The settings of pods, from their keys.

use serde_json::Value;
use yaml_with_places::{At, Finding, Findings, Json, Node};

use crate::experiment::{PodSettings, Pods};
use crate::formats::{HostName, Written};
use crate::wire::{PodFile, PodsFile, Switch};

/// Limits that a system has at its own key, so that the report contains them.
const OF_SYSTEMS: [(&str, &str); 2] = [("cpu", "cpus"), ("memory", "memory")];

/// Returns the settings of all pods. `tree` is the tree of the lab.
pub(crate) fn of(file: &PodsFile, tree: &Node, findings: &mut Findings) -> Pods {
    check_limits(tree, findings);
    check_labels(tree, findings);
    let domain = file.cluster_domain.as_ref();
    Pods {
        generators: settings(&file.generators),
        systems: settings(&file.systems),
        cluster_domain: domain.map(|Written(HostName(name))| name.clone()),
    }
}

/// Reports limits of systems that belong to another key.
fn check_limits(tree: &Node, findings: &mut Findings) {
    let pods = tree.entry("pods").map(|entry| &entry.node);
    let systems = pods.and_then(|pods| pods.entry("systems"));
    let Some(limits) = systems.and_then(|systems| systems.node.entry("limits")) else {
        return;
    };
    for (resource, key) in OF_SYSTEMS {
        if let Some(entry) = limits.node.entry(resource) {
            let message = format!("`pods.systems.limits` cannot contain `{resource}`");
            let help =
                format!("write `limits: {{{key}: …}}` at each system, which the report contains");
            findings.add(Finding::new(entry.key_place, message).help(help));
        }
    }
}

/// Reports labels that a run gives to its pods. It finds and removes its pods by them.
fn check_labels(tree: &Node, findings: &mut Findings) {
    let pods = tree.entry("pods").map(|entry| &entry.node);
    for whose in ["generators", "systems"] {
        let pod = pods.and_then(|pods| pods.entry(whose));
        let labels = pod.and_then(|pod| pod.node.entry("labels"));
        let labels = labels.into_iter().flat_map(|labels| labels.node.entries());
        let is_ours =
            |key: &str| key.starts_with("weighbridge/") || key == "app.kubernetes.io/managed-by";
        for label in labels.filter(|label| is_ours(&label.key)) {
            let message = format!("`weigh` itself sets the label `{}`", label.key);
            findings.add(Finding::new(label.key_place, message).help("give it another name"));
        }
    }
}

fn settings(file: &PodFile) -> PodSettings {
    let secrets = file.image_pull_secrets.iter().flatten();
    PodSettings {
        node_selector: value(file.node_selector.as_ref()),
        affinity: value(file.affinity.as_ref()),
        tolerations: value(file.tolerations.as_ref()),
        topology_spread: value(file.topology_spread.as_ref()),
        priority_class: text(file.priority_class.as_ref()),
        runtime_class: text(file.runtime_class.as_ref()),
        service_account: text(file.service_account.as_ref()),
        image_pull_secrets: secrets.map(|it| it.value.clone()).collect(),
        labels: value(file.labels.as_ref()),
        annotations: value(file.annotations.as_ref()),
        security_context: value(file.security_context.as_ref()),
        container_security_context: value(file.container_security_context.as_ref()),
        requests: value(file.requests.as_ref()),
        limits: value(file.limits.as_ref()),
        sidecars: file.sidecars.map(|switch| switch == Switch::On),
    }
}

fn value(written: Option<&Json>) -> Option<Value> {
    let Json(text) = written?;
    // `Json` is always JSON text.
    serde_json::from_str(text).ok()
}

fn text(written: Option<&At<String>>) -> Option<String> {
    written.map(|it| it.value.clone())
}
