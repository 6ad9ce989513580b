//! Specifications of pods: forbidden settings, and the objects that pods name.

use serde_json::{Value, json};

use super::{Object, Refused};
use crate::call::Resource;
use crate::workload::escaped;

/// Members that let a pod leave its container, or that take a resource that two variants cannot share.
const REACHES_NODE: [&str; 6] = [
    "hostNetwork",
    "hostPID",
    "hostIPC",
    "privileged",
    "hostProcess",
    "hostPort",
];

/// Volumes that end with their pod and contain no data of its node.
const VOLUMES: [&str; 5] = [
    "emptyDir",
    "configMap",
    "secret",
    "projected",
    "downwardAPI",
];

/// Refuses settings that a pod of a run cannot have.
pub(super) fn check(object: &Object) -> Result<(), Refused> {
    let spec = object.pod_spec();
    let containers = spec["containers"].as_array();
    if containers.is_none_or(|all| all.is_empty() || !all.iter().all(Value::is_object)) {
        return Err(object.wrong("no containers", "expected a list of at least one"));
    }
    if let Some(what) = reach(spec) {
        let advice = "it gives a pod access to its node, which variants share. Remove it";
        return Err(object.wrong(&what, advice));
    }
    if !spec["ephemeralContainers"].is_null() {
        return Err(object.wrong("ephemeralContainers", "remove it"));
    }
    for volume in spec["volumes"].as_array().into_iter().flatten() {
        let members = volume.as_object().into_iter().flatten();
        let other = members
            .map(|(member, _)| member.as_str())
            .find(|member| *member != "name" && !VOLUMES.contains(member));
        if let Some(other) = other {
            let advice = "it outlives a run or belongs to the node. A pod may have `emptyDir`, `configMap`, `secret`, `projected` and `downwardAPI`";
            return Err(object.wrong(&format!("a volume of kind {other}"), advice));
        }
        let sources = volume["projected"]["sources"].as_array();
        let is_token = |source: &Value| !source["serviceAccountToken"].is_null();
        if sources.into_iter().flatten().any(is_token) {
            return Err(object.wrong(
                "serviceAccountToken",
                "pods of a run have no service account. Remove it",
            ));
        }
    }
    Ok(())
}

/// Returns the first member, at any depth, that gives a pod access to its node.
fn reach(value: &Value) -> Option<String> {
    match value {
        Value::Object(members) => members.iter().find_map(|(name, member)| {
            let is_set = member.as_bool() == Some(true) || member.as_u64().is_some_and(|it| it > 0);
            match REACHES_NODE.contains(&name.as_str()) && is_set {
                true => Some(name.clone()),
                false => reach(member),
            }
        }),
        Value::Array(items) => items.iter().find_map(reach),
        _ => None,
    }
}

/// Returns the number of a port that a container names.
pub(super) fn named_port(spec: &Value, name: &Value) -> Option<u16> {
    let containers = spec["containers"].as_array().into_iter().flatten();
    let mut ports = containers.flat_map(|it| it["ports"].as_array().into_iter().flatten());
    let port = ports.find(|port| port["name"] == *name)?;
    u16::try_from(port["containerPort"].as_u64()?).ok()
}

/// Sets a variable of a container to a text without substitutions.
pub(super) fn set_variable(container: &mut Value, name: &str, value: &str) {
    let variable = json!({"name": name, "value": escaped(value)});
    if !container["env"].is_array() {
        container["env"] = json!([]);
    }
    let known = container["env"].as_array_mut().into_iter().flatten();
    match known.into_iter().find(|it| it["name"] == name) {
        Some(known) => *known = variable,
        None => {
            if let Some(all) = container["env"].as_array_mut() {
                all.push(variable);
            }
        }
    }
}

/// Adds variables to all containers of a pod, before their own, which may name them. A variable of a container stays.
/// Containers with `envFrom` are left out, because the objects there could have other values of these variables.
pub(super) fn set_variables(spec: &mut Value, variables: &[Value]) {
    for list in ["containers", "initContainers"] {
        let containers = items(spec, list).filter(|it| it["envFrom"].is_null());
        for container in containers {
            let known = container["env"].as_array().cloned().unwrap_or_default();
            let is_new = |it: &&Value| known.iter().all(|own| own["name"] != it["name"]);
            let new: Vec<Value> = variables.iter().filter(is_new).cloned().collect();
            if !new.is_empty() {
                container["env"] = Value::Array(new.into_iter().chain(known).collect());
            }
        }
    }
}

/// Calls `rename` with each name of a ConfigMap or Secret that a pod uses.
pub(super) fn rename(spec: &mut Value, rename: &dyn Fn(Resource, &mut Value)) {
    for list in ["containers", "initContainers"] {
        for container in items(spec, list) {
            for variable in items(container, "env") {
                if let Some(from) = variable.get_mut("valueFrom") {
                    named(
                        from,
                        "configMapKeyRef",
                        "name",
                        Resource::ConfigMaps,
                        rename,
                    );
                    named(from, "secretKeyRef", "name", Resource::Secrets, rename);
                }
            }
            for from in items(container, "envFrom") {
                named(from, "configMapRef", "name", Resource::ConfigMaps, rename);
                named(from, "secretRef", "name", Resource::Secrets, rename);
            }
        }
    }
    for volume in items(spec, "volumes") {
        named(volume, "configMap", "name", Resource::ConfigMaps, rename);
        named(volume, "secret", "secretName", Resource::Secrets, rename);
        if let Some(projected) = volume.get_mut("projected") {
            for source in items(projected, "sources") {
                named(source, "configMap", "name", Resource::ConfigMaps, rename);
                named(source, "secret", "name", Resource::Secrets, rename);
            }
        }
    }
    rename_pull_secrets(spec, rename);
}

/// Calls `rename` with each name of a Secret in `imagePullSecrets` of a pod or ServiceAccount.
pub(super) fn rename_pull_secrets(within: &mut Value, rename: &dyn Fn(Resource, &mut Value)) {
    for secret in items(within, "imagePullSecrets") {
        if let Some(name) = secret.get_mut("name") {
            rename(Resource::Secrets, name);
        }
    }
}

/// Iterates over the items of an array member. Empty if the member is missing.
fn items<'v>(within: &'v mut Value, member: &str) -> impl Iterator<Item = &'v mut Value> + use<'v> {
    let found = within.get_mut(member).and_then(Value::as_array_mut);
    found.into_iter().flatten()
}

fn named(
    within: &mut Value,
    member: &str,
    key: &str,
    resource: Resource,
    rename: &dyn Fn(Resource, &mut Value),
) {
    if let Some(name) = within.get_mut(member).and_then(|it| it.get_mut(key)) {
        rename(resource, name);
    }
}
