//! One service of a compose file: changed keys, refused keys, and planned containers.

use std::collections::BTreeSet;

use lab::ServiceChange;
use serde_json::{Map, Value, json};

use super::quantities::{bytes, cores};
use super::volumes::writable_paths;
use super::{DocumentInputs, Labels, Planned, Remarks, as_text, escaped, label, pairs, texts};
use crate::digest::sha256;

/// Omitted keys. `weigh` itself decides about the name, the ports and the restart of a project, and the
/// profiles have been chosen.
const LEFT_AWAY: [&str; 8] = [
    "container_name",
    "ports",
    "restart",
    "profiles",
    "scale",
    "build",
    "image",
    "pull_policy",
];

/// A service that will be started.
pub(super) struct Service {
    pub(super) planned: Planned,
    /// The service in the user's file.
    pub(super) given: Value,
    /// The service that is started, without its image, ports and labels.
    changed: Map<String, Value>,
    /// The build instructions of its image, if it is built.
    pub(super) build: Option<Value>,
    image: String,
}

impl Service {
    pub(super) fn of(
        name: &str,
        given: &Value,
        inputs: DocumentInputs<'_>,
        remarks: &mut Remarks,
    ) -> Service {
        let unchanged = ServiceChange::default();
        let mut changes = inputs.compose.services.iter();
        let change = changes.find(|change| change.service == name);
        let change = change.unwrap_or(&unchanged);
        check(name, given, remarks);
        let mut changed = given.as_object().cloned().unwrap_or_default();
        for key in LEFT_AWAY {
            changed.remove(key);
        }
        for key in ["container_name", "restart"] {
            if given.get(key).is_some_and(|it| it != "no") {
                remarks.note(format!("`{name}`: its `{key}` is omitted"));
            }
        }
        // A mounted file is usually a configuration, but a folder usually contains data.
        for folder in writable_paths(&given["volumes"]) {
            if (inputs.is_folder)(&folder) {
                remarks.refuse(format!(
                    "`{name}` can write to the folder `{folder}`, which all variants would share. Mount it read-only (`:ro`), or use a volume"
                ));
            }
        }
        leave_out(name, &mut changed, &inputs.compose.without, remarks);
        if !change.env.is_empty() {
            let mut env = pairs(&given["environment"]);
            let variables = change.env.iter();
            env.extend(variables.map(|(name, value)| (name.clone(), escaped(value).into())));
            changed.insert("environment".to_owned(), Value::Object(env));
        }
        let planned = planned(name, given, change);
        limit(&mut changed, &planned);
        let build = given
            .get("build")
            .filter(|_| change.image.is_none())
            .cloned();
        Service {
            image: image(name, given, change, remarks),
            planned,
            given: given.clone(),
            changed,
            build,
        }
    }

    /// The name of the built or existing image.
    pub(super) fn image(&self) -> &str {
        &self.image
    }

    /// The service that shares its network with this one.
    pub(super) fn network_of(&self) -> Option<&str> {
        self.given["network_mode"]
            .as_str()?
            .strip_prefix("service:")
    }

    /// The networks that contain the service.
    pub(super) fn networks(&self) -> BTreeSet<String> {
        let named = texts(&self.given["networks"]);
        match self.given.get("network_mode") {
            Some(_) => BTreeSet::new(),
            None if named.is_empty() => BTreeSet::from(["default".to_owned()]),
            None => named.into_iter().collect(),
        }
    }

    /// The service for the started file. `port` is published on this machine if the service has the address
    /// of its project.
    pub(super) fn to_start(&self, port: Option<u16>, labels: &Labels) -> Value {
        let mut service = self.changed.clone();
        service.insert("image".to_owned(), self.image.as_str().into());
        if let Some(port) = port {
            // The engine chooses a free port for the lifetime of the container.
            service.insert("ports".to_owned(), json!([format!("127.0.0.1::{port}")]));
        }
        label(&mut service, labels);
        Value::Object(service)
    }
}

/// Refuses keys that reach outside of the project.
fn check(name: &str, given: &Value, remarks: &mut Remarks) {
    if given["network_mode"] == "host" {
        remarks.refuse(format!(
            "`{name}` has `network_mode: host`, but two variants cannot share the ports of the machine. Remove it"
        ));
    }
    for key in ["network_mode", "pid", "ipc"] {
        if given[key]
            .as_str()
            .is_some_and(|it| it.starts_with("container:"))
        {
            remarks.refuse(format!(
                "`{name}` has `{key}: {}`, a container outside of this project. Name a service of the file, `service:NAME`",
                given[key].as_str().unwrap_or_default()
            ));
        }
    }
    if !texts(&given["external_links"]).is_empty() {
        remarks.refuse(format!(
            "`{name}` has `external_links` to containers outside of this project. Make them services of the file"
        ));
    }
    let from = texts(&given["volumes_from"]);
    if from.iter().any(|it| it.starts_with("container:")) {
        remarks.refuse(format!(
            "`{name}` has `volumes_from` a container outside of this project. Name a service of the file"
        ));
    }
    let networks = given["networks"].as_object();
    for (network, settings) in networks.into_iter().flatten() {
        if settings.get("ipv4_address").is_some() || settings.get("ipv6_address").is_some() {
            remarks.refuse(format!(
                "`{name}` has a fixed address in the network `{network}`, but two variants cannot share it. Remove it, and use the name `{name}` instead of the address"
            ));
        }
    }
}

/// Removes all references to services that are left out.
fn leave_out(
    name: &str,
    changed: &mut Map<String, Value>,
    without: &[String],
    remarks: &mut Remarks,
) {
    let is_left_out = |reference: &str| {
        let service = reference.split(':').next().unwrap_or_default();
        without.iter().any(|one| one == service)
    };
    for key in ["depends_on", "links"] {
        match changed.get_mut(key) {
            Some(Value::Object(conditions)) => {
                conditions.retain(|service, _| !is_left_out(service));
            }
            Some(Value::Array(list)) => {
                list.retain(|item| !item.as_str().is_some_and(is_left_out));
            }
            _ => {}
        }
    }
    for key in ["network_mode", "pid", "ipc"] {
        let used = changed.get(key).and_then(Value::as_str);
        if let Some(used) = used.and_then(|it| it.strip_prefix("service:"))
            && is_left_out(used)
        {
            remarks.refuse(format!(
                "`{name}` has `{key}: service:{used}` and cannot run without `{used}`. Omit it too, or change the file"
            ));
        }
    }
    for from in texts(changed.get("volumes_from").unwrap_or(&Value::Null)) {
        if is_left_out(&from) {
            remarks.refuse(format!(
                "`{name}` has `volumes_from: [{from}]` and cannot run without it. Omit it too, or change the file"
            ));
        }
    }
}

fn planned(name: &str, given: &Value, change: &ServiceChange) -> Planned {
    let deploy = &given["deploy"];
    let limits = &deploy["resources"]["limits"];
    let mut numbers = [&given["scale"], &deploy["replicas"]].into_iter();
    let written = numbers.find_map(|it| as_text(it)?.parse().ok());
    let quota = || {
        let (quota, period) = (cores(&given["cpu_quota"])?, cores(&given["cpu_period"]));
        // The default period of the kernel, in microseconds.
        Some(quota / period.unwrap_or(100_000.0))
    };
    Planned {
        name: name.to_owned(),
        replicas: change.replicas.or(written).unwrap_or(1),
        cpus: cores(&given["cpus"])
            .or_else(|| cores(&limits["cpus"]))
            .or_else(quota),
        memory: bytes(&given["mem_limit"]).or_else(|| bytes(&limits["memory"])),
    }
}

/// Writes limits in the form that every version of compose applies. The older version ignores `deploy`
/// outside of Swarm.
fn limit(changed: &mut Map<String, Value>, planned: &Planned) {
    if let Some(Value::Object(deploy)) = changed.get_mut("deploy") {
        for key in [
            "replicas",
            "restart_policy",
            "mode",
            "update_config",
            "rollback_config",
            "placement",
        ] {
            deploy.remove(key);
        }
        if let Some(Value::Object(resources)) = deploy.get_mut("resources") {
            if let Some(Value::Object(limits)) = resources.get_mut("limits") {
                limits.remove("cpus");
                limits.remove("memory");
            }
            resources.retain(|_, it| it.as_object().is_none_or(|it| !it.is_empty()));
        }
        deploy.retain(|_, it| it.as_object().is_none_or(|it| !it.is_empty()));
    }
    if changed
        .get("deploy")
        .is_some_and(|it| it.as_object().is_none_or(Map::is_empty))
    {
        changed.remove("deploy");
    }
    if !changed.contains_key("cpu_quota")
        && let Some(cpus) = planned.cpus
    {
        changed.insert("cpus".to_owned(), cpus.into());
    }
    if let Some(memory) = planned.memory {
        changed.insert("mem_limit".to_owned(), memory.to_string().into());
    }
}

/// The image of a service. A built image gets a separate name, independent of the file. Two revisions of a
/// repository build two images, and the user's own image stays unchanged. The name is the same from project
/// to project, so that the image is built once.
fn image(name: &str, given: &Value, change: &ServiceChange, remarks: &mut Remarks) -> String {
    if let Some(image) = &change.image {
        return escaped(image);
    }
    let Some(build) = given.get("build") else {
        if let Some(image) = given["image"].as_str() {
            return image.to_owned();
        }
        remarks.refuse(format!("`{name}` has neither an `image` nor a `build`"));
        return String::new();
    };
    let digest = sha256(build.to_string().as_bytes());
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() {
            c.to_ascii_lowercase()
        } else {
            '-'
        }
    };
    let name: String = name.chars().map(plain).collect();
    format!("weighbridge/{}:{}", name.trim_matches('-'), &digest[..12])
}
