//! The settings of pods, from their keys.

use model::PodSettings;
use serde_json::Value;
use yaml_with_places::{At, Entry, Finding, Findings, Json};

use crate::experiment::Pods;
use crate::formats::{HostName, Written};
use crate::reading::Reading;
use crate::systems::Systems;
use crate::wire::{PodFile, PodsFile, Switch};

/// Limits that a system has at its own key, so that the report contains them.
const OF_SYSTEMS: [(&str, &str); 2] = [("cpu", "cpus"), ("memory", "memory")];

/// Returns the settings of all pods.
pub(crate) fn of(file: &PodsFile, systems: &Systems<'_>, reading: &mut Reading<'_>) -> Pods {
    let pods = systems.tree.entry("pods").map(|entry| &entry.node);
    let of = |key: &str| pods.and_then(|pods| pods.entry(key));
    let single = of("of").map_or(&[][..], |of| of.node.entries());
    if let Some(all) = of("systems") {
        check_limits(all, "systems", &mut reading.findings);
    }
    for one in single {
        check_system(one, systems, reading);
        check_limits(one, &format!("of.{}", one.key), &mut reading.findings);
    }
    let each = of("generators").into_iter().chain(of("systems"));
    for pod in each.chain(single) {
        check_labels(pod, &mut reading.findings);
    }
    let all = settings(&file.systems);
    let single = file.of.iter();
    let single = single.map(|(name, own)| (name.clone(), settings(own).over(&all)));
    let domain = file.cluster_domain.as_ref();
    Pods {
        generators: settings(&file.generators),
        of: single.collect(),
        systems: all,
        cluster_domain: domain.map(|Written(HostName(name))| name.clone()),
    }
}

/// Reports a system that does not exist, or that gets no pod from `weigh`.
fn check_system(pod: &Entry, systems: &Systems<'_>, reading: &mut Reading<'_>) {
    systems.check_known(&pod.key, pod.key_place, reading);
    let mut declared = systems.declared.iter();
    let system = declared.find(|(name, _)| name.value.0 == pod.key);
    let Some((name, file)) = system.filter(|(_, file)| file.image.is_none()) else {
        return;
    };
    let help = match file.manifests.is_some() {
        true => "its pods have the settings of its manifests. `changes` of the system changes them",
        false => "only systems with an `image` become pods that `weigh` creates",
    };
    let message = format!("`weigh` creates no pod of `{}`", pod.key);
    let finding = Finding::new(pod.key_place, message).related(name.place, "declared here");
    reading.findings.add(finding.help(help));
}

/// Reports limits of systems that belong to another key.
fn check_limits(pod: &Entry, key: &str, findings: &mut Findings) {
    let Some(limits) = pod.node.entry("limits") else {
        return;
    };
    for (resource, own) in OF_SYSTEMS {
        if let Some(entry) = limits.node.entry(resource) {
            let message = format!("`pods.{key}.limits` cannot contain `{resource}`");
            let help =
                format!("write `limits: {{{own}: …}}` at each system, which the report contains");
            findings.add(Finding::new(entry.key_place, message).help(help));
        }
    }
}

/// Reports labels that a run gives to its pods. It finds and removes its pods by them.
fn check_labels(pod: &Entry, findings: &mut Findings) {
    let labels = pod.node.entry("labels");
    let labels = labels.into_iter().flat_map(|labels| labels.node.entries());
    let is_ours =
        |key: &str| key.starts_with("weighbridge/") || key == "app.kubernetes.io/managed-by";
    for label in labels.filter(|label| is_ours(&label.key)) {
        let message = format!("`weigh` itself sets the label `{}`", label.key);
        findings.add(Finding::new(label.key_place, message).help("give it another name"));
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
