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
//! * Programs also find Services by variables such as `PLANETS_SERVICE_HOST`. They contain the addresses of this
//!   copy. A mesh that chooses its route by the host of a request knows these addresses, and not the names.

use std::net::IpAddr;

use serde_json::{Value, json};

use super::{Manifests, Object, is_behind, is_headless, pod};
use crate::call::Resource;
use crate::connection::name_of;
use crate::pod_settings::{PART, near_part};
use crate::workload::{GRACE_S, SERVES, dns_label};

/// The label of pods that are counted.
pub const COUNTED: &str = "weighbridge/counted";
/// The label of pods that receive the load.
pub const LOADED: &str = "weighbridge/loaded";
/// The longest name. A StatefulSet adds up to 11 characters to its name, for a label of at most 63.
const NAME_MOST: usize = 52;

/// The longest name of a workload in its [`PART`].
const PART_MOST: usize = 20;
/// The label with the number of a pod of a StatefulSet, since Kubernetes 1.28.
const POD_INDEX: &str = "apps.kubernetes.io/pod-index";

/// The names of a copy.
#[derive(Clone, Copy, Debug)]
pub struct Copy<'a> {
    /// The name of the Service that receives the load, also the label of all pods of the copy. A DNS label of
    /// at most 60 characters, equal for all starts.
    pub serves: &'a str,
    /// The prefix of all names except Services, different for each start: at most 44 characters of a DNS
    /// label.
    pub stem: &'a str,
    /// The prefix of the label for common nodes, equal for all variants: at most 41 characters.
    pub part: &'a str,
    /// The DNS domain of the cluster.
    pub domain: &'a str,
}

/// The ways in which the pods of a copy find its Services.
struct Found {
    /// Lines of `/etc/hosts`.
    aliases: Vec<Value>,
    /// Variables of the environment.
    variables: Vec<Value>,
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
            (service.name().to_owned(), with_address(value))
        });
        copies.chain(self.services_of_instances(copy)).collect()
    }

    /// Returns a Service for each pod of a StatefulSet with a headless Service, each with the name of the pod
    /// in the files: `db-0.db`.
    fn services_of_instances(&self, copy: Copy<'_>) -> Vec<(String, Value)> {
        let mut services = Vec::new();
        for (number, set, headless) in self.stateful() {
            for index in 0..set.pods() {
                let mut value = with_address(headless.value.clone());
                let name = format!("{}-{number}-{index}", copy.serves);
                value["metadata"] = json!({"name": name});
                let spec = &mut value["spec"];
                spec["selector"] = set.value["spec"]["selector"]["matchLabels"].clone();
                spec["selector"][SERVES] = json!(copy.serves);
                spec["selector"][POD_INDEX] = json!(index.to_string());
                // The pods of a database find each other before they are ready.
                spec["publishNotReadyAddresses"] = json!(true);
                let host = format!("{}-{index}.{}", set.name(), headless.name());
                services.push((host, value));
            }
        }
        services
    }

    /// The StatefulSets of the files with their numbers, each with its headless Service.
    fn stateful(&self) -> impl Iterator<Item = (usize, &Object, &Object)> {
        let sets = self
            .numbered()
            .filter(|(_, it)| it.resource == Resource::StatefulSets);
        sets.filter_map(|(number, set)| {
            let name = &set.value["spec"]["serviceName"];
            let mut services = self.objects.iter().filter(|it| is_headless(it));
            let service = services.find(|it| name_of(&it.value) == name)?;
            Some((number, set, service))
        })
    }

    /// Adds the names that the pods of StatefulSets have in this copy, as their own host name begins with it.
    fn with_own_names(
        &self,
        copy: Copy<'_>,
        addresses: &[(String, IpAddr)],
    ) -> Vec<(String, IpAddr)> {
        let mut all = addresses.to_vec();
        for (number, set, headless) in self.stateful() {
            let own = self.name_in(copy, number, set);
            for index in 0..set.pods() {
                let service = headless.name();
                let written = format!("{}-{index}.{service}", set.name());
                let found = addresses.iter().find(|(name, _)| *name == written);
                all.extend(found.map(|(_, ip)| (format!("{own}-{index}.{service}"), *ip)));
            }
        }
        all
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
        let found = Found {
            aliases: aliases(
                namespace,
                copy.domain,
                &self.with_own_names(copy, addresses),
            ),
            variables: self.variables(addresses),
        };
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
                self.set_apart(copy, &mut workload, &found);
                // The same workload of another variant runs on the same node if it can.
                let part = format!("{}-{}", copy.part, dns_label(object.name(), PART_MOST));
                if workload.pod_spec()["affinity"].is_null() {
                    workload.pod_spec_mut()["affinity"] = near_part(&part);
                }
                workload.pod_metadata()["labels"][PART] = json!(part);
                for label in self.labels_of(object) {
                    workload.pod_metadata()["labels"][label] = json!("yes");
                }
                value = workload.value;
            } else if matches!(object.resource, Resource::Mesh(_)) {
                let mut own = Object {
                    resource: object.resource,
                    value,
                };
                self.set_apart_in_mesh(copy, namespace, &mut own);
                value = own.value;
            } else if object.resource == Resource::ServiceAccounts {
                pod::rename_pull_secrets(&mut value, &|resource, name| {
                    if let Some(own) = self.own_name(copy, resource, name) {
                        *name = json!(own);
                    }
                });
            }
            made.push((object.resource, value));
        }
        // Objects that pods read are created before the pods. Mesh objects apply from their first request.
        made.sort_by_key(|(resource, _)| {
            matches!(
                resource,
                Resource::Pods | Resource::Deployments | Resource::StatefulSets
            )
        });
        made
    }

    /// Returns the variables that a cluster gives to its pods for each Service, with the addresses of this copy.
    fn variables(&self, addresses: &[(String, IpAddr)]) -> Vec<Value> {
        let services = self
            .objects
            .iter()
            .filter(|it| it.resource == Resource::Services && !is_headless(it));
        let variables = services.flat_map(|service| {
            let own = addresses.iter().find(|(name, _)| name == service.name());
            let port = &service.value["spec"]["ports"][0]["port"];
            let stem = service.name().to_uppercase().replace('-', "_");
            own.into_iter().flat_map(move |(_, ip)| {
                [
                    json!({"name": format!("{stem}_SERVICE_HOST"), "value": ip.to_string()}),
                    json!({"name": format!("{stem}_SERVICE_PORT"), "value": port.to_string()}),
                ]
            })
        });
        variables.collect()
    }

    pub(super) fn numbered(&self) -> impl Iterator<Item = (usize, &Object)> {
        self.objects.iter().enumerate()
    }

    /// Returns the name of an object in this copy.
    pub(super) fn name_in(&self, copy: Copy<'_>, number: usize, object: &Object) -> String {
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
    pub(super) fn own_name(
        &self,
        copy: Copy<'_>,
        resource: Resource,
        name: &Value,
    ) -> Option<String> {
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

    /// The name in this copy of the ServiceAccount of a pod. `None` if the files do not contain it.
    fn own_account(&self, copy: Copy<'_>, spec: &Value) -> Option<String> {
        let name = match &spec["serviceAccountName"] {
            Value::Null => &spec["serviceAccount"],
            name => name,
        };
        self.own_name(copy, Resource::ServiceAccounts, name)
    }

    /// Changes the pods of a workload to pods of this copy.
    fn set_apart(&self, copy: Copy<'_>, workload: &mut Object, found: &Found) {
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
        let account = self.own_account(copy, workload.pod_spec());
        let spec = workload.pod_spec_mut();
        pod::rename(spec, &rename);
        if let Some(members) = spec.as_object_mut() {
            // Pods of a run have no rights in the cluster. An account of the files has no rights either, but
            // it is the identity in a mesh.
            members.remove("serviceAccount");
            match account {
                Some(name) => members.insert("serviceAccountName".to_owned(), json!(name)),
                None => members.remove("serviceAccountName"),
            };
        }
        spec["automountServiceAccountToken"] = json!(false);
        let grace = spec["terminationGracePeriodSeconds"].as_u64();
        spec["terminationGracePeriodSeconds"] = json!(grace.unwrap_or(GRACE_S).min(GRACE_S));
        if spec["enableServiceLinks"] != false {
            pod::set_variables(spec, &found.variables);
        }
        // Variables that would name Services of other variants.
        spec["enableServiceLinks"] = json!(false);
        let known = spec["hostAliases"].as_array().cloned().unwrap_or_default();
        spec["hostAliases"] = Value::Array(
            known
                .into_iter()
                .chain(found.aliases.iter().cloned())
                .collect(),
        );
    }
}

/// A Service with an address of its own. The name of a headless Service resolves by DNS only.
fn with_address(mut service: Value) -> Value {
    if service["spec"]["clusterIP"] == "None"
        && let Some(spec) = service["spec"].as_object_mut()
    {
        spec.remove("clusterIP");
        spec.remove("clusterIPs");
    }
    service
}

/// Returns lines of `/etc/hosts` that map the names of Services to the addresses of one copy.
fn aliases(namespace: &str, domain: &str, addresses: &[(String, IpAddr)]) -> Vec<Value> {
    let lines = addresses.iter().map(|(name, address)| {
        let names =
            ["", ".svc", &format!(".svc.{domain}")].map(|end| format!("{name}.{namespace}{end}"));
        let mut all = vec![name.clone()];
        all.extend(names);
        json!({"ip": address.to_string(), "hostnames": all})
    });
    lines.collect()
}
