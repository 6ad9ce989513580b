//! The settings of pods in a cluster.

use serde_json::Value;

/// Settings of pods, in the form of the API of a cluster. `None` keeps the default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PodSettings {
    /// `nodeSelector`, a mapping.
    pub node_selector: Option<Value>,
    /// `affinity`, a mapping, which replaces the default.
    pub affinity: Option<Value>,
    /// `tolerations`, a list.
    pub tolerations: Option<Value>,
    /// `topologySpreadConstraints`, a list, which replaces the default.
    pub topology_spread: Option<Value>,
    /// `priorityClassName`.
    pub priority_class: Option<String>,
    /// `runtimeClassName`.
    pub runtime_class: Option<String>,
    /// `serviceAccountName`.
    pub service_account: Option<String>,
    /// The names in `imagePullSecrets`.
    pub image_pull_secrets: Vec<String>,
    /// Labels, a mapping of texts.
    pub labels: Option<Value>,
    /// Annotations, a mapping of texts.
    pub annotations: Option<Value>,
    /// `securityContext` of the pod, a mapping. Its members replace default members.
    pub security_context: Option<Value>,
    /// `securityContext` of the container, a mapping. Its members replace default members.
    pub container_security_context: Option<Value>,
    /// `resources.requests`, a mapping. Its members replace default members.
    pub requests: Option<Value>,
    /// `resources.limits`, a mapping. Its members replace default members.
    pub limits: Option<Value>,
    /// True if a mesh may add its containers. `None` for the default.
    pub sidecars: Option<bool>,
}

impl PodSettings {
    /// These settings for some pods, over the settings for all pods. A member of a mapping replaces the member of the
    /// same name, and other members stay. `affinity`, a list or a name replaces the whole value.
    #[must_use]
    pub fn over(&self, all: &PodSettings) -> PodSettings {
        let own = self.clone();
        let all = all.clone();
        PodSettings {
            node_selector: joined(own.node_selector, all.node_selector),
            affinity: own.affinity.or(all.affinity),
            tolerations: own.tolerations.or(all.tolerations),
            topology_spread: own.topology_spread.or(all.topology_spread),
            priority_class: own.priority_class.or(all.priority_class),
            runtime_class: own.runtime_class.or(all.runtime_class),
            service_account: own.service_account.or(all.service_account),
            image_pull_secrets: match own.image_pull_secrets.is_empty() {
                true => all.image_pull_secrets,
                false => own.image_pull_secrets,
            },
            labels: joined(own.labels, all.labels),
            annotations: joined(own.annotations, all.annotations),
            security_context: joined(own.security_context, all.security_context),
            container_security_context: joined(
                own.container_security_context,
                all.container_security_context,
            ),
            requests: joined(own.requests, all.requests),
            limits: joined(own.limits, all.limits),
            sidecars: own.sidecars.or(all.sidecars),
        }
    }
}

/// The members of both mappings. Members of `own` win.
fn joined(own: Option<Value>, all: Option<Value>) -> Option<Value> {
    match (own, all) {
        (Some(Value::Object(own)), Some(Value::Object(mut members))) => {
            members.extend(own);
            Some(Value::Object(members))
        }
        (own, all) => own.or(all),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn members_of_mappings_are_joined_and_other_values_are_replaced() {
        let all = PodSettings {
            node_selector: Some(json!({"pool": "systems", "disk": "ssd"})),
            affinity: Some(json!({"nodeAffinity": {}})),
            tolerations: Some(json!([{"key": "a"}])),
            service_account: Some("all".to_owned()),
            image_pull_secrets: vec!["registry".to_owned()],
            sidecars: Some(true),
            ..PodSettings::default()
        };
        let own = PodSettings {
            node_selector: Some(json!({"pool": "data"})),
            affinity: Some(json!({"podAffinity": {}})),
            tolerations: Some(json!([{"key": "b"}])),
            requests: Some(json!({"cpu": 1})),
            sidecars: Some(false),
            ..PodSettings::default()
        };
        let both = own.over(&all);
        assert_eq!(
            both.node_selector,
            Some(json!({"pool": "data", "disk": "ssd"}))
        );
        assert_eq!(both.affinity, Some(json!({"podAffinity": {}})));
        assert_eq!(both.tolerations, Some(json!([{"key": "b"}])));
        assert_eq!(both.service_account.as_deref(), Some("all"));
        assert_eq!(both.image_pull_secrets, ["registry"]);
        assert_eq!(both.requests, Some(json!({"cpu": 1})));
        assert_eq!(both.sidecars, Some(false));
        assert_eq!(PodSettings::default().over(&all), all);
    }
}
