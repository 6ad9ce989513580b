//! Reads the manifests of a user, which replace generated pods, and refuses unsupported objects.
//!
//! | topic | module |
//! |---|---|
//! | the copy of a variant, under names of its own | [`copy`] |
//! | objects of a mesh, for one copy | [`mesh`] |
//! | forbidden settings of pods, and objects that pods name | [`pod`] |
//! | the reason of a refusal | [`refused`] |
//!
//! A kind is applied only if it ends with its owner and its references to other objects are supported. Other
//! kinds are refused by name, and are left out only if the user requests it.

mod copy;
mod mesh;
mod pod;
mod refused;

pub use copy::{COUNTED, Copy, LOADED};
pub use refused::Refused;

use serde_json::{Value, json};

use crate::call::Resource;
use crate::connection::name_of;
use crate::mesh::MeshKind;

/// The applied objects: API version, kind, and resource.
const APPLIED: [(&str, &str, Resource); 7] = [
    ("v1", "Service", Resource::Services),
    ("v1", "ConfigMap", Resource::ConfigMaps),
    ("v1", "Secret", Resource::Secrets),
    ("v1", "ServiceAccount", Resource::ServiceAccounts),
    ("v1", "Pod", Resource::Pods),
    ("apps/v1", "Deployment", Resource::Deployments),
    ("apps/v1", "StatefulSet", Resource::StatefulSets),
];

/// Members that must be mappings if they exist, because they are extended.
const MAPPINGS: [&str; 8] = [
    "/metadata/labels",
    "/spec",
    "/spec/selector",
    "/spec/selector/matchLabels",
    "/spec/template",
    "/spec/template/metadata",
    "/spec/template/metadata/labels",
    "/spec/template/spec",
];

/// The largest number of pods of all workloads.
const PODS_MOST: u64 = 64;

/// The objects and changes that a lab requires of the files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wish {
    /// The Service that receives the load.
    pub service: String,
    /// The port of that Service. Required if it has several ports.
    pub port: Option<u16>,
    /// The workload with the pods to count. `None` counts all.
    pub workload: Option<String>,
    /// Objects to leave out, as `KIND` or `KIND/NAME`.
    pub without: Vec<String>,
    /// Changes of workloads.
    pub changes: Vec<Change>,
}

/// The changes of one workload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// The name of the Deployment, StatefulSet or Pod.
    pub workload: String,
    /// The container to change. `None` for the first container.
    pub container: Option<String>,
    /// Variables that are added or replaced.
    pub env: Vec<(String, String)>,
    /// The image that replaces its own.
    pub image: Option<String>,
    /// Number of pods.
    pub replicas: Option<u32>,
}

/// One object of the files.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Object {
    pub(crate) resource: Resource,
    pub(crate) value: Value,
}

impl Object {
    fn name(&self) -> &str {
        name_of(&self.value)
    }

    /// Returns kind and name, such as `Deployment/gateway`.
    fn called(&self) -> String {
        let kind = self.value["kind"].as_str().unwrap_or_default();
        format!("{kind}/{}", self.name())
    }

    /// Returns a refusal of an unsupported setting, with advice.
    fn wrong(&self, what: &str, advice: &str) -> Refused {
        Refused::Member {
            object: self.called(),
            what: what.to_owned(),
            advice: advice.to_owned(),
        }
    }

    fn is_workload(&self) -> bool {
        matches!(
            self.resource,
            Resource::Pods | Resource::Deployments | Resource::StatefulSets
        )
    }

    /// The specification of the pods of a workload.
    fn pod_spec(&self) -> &Value {
        match self.resource {
            Resource::Pods => &self.value["spec"],
            _ => &self.value["spec"]["template"]["spec"],
        }
    }

    fn pod_spec_mut(&mut self) -> &mut Value {
        match self.resource {
            Resource::Pods => &mut self.value["spec"],
            _ => &mut self.value["spec"]["template"]["spec"],
        }
    }

    /// The labels of the pods of a workload.
    fn pod_labels(&self) -> &Value {
        match self.resource {
            Resource::Pods => &self.value["metadata"]["labels"],
            _ => &self.value["spec"]["template"]["metadata"]["labels"],
        }
    }

    /// The metadata with the labels of the pods of a workload.
    fn pod_metadata(&mut self) -> &mut Value {
        match self.resource {
            Resource::Pods => &mut self.value["metadata"],
            _ => &mut self.value["spec"]["template"]["metadata"],
        }
    }

    /// The number of pods of a workload.
    fn pods(&self) -> u64 {
        match self.resource {
            Resource::Pods => 1,
            _ => self.value["spec"]["replicas"].as_u64().unwrap_or(1),
        }
    }
}

/// The objects of a system, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifests {
    objects: Vec<Object>,
    service: String,
    port: u16,
    target_port: u16,
    workload: Option<String>,
}

impl Manifests {
    /// Reads files with their names, and checks them against the requirements of a lab. `namespace` is the
    /// namespace of the run, if it is already set.
    ///
    /// # Errors
    /// All refused objects, or the first object that the lab names and the files do not contain.
    pub fn read(
        files: &[(String, String)],
        namespace: Option<&str>,
        wish: &Wish,
    ) -> Result<Manifests, Refused> {
        let mut objects = all_checked(files, namespace, wish)?;
        for change in &wish.changes {
            changed(&mut objects, change)?;
        }
        let (port, target_port) = load_port(&objects, wish)?;
        if let Some(workload) = &wish.workload {
            find_workload(&mut objects, workload)?;
        }
        let pods: u64 = objects
            .iter()
            .filter(|it| it.is_workload())
            .map(Object::pods)
            .sum();
        if pods == 0 || pods > PODS_MOST {
            return Err(Refused::Pods(pods));
        }
        Ok(Manifests {
            objects,
            service: wish.service.clone(),
            port,
            target_port,
            workload: wish.workload.clone(),
        })
    }

    /// The port of the Service that receives the load.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The port that the pods behind that Service listen on.
    #[must_use]
    pub fn target_port(&self) -> u16 {
        self.target_port
    }

    /// The number of pods if all workloads run.
    #[must_use]
    pub fn pods(&self) -> usize {
        let workloads = self.objects.iter().filter(|it| it.is_workload());
        usize::try_from(workloads.map(Object::pods).sum::<u64>()).unwrap_or(usize::MAX)
    }
}

/// Reads and checks all objects of the files that the lab does not leave out.
fn all_checked(
    files: &[(String, String)],
    namespace: Option<&str>,
    wish: &Wish,
) -> Result<Vec<Object>, Refused> {
    let mut objects: Vec<Object> = Vec::new();
    // All of them, so that an author does not need one run for each.
    let mut refused = Vec::new();
    for (file, text) in files {
        for document in documents(file, text)? {
            let (kind, name) = match identity(file, &document) {
                Ok((kind, name)) => (kind, name),
                Err(why) => {
                    refused.push(why);
                    continue;
                }
            };
            if is_left_out(&kind, &name, &wish.without) {
                continue;
            }
            match checked(document, namespace) {
                Ok(object)
                    if objects
                        .iter()
                        .any(|known| known.called() == object.called()) =>
                {
                    refused.push(Refused::Twice(object.called()));
                }
                Ok(object) => objects.push(object),
                Err(why) => refused.push(why),
            }
        }
    }
    let reach = objects
        .iter()
        .filter_map(|object| mesh::check_reach(object, &objects, namespace).err());
    refused.extend(reach.collect::<Vec<_>>());
    match refused.len() {
        0 => Ok(objects),
        1 => Err(refused.remove(0)),
        _ => Err(Refused::Several(refused)),
    }
}

/// Returns the objects of a file, also from within a list. Numbers such as `0444` are octal, as in the tools of a cluster.
fn documents(file: &str, text: &str) -> Result<Vec<Value>, Refused> {
    let options = serde_saphyr::options! { legacy_octal_numbers: true };
    let documents: Vec<Value> = serde_saphyr::from_multiple_with_options(text, options)
        .map_err(|error| Refused::NoObject(file.to_owned(), error.to_string()))?;
    let mut objects = Vec::new();
    for document in documents {
        unpack(document, &mut objects);
    }
    Ok(objects)
}

/// Adds an object, or the objects of a list such as `kubectl get --output yaml` prints.
fn unpack(mut document: Value, objects: &mut Vec<Value>) {
    let is_list = document["kind"]
        .as_str()
        .is_some_and(|kind| kind.ends_with("List"));
    match document.get_mut("items").map(Value::take) {
        Some(Value::Array(items)) if is_list => {
            for item in items {
                unpack(item, objects);
            }
        }
        items => {
            if let Some(items) = items {
                document["items"] = items;
            }
            if !document.is_null() {
                objects.push(document);
            }
        }
    }
}

/// Returns kind and name.
fn identity(file: &str, object: &Value) -> Result<(String, String), Refused> {
    let wrong = |found: String| Refused::NoObject(file.to_owned(), found);
    let (Some(_), Some(kind)) = (object["apiVersion"].as_str(), object["kind"].as_str()) else {
        let mut shown = object.to_string();
        shown.truncate(shown.floor_char_boundary(80));
        return Err(wrong(format!("found `{shown}`")));
    };
    let name = name_of(object);
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
    // The name becomes part of a path and of a host name.
    if name.is_empty() || name.len() > 253 || !name.chars().all(is_plain) || name.contains("..") {
        return Err(wrong(format!("a {kind} with the name `{name}`")));
    }
    Ok((kind.to_owned(), name.to_owned()))
}

fn is_left_out(kind: &str, name: &str, without: &[String]) -> bool {
    without.iter().any(|one| match one.split_once('/') {
        Some((its_kind, its_name)) => its_kind == kind && its_name == name,
        None => one == kind,
    })
}

fn checked(value: Value, namespace: Option<&str>) -> Result<Object, Refused> {
    let api_version = value["apiVersion"].as_str().unwrap_or_default();
    let kind = value["kind"].as_str().unwrap_or_default();
    let known = APPLIED
        .iter()
        .find(|it| it.0 == api_version && it.1 == kind);
    let known = known.map(|(_, _, resource)| *resource);
    let known = known.or_else(|| MeshKind::of(api_version, kind).map(Resource::Mesh));
    let Some(resource) = known else {
        return Err(Refused::Kind {
            kind: kind.to_owned(),
            api_version: api_version.to_owned(),
            name: name_of(&value).to_owned(),
        });
    };
    let object = Object { resource, value };
    for pointer in MAPPINGS {
        let found = object.value.pointer(pointer);
        if found.is_some_and(|found| !found.is_object() && !found.is_null()) {
            return Err(object.wrong(&pointer[1..].replace('/', "."), "expected a mapping"));
        }
    }
    let metadata = &object.value["metadata"];
    if let (Some(found), Some(own)) = (metadata["namespace"].as_str(), namespace)
        && found != own
    {
        let advice = format!("all objects of a run are in its namespace `{own}`. Remove it");
        return Err(object.wrong(&format!("namespace: {found}"), &advice));
    }
    for member in ["finalizers", "ownerReferences"] {
        if !metadata[member].is_null() {
            return Err(object.wrong(member, "the object must end with the run. Remove it"));
        }
    }
    match resource {
        Resource::Services => check_service(&object)?,
        Resource::Mesh(_) => mesh::check(&object)?,
        Resource::StatefulSets if !object.value["spec"]["volumeClaimTemplates"].is_null() => {
            return Err(object.wrong(
                "volumeClaimTemplates",
                "volumes outlive a run. Give its pods an `emptyDir`",
            ));
        }
        _ => {}
    }
    if object.is_workload() {
        pod::check(&object)?;
    }
    Ok(object)
}

/// True for a Service without an address of its own. Its copy has an address, and its name resolves to this address.
fn is_headless(service: &Object) -> bool {
    service.resource == Resource::Services && service.value["spec"]["clusterIP"] == "None"
}

/// Checks that a Service leads only to pods of these files, from within the cluster.
fn check_service(object: &Object) -> Result<(), Refused> {
    let spec = &object.value["spec"];
    let kind = spec["type"].as_str().unwrap_or("ClusterIP");
    if kind != "ClusterIP" {
        return Err(object.wrong(
            &format!("type: {kind}"),
            "the generators are in the cluster. Remove it",
        ));
    }
    if is_headless(object) && spec["ports"].as_array().is_none_or(Vec::is_empty) {
        return Err(object.wrong(
            "clusterIP: None without ports",
            "the copy gets an address, which needs ports. Add them",
        ));
    }
    for member in ["clusterIP", "clusterIPs", "externalIPs"] {
        let is_set = !spec[member].is_null() && !is_headless(object);
        if is_set || member == "externalIPs" && !spec[member].is_null() {
            return Err(object.wrong(member, "each variant receives its own address. Remove it"));
        }
    }
    if spec["selector"]
        .as_object()
        .is_none_or(serde_json::Map::is_empty)
    {
        return Err(object.wrong(
            "no selector",
            "the load goes only to pods of the files. Add a selector",
        ));
    }
    Ok(())
}

/// Returns the port of the Service that receives the load, and the port of the pods behind it.
fn load_port(objects: &[Object], wish: &Wish) -> Result<(u16, u16), Refused> {
    let services = || {
        objects
            .iter()
            .filter(|it| it.resource == Resource::Services)
    };
    let Some(service) = services().find(|it| it.name() == wish.service) else {
        let names: Vec<&str> = services().map(Object::name).collect();
        return Err(Refused::NoService(wish.service.clone(), names.join(", ")));
    };
    let ports = service.value["spec"]["ports"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let number = |port: &Value| port["port"].as_u64().and_then(|it| u16::try_from(it).ok());
    let found = match wish.port {
        Some(wanted) => ports.iter().find(|port| number(port) == Some(wanted)),
        None => ports.first().filter(|_| ports.len() == 1),
    };
    let Some((port, written)) = found.and_then(|port| Some((number(port)?, port))) else {
        let numbers: Vec<String> = ports
            .iter()
            .filter_map(number)
            .map(|it| it.to_string())
            .collect();
        return Err(Refused::Port(wish.service.clone(), numbers.join(", ")));
    };
    let behind: Vec<&Object> = objects.iter().filter(|it| is_behind(service, it)).collect();
    if behind.is_empty() {
        return Err(Refused::NoPods(wish.service.clone()));
    }
    let target = match &written["targetPort"] {
        Value::Null => Some(port),
        Value::Number(number) => number.as_u64().and_then(|it| u16::try_from(it).ok()),
        name => behind
            .iter()
            .find_map(|it| pod::named_port(it.pod_spec(), name)),
    };
    match target.filter(|target| *target > 0) {
        Some(target) => Ok((port, target)),
        None => Err(service.wrong(
            &format!("targetPort: {}", written["targetPort"]),
            "no container of its pods has a port with this name. Name the port there",
        )),
    }
}

/// True if a Service leads to the pods of a workload.
fn is_behind(service: &Object, workload: &Object) -> bool {
    let selector = service.value["spec"]["selector"].as_object();
    workload.is_workload()
        && selector.is_some_and(|selector| {
            let labels = workload.pod_labels();
            selector.iter().all(|(name, value)| labels[name] == *value)
        })
}

fn find_workload<'o>(objects: &'o mut [Object], name: &str) -> Result<&'o mut Object, Refused> {
    let names: Vec<String> = objects
        .iter()
        .filter(|it| it.is_workload())
        .map(|it| it.name().to_owned())
        .collect();
    let mut found = objects
        .iter_mut()
        .filter(|it| it.is_workload() && it.name() == name);
    match (found.next(), found.next()) {
        (Some(one), None) => Ok(one),
        (Some(_), Some(_)) => Err(Refused::Ambiguous(name.to_owned())),
        (None, _) => Err(Refused::NoWorkload(name.to_owned(), names.join(", "))),
    }
}

/// Applies a change of the lab to a workload.
fn changed(objects: &mut [Object], change: &Change) -> Result<(), Refused> {
    let workload = find_workload(objects, &change.workload)?;
    let called = workload.called();
    if let Some(replicas) = change.replicas {
        if workload.resource == Resource::Pods {
            return Err(workload.wrong(
                "replicas",
                "a Pod is a single instance. Make it a Deployment",
            ));
        }
        workload.value["spec"]["replicas"] = json!(replicas);
    }
    let containers = workload.pod_spec_mut()["containers"].as_array_mut();
    let mut containers = containers.into_iter().flatten();
    let container = match &change.container {
        None => containers.next(),
        Some(name) => containers.find(|it| it["name"] == *name),
    };
    let Some(container) = container else {
        let name = change.container.clone().unwrap_or_default();
        return Err(Refused::NoContainer(called, name));
    };
    if let Some(image) = &change.image {
        container["image"] = json!(image);
    }
    for (name, value) in &change.env {
        pod::set_variable(container, name, value);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
