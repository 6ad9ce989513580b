//! A system that is a container: its start, its readiness, its usage and its end.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Seek as _, SeekFrom};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use engine::{ContainerError, ContainerSpec, Engine, Health, Mount, Resources};
use lab::{Container, Endpoint, Network, Probe, Setup, Volume};
use model::InvalidKind;
use rig::{Attached, Enforced, Rig, Usage};

use super::config_folder::IN_CONTAINER;
use super::{GRACE, StartCost};
use crate::containers;
use crate::environment::instant;
use crate::invalid::Invalid;
use crate::invalid::{last_words, listens_at};
use crate::stop::StopSignal;

/// Pause between two readiness checks.
const PAUSE: Duration = Duration::from_millis(20);
/// Pause between two readings of the health check. The engine updates its result at most once a second.
const PAUSE_OF_HEALTH: Duration = Duration::from_millis(250);

/// Time that an engine may take to notice the end of a container.
const NOTICED_WITHIN: Duration = Duration::from_secs(2);

/// A container that `weigh` started.
pub(super) struct RunningContainer {
    engine: &'static Engine,
    name: String,
    /// The container id in the engine.
    id: String,
    log: Log,
    /// The first process. The container lives exactly as long as it.
    first: Attached,
    first_pid: i32,
    /// The control groups, which count the usage.
    groups: Attached,
    enforced: Enforced,
    /// Address for containers in its network. `None` if it uses the host network.
    pub(super) inner: Option<SocketAddr>,
    /// Address for systems on this machine.
    address: SocketAddr,
}

/// The inputs of a container's start, besides its setup.
pub(super) struct ContainerStart<'a> {
    /// The name of the system in the lab, or of its instance.
    pub(super) name: &'a str,
    /// Address for systems on this machine.
    pub(super) place: &'a Endpoint,
    /// The words of its command and its variables, with all addresses inserted.
    pub(super) command: Vec<String>,
    pub(super) env: BTreeMap<String, String>,
    /// The folder of its configuration files, if it has any.
    pub(super) files: Option<&'a Path>,
    pub(super) logs: &'a Path,
}

/// The listen address inside the container.
pub(super) fn own_place(container: &Container, place: &Endpoint) -> Endpoint {
    match container.network {
        Network::Host => place.clone(),
        Network::Bridge { port } => SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)).into(),
    }
}

/// Creates and starts a container. A failed start leaves no container behind: this function removes it if it
/// can, and the keeper removes the rest.
pub(super) fn start(
    rig: &mut Rig,
    setup: &Setup,
    container: &Container,
    start: ContainerStart<'_>,
) -> Result<RunningContainer, Invalid> {
    let engine = containers::engine()?;
    containers::keep(rig, engine)?;
    let name = start.name.to_owned();
    let address = start.place.address;
    let log = Log::of(start.logs.join(format!("{name}.log")));
    let spec = spec_of(rig.run(), setup, container, start);
    if let engine::Network::Bridge { network, .. } = &spec.network {
        engine.network(network).map_err(|it| invalid(&it))?;
    }
    tracing::debug!(
        name,
        container = spec.name,
        image = spec.image,
        "starting a container"
    );
    engine.create(&spec).map_err(|error| invalid(&error))?;
    let id = spec.name;
    let started = engine.start(&id).map_err(|error| invalid(&error));
    let seen = started.and_then(|()| Seen::of(engine, &id, setup.system.as_str()));
    let seen = match seen {
        Ok(seen) => seen,
        Err(mut invalid) => {
            invalid.reason.push_str(&log.last_words_of(engine, &id));
            let _left_to_the_keeper = engine.remove(&id);
            return Err(invalid);
        }
    };
    let inner = match container.network {
        Network::Host => None,
        Network::Bridge { port } => seen.address.map(|ip| SocketAddr::new(ip, port)),
    };
    Ok(RunningContainer {
        engine,
        name,
        id,
        log,
        first: seen.first,
        first_pid: seen.pid,
        enforced: enforced(&seen.groups, setup),
        groups: seen.groups,
        inner,
        address,
    })
}

/// The facts about a container right after its start.
struct Seen {
    pid: i32,
    first: Attached,
    groups: Attached,
    address: Option<IpAddr>,
}

impl Seen {
    fn of(engine: &Engine, id: &str, system: &str) -> Result<Seen, Invalid> {
        let mut found = engine.inspect(id).map_err(|error| invalid(&error))?;
        let watched = found.pid.and_then(|pid| {
            let first = Attached::process(pid).ok()?;
            Some((pid, first, Attached::groups_of(pid, &found.id)))
        });
        let Some((pid, first, groups)) = watched else {
            // A container that ends at once may be gone before its engine notices.
            let asked = instant();
            while found.is_running && asked.elapsed() < NOTICED_WITHIN {
                thread::park_timeout(PAUSE);
                found = engine.inspect(id).map_err(|error| invalid(&error))?;
            }
            let reason = match found.is_running {
                // The process id belongs to another machine or to another namespace.
                true => format!(
                    "the process of the container `{system}` is not on this machine. The engine must run on the machine of weigh"
                ),
                false => format!("`{system}` {}", how_it_ended(&found)),
            };
            return Err(Invalid::new(InvalidKind::NotReady, reason));
        };
        let groups = groups.map_err(|error| {
            let reason =
                format!("the resource usage of the container `{system}` cannot be read: {error}");
            Invalid::new(InvalidKind::NotReady, reason)
        })?;
        Ok(Seen {
            pid,
            first,
            groups,
            address: found.addresses.first().copied(),
        })
    }
}

fn is_http3(setup: &Setup) -> bool {
    setup.http.is_http3()
}

fn spec_of(
    run: &str,
    setup: &Setup,
    container: &Container,
    start: ContainerStart<'_>,
) -> ContainerSpec {
    let network = match container.network {
        Network::Host => engine::Network::Host,
        Network::Bridge { port } => engine::Network::Bridge {
            network: run.to_owned(),
            port,
            published: start.place.address,
            is_over_udp: is_http3(setup),
        },
    };
    let mounts = container.volumes.iter().map(|volume| match volume {
        Volume::Shown {
            source,
            path,
            is_read_only,
        } => Mount::Shown {
            // The engine has a different working folder.
            source: std::path::absolute(source).unwrap_or_else(|_| source.clone()),
            path: path.clone(),
            is_read_only: *is_read_only,
        },
        Volume::Fresh { path } => Mount::Fresh { path: path.clone() },
    });
    let files = start.files.map(|folder| Mount::Shown {
        source: folder.to_owned(),
        path: IN_CONTAINER.to_owned(),
        is_read_only: true,
    });
    ContainerSpec {
        // The port is unique, and so is this name.
        name: format!("{run}-{}-{}", start.name, start.place.address.port()),
        run: run.to_owned(),
        image: containers::found_image(container),
        command: start.command,
        env: start.env.into_iter().collect(),
        user: container.user.clone(),
        mounts: mounts.chain(files).collect(),
        network,
        resources: Resources {
            cpus: setup.limits.cpus,
            memory: setup.limits.memory,
            cores: setup.pin.clone(),
        },
        checks_health: setup.ready.probe == Probe::Healthy,
    }
}

/// The limits that the kernel enforces, and the requested limits that it does not.
fn enforced(groups: &Attached, setup: &Setup) -> Enforced {
    let mut enforced = groups.limits();
    let mut unmet = Vec::new();
    if setup.limits.cpus.is_some() && enforced.cpus.is_none() {
        unmet.push("cpus");
    }
    if setup.limits.memory.is_some() && enforced.memory.is_none() {
        unmet.push("memory");
    }
    if !unmet.is_empty() {
        let unmet = unmet.join(" and ");
        enforced.why_not = Some(format!(
            "no limit on {unmet}, because the engine did not set it"
        ));
    }
    enforced
}

impl RunningContainer {
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The usage since the start. `None` if the container is gone.
    pub(super) fn usage(&self) -> Option<Usage> {
        let usage = self.groups.usage()?;
        Some(Usage {
            // An engine puts every container into a group that could have a limit. Without a processor limit
            // there is no throttling, so the count has no meaning.
            throttled: usage.throttled.filter(|_| self.enforced.cpus.is_some()),
            ..usage
        })
    }

    pub(super) fn pids(&self) -> Vec<i32> {
        self.groups.pids()
    }

    pub(super) fn enforced(&self) -> &Enforced {
        &self.enforced
    }

    /// True if its first process lives. Needs no request to the engine.
    fn is_alive(&self) -> bool {
        Attached::process(self.first_pid).is_ok_and(|now| now == self.first)
    }

    /// The exit status with the last lines of output. `None` while the container runs.
    pub(super) fn end(&self) -> Option<String> {
        if self.is_alive() {
            return None;
        }
        let how = match self.engine.inspect(&self.id) {
            Ok(found) => how_it_ended(&found),
            Err(ContainerError::Missing { .. }) => "was removed by another program".to_owned(),
            Err(error) => format!("ended: {error}"),
        };
        Some(how + &self.log.last_words_of(self.engine, &self.id))
    }

    /// Waits until the readiness probe succeeds.
    pub(super) fn wait_ready(
        &self,
        setup: &Setup,
        probe: &mut dyn FnMut() -> Result<(), String>,
        stop: &StopSignal,
    ) -> Result<StartCost, Invalid> {
        let began = instant();
        loop {
            let tried = match setup.ready.probe {
                Probe::Healthy => self.health(),
                Probe::Listening if self.inner.is_some() && !is_http3(setup) => {
                    stays_connected(self.address)
                }
                Probe::Listening | Probe::Answers { .. } => probe(),
            };
            let time = instant().duration_since(began);
            let not_ready =
                |reason| Err(Invalid::new(InvalidKind::NotReady, reason).logged(&self.log.path));
            // Checked before the probe's result counts, because another program may have responded at the
            // address.
            if let Some(end) = self.end() {
                return not_ready(format!("`{}` {end} before it was ready", self.name));
            }
            let Err(reason) = tried else {
                return Ok(StartCost {
                    time,
                    processor_time: self.usage().map_or(Duration::ZERO, |usage| usage.cpu),
                });
            };
            if stop.is_asked() {
                return Err(Invalid::interrupted());
            }
            if time >= setup.ready.within {
                let listens = self.listens();
                return not_ready(format!(
                    "`{}` was not ready within {:?}: {reason}{listens}{}",
                    self.name,
                    setup.ready.within,
                    self.log.last_words_of(self.engine, &self.id)
                ));
            }
            thread::park_timeout(match setup.ready.probe {
                Probe::Healthy => PAUSE_OF_HEALTH,
                Probe::Listening | Probe::Answers { .. } => PAUSE,
            });
        }
    }

    /// The listen addresses of its processes, as the end of a sentence. Empty if it listens at its own port.
    fn listens(&self) -> String {
        let own = self.inner.unwrap_or(self.address);
        listens_at(own, &rig::listening(&self.pids()))
    }

    fn health(&self) -> Result<(), String> {
        let found = self.engine.inspect(&self.id).map_err(|it| it.to_string())?;
        match found.health {
            Some(Health::Healthy) => Ok(()),
            Some(Health::Starting) => Err("its health check has not succeeded yet".to_owned()),
            Some(Health::Unhealthy) => Err("its health check fails".to_owned()),
            None => Err(
                "its image has no health check. Write `ready: listening`, or give a path"
                    .to_owned(),
            ),
        }
    }

    /// Stops the container, saves its log, and removes it with its volumes.
    pub(super) fn stop(self) {
        let _gone = self.engine.stop(&self.id, GRACE);
        self.log.write(self.engine, &self.id);
        // The keeper removes it later.
        if let Err(error) = self.engine.remove(&self.id) {
            tracing::debug!(%error, "a container is left to the keeper");
        }
    }
}

/// Checks that a connection to a published port reaches a program. The engine's proxy accepts the connection
/// before a program listens inside, and closes it at once.
fn stays_connected(address: SocketAddr) -> Result<(), String> {
    const LONG_ENOUGH: Duration = Duration::from_millis(100);
    let wrong = |error: io::Error| format!("no connection to {address}: {error}");
    let mut socket = TcpStream::connect_timeout(&address, LONG_ENOUGH).map_err(wrong)?;
    socket.set_read_timeout(Some(LONG_ENOUGH)).map_err(wrong)?;
    match socket.read(&mut [0]) {
        Ok(0) => {
            Err("the connection closes at once, so no program listens at its `port`".to_owned())
        }
        // Some protocols let the server send first.
        Ok(_) => Ok(()),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => Ok(()),
        Err(error) => Err(wrong(error)),
    }
}

/// Describes the end of a container, such as `ended with exit code 137, because it reached its memory limit`.
fn how_it_ended(found: &engine::Container) -> String {
    let code = found.exit_code.map_or("ended".to_owned(), |code| {
        format!("ended with exit code {code}")
    });
    let memory = if found.is_out_of_memory {
        ", because it reached its memory limit"
    } else {
        ""
    };
    let error = found.error.as_ref();
    let error = error.map_or(String::new(), |error| format!(": {error}"));
    format!("{code}{memory}{error}")
}

/// The log file of a container. The engine holds the output until the container is removed.
struct Log {
    path: PathBuf,
    /// Offset of this start's output in bytes. An earlier start may have written before it.
    begins_at: u64,
}

impl Log {
    fn of(path: PathBuf) -> Log {
        let begins_at = fs::metadata(&path).map_or(0, |file| file.len());
        Log { path, begins_at }
    }

    /// Saves the container's output since its start.
    fn write(&self, engine: &Engine, id: &str) {
        let open = || {
            let mut options = OpenOptions::new();
            let mut file = options
                .create(true)
                .write(true)
                .truncate(false)
                .open(&self.path)?;
            file.set_len(self.begins_at)?;
            file.seek(SeekFrom::End(0))?;
            Ok::<File, io::Error>(file)
        };
        let written = match open() {
            Ok(mut file) => engine
                .logs(id, None, &mut file)
                .map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        if let Err(error) = written {
            tracing::debug!(log = %self.path.display(), error, "what a container said is lost");
        }
    }

    /// Saves the output, and returns its last lines as the end of a sentence.
    fn last_words_of(&self, engine: &Engine, id: &str) -> String {
        const MOST: usize = 20;
        self.write(engine, id);
        let text = fs::read(&self.path).unwrap_or_default();
        let own = usize::try_from(self.begins_at).unwrap_or(usize::MAX);
        let text = String::from_utf8_lossy(text.get(own..).unwrap_or_default());
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        last_words(&lines[lines.len().saturating_sub(MOST)..], &self.path)
    }
}

fn invalid(error: &ContainerError) -> Invalid {
    Invalid::new(InvalidKind::NotReady, error.to_string())
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_port_behind_which_nothing_listens_is_not_ready_although_it_accepts() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address");
        let proxy = thread::spawn(move || drop(listener.accept()));
        let error = stays_connected(address).expect_err("it is closed");
        assert!(
            error.contains("closes at once") || error.contains("reset"),
            "{error}"
        );
        proxy.join().expect("no panic");
        let server = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = server.local_addr().expect("its address");
        assert_eq!(stays_connected(address), Ok(()));
    }

    #[test]
    fn the_end_of_a_container_is_said_with_its_reason() {
        let found = engine::Container {
            exit_code: Some(137),
            is_out_of_memory: true,
            ..engine::Container::default()
        };
        assert_eq!(
            how_it_ended(&found),
            "ended with exit code 137, because it reached its memory limit"
        );
    }
}
