//! The copy of a variant: objects under their own names, which only find each other and not the objects of
//! another variant.
//!
//! * ConfigMaps, Secrets and the Services of StatefulSets are named in known members. These members are
//!   rewritten if the files contain that object. Any other object belongs to the namespace, and its name stays.
//! * Services find pods by labels. Every pod gets one more label, which only this copy has, and every
//!   selector requires it.
//! * Programs find Services by host names, in configurations that cannot be rewritten safely. Every pod gets
//!   lines for its `/etc/hosts`, so that these names resolve to the addresses of this copy's Services. The
//!   caller adds names of other systems of the lab.

use std::net::IpAddr;

use serde_json::{Value, json};

use super::{Manifests, Object, is_behind, pod};
use crate::call::Resource;
use crate::connection::name_of;
use crate::workload::{SERVES, dns_label};

/// The label of pods that are counted.
pub const COUNTED: &str = "weighbridge/counted";
/// The label of pods that receive the load.
pub const LOADED: &str = "weighbridge/loaded";
/// The longest name. A StatefulSet adds up to 11 characters to its name, for a label of at most 63.
const NAME_MOST: usize = 52;

/// Seconds that a pod has to end.
const GRACE_MOST: u64 = 2;

/// The names of a copy.
#[derive(Clone, Copy, Debug)]
pub struct Copy<'a> {
    /// The name of the Service that receives the load, also the label of all pods of the copy. A DNS label of
    /// at most 60 characters, equal for all starts.
    pub serves: &'a str,
    /// The prefix of all names except Services, different for each start: at most 44 characters of a DNS
    /// label.
    pub stem: &'a str,
}

impl Manifests {
    /// Returns the Services, each with its name in the files. They stay while pods come and go.
    #[must_use]
    pub fn services(&self, copy: Copy<'_>) -> Vec<(String, Value)> {
        let services = self
            .numbered()
            .filter(|(_, it)| it.resource == Resource::Services);
        let copies = services.map(|(number, service)| {
            let mut value = self.renamed(copy, number, service);
            value["spec"]["selector"][SERVES] = json!(copy.serves);
            (service.name().to_owned(), value)
        });
        copies.collect()
    }

    /// Returns the objects of one start, in the order of their creation. `addresses` are the addresses of the
    /// Services of the files, and of all other names that its pods must resolve.
    #[must_use]
    pub fn of_a_start(
        &self,
        copy: Copy<'_>,
        namespace: &str,
        addresses: &[(String, IpAddr)],
    ) -> Vec<(Resource, Value)> {
        let aliases = aliases(namespace, addresses);
        let mut made: Vec<(Resource, Value)> = Vec::new();
        for (number, object) in self.numbered() {
            if object.resource == Resource::Services {
                continue;
            }
            let mut value = self.renamed(copy, number, object);
            if object.is_workload() {
                let mut workload = Object {
                    resource: object.resource,
                    value,
                };
                self.set_apart(copy, &mut workload, &aliases);
                for label in self.labels_of(object) {
                    workload.pod_metadata()["labels"][label] = json!("yes");
                }
                value = workload.value;
            }
            made.push((object.resource, value));
        }
        // Objects that pods read are created before the pods.
        made.sort_by_key(|(resource, _)| {
            !matches!(resource, Resource::ConfigMaps | Resource::Secrets)
        });
        made
    }

    fn numbered(&self) -> impl Iterator<Item = (usize, &Object)> {
        self.objects.iter().enumerate()
    }

    /// Returns the name of an object in this copy.
    fn name_in(&self, copy: Copy<'_>, number: usize, object: &Object) -> String {
        if object.resource == Resource::Services {
            // Services stay from start to start.
            return match object.name() == self.service {
                true => copy.serves.to_owned(),
                false => format!("{}-{number}", copy.serves),
            };
        }
        let stem = format!("{}-{number}", copy.stem);
        let left = NAME_MOST.saturating_sub(stem.len() + 1).max(1);
        format!("{stem}-{}", dns_label(object.name(), left))
    }

    fn renamed(&self, copy: Copy<'_>, number: usize, object: &Object) -> Value {
        let mut value = object.value.clone();
        value["metadata"]["name"] = json!(self.name_in(copy, number, object));
        if let Some(members) = value.as_object_mut() {
            members.remove("status");
        }
        value
    }

    /// Returns the name in this copy of an object that the files name. `None` if the files do not contain it.
    fn own_name(&self, copy: Copy<'_>, resource: Resource, name: &Value) -> Option<String> {
        let mut objects = self.numbered();
        let (number, object) =
            objects.find(|(_, it)| it.resource == resource && name_of(&it.value) == name)?;
        Some(self.name_in(copy, number, object))
    }

    /// Returns the labels for the pods of a workload.
    fn labels_of(&self, workload: &Object) -> Vec<&'static str> {
        let is_counted = self
            .workload
            .as_deref()
            .is_none_or(|it| it == workload.name());
        let service = self
            .objects
            .iter()
            .find(|it| it.resource == Resource::Services && it.name() == self.service);
        let is_loaded = service.is_some_and(|service| is_behind(service, workload));
        let labels = [(COUNTED, is_counted), (LOADED, is_loaded)];
        labels
            .into_iter()
            .filter(|(_, holds)| *holds)
            .map(|(label, _)| label)
            .collect()
    }

    /// Changes the pods of a workload to pods of this copy.
    fn set_apart(&self, copy: Copy<'_>, workload: &mut Object, aliases: &[Value]) {
        let rename = |resource: Resource, name: &mut Value| {
            if let Some(own) = self.own_name(copy, resource, name) {
                *name = json!(own);
            }
        };
        let value = &mut workload.value;
        if workload.resource != Resource::Pods {
            value["spec"]["selector"]["matchLabels"][SERVES] = json!(copy.serves);
            if let Some(service) = value["spec"].get_mut("serviceName") {
                rename(Resource::Services, service);
            }
        }
        workload.pod_metadata()["labels"][SERVES] = json!(copy.serves);
        let spec = workload.pod_spec_mut();
        pod::rename(spec, &rename);
        if let Some(members) = spec.as_object_mut() {
            // Pods of a run have no rights in the cluster.
            members.remove("serviceAccountName");
            members.remove("serviceAccount");
        }
        spec["automountServiceAccountToken"] = json!(false);
        // The end of a pod is not measured, and each round waits for it.
        let grace = spec["terminationGracePeriodSeconds"].as_u64();
        spec["terminationGracePeriodSeconds"] = json!(grace.unwrap_or(GRACE_MOST).min(GRACE_MOST));
        // Variables that would name Services of other variants.
        spec["enableServiceLinks"] = json!(false);
        let known = spec["hostAliases"].as_array().cloned().unwrap_or_default();
        spec["hostAliases"] =
            Value::Array(known.into_iter().chain(aliases.iter().cloned()).collect());
    }
}

/// Returns lines of `/etc/hosts` that map the names of Services to the addresses of one copy.
fn aliases(namespace: &str, addresses: &[(String, IpAddr)]) -> Vec<Value> {
    let lines = addresses.iter().map(|(name, address)| {
        let names =
            ["", ".svc", ".svc.cluster.local"].map(|end| format!("{name}.{namespace}{end}"));
        let mut all = vec![name.clone()];
        all.extend(names);
        json!({"ip": address.to_string(), "hostnames": all})
    });
    lines.collect()
}
