//! The settings of a user in the template of a pod, and the defaults that a hardened namespace accepts.

use model::PodSettings;
use serde_json::{Value, json};

use crate::owner::MANAGED_BY;

/// The user and group of generators: `nonroot` of many images.
const NOBODY: u32 = 65532;
/// The topology key of a node.
const NODE: &str = "kubernetes.io/hostname";
/// The label of pods that prefer common nodes.
pub const PART: &str = "weighbridge/part";

/// Labels and annotations that forbid the sidecars of meshes.
const NO_SIDECAR: [(&str, &str); 4] = [
    ("sidecar.istio.io/inject", "false"),
    ("linkerd.io/inject", "disabled"),
    ("kuma.io/sidecar-injection", "disabled"),
    ("consul.hashicorp.com/connect-inject", "false"),
];

/// Changes a template: an object with `metadata` and with the `spec` of a pod with one container. The
/// labels of the template stay.
pub(crate) fn apply(settings: &PodSettings, template: &mut Value, sidecars_by_default: bool) {
    let labels = template["metadata"]["labels"].take();
    if !settings.sidecars.unwrap_or(sidecars_by_default) {
        forbid_sidecars(template);
    }
    extend(
        &mut template["metadata"],
        "labels",
        settings.labels.as_ref(),
    );
    extend(&mut template["metadata"], "labels", Some(&labels));
    extend(
        &mut template["metadata"],
        "annotations",
        settings.annotations.as_ref(),
    );
    let spec = &mut template["spec"];
    for (member, value) in [
        ("nodeSelector", &settings.node_selector),
        ("affinity", &settings.affinity),
        ("tolerations", &settings.tolerations),
        ("topologySpreadConstraints", &settings.topology_spread),
    ] {
        if let Some(value) = value {
            spec[member] = value.clone();
        }
    }
    for (member, name) in [
        ("priorityClassName", &settings.priority_class),
        ("runtimeClassName", &settings.runtime_class),
        ("serviceAccountName", &settings.service_account),
    ] {
        if let Some(name) = name {
            spec[member] = json!(name);
        }
    }
    let secrets = settings.image_pull_secrets.iter();
    let secrets: Vec<Value> = secrets.map(|name| json!({"name": name})).collect();
    if !secrets.is_empty() {
        spec["imagePullSecrets"] = Value::Array(secrets);
    }
    extend(spec, "securityContext", settings.security_context.as_ref());
    apply_to_container(settings, &mut spec["containers"][0]);
}

fn apply_to_container(settings: &PodSettings, container: &mut Value) {
    extend(
        container,
        "securityContext",
        settings.container_security_context.as_ref(),
    );
    let resources = &mut container["resources"];
    // A limit without a request is also the request. The default request could be larger.
    let requests = resources.get_mut("requests").and_then(Value::as_object_mut);
    if let (Some(Value::Object(limits)), Some(requests)) = (&settings.limits, requests) {
        requests.retain(|name, _| !limits.contains_key(name));
    }
    extend(resources, "requests", settings.requests.as_ref());
    extend(resources, "limits", settings.limits.as_ref());
}

/// Adds the labels and annotations that forbid the sidecars of meshes to an object with `metadata`.
pub(crate) fn forbid_sidecars(object: &mut Value) {
    for (name, value) in NO_SIDECAR {
        object["metadata"]["labels"][name] = json!(value);
        object["metadata"]["annotations"][name] = json!(value);
    }
}

/// Adds the members of a mapping to the mapping with this name. Members of the same name are replaced.
fn extend(within: &mut Value, name: &str, members: Option<&Value>) {
    let members = members.and_then(Value::as_object);
    for (member, value) in members.into_iter().flatten() {
        within[name][member] = value.clone();
    }
}

/// The `securityContext` of a pod that never runs as root, as PodSecurity `restricted` requires it.
pub(crate) fn never_root(user: Option<i64>) -> Value {
    let mut context = shielded();
    context["runAsNonRoot"] = json!(true);
    context["runAsUser"] = json!(user.unwrap_or(i64::from(NOBODY)));
    if user.is_none() {
        context["runAsGroup"] = json!(NOBODY);
    }
    context
}

/// The `securityContext` of a pod with the seccomp profile that container engines use by default.
pub(crate) fn shielded() -> Value {
    json!({"seccompProfile": {"type": "RuntimeDefault"}})
}

/// The `securityContext` of a container without rights, as PodSecurity `restricted` requires it.
pub(crate) fn without_rights() -> Value {
    json!({"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}})
}

/// An affinity for nodes without other pods of `weigh` than these. It is a preference, because there may be
/// only one node.
pub(crate) fn away_from_systems(own: &str) -> Value {
    json!({"podAntiAffinity": preferred(json!([
        {"key": MANAGED_BY.0, "operator": "In", "values": [MANAGED_BY.1]},
        {"key": own, "operator": "DoesNotExist"},
    ]))})
}

/// An affinity for the nodes of the pods with this [`PART`]. It is a preference, because a node may be full.
pub(crate) fn near_part(part: &str) -> Value {
    json!({"podAffinity": preferred(json!([
        {"key": PART, "operator": "In", "values": [part]},
    ]))})
}

/// An affinity for one node. It is a preference, because the node may be full.
pub(crate) fn near_node(node: &str) -> Value {
    let name = json!({"key": "metadata.name", "operator": "In", "values": [node]});
    json!({"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": 100, "preference": {"matchFields": [name]}},
    ]}})
}

fn preferred(expressions: Value) -> Value {
    json!({"preferredDuringSchedulingIgnoredDuringExecution": [{
        "weight": 100,
        "podAffinityTerm": {
            "topologyKey": NODE,
            "labelSelector": {"matchExpressions": expressions},
        },
    }]})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template() -> Value {
        json!({
            "metadata": {"labels": {"own": "a"}},
            "spec": {
                "affinity": {"podAffinity": {}},
                "securityContext": never_root(None),
                "containers": [{
                    "securityContext": without_rights(),
                    "resources": {
                        "requests": {"cpu": "100m", "memory": "64Mi"},
                        "limits": {"cpu": "2", "memory": "1Gi"},
                    },
                }],
            },
        })
    }

    #[test]
    fn settings_replace_the_defaults_that_they_name() {
        let mut changed = template();
        let settings = PodSettings {
            affinity: Some(json!({"nodeAffinity": {"a": 1}})),
            labels: Some(json!({"team": "x", "own": "b"})),
            annotations: Some(json!({"sidecar.istio.io/inject": "true"})),
            security_context: Some(json!({"runAsUser": 7})),
            limits: Some(json!({"cpu": "50m"})),
            image_pull_secrets: vec!["registry".to_owned()],
            service_account: Some("runner".to_owned()),
            ..PodSettings::default()
        };
        apply(&settings, &mut changed, false);
        let (metadata, spec) = (&changed["metadata"], &changed["spec"]);
        assert_eq!(metadata["labels"]["own"], "a", "labels of the run stay");
        assert_eq!(metadata["labels"]["team"], "x");
        assert_eq!(metadata["labels"]["sidecar.istio.io/inject"], "false");
        assert_eq!(metadata["annotations"]["sidecar.istio.io/inject"], "true");
        assert_eq!(metadata["annotations"]["linkerd.io/inject"], "disabled");
        assert_eq!(spec["affinity"], json!({"nodeAffinity": {"a": 1}}));
        assert_eq!(spec["imagePullSecrets"], json!([{"name": "registry"}]));
        assert_eq!(spec["serviceAccountName"], "runner");
        let context = &spec["securityContext"];
        assert_eq!(
            (&context["runAsUser"], &context["runAsGroup"]),
            (&json!(7), &json!(NOBODY))
        );
        assert_eq!(context["seccompProfile"]["type"], "RuntimeDefault");
        let resources = &spec["containers"][0]["resources"];
        assert_eq!(
            *resources,
            json!({"requests": {"memory": "64Mi"}, "limits": {"cpu": "50m", "memory": "1Gi"}})
        );
    }

    #[test]
    fn settings_that_are_left_out_change_nothing() {
        let mut changed = template();
        apply(&PodSettings::default(), &mut changed, true);
        assert_eq!(changed, template());
    }
}
