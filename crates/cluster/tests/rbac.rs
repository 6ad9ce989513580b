//! Checks that the manifest of permissions contains exactly the permissions that this crate needs.

use std::collections::BTreeSet;

use cluster::call::needed;
use serde_json::Value;

const MANIFEST: &str = include_str!("../../../deploy/kubernetes/weigh-rbac.yaml");

/// A permission: `(is of the cluster, group, resource, verb)`.
type Right = (bool, String, String, String);

fn granted() -> BTreeSet<Right> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(MANIFEST).expect("it is YAML");
    let texts = |value: &Value| -> Vec<String> {
        let items = value.as_array().into_iter().flatten();
        items
            .filter_map(|it| it.as_str().map(str::to_owned))
            .collect()
    };
    let mut granted = BTreeSet::new();
    for document in documents {
        let is_of_cluster = document["kind"] == "ClusterRole";
        for rule in document["rules"].as_array().into_iter().flatten() {
            for group in texts(&rule["apiGroups"]) {
                for resource in texts(&rule["resources"]) {
                    for verb in texts(&rule["verbs"]) {
                        granted.insert((is_of_cluster, group.clone(), resource.clone(), verb));
                    }
                }
            }
        }
    }
    granted
}

#[test]
fn what_is_granted_is_what_is_asked_for() {
    let needed = needed().flat_map(|(resource, verbs)| {
        verbs.iter().map(move |verb| {
            (
                resource.is_of_cluster(),
                resource.group().to_owned(),
                resource.rbac_name().to_owned(),
                verb.word().to_owned(),
            )
        })
    });
    let needed: BTreeSet<Right> = needed.collect();
    assert_eq!(granted(), needed);
}
