//! The compose file that is started: what compose made of the user's file, without what would make two
//! of its projects collide, and with what a variant changes.
//!
//! A file of its own and not one that is laid over the user's: compose adds lists of ports to each
//! other, and only newer versions of it can be told to replace them. Anchors, `extends`, `${…}` and
//! `env_file` are compose's business, whose `config` is what is read here.
//!
//! Whatever could reach from one project into another, or into what was there before, is refused: two
//! variants that write to one volume, or answer to one name in one network, are no comparison. What a
//! service may do to the machine (`privileged`, devices, folders of the host) is the user's decision
//! and stays as it is, just as with `docker compose up`.

mod ports;
mod quantities;
mod service;
mod volumes;

use std::collections::{BTreeMap, BTreeSet};

use lab::Compose;
use serde_json::{Map, Value, json};
use yaml_with_places::{Document, Findings, Node, Value as NodeValue, did_you_mean};

use service::Service;

/// What is marked as belonging to a run: labels of containers, networks and volumes.
pub(crate) type Labels = BTreeMap<String, String>;

/// What a file is to be made of.
#[derive(Clone, Copy)]
pub(super) struct Wish<'a> {
    pub(super) compose: &'a Compose,
    pub(super) labels: &'a Labels,
    /// Whether a path of the host is a folder, or would become one when it is mounted.
    pub(super) is_folder: &'a dyn Fn(&str) -> bool,
    /// The ports that an image says it listens on, as far as that is known.
    pub(super) image_ports: &'a dyn Fn(&str) -> Vec<u16>,
}

/// Where the address of a project is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entrance {
    /// The service whose containers have the address: the loaded one, or the one whose network it uses.
    pub(crate) service: String,
    /// The port within the container.
    pub(crate) port: u16,
}

/// What is known of a service before it is started.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Planned {
    pub(crate) name: String,
    /// How many containers of it run; at least 1.
    pub(crate) replicas: u32,
    /// Cores, as the file limits them.
    pub(crate) cpus: Option<f64>,
    /// Bytes, as the file limits them.
    pub(crate) memory: Option<u64>,
}

/// A file that can be started.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Written {
    /// It, complete.
    pub(crate) file: Value,
    /// A file to build images from; none where no service is built.
    pub(crate) build: Option<Value>,
    pub(crate) entrance: Entrance,
    /// Its services, by name.
    pub(crate) services: Vec<Planned>,
    /// What is different from the user's file, for people.
    pub(crate) notes: Vec<String>,
}

/// What was found on the way through a file.
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

/// Reads what compose's `config` prints.
///
/// # Errors
///
/// A sentence, when it is no YAML.
pub(super) fn read(text: &str) -> Result<Value, String> {
    let mut findings = Findings::default();
    match yaml_with_places::read(0, text, "one document", &mut findings) {
        Document::Tree(node) => Ok(value(&node)),
        _ => Err("the output of compose is not readable YAML".to_owned()),
    }
}

/// A node as JSON. Text stays text where a number would not be written the same way again: YAML 1.1,
/// which compose writes, has no quotes around `1e3`.
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
/// Every reason why it cannot be started so that variants are apart.
pub(super) fn written(resolved: &Value, wish: Wish<'_>) -> Result<Written, Vec<String>> {
    let Wish {
        compose, labels, ..
    } = wish;
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
            let service = Service::of(name, given, wish, &mut remarks);
            services.extend((service.planned.replicas > 0).then_some(service));
        }
    }
    let entrance = ports::entrance(&services, wish, &mut remarks);
    let of_services: Vec<&Value> = services.iter().map(|it| &it.given["volumes"]).collect();
    let volumes = volumes::used(resolved, &of_services, wish, &mut remarks);
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

/// The networks that services are in, each one of the project's own.
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
        // A name of its own would be the same for all projects.
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

/// Whether a network or volume is not the project's own. Old files have a mapping there.
fn is_external(given: &Value) -> bool {
    match &given["external"] {
        Value::Bool(external) => *external,
        Value::Object(_) => true,
        _ => false,
    }
}

/// Adds labels to those that are there.
fn label(marked: &mut Map<String, Value>, labels: &Labels) {
    let mut all = pairs(marked.get("labels").unwrap_or(&Value::Null));
    for (name, value) in labels {
        all.insert(name.clone(), value.as_str().into());
    }
    marked.insert("labels".to_owned(), Value::Object(all));
}

/// `A: 1` and `- A=1` are two ways to write the same. A name without a value is null.
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

/// A text, or those of a list; the keys of a mapping.
fn texts(given: &Value) -> Vec<String> {
    match given {
        Value::String(text) => vec![text.clone()],
        Value::Array(items) => items.iter().filter_map(as_text).collect(),
        Value::Object(members) => members.keys().cloned().collect(),
        _ => Vec::new(),
    }
}

/// A scalar as text.
fn as_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// What compose reads as this text: it fills in `$…` once more when the file is started.
fn escaped(text: &str) -> String {
    text.replace('$', "$$")
}

#[cfg(test)]
mod tests;
