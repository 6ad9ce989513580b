//! Manifests of a user, instead of pods that are made here: what is refused of them, and where each goes.

use serde_json::Value;

use crate::connection::name_of;

/// Kinds that lie in a namespace and give no right to an account: API group and version, kind, plural.
const ALLOWED: &[(&str, &str, &str)] = &[
    ("v1", "Pod", "pods"),
    ("v1", "Service", "services"),
    ("v1", "ConfigMap", "configmaps"),
    ("v1", "Secret", "secrets"),
    ("v1", "ServiceAccount", "serviceaccounts"),
    ("v1", "PersistentVolumeClaim", "persistentvolumeclaims"),
    ("apps/v1", "Deployment", "deployments"),
    ("apps/v1", "StatefulSet", "statefulsets"),
    ("apps/v1", "ReplicaSet", "replicasets"),
    ("batch/v1", "Job", "jobs"),
    ("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies"),
    ("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets"),
    (
        "autoscaling/v2",
        "HorizontalPodAutoscaler",
        "horizontalpodautoscalers",
    ),
];

/// Members of a pod by which it leaves its container.
const ESCAPES: [&str; 3] = ["hostNetwork", "hostPID", "hostIPC"];

/// Why a manifest is not applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It is no YAML, or no object of a cluster.
    #[error("expected manifests, objects with `apiVersion`, `kind` and `metadata.name`: {0}")]
    NoObject(String),
    /// A kind that reaches beyond the namespace or gives rights.
    #[error(
        "`{kind}` of `{api_version}` is not applied: expected one of {}; apply it yourself before the run",
        kinds()
    )]
    Kind {
        /// The API group and version.
        api_version: String,
        /// The kind.
        kind: String,
    },
    /// It names another namespace.
    #[error("`{name}` names the namespace `{found}`; leave that out, the run has `{expected}`")]
    Namespace {
        /// The object.
        name: String,
        /// What it names.
        found: String,
        /// Where the run is.
        expected: String,
    },
    /// Its pods would leave their containers.
    #[error(
        "`{name}` wants `{what}`, by which a pod reaches its node; say `privileged: true` beside `manifests` if that is meant"
    )]
    Escape {
        /// The object.
        name: String,
        /// Which member.
        what: String,
    },
}

fn kinds() -> String {
    let names: Vec<&str> = ALLOWED.iter().map(|(_, kind, _)| *kind).collect();
    names.join(", ")
}

/// An object of a user, and where it goes.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest {
    /// Its path in the API.
    pub path: String,
    /// As it was written.
    pub object: Value,
}

/// The objects of a file, checked.
///
/// # Errors
/// The first that is refused.
pub fn read(text: &str, namespace: &str, may_escape: bool) -> Result<Vec<Manifest>, Refused> {
    let documents: Vec<Value> =
        serde_saphyr::from_multiple(text).map_err(|error| Refused::NoObject(error.to_string()))?;
    let objects = documents.into_iter().filter(|document| !document.is_null());
    let mut manifests = Vec::new();
    for object in objects {
        manifests.push(checked(object, namespace, may_escape)?);
    }
    match manifests.is_empty() {
        true => Err(Refused::NoObject("found none".to_owned())),
        false => Ok(manifests),
    }
}

fn checked(object: Value, namespace: &str, may_escape: bool) -> Result<Manifest, Refused> {
    let name = name_of(&object).to_owned();
    let (Some(api_version), Some(kind)) = (object["apiVersion"].as_str(), object["kind"].as_str())
    else {
        return Err(Refused::NoObject(format!("found `{object}`")));
    };
    let is_name = |name: &str| {
        let is_safe = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
        !name.is_empty() && name.len() <= 253 && name.chars().all(is_safe)
    };
    // It becomes a part of a path.
    if !is_name(&name) || name.contains("..") {
        return Err(Refused::NoObject(format!("{kind} with the name `{name}`")));
    }
    let known = ALLOWED
        .iter()
        .find(|(its_version, its_kind, _)| *its_version == api_version && *its_kind == kind);
    let Some((_, _, plural)) = known else {
        return Err(Refused::Kind {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
        });
    };
    if let Some(found) = object["metadata"]["namespace"].as_str()
        && found != namespace
    {
        return Err(Refused::Namespace {
            name,
            found: found.to_owned(),
            expected: namespace.to_owned(),
        });
    }
    if !may_escape && let Some(what) = escape(&object) {
        return Err(Refused::Escape { name, what });
    }
    let root = match api_version {
        "v1" => "/api/v1".to_owned(),
        version => format!("/apis/{version}"),
    };
    let path = format!("{root}/namespaces/{namespace}/{plural}/{name}");
    Ok(Manifest { path, object })
}

/// The first member, however deep, by which a pod reaches its node.
fn escape(value: &Value) -> Option<String> {
    match value {
        Value::Object(members) => members.iter().find_map(|(name, member)| {
            let is_set = member.as_bool() == Some(true);
            let is_path = name == "hostPath" && member.is_object();
            let is_privileged = name == "privileged" && is_set;
            if is_path || is_privileged || (ESCAPES.contains(&name.as_str()) && is_set) {
                return Some(name.clone());
            }
            escape(member)
        }),
        Value::Array(items) => items.iter().find_map(escape),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Vec<Manifest>, Refused> {
        read(text, "space", false)
    }

    #[test]
    fn files_of_several_objects_go_where_their_kinds_live() {
        let text = "apiVersion: v1\nkind: Service\nmetadata: {name: a}\n---\n\
                    apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: b}\n---\n";
        let paths: Vec<String> = of(text)
            .expect("allowed")
            .into_iter()
            .map(|it| it.path)
            .collect();
        assert_eq!(
            paths,
            [
                "/api/v1/namespaces/space/services/a",
                "/apis/apps/v1/namespaces/space/deployments/b"
            ]
        );
    }

    #[test]
    fn what_gives_rights_or_lies_beyond_the_namespace_is_refused() {
        for (version, kind) in [
            ("rbac.authorization.k8s.io/v1", "ClusterRole"),
            ("rbac.authorization.k8s.io/v1", "RoleBinding"),
            ("v1", "Namespace"),
            ("v1", "Node"),
            (
                "admissionregistration.k8s.io/v1",
                "ValidatingWebhookConfiguration",
            ),
            // The right kind of a wrong group.
            ("example.com/v1", "Deployment"),
        ] {
            let text = format!("apiVersion: {version}\nkind: {kind}\nmetadata: {{name: a}}\n");
            assert!(matches!(of(&text), Err(Refused::Kind { .. })), "{kind}");
        }
        let elsewhere =
            "apiVersion: v1\nkind: Service\nmetadata: {name: a, namespace: kube-system}\n";
        assert!(matches!(of(elsewhere), Err(Refused::Namespace { .. })));
    }

    #[test]
    fn pods_that_reach_their_node_are_refused_unless_that_is_said() {
        for member in [
            "{template: {spec: {hostNetwork: true}}}",
            "{template: {spec: {volumes: [{name: v, hostPath: {path: /}}]}}}",
            "{template: {spec: {containers: [{securityContext: {privileged: true}}]}}}",
        ] {
            let text = format!(
                "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: a}}\nspec: {member}\n"
            );
            assert!(matches!(of(&text), Err(Refused::Escape { .. })), "{member}");
            assert!(read(&text, "space", true).is_ok());
        }
    }

    #[test]
    fn a_name_is_no_path() {
        for name in ["../../nodes/x", "a/b", "", "a%2fb", "a..b"] {
            let text = format!("apiVersion: v1\nkind: Service\nmetadata: {{name: \"{name}\"}}\n");
            assert!(matches!(of(&text), Err(Refused::NoObject(_))), "{name}");
        }
        for text in ["", "---\n", "[1]\n", "a: b\n", "{"] {
            assert!(matches!(of(text), Err(Refused::NoObject(_))), "{text}");
        }
    }
}
