//! The compose file that `weigh` starts. It is the user's file as resolved by compose, with the changes of a
//! variant, and without keys that would make two projects collide.
//!
//! It is a complete file, not an override of the user's file. Compose appends lists of ports, and only newer
//! versions can replace them. Compose itself resolves anchors, `extends`, `${…}` and `env_file`. This code
//! reads the output of `config`.
//!
//! `weigh` refuses every key that could affect another project or existing data. Two variants that write to
//! one volume, or share one name in one network, are no comparison. The user decides about access to the
//! machine (`privileged`, devices, folders of the host). These keys stay unchanged, as with
//! `docker compose up`.

mod ports;
mod quantities;
mod service;
mod volumes;

use std::collections::{BTreeMap, BTreeSet};

use lab::Compose;
use serde_json::{Map, Value, json};
use yaml_with_places::{Document, Findings, Node, Value as NodeValue, did_you_mean};

use service::Service;

/// Labels that assign containers, networks and volumes to a run.
pub(crate) type Labels = BTreeMap<String, String>;

/// The inputs of a compose file.
#[derive(Clone, Copy)]
pub(super) struct DocumentInputs<'a> {
    pub(super) compose: &'a Compose,
    pub(super) labels: &'a Labels,
    /// True if a path of the host is a folder, or would become one when it is mounted.
    pub(super) is_folder: &'a dyn Fn(&str) -> bool,
    /// The ports that an image exposes. Empty if they are unknown.
    pub(super) image_ports: &'a dyn Fn(&str) -> Vec<u16>,
}

/// The service and port that receive a project's load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entrance {
    /// The service that owns the address: the loaded one, or the service with the network that it uses.
    pub(crate) service: String,
    /// The port within the container.
    pub(crate) port: u16,
}

/// The facts about a service before it starts.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Planned {
    pub(crate) name: String,
    /// Number of containers, at least 1.
    pub(crate) replicas: u32,
    /// The processor limit of the file, in cores.
    pub(crate) cpus: Option<f64>,
    /// The memory limit of the file, in bytes.
    pub(crate) memory: Option<u64>,
}

/// A file that compose can start.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Written {
    /// The complete compose file.
    pub(crate) file: Value,
    /// A file to build images from. `None` if no service is built.
    pub(crate) build: Option<Value>,
    pub(crate) entrance: Entrance,
    /// The services in it, by name.
    pub(crate) services: Vec<Planned>,
    /// The differences from the user's file, as sentences.
    pub(crate) notes: Vec<String>,
}

/// Mistakes and notes about a file.
#[derive(Debug, Default)]
struct Remarks {
    refused: Vec<String>,
    notes: Vec<String>,
}

impl Remarks {
    fn refuse(&mut self, why: impl Into<String>) {
        self.refused.push(why.into());
    }

    fn note(&mut self, what: impl Into<String>) {
        self.notes.push(what.into());
    }
}

/// Reads the output of compose's `config`.
///
/// # Errors
///
/// A sentence, if it is not YAML.
pub(super) fn read(text: &str) -> Result<Value, String> {
    let mut findings = Findings::default();
    match yaml_with_places::read(0, text, "one document", &mut findings) {
        Document::Tree(node) => Ok(value(&node)),
        _ => Err("the output of compose is not readable YAML".to_owned()),
    }
}

/// A node as JSON. Text stays text if a number would be printed differently. YAML 1.1, as compose writes it,
/// has no quotes around `1e3`.
fn value(node: &Node) -> Value {
    match &node.value {
        NodeValue::Scalar { text, plain } => match yaml_with_places::scalar(text, *plain) {
            Value::Number(number) if number.to_string() != *text => text.as_str().into(),
            other => other,
        },
        NodeValue::Reported => Value::Null,
        NodeValue::List(items) => items.iter().map(value).collect(),
        NodeValue::Map(entries) => {
            let members = entries.iter().map(|it| (it.key.clone(), value(&it.node)));
            Value::Object(members.collect())
        }
    }
}

/// The file of a variant.
///
/// # Errors
///
/// Every reason why variants would not be separate.
pub(super) fn written(
    resolved: &Value,
    inputs: DocumentInputs<'_>,
) -> Result<Written, Vec<String>> {
    let DocumentInputs {
        compose, labels, ..
    } = inputs;
    let none = Map::new();
    let all = resolved["services"].as_object().unwrap_or(&none);
    let is_active = |service: &Value| {
        let mut profiles = texts(&service["profiles"]).into_iter().peekable();
        profiles.peek().is_none() || profiles.any(|one| compose.profiles.contains(&one))
    };
    let active: BTreeMap<&str, &Value> = all
        .iter()
        .filter(|(_, service)| is_active(service))
        .map(|(name, service)| (name.as_str(), service))
        .collect();
    let mut remarks = Remarks::default();
    check_names(compose, &active, &mut remarks);
    let mut services = Vec::new();
    for (name, given) in &active {
        if !compose.without.iter().any(|left_out| left_out == name) {
            let service = Service::of(name, given, inputs, &mut remarks);
            services.extend((service.planned.replicas > 0).then_some(service));
        }
    }
    let entrance = ports::entrance(&services, inputs, &mut remarks);
    let of_services: Vec<&Value> = services.iter().map(|it| &it.given["volumes"]).collect();
    let volumes = volumes::used(resolved, &of_services, inputs, &mut remarks);
    let networks = networks(resolved, &services, labels, &mut remarks);
    let (Some(entrance), true) = (entrance, remarks.refused.is_empty()) else {
        return Err(remarks.refused);
    };
    let mut file = Map::new();
    for key in ["version", "configs", "secrets"] {
        if let Some(given) = resolved.get(key) {
            file.insert(key.to_owned(), given.clone());
        }
    }
    let rewritten = services.iter().map(|service| {
        let is_entrance = service.planned.name == entrance.service;
        let port = is_entrance.then_some(entrance.port);
        (service.planned.name.clone(), service.to_start(port, labels))
    });
    file.insert("services".to_owned(), Value::Object(rewritten.collect()));
    file.insert("networks".to_owned(), networks);
    file.insert("volumes".to_owned(), volumes);
    Ok(Written {
        build: build(resolved, &services),
        file: Value::Object(file),
        entrance,
        services: services.into_iter().map(|it| it.planned).collect(),
        notes: remarks.notes,
    })
}

/// Refuses names that the file does not have.
fn check_names(compose: &Compose, active: &BTreeMap<&str, &Value>, remarks: &mut Remarks) {
    let changed = compose.services.iter().map(|change| &change.service);
    let named = std::iter::once(&compose.service).chain(&compose.without);
    let mut known: BTreeSet<&String> = BTreeSet::new();
    for name in named.chain(changed) {
        if active.contains_key(name.as_str()) || !known.insert(name) {
            continue;
        }
        let names = active.keys().copied();
        let help = did_you_mean(name, names.clone()).unwrap_or_else(|| match active.is_empty() {
            true => "the chosen profiles contain no service of it".to_owned(),
            false => format!("it has {}", names.collect::<Vec<_>>().join(", ")),
        });
        remarks.refuse(format!("there is no service `{name}`: {help}"));
    }
}

/// The networks of the services. Each belongs to the project alone.
fn networks(
    resolved: &Value,
    services: &[Service],
    labels: &Labels,
    remarks: &mut Remarks,
) -> Value {
    let used: BTreeSet<String> = services.iter().flat_map(Service::networks).collect();
    let mut networks = Map::new();
    for name in used {
        let given = &resolved["networks"][&name];
        if is_external(given) {
            remarks.refuse(format!(
                "the network `{name}` is external, so services of two variants would have the same name in it. Remove `external`, so that each variant has its own network"
            ));
            continue;
        }
        let mut network = given.as_object().cloned().unwrap_or_default();
        // A fixed name would be the same for all projects.
        network.remove("name");
        if network
            .remove("ipam")
            .is_some_and(|it| it.get("config").is_some())
        {
            remarks.note(format!(
                "network `{name}`: its `ipam` is omitted, because two networks cannot have the same addresses"
            ));
        }
        label(&mut network, labels);
        networks.insert(name, Value::Object(network));
    }
    Value::Object(networks)
}

/// The file to build images from.
fn build(resolved: &Value, services: &[Service]) -> Option<Value> {
    let built = services.iter().filter_map(|service| {
        let name = &service.planned.name;
        let build = service.build.clone()?;
        Some((
            name.clone(),
            json!({"build": build, "image": service.image()}),
        ))
    });
    let built: Map<String, Value> = built.collect();
    if built.is_empty() {
        return None;
    }
    let mut file = Map::from_iter([("services".to_owned(), Value::Object(built))]);
    for key in ["version", "secrets"] {
        if let Some(given) = resolved.get(key) {
            file.insert(key.to_owned(), given.clone());
        }
    }
    Some(Value::Object(file))
}

/// True if a network or volume does not belong to the project. Old files have a mapping at this key.
fn is_external(given: &Value) -> bool {
    match &given["external"] {
        Value::Bool(external) => *external,
        Value::Object(_) => true,
        _ => false,
    }
}

/// Adds labels to the existing labels.
fn label(marked: &mut Map<String, Value>, labels: &Labels) {
    let mut all = pairs(marked.get("labels").unwrap_or(&Value::Null));
    for (name, value) in labels {
        all.insert(name.clone(), value.as_str().into());
    }
    marked.insert("labels".to_owned(), Value::Object(all));
}

/// Reads `A: 1` and `- A=1` as the same mapping. A name without a value is null.
fn pairs(given: &Value) -> Map<String, Value> {
    match given {
        Value::Object(members) => members.clone(),
        Value::Array(items) => {
            let items = items.iter().filter_map(Value::as_str);
            let pair = |item: &str| match item.split_once('=') {
                Some((name, value)) => (name.to_owned(), value.into()),
                None => (item.to_owned(), Value::Null),
            };
            items.map(pair).collect()
        }
        _ => Map::new(),
    }
}

/// A single text, the texts of a list, or the keys of a mapping.
fn texts(given: &Value) -> Vec<String> {
    match given {
        Value::String(text) => vec![text.clone()],
        Value::Array(items) => items.iter().filter_map(as_text).collect(),
        Value::Object(members) => members.keys().cloned().collect(),
        _ => Vec::new(),
    }
}

/// A scalar as text. `None` for a list or mapping.
fn as_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Escapes `$`, because compose interpolates `$…` once more at the start.
fn escaped(text: &str) -> String {
    text.replace('$', "$$")
}

#[cfg(test)]
mod tests;
