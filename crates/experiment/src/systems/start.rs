//! Start of the processes of systems: one process for most systems, and several behind a balancer for systems
//! with instances.

use std::collections::BTreeMap;
use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use lab::{Balances, Certificates, Compose, Elsewhere, Endpoint, Lab, Origin, Probe, Setup};
use load::{Address, Expectation, Request, StatusRule, Target};
use model::InvalidKind;
use rig::{PortLease, Rig, SystemSpec};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

use super::addresses::Addresses;
use super::balancer::Balancer;
use super::config_folder::{self, ConfigFolder};
use super::container::{self, ContainerStart};
use super::process::{Process, Watched};
use super::project::Plan;
use super::{BalancedSystem, InstanceNumber, RunningProcess, StartCost, url_of};
use crate::compose::Projects;
use crate::environment::instant;
use crate::invalid::Invalid;
use crate::invalid::invalid_spawn;
use crate::stop::StopSignal;

/// Time limit of one readiness probe.
const PROBE: Duration = Duration::from_secs(1);

/// The ports of the systems, reserved until each process takes its own.
pub(super) struct Ports {
    leases: BTreeMap<String, PortLease>,
    places: BTreeMap<String, Endpoint>,
    /// Addresses within the containers' network.
    inner: BTreeMap<String, SocketAddr>,
}

impl Ports {
    /// Reserves a port for each process that listens, and for the statistics of each balancer. Unix sockets
    /// are in the folder `sockets`.
    pub(super) fn of(
        setups: &[&Setup],
        addresses: &Addresses,
        sockets: Option<&Path>,
    ) -> Result<Ports, Invalid> {
        let mut names = Vec::new();
        let mut elsewhere = Vec::new();
        for setup in setups.iter().copied() {
            if let Some(url) = setup.elsewhere() {
                elsewhere.push((setup.system.clone(), addresses.endpoint(url)));
                continue;
            }
            // The engine assigns the addresses of containers.
            if setup.compose().is_some() {
                continue;
            }
            match (&setup.balances, setup.replicas) {
                // The balancer listens at the system's address. Its instances have other ports.
                (Some(balances), _) => {
                    names.push(balances.system.clone());
                    names.push(statistics_name(&setup.system));
                }
                (None, Some(count)) => {
                    names.extend((1..=count).map(|number| instance_name(&setup.system, number)));
                }
                (None, None) => names.push(setup.system.clone()),
            }
        }
        let mut leases = BTreeMap::new();
        for name in names {
            let lease = rig::free_port().map_err(|error| {
                Invalid::new(
                    InvalidKind::NotReady,
                    format!("no free port for `{name}`: {error}"),
                )
            })?;
            leases.insert(name, lease);
        }
        let is_on_socket = |name: &str| {
            let mut setups = setups.iter();
            setups.any(|setup| setup.system == name && setup.is_on_socket())
        };
        let place = |(name, lease): (&String, &PortLease)| {
            let folder = sockets.filter(|_| is_on_socket(name));
            let place = Endpoint {
                address: lease.addr(),
                socket: folder.map(|folder| folder.join(format!("{name}.sock"))),
                authority: None,
                files: None,
            };
            (name.clone(), place)
        };
        let places = leases.iter().map(place).chain(elsewhere).collect();
        Ok(Ports {
            leases,
            places,
            inner: BTreeMap::new(),
        })
    }

    /// Adds the address of a system that runs already.
    pub(super) fn know(&mut self, system: &str, place: Endpoint) {
        let other = self.places.insert(system.to_owned(), place);
        assert!(other.is_none(), "a running system needs no port");
    }

    /// Adds the address of a system within the containers' network.
    pub(super) fn know_inner(&mut self, system: &str, inner: Option<SocketAddr>) {
        if let Some(inner) = inner {
            self.inner.insert(system.to_owned(), inner);
        }
    }

    /// Releases the reserved port and returns its address. Called right before the process takes it.
    fn take(&mut self, name: &str) -> Endpoint {
        // Released as late as possible, because from here on another program could bind the port.
        drop(self.leases.remove(name));
        self.places[name].clone()
    }

    /// Sets the address that a system uses after its start.
    fn found(&mut self, system: &str, place: Endpoint) {
        self.places.insert(system.to_owned(), place);
    }

    fn find(&self, system: &str) -> Option<Endpoint> {
        self.places.get(system).cloned()
    }
}

/// The name of an instance, such as `limiter-2`.
fn instance_name(system: &str, number: u32) -> String {
    format!("{system}-{number}")
}

/// The name of a balancer's statistics port. System names contain no space, so this name cannot conflict.
fn statistics_name(balancer: &str) -> String {
    format!("{balancer} statistics")
}

/// The inputs for the start of every process.
pub(super) struct Starter<'a> {
    pub(super) rig: &'a mut Rig,
    pub(super) lab: &'a Lab,
    pub(super) logs: &'a Path,
    pub(super) ports: Ports,
    pub(super) projects: &'a Projects,
    pub(super) stop: &'a StopSignal,
    /// The certificates of the load and the proofs.
    pub(super) certificates: Certificates,
}

impl Starter<'_> {
    /// Starts the processes of one setup and adds them to `running`. If one does not start, the caller must
    /// stop the processes in `running`.
    pub(super) fn start(
        &mut self,
        setup: &Setup,
        running: &mut Vec<RunningProcess>,
    ) -> Result<(), Invalid> {
        if let Some(balances) = &setup.balances {
            let started = self.balancer(setup, balances, running)?;
            running.push(started);
            return Ok(());
        }
        if let Some(url) = setup.elsewhere() {
            running.push(self.elsewhere(setup, url)?);
            return Ok(());
        }
        if let Some(compose) = setup.compose() {
            return self.project(setup, compose, running);
        }
        let Some(count) = setup.replicas else {
            let place = self.ports.take(&setup.system);
            let started = self.process(setup, &setup.system, 1, place)?;
            self.ports
                .know_inner(&setup.system, started.process.inner());
            running.push(RunningProcess {
                serves: Some(setup.system.clone()),
                ..started
            });
            return Ok(());
        };
        for number in 1..=count {
            let name = instance_name(&setup.system, number);
            let place = self.ports.take(&name);
            let started = self.process(setup, &name, number, place)?;
            running.push(RunningProcess {
                instance: Some(InstanceNumber { number, count }),
                ..started
            });
        }
        Ok(())
    }

    /// Starts the balancer for the instances of a system. All instances run already.
    fn balancer(
        &mut self,
        setup: &Setup,
        balances: &Balances,
        running: &[RunningProcess],
    ) -> Result<RunningProcess, Invalid> {
        let (health_path, health_status) = match &setup.ready.probe {
            // Without a path there is no health request, so this status is never compared.
            Probe::Listening | Probe::Healthy => (None, 200),
            Probe::Answers { path, status } => (Some(path.clone()), *status),
        };
        let instances = running.iter().filter(|it| it.record == balances.system);
        let balancer = Balancer {
            listen: self.ports.take(&balances.system).address,
            statistics: self.ports.take(&statistics_name(&setup.system)).address,
            balance: balances.balance.word().to_owned(),
            health_path,
            health_status,
            connections: self.lab.load.connections(),
            timeout: self.lab.timeout,
            instances: instances
                .map(|it| (it.process.name().to_owned(), it.place.address))
                .collect(),
        };
        let file = self.logs.join(format!("{}.cfg", setup.system));
        // HAProxy runs in the folder of the system, so a path relative to `weigh` would be wrong.
        let file = std::path::absolute(&file).unwrap_or(file);
        fs::write(&file, balancer.configuration()).map_err(|error| {
            Invalid::new(
                InvalidKind::NotReady,
                format!("`{}` cannot be written: {error}", file.display()),
            )
        })?;
        let mut setup = setup.clone();
        let name = setup.system.clone();
        let Origin::Run(command) = &mut setup.origin else {
            unreachable!("a balancer is started");
        };
        command.push(lab::Text::default().followed_by(&file.display().to_string()));
        let started = self.process(&setup, &name, 1, balancer.listen.into())?;
        Ok(RunningProcess {
            serves: Some(balances.system.clone()),
            balances: Some(BalancedSystem {
                system: balances.system.clone(),
                statistics: balancer.statistics,
            }),
            ..started
        })
    }

    /// Attaches to a system that runs already, without a start.
    fn elsewhere(&mut self, setup: &Setup, url: &Elsewhere) -> Result<RunningProcess, Invalid> {
        let watched = Watched::of(url.attach.as_ref()).map_err(|reason| {
            let reason = format!("cannot attach to `{}`: {reason}", setup.system);
            Invalid::new(InvalidKind::NotReady, reason)
        })?;
        Ok(RunningProcess {
            process: Process::Elsewhere {
                name: setup.system.clone(),
                watched,
                instances: url.instances.clone(),
            },
            record: setup.system.clone(),
            setup: setup.system.clone(),
            serves: Some(setup.system.clone()),
            instance: None,
            balances: None,
            place: self.ports.take(&setup.system),
            protocol: self.lab.protocol.to(setup, &self.certificates),
            command: Vec::new(),
            env: BTreeMap::new(),
            start: StartCost::default(),
        })
    }

    /// Starts the services of a compose file. The loaded service is last.
    fn project(
        &mut self,
        setup: &Setup,
        compose: &Compose,
        running: &mut Vec<RunningProcess>,
    ) -> Result<(), Invalid> {
        let began = instant();
        let plan = Plan {
            setup,
            compose,
            projects: self.projects,
            logs: self.logs,
            stop: self.stop,
        };
        let up = plan.start(self.rig)?;
        self.ports.found(&setup.system, up.place.clone());
        for service in up.services {
            let is_loaded = service.is_of(&compose.service);
            running.push(RunningProcess {
                record: service.name().to_owned(),
                process: Process::Service(service),
                setup: setup.system.clone(),
                serves: is_loaded.then(|| setup.system.clone()),
                instance: None,
                balances: None,
                place: up.place.clone(),
                protocol: self.lab.protocol.to(setup, &self.certificates),
                command: Vec::new(),
                env: BTreeMap::new(),
                start: StartCost {
                    time: began.elapsed(),
                    processor_time: Duration::ZERO,
                },
            });
        }
        Ok(())
    }

    /// Starts one process or container of a setup, at its own address.
    fn process(
        &mut self,
        setup: &Setup,
        name: &str,
        number: u32,
        place: Endpoint,
    ) -> Result<RunningProcess, Invalid> {
        let container = setup.container();
        let mut own = container.map_or_else(
            || place.clone(),
            |container| container::own_place(container, &place),
        );
        let folder = ConfigFolder::of(setup, name, self.logs)?;
        own.files = folder.as_ref().map(|folder| match container {
            Some(_) => PathBuf::from(config_folder::IN_CONTAINER),
            None => folder.path().to_owned(),
        });
        let ports = &self.ports;
        let find = |system: &str| {
            // An instance has its own address, different from the address of its system.
            if system == setup.system {
                return Some(own.clone());
            }
            let is_inside = container.is_some_and(|it| it.network != lab::Network::Host);
            let inner = ports.inner.get(system).filter(|_| is_inside);
            inner.map_or_else(|| ports.find(system), |inner| Some((*inner).into()))
        };
        let fill = |text: &lab::Text| {
            text.render_instance(number, &find)
                .map_err(|reason| Invalid::new(InvalidKind::NotReady, reason))
        };
        let told = Told::of(setup, &fill)?;
        let recorded = Told::of(setup, &|text| fill(&text.without_paths()))?;
        if let Some(folder) = &folder {
            for file in &setup.files {
                folder.write(&file.name, &fill(&file.text)?)?;
            }
        }
        let process = match container {
            None => self.spawn(setup, name, told)?,
            Some(container) => {
                let start = ContainerStart {
                    name,
                    place: &place,
                    command: told.command,
                    env: told.env,
                    files: folder.as_ref().map(ConfigFolder::path),
                    logs: self.logs,
                };
                let started = container::start(self.rig, setup, container, start)?;
                Process::Container(Box::new(started))
            }
        };
        Ok(RunningProcess {
            process,
            record: setup.system.clone(),
            setup: setup.system.clone(),
            serves: None,
            instance: None,
            balances: None,
            place,
            protocol: self.lab.protocol.to(setup, &self.certificates),
            command: recorded.command,
            env: recorded.env,
            start: StartCost::default(),
        })
    }

    fn spawn(&mut self, setup: &Setup, name: &str, told: Told) -> Result<Process, Invalid> {
        let spec = SystemSpec {
            name: name.to_owned(),
            command: told.command,
            folder: setup.folder.clone(),
            env: told.env.into_iter().collect(),
            limits: rig::ProcessLimits {
                cpus: setup.limits.cpus,
                memory: setup.limits.memory,
            },
            cpus_allowed: setup.pin.clone(),
            log: self.logs.join(format!("{name}.log")),
        };
        let system = self
            .rig
            .spawn(&spec)
            .map_err(|error| invalid_spawn(&error))?;
        Ok(Process::Ours(system))
    }
}

/// The command and the variables of a start.
struct Told {
    command: Vec<String>,
    env: BTreeMap<String, String>,
}

impl Told {
    fn of(
        setup: &Setup,
        fill: &dyn Fn(&lab::Text) -> Result<String, Invalid>,
    ) -> Result<Told, Invalid> {
        let mut env = BTreeMap::new();
        for (variable, value) in &setup.env {
            env.insert(variable.clone(), fill(value)?);
        }
        let command = setup.command().iter().map(fill);
        Ok(Told {
            command: command.collect::<Result<_, _>>()?,
            env,
        })
    }
}

/// Connects without blocking. If the listener's queue is full, a blocking connect would wait until it accepts
/// a connection.
fn connect_unix(path: &Path) -> std::io::Result<()> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(())
}

/// Probes a process for readiness once.
pub(super) fn probe(kind: &Probe, target: &Target) -> Result<(), String> {
    match kind {
        // Nothing listens over TCP for HTTP/3 alone.
        Probe::Listening | Probe::Healthy if target.protocol.version.is_http3() => {
            let reached = load::reach(target, PROBE);
            reached.map_err(|failure| format!("{}: {failure}", url_of(target)))
        }
        // Only containers have a health status. Their engine reports it.
        Probe::Listening | Probe::Healthy => match &target.address {
            Address::Tcp(address) => TcpStream::connect_timeout(address, PROBE)
                .map(|_| ())
                .map_err(|error| format!("no connection to {address}: {error}")),
            Address::Unix(path) => connect_unix(path)
                .map_err(|error| format!("no connection to `{}`: {error}", path.display())),
        },
        Probe::Answers { path, status } => {
            let request = Request {
                expect: Expectation {
                    status: StatusRule::Exactly(*status),
                    ..Expectation::default()
                },
                ..Request::get(path)
            };
            let asked = |problem: String| format!("GET {}{path}: {problem}", url_of(target));
            let answer = load::exchange(target, &request, PROBE)
                .map_err(|failure| asked(failure.to_string()))?;
            load::check(&request.expect, &answer).map_err(|mismatch| asked(mismatch.to_string()))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;
    use std::os::unix::net::UnixListener;
    use std::sync::atomic::{AtomicBool, Ordering};

    use load::null::NullCertificate;

    use load::Version;

    use super::*;

    #[test]
    fn a_socket_whose_queue_is_full_does_not_hold_the_probe_up() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("full.sock");
        let listener = UnixListener::bind(&path).expect("a listener");
        rustix::net::listen(&listener, 0).expect("a short queue");
        // Closed connections stay in the queue until they are accepted.
        let full = (0..8).find_map(|_| connect_unix(&path).err());
        let error = full.expect("a queue of one is full after eight");
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
    }

    #[test]
    fn a_system_that_only_listens_over_udp_is_ready_for_http_3() {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port");
        let address = socket.local_addr().expect("its address");
        let certificate =
            NullCertificate::new(vec!["localhost".to_owned()]).expect("a certificate");
        let mut target = Target {
            address: Address::Tcp(address),
            host: "localhost".to_owned(),
            protocol: load::Protocol {
                version: Version::Http3 { streams: 1 },
                tls: Some(load::Trust::SkipVerification),
                ..load::Protocol::default()
            },
        };
        let answers = Probe::Answers {
            path: "/".to_owned(),
            status: 200,
        };
        // The socket has no reader yet.
        let silent = probe(&Probe::Listening, &target).expect_err("no server");
        assert!(silent.contains("no connection within 1s"), "{silent}");
        let stop = AtomicBool::new(false);
        let behavior = load::null::Behavior::default();
        std::thread::scope(|scope| {
            scope.spawn(|| load::null::serve_http3(socket, &certificate, &behavior, None, &stop));
            for kind in [Probe::Listening, Probe::Healthy, answers] {
                assert_eq!(probe(&kind, &target), Ok(()));
            }
            // The same port number has no listener over TCP.
            target.protocol.version = Version::Http1;
            let refused = probe(&Probe::Listening, &target).expect_err("no listener");
            assert!(refused.contains("refused"), "{refused}");
            stop.store(true, Ordering::Relaxed);
        });
    }
}
