//! Operations on containers: create, start, inspect, stop, remove.

use std::collections::HashMap;
use std::io::Write;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use bollard::models::{
    ContainerCreateBody, ContainerInspectResponse, EndpointSettings, HealthConfig,
    HealthStatusEnum, HostConfig, HostConfigLogConfig, Mount as WireMount, MountType,
    MountVolumeOptions, NetworkingConfig, PortBinding,
};
use bollard::query_parameters::{
    CreateContainerOptionsBuilder, LogsOptionsBuilder, RemoveContainerOptionsBuilder,
    StopContainerOptionsBuilder,
};
use futures_util::StreamExt as _;

use crate::error::{ContainerError, status};
use crate::{Engine, run};

/// Description of a container to create.
#[derive(Clone, Debug, PartialEq)]
pub struct ContainerSpec {
    /// Name of the container. It must be unique in the engine.
    pub name: String,
    /// Name of the run that owns it.
    pub run: String,
    /// Name of the image. The engine must already have it.
    pub image: String,
    /// The words of its command. Empty for the image's own command.
    pub command: Vec<String>,
    /// Environment variables in addition to the image's own.
    pub env: Vec<(String, String)>,
    /// The user that it runs as. `None` for the image's own.
    pub user: Option<String>,
    /// Files and folders in addition to the files of its image.
    pub mounts: Vec<Mount>,
    /// The network of the container.
    pub network: Network,
    /// Limits of its resources.
    pub resources: Resources,
    /// True if the health check of its image runs. It uses processor time while the container is measured.
    pub checks_health: bool,
}

/// A folder or a file that is not part of the image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mount {
    /// A folder or file of this machine (a bind mount).
    Shown {
        /// Path on this machine. It must exist.
        source: PathBuf,
        /// Path within the container.
        path: String,
        /// True if the container cannot change it.
        is_read_only: bool,
    },
    /// An empty volume that is removed with the container.
    Fresh {
        /// Path within the container.
        path: String,
    },
}

/// The network of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Network {
    /// The network of this machine.
    Host,
    /// A network that [`Engine::network`] created.
    Bridge {
        /// Name of the network.
        network: String,
        /// The port that the container listens on.
        port: u16,
        /// Address on this machine that publishes this port.
        published: SocketAddr,
        /// True if the port is published over UDP too.
        is_over_udp: bool,
    },
}

impl Network {
    /// Returns the published ports of the container, in the notation of the engine: `8080/tcp`.
    fn ports(&self) -> Vec<String> {
        match self {
            Network::Host => Vec::new(),
            Network::Bridge {
                port, is_over_udp, ..
            } => {
                let udp = is_over_udp.then(|| format!("{port}/udp"));
                std::iter::once(format!("{port}/tcp")).chain(udp).collect()
            }
        }
    }
}

/// Limits of a container's use of the machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Resources {
    /// Number of cores, possibly a fraction. Above 0.
    pub cpus: Option<f64>,
    /// Bytes of memory, without additional swap. Above 0.
    pub memory: Option<u64>,
    /// The cores that it may run on, numbered from 0. `None` for all cores.
    pub cores: Option<Vec<usize>>,
}

/// State of a container, as the engine reports it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Container {
    /// The full id, not shortened.
    pub id: String,
    /// The digest of its image's configuration.
    pub image_id: String,
    /// True if its first process lives.
    pub is_running: bool,
    /// Process id of its first process on this machine, while it runs.
    pub pid: Option<i32>,
    /// Exit code of its first process. `None` before it has ended.
    pub exit_code: Option<i64>,
    /// True if the kernel killed it because of its memory limit.
    pub is_out_of_memory: bool,
    /// The engine's message about an error at its start.
    pub error: Option<String>,
    /// Result of its health check. `None` without a health check.
    pub health: Option<Health>,
    /// Addresses in networks of containers, in the order of the networks' names.
    pub addresses: Vec<IpAddr>,
}

/// Result of a health check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// The check has not succeeded yet, and may still succeed.
    Starting,
    /// The last check has succeeded.
    Healthy,
    /// The check has failed too often.
    Unhealthy,
}

impl Engine {
    /// Creates a container without starting it. Returns its id.
    ///
    /// # Errors
    /// The error of the engine: an unknown image, a name in use, or a missing source.
    pub fn create(&self, spec: &ContainerSpec) -> Result<String, ContainerError> {
        let options = CreateContainerOptionsBuilder::new()
            .name(&spec.name)
            .build();
        let created = self.docker.create_container(Some(options), body_of(spec));
        let created = self.runtime.block_on(created);
        let created = created.map_err(|error| ContainerError::of(&spec.name, "create", &error))?;
        Ok(created.id)
    }

    /// Starts a container that was created.
    ///
    /// # Errors
    /// The error of the engine: a command that the image does not contain, or a port in use.
    pub fn start(&self, container: &str) -> Result<(), ContainerError> {
        let started = self.docker.start_container(container, None);
        let started = self.runtime.block_on(started);
        started.map_err(|error| ContainerError::of(container, "start", &error))
    }

    /// Returns the state of a container.
    ///
    /// # Errors
    /// If there is no such container, or the engine does not respond.
    pub fn inspect(&self, container: &str) -> Result<Container, ContainerError> {
        let found = self.docker.inspect_container(container, None);
        let found = self.runtime.block_on(found);
        let found = found.map_err(|error| ContainerError::of(container, "inspect", &error))?;
        Ok(described(found))
    }

    /// Sends the stop signal of its image, and kills the container after `grace`, in whole seconds. A
    /// container that has ended is unchanged.
    ///
    /// # Errors
    /// If there is no such container, or the engine does not respond.
    pub fn stop(&self, container: &str, grace: Duration) -> Result<(), ContainerError> {
        let seconds = i32::try_from(grace.as_secs()).unwrap_or(i32::MAX);
        let options = StopContainerOptionsBuilder::new().t(seconds).build();
        let stopped = self.docker.stop_container(container, Some(options));
        match self.runtime.block_on(stopped) {
            // Status 304: it was not running.
            Err(error) if status(&error) != Some(304) => {
                Err(ContainerError::of(container, "stop", &error))
            }
            _ => Ok(()),
        }
    }

    /// Removes a container with its volumes, even if it runs. A missing container is no error.
    ///
    /// # Errors
    /// The error of the engine.
    pub fn remove(&self, container: &str) -> Result<(), ContainerError> {
        self.runtime.block_on(async {
            let options = RemoveContainerOptionsBuilder::new().v(true).force(true);
            let removed = self
                .docker
                .remove_container(container, Some(options.build()));
            match removed.await {
                Err(error) if !run::is_gone(&error) => {
                    Err(ContainerError::of(container, "remove", &error))
                }
                _ => Ok(()),
            }
        })
    }

    /// Writes the current output of a container, of both streams, to `log`. With `tail`, it writes only the
    /// last lines.
    ///
    /// # Errors
    /// The error of the engine, or an error of writing `log`.
    pub fn logs(
        &self,
        container: &str,
        tail: Option<u32>,
        log: &mut dyn Write,
    ) -> Result<(), ContainerError> {
        let tail = tail.map_or("all".to_owned(), |lines| lines.to_string());
        let options = LogsOptionsBuilder::new().stdout(true).stderr(true);
        let said = self
            .docker
            .logs(container, Some(options.tail(&tail).build()));
        self.runtime.block_on(async {
            let mut said = std::pin::pin!(said);
            while let Some(piece) = said.next().await {
                let piece = piece
                    .map_err(|error| ContainerError::of(container, "read the log of", &error))?;
                log.write_all(piece.as_ref())
                    .map_err(|error| ContainerError::Refused {
                        container: container.to_owned(),
                        what: "save the log of",
                        reason: error.to_string(),
                    })?;
            }
            Ok(())
        })
    }
}

fn body_of(spec: &ContainerSpec) -> ContainerCreateBody {
    let env = spec
        .env
        .iter()
        .map(|(name, value)| format!("{name}={value}"));
    let ports = spec.network.ports();
    ContainerCreateBody {
        image: Some(spec.image.clone()),
        cmd: (!spec.command.is_empty()).then(|| spec.command.clone()),
        env: Some(env.collect()),
        user: spec.user.clone(),
        labels: Some(run::labels(&spec.run)),
        exposed_ports: (!ports.is_empty()).then_some(ports),
        healthcheck: (!spec.checks_health).then(|| HealthConfig {
            // `NONE` switches off a health check of the image.
            test: Some(vec!["NONE".to_owned()]),
            ..HealthConfig::default()
        }),
        host_config: Some(host_config_of(spec)),
        networking_config: networking_of(&spec.network),
        ..ContainerCreateBody::default()
    }
}

fn host_config_of(spec: &ContainerSpec) -> HostConfig {
    let resources = &spec.resources;
    let memory = resources
        .memory
        .map(|bytes| i64::try_from(bytes).unwrap_or(i64::MAX));
    let cores = resources.cores.as_ref().map(|cores| {
        let cores: Vec<String> = cores.iter().map(usize::to_string).collect();
        cores.join(",")
    });
    #[expect(
        clippy::cast_possible_truncation,
        reason = "billionths of cores, of which there are few"
    )]
    let nano_cpus = resources.cpus.map(|cores| (cores * 1e9).round() as i64);
    let (network_mode, port_bindings) = match &spec.network {
        Network::Host => ("host".to_owned(), None),
        Network::Bridge {
            network, published, ..
        } => {
            let binding = PortBinding {
                host_ip: Some(published.ip().to_string()),
                host_port: Some(published.port().to_string()),
            };
            let ports = spec.network.ports().into_iter();
            let bindings = ports.map(|port| (port, Some(vec![binding.clone()])));
            (network.clone(), Some(bindings.collect()))
        }
    };
    HostConfig {
        nano_cpus,
        memory,
        // Without this, the engine would allow swap of the same size, and a limit that swaps is not the
        // requested limit.
        memory_swap: memory,
        cpuset_cpus: cores,
        mounts: Some(spec.mounts.iter().map(|it| mount(it, &spec.run)).collect()),
        network_mode: Some(network_mode),
        port_bindings,
        // Set explicitly, because the logs of this driver can be read back and the engine's default may
        // differ.
        log_config: Some(HostConfigLogConfig {
            typ: Some("json-file".to_owned()),
            config: None,
        }),
        ..HostConfig::default()
    }
}

fn networking_of(network: &Network) -> Option<NetworkingConfig> {
    let Network::Bridge { network, .. } = network else {
        return None;
    };
    let endpoints = HashMap::from([(network.clone(), EndpointSettings::default())]);
    Some(NetworkingConfig {
        endpoints_config: Some(endpoints),
    })
}

fn mount(mount: &Mount, run: &str) -> WireMount {
    match mount {
        Mount::Shown {
            source,
            path,
            is_read_only,
        } => WireMount {
            typ: Some(MountType::BIND),
            source: Some(source.display().to_string()),
            target: Some(path.clone()),
            read_only: Some(*is_read_only),
            ..WireMount::default()
        },
        Mount::Fresh { path } => WireMount {
            typ: Some(MountType::VOLUME),
            target: Some(path.clone()),
            volume_options: Some(MountVolumeOptions {
                labels: Some(run::labels(run)),
                ..MountVolumeOptions::default()
            }),
            ..WireMount::default()
        },
    }
}

pub(crate) fn described(found: ContainerInspectResponse) -> Container {
    let state = found.state.unwrap_or_default();
    let is_running = state.running.unwrap_or(false);
    let health = state.health.and_then(|health| match health.status? {
        HealthStatusEnum::STARTING => Some(Health::Starting),
        HealthStatusEnum::HEALTHY => Some(Health::Healthy),
        HealthStatusEnum::UNHEALTHY => Some(Health::Unhealthy),
        HealthStatusEnum::NONE | HealthStatusEnum::EMPTY => None,
    });
    let networks = found
        .network_settings
        .and_then(|settings| settings.networks);
    let mut networks: Vec<_> = networks.unwrap_or_default().into_iter().collect();
    networks.sort_by(|(one, _), (other, _)| one.cmp(other));
    let addresses = networks
        .into_iter()
        .filter_map(|(_, endpoint)| endpoint.ip_address?.parse().ok());
    Container {
        id: found.id.unwrap_or_default(),
        image_id: found.image.unwrap_or_default(),
        is_running,
        pid: state
            .pid
            .and_then(|pid| i32::try_from(pid).ok())
            .filter(|pid| is_running && *pid > 0),
        exit_code: state.exit_code.filter(|_| !is_running),
        is_out_of_memory: state.oom_killed.unwrap_or(false),
        error: state.error.filter(|error| !error.is_empty()),
        health,
        addresses: addresses.collect(),
    }
}
