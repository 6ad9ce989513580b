//! Compose projects: containers that `docker compose` has started, found by the labels of compose.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::thread;

use bollard::models::{ContainerInspectResponse, NetworkSettings};
use bollard::query_parameters::ListContainersOptionsBuilder;

use crate::container::{Container, described};
use crate::error::{ContainerError, RunError, words};
use crate::run::{PAUSE, Removed, WITHIN, now};
use crate::{Engine, RUN};

/// The label with the name of the project that a container, network or volume belongs to.
pub const PROJECT: &str = "com.docker.compose.project";
/// The label with the service of a container.
const SERVICE: &str = "com.docker.compose.service";

/// One container of a project.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Member {
    /// Name of its service.
    pub service: String,
    /// Name of the container.
    pub name: String,
    /// State of the container.
    pub container: Container,
    /// The image, as the file names it.
    pub image: String,
    /// The command of its first process, as words.
    pub command: Vec<String>,
    /// The limits that the engine reports.
    pub limits: MemberLimits,
    /// Addresses in networks of containers, in the order of the networks' names.
    pub places: Vec<ContainerAddress>,
    /// Ports that it publishes on this machine.
    pub published: Vec<Published>,
}

/// Limits of a container, as the engine reports them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MemberLimits {
    /// Number of cores. `None` without a limit.
    pub cpus: Option<f64>,
    /// Memory in bytes. `None` without a limit.
    pub memory: Option<u64>,
}

/// Position of a container in one network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContainerAddress {
    /// Address of the container in this network.
    pub address: IpAddr,
    /// The gateway of the network. It is an address of this machine if the engine runs directly on it.
    pub gateway: Option<IpAddr>,
}

/// A published port of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Published {
    /// The port within the container.
    pub port: u16,
    /// Its address on this machine.
    pub at: SocketAddr,
}

impl Engine {
    /// Returns the containers of a project, running or not, in the order of their names.
    ///
    /// # Errors
    /// If the engine does not respond.
    pub fn project(&self, project: &str) -> Result<Vec<Member>, ContainerError> {
        let told = |error: &bollard::errors::Error| ContainerError::of(project, "list", error);
        self.runtime.block_on(async {
            let label = format!("{PROJECT}={project}");
            let filters = HashMap::from([("label", vec![label.as_str()])]);
            let options = ListContainersOptionsBuilder::new().all(true);
            let options = options.filters(&filters).build();
            let listed = self.docker.list_containers(Some(options)).await;
            let listed = listed.map_err(|error| told(&error))?;
            let mut members = Vec::new();
            for id in listed.into_iter().filter_map(|container| container.id) {
                let found = self.docker.inspect_container(&id, None).await;
                members.push(member(found.map_err(|error| told(&error))?));
            }
            members.sort_by(|one, other| one.name.cmp(&other.name));
            Ok(members)
        })
    }

    /// Removes every container, network and volume of a project that belongs to a run, even if they are in
    /// use.
    ///
    /// # Errors
    /// The objects that remain, and the reason.
    pub fn remove_project(&self, run: &str, project: &str) -> Result<Removed, RunError> {
        let labels = [format!("{PROJECT}={project}"), format!("{RUN}={run}")];
        let began = now();
        let mut removed = Removed::default();
        loop {
            match self.runtime.block_on(self.sweep_labeled(&labels)) {
                Ok(found) if found.is_nothing() => return Ok(removed),
                Ok(found) => removed = removed.plus(found),
                Err(error) if now().duration_since(began) >= WITHIN => {
                    return Err(RunError {
                        run: project.to_owned(),
                        reason: words(&error),
                    });
                }
                Err(_) => thread::park_timeout(PAUSE),
            }
        }
    }
}

fn member(found: ContainerInspectResponse) -> Member {
    let config = found.config.clone().unwrap_or_default();
    let host = found.host_config.clone().unwrap_or_default();
    let settings = found.network_settings.clone().unwrap_or_default();
    let labels = config.labels.unwrap_or_default();
    let arguments = found.args.clone().unwrap_or_default();
    let command = found.path.clone().into_iter().chain(arguments);
    let quota = || {
        let (quota, period) = (host.cpu_quota?, host.cpu_period?);
        (quota > 0 && period > 0).then(|| quota as f64 / period as f64)
    };
    let nano = host.nano_cpus.filter(|nano| *nano > 0);
    let memory = host.memory.and_then(|bytes| u64::try_from(bytes).ok());
    Member {
        service: labels.get(SERVICE).cloned().unwrap_or_default(),
        name: found
            .name
            .clone()
            .unwrap_or_default()
            .trim_start_matches('/')
            .to_owned(),
        image: config.image.unwrap_or_default(),
        command: command.collect(),
        limits: MemberLimits {
            cpus: nano.map(|nano| nano as f64 / 1e9).or_else(quota),
            memory: memory.filter(|bytes| *bytes > 0),
        },
        places: places(&settings),
        published: published(&settings),
        container: described(found),
    }
}

fn places(settings: &NetworkSettings) -> Vec<ContainerAddress> {
    let networks = settings.networks.iter().flatten();
    let mut networks: Vec<_> = networks.collect();
    networks.sort_by_key(|(name, _)| *name);
    let place = |(_, endpoint): (&String, &bollard::models::EndpointSettings)| {
        Some(ContainerAddress {
            address: endpoint.ip_address.as_ref()?.parse().ok()?,
            gateway: endpoint.gateway.as_ref().and_then(|it| it.parse().ok()),
        })
    };
    networks.into_iter().filter_map(place).collect()
}

fn published(settings: &NetworkSettings) -> Vec<Published> {
    let mut all = Vec::new();
    for (port, bindings) in settings.ports.iter().flatten() {
        let Some(port) = port.strip_suffix("/tcp").and_then(|it| it.parse().ok()) else {
            continue;
        };
        for binding in bindings.iter().flatten() {
            let ip: Option<IpAddr> = binding.host_ip.as_ref().and_then(|it| it.parse().ok());
            let on_host = binding.host_port.as_ref().and_then(|it| it.parse().ok());
            if let (Some(ip), Some(on_host)) = (ip, on_host) {
                let at = SocketAddr::new(ip, on_host);
                all.push(Published { port, at });
            }
        }
    }
    all
}
