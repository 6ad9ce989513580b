//! The systems of a variant: `weigh` starts them on free ports, waits for readiness, reads their usage and
//! stops them.

mod addresses;
mod balancer;
mod config_folder;
mod container;
mod instances;
mod process;
mod project;
mod readiness;
mod restart;
mod start;

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lab::{Certificates, Endpoint, Lab, LabTrust, Setup};
use load::{Address, Target};
use model::{ClientIdentity, InvalidKind, Protocol, Trust};
use recording::{LimitsText, SystemRecord};
use rig::{Rig, Usage};
use tempfile::TempDir;

use crate::compose::Projects;
use crate::invalid::{Invalid, invalid_ready, listens_at};
use crate::secrets;
use crate::stop::StopSignal;
use process::Process;
use start::probe;

pub use addresses::{Addresses, Consent};
pub(crate) use instances::{Shares, Tally, between};
pub(crate) use restart::closed;

/// Time that a system has to end after the stop signal.
pub(crate) const GRACE: Duration = Duration::from_secs(5);

/// A variant's systems while they run. The target is the last one.
pub struct RunningSystems {
    running: Vec<RunningProcess>,
    /// The systems that several variants share. Another `RunningSystems` owns them.
    shared: Vec<SharedSystem>,
    /// Folders of Unix sockets, one for each start. Empty if no system listens on a socket.
    sockets: Vec<TempDir>,
}

/// A system that serves all variants, as seen by one variant.
#[derive(Clone)]
struct SharedSystem {
    system: String,
    place: Endpoint,
    /// Address for containers in the system's network. `None` if the system is in no such network.
    inner: Option<SocketAddr>,
    protocol: Protocol,
}

/// The inputs of a start.
#[derive(Clone, Copy)]
pub struct Startup<'a> {
    pub lab: &'a Lab,
    /// In start order. The target is last.
    pub setups: &'a [Setup],
    /// The folder of their logs. It exists.
    pub logs: &'a Path,
    pub stop: &'a StopSignal,
    /// Addresses of the systems that `weigh` did not start.
    pub addresses: &'a Addresses,
    /// The compose files of the lab.
    pub projects: &'a Projects,
    /// Running systems that these share. `None` if each variant has its own systems.
    pub shared: Option<&'a RunningSystems>,
}

/// The usage of one system of the records since its start, summed over its instances.
pub(crate) struct UsageReading {
    pub(crate) system: String,
    /// The setup that it belongs to. The name differs from `system` only for services of a compose file.
    pub(crate) setup: String,
    /// `None` if one of its processes has ended.
    pub(crate) usage: Option<Usage>,
}

/// The processes of one system of the records.
pub(crate) struct SystemProcesses {
    pub(crate) system: String,
    pub(crate) pids: Vec<i32>,
    /// The logs of the processes that `weigh` has started itself. Containers have other logs.
    pub(crate) logs: Vec<PathBuf>,
    /// True if they run in their own network, so that their addresses cannot conflict with other systems.
    pub(crate) has_own_network: bool,
}

/// One running process: a system, one of its instances, or a balancer.
struct RunningProcess {
    process: Process,
    /// The system of the records that this process is, or is an instance of.
    record: String,
    /// The setup that it was started for. The name differs from `record` only for services of a compose file.
    setup: String,
    /// The system that other systems reach at this address. `None` for an instance behind a balancer.
    serves: Option<String>,
    /// The instance number, if the system has several instances.
    instance: Option<InstanceNumber>,
    /// The system behind this balancer. `None` if this is not a balancer.
    balances: Option<BalancedSystem>,
    place: Endpoint,
    protocol: Protocol,
    command: Vec<String>,
    env: BTreeMap<String, String>,
    /// Cost of the start until readiness. Zero until the process is ready.
    start: StartCost,
}

/// The cost of a start until readiness.
#[derive(Clone, Copy, Default)]
struct StartCost {
    time: Duration,
    /// Zero if it cannot be read.
    processor_time: Duration,
}

/// Instance `number` of `count`, counted from 1.
struct InstanceNumber {
    number: u32,
    count: u32,
}

/// The system behind a balancer.
struct BalancedSystem {
    system: String,
    /// Address of the balancer's statistics.
    statistics: SocketAddr,
}

impl RunningSystems {
    /// Starts the systems in order. Each system starts after the earlier ones are ready.
    ///
    /// # Errors
    ///
    /// The first system that did not start or become ready. No system is left running then.
    pub fn start(rig: &mut Rig, startup: Startup<'_>) -> Result<RunningSystems, Invalid> {
        let nothing = RunningSystems {
            running: Vec::new(),
            shared: startup.shared.map_or_else(Vec::new, RunningSystems::served),
            sockets: Vec::new(),
        };
        nothing.complete(rig, startup)
    }

    /// Waits for the processes of a setup, from index `first`.
    fn wait_ready(
        &mut self,
        rig: &mut Rig,
        setup: &Setup,
        first: usize,
        stop: &StopSignal,
    ) -> Result<(), Invalid> {
        for running in &mut self.running[first..] {
            let mut target = running.target();
            // This request checks readiness only. The proof and the load verify the certificate.
            target.protocol.tls = target.protocol.tls.map(|_| Trust::SkipVerification);
            tracing::debug!(system = running.process.name(), url = url_of(&target), probe = ?setup.ready.probe, within = ?setup.ready.within, "waiting until it is ready");
            let mut probe = || probe(&setup.ready.probe, &target);
            let system = match &running.process {
                Process::Ours(system) => system,
                Process::Container(container) => {
                    running.start = container.wait_ready(setup, &mut probe, stop)?;
                    continue;
                }
                Process::Elsewhere { .. } => {
                    process::wait_ready(setup, &mut probe, stop)?;
                    continue;
                }
                Process::Service(service) => {
                    // The health checks of the other services were already awaited. They may listen on no
                    // address.
                    if running.serves.is_some() {
                        service.wait_ready(setup, &mut probe, stop)?;
                    }
                    continue;
                }
            };
            let waited = rig.wait_ready(system, setup.ready.within, &mut probe, stop.flag());
            let time = waited.map_err(|error| {
                let listens = match running.place.socket {
                    Some(_) => String::new(),
                    None => {
                        let found = rig::listening(&rig.processes(system));
                        listens_at(running.place.address, &found)
                    }
                };
                invalid_ready(error, &listens)
            })?;
            let usage = rig.usage(system);
            running.start = StartCost {
                time,
                processor_time: usage.map_or(Duration::ZERO, |usage| usage.cpu),
            };
        }
        Ok(())
    }

    fn last(&self) -> &RunningProcess {
        self.running
            .last()
            .expect("running systems hold at least their target")
    }

    /// The processes of each system of the records, in start order.
    fn by_record(&self) -> impl Iterator<Item = &[RunningProcess]> {
        self.running
            // Instances of a system start one after the other, so they are neighbors.
            .chunk_by(|one, other| one.record == other.record)
    }

    /// The system that receives the load.
    pub fn target(&self) -> Target {
        self.last().target()
    }

    /// The target at an address, with the protocol of the process that listens there. HTTP/1.1 without TLS
    /// for any other address.
    pub(crate) fn target_at(&self, address: SocketAddr) -> Target {
        let mut running = self.running.iter();
        let mut shared = self.shared.iter();
        match running.find(|running| running.place.address == address) {
            // A proof may send a request to a system with TLS and have only its address.
            Some(running) => running.target(),
            None => match shared.find(|shared| shared.place.address == address) {
                Some(shared) => target(&shared.place, shared.protocol.clone()),
                None => target(&address.into(), Protocol::default()),
            },
        }
    }

    /// The listen address of a system.
    pub fn find(&self, system: &str) -> Option<Endpoint> {
        let mut running = self.running.iter();
        let found = running.find(|running| running.serves.as_deref() == Some(system));
        let place = found.map(|running| running.place.clone());
        let mut shared = self.shared.iter();
        place.or_else(|| {
            let found = shared.find(|shared| shared.system == system)?;
            Some(found.place.clone())
        })
    }

    /// The listen address of each instance of a system. Without a balancer, the system's own address.
    pub(crate) fn addresses_of(&self, system: &str) -> Vec<SocketAddr> {
        let is_own = |it: &&RunningProcess| {
            it.record == system || (it.setup == system && it.serves.is_some())
        };
        let instances = self.running.iter().filter(is_own);
        let shared = self.shared.iter().filter(|it| it.system == system);
        let own = instances.flat_map(|it| it.process.asked_at(it.place.address));
        own.chain(shared.map(|it| it.place.address)).collect()
    }

    /// True if `weigh` assigned this address to one of the systems.
    pub(crate) fn is_given(&self, address: SocketAddr) -> bool {
        self.running.iter().any(|running| {
            let balances = running.balances.as_ref();
            // A system may listen on its port at every address.
            running.place.address.port() == address.port()
                || balances.is_some_and(|it| it.statistics.port() == address.port())
        })
    }

    /// These systems as seen by the variants that share them.
    fn served(&self) -> Vec<SharedSystem> {
        let serving = self.running.iter().filter_map(|running| {
            Some(SharedSystem {
                system: running.serves.clone()?,
                place: running.place.clone(),
                inner: running.process.inner(),
                protocol: running.protocol.clone(),
            })
        });
        serving.collect()
    }

    /// The usage of every system since its start, in start order.
    pub(crate) fn usage(&self, rig: &Rig) -> Vec<UsageReading> {
        self.by_record()
            .map(|group| {
                let usage = |running: &RunningProcess| running.process.usage(rig);
                let usages: Vec<Option<Usage>> = group.iter().map(usage).collect();
                UsageReading {
                    system: group[0].record.clone(),
                    setup: group[0].setup.clone(),
                    usage: instances::together(&usages),
                }
            })
            .collect()
    }

    /// Processor time of all systems together since their start. `None` if one of them cannot be read.
    pub(crate) fn processor_time(&self, rig: &Rig) -> Option<Duration> {
        let usages = self.usage(rig).into_iter();
        usages.map(|one| Some(one.usage?.cpu)).sum()
    }

    /// The processes of all systems with readable processor time, including systems that `weigh` did not
    /// start.
    pub(crate) fn pids_watched(&self, rig: &Rig) -> Vec<i32> {
        let each = self.running.iter();
        each.flat_map(|it| it.process.pids_watched(rig)).collect()
    }

    /// The current processes of each system.
    pub(crate) fn processes(&self, rig: &Rig) -> Vec<SystemProcesses> {
        self.processes_of(|process| process.pids(rig))
    }

    /// Like [`RunningSystems::processes`], with the attached processes of systems that run already.
    pub(crate) fn processes_watched(&self, rig: &Rig) -> Vec<SystemProcesses> {
        self.processes_of(|process| process.pids_watched(rig))
    }

    fn processes_of(&self, pids: impl Fn(&Process) -> Vec<i32>) -> Vec<SystemProcesses> {
        self.by_record()
            .map(|group| SystemProcesses {
                system: group[0].record.clone(),
                pids: group
                    .iter()
                    .flat_map(|running| pids(&running.process))
                    .collect(),
                logs: group
                    .iter()
                    .filter_map(|running| running.process.log())
                    .collect(),
                has_own_network: group.iter().all(|it| it.process.inner().is_some()),
            })
            .collect()
    }

    /// The first process that has ended, with its exit status and its last lines of output.
    pub fn ended(&self, rig: &mut Rig) -> Option<String> {
        self.running.iter().find_map(|running| {
            let end = running.process.end(rig)?;
            Some(format!("{} {end}", running.called()))
        })
    }

    /// Adds facts to the records that are only available after a start. All instances share one record, with
    /// the command of the first.
    pub fn describe(&self, records: &mut Vec<SystemRecord>) {
        self.list_services(records);
        for (record, group) in records.iter_mut().zip(self.by_record()) {
            assert_eq!(
                record.name, group[0].record,
                "systems start in the order in which the lab lists them"
            );
            // Instances differ only in their addresses and numbers, so the first represents all.
            let running = &group[0];
            let Some(enforced) = running.process.enforced() else {
                continue;
            };
            // The final command and variables. Until now the record contained the templates.
            record.command = secrets::words(&running.command);
            record.env = secrets::variables(&running.env);
            record.limits_enforced = enforced.by.is_some().then_some(LimitsText {
                cpus: enforced.cpus,
                memory_bytes: enforced.memory,
            });
            record.limits_by = enforced.by.clone().or_else(|| enforced.why_not.clone());
        }
    }

    /// Replaces the record of each project with the records of its services. The services are only available
    /// after the start.
    fn list_services(&self, records: &mut Vec<SystemRecord>) {
        let listed = records.drain(..).flat_map(|record| {
            let services = self.running.iter().filter_map(|it| match &it.process {
                Process::Service(service) if it.setup == record.name => Some(service),
                _ => None,
            });
            let services: Vec<SystemRecord> = services.map(|it| it.record(&record)).collect();
            if services.is_empty() {
                vec![record]
            } else {
                services
            }
        });
        let listed = listed.collect();
        *records = listed;
    }

    /// The URL of each system, for display.
    pub fn urls(&self) -> impl Iterator<Item = (&str, String)> {
        self.running
            .iter()
            // A service without load listens only inside its project's network.
            .filter(|running| running.serves.is_some() || running.instance.is_some())
            .map(|running| (running.process.name(), url_of(&running.target())))
    }

    /// Stops all systems, the target first. A system that loses a dependency logs errors and may need its
    /// whole grace period.
    pub fn stop(self, rig: &mut Rig) {
        // In reverse order: a system may need the earlier systems until it has ended.
        for running in self.running.into_iter().rev() {
            running.process.stop(rig);
        }
    }
}

/// The system that receives the load. A variant may have a target of its own. The target is the last system,
/// behind its balancer if it has one.
pub(crate) fn target_of(setups: &[Setup]) -> &str {
    setups.last().map_or("", |last| match &last.balances {
        Some(balances) => &balances.system,
        None => &last.system,
    })
}

/// The certificates of the load and of the proofs. Empty if the lab has none, or if no system uses TLS. A later
/// build can still make the files then.
///
/// # Errors
///
/// A file that cannot be read.
fn certificates(lab: &Lab, setups: &[Setup]) -> Result<Certificates, Invalid> {
    if !setups.iter().any(|setup| setup.is_encrypted) {
        return Ok(Certificates::default());
    }
    let read = |key: &str, path: &Path| {
        fs::read(path).map_err(|error| {
            let reason = format!("`{key}`: `{}` cannot be read: {error}", path.display());
            Invalid::new(InvalidKind::NotReady, reason)
        })
    };
    let authorities = match &lab.protocol.trust {
        LabTrust::Authorities(path) => read("load.ca", path)?,
        LabTrust::System | LabTrust::SkipVerification => Vec::new(),
    };
    let client = match &lab.protocol.client {
        Some(files) => Some(ClientIdentity {
            certificate: read("load.tls", &files.certificate)?,
            key: read("load.tls", &files.key)?,
        }),
        None => None,
    };
    Ok(Certificates {
        authorities,
        client,
    })
}

impl RunningProcess {
    fn target(&self) -> Target {
        target(&self.place, self.protocol.clone())
    }

    /// The display name, such as `limiter-3` for instance 3 of 4 of `limiter`.
    fn called(&self) -> String {
        let name = self.process.name();
        match &self.instance {
            None => format!("`{name}`"),
            Some(InstanceNumber { number, count }) => {
                format!(
                    "`{name}` (instance {number} of {count} of `{}`)",
                    self.record
                )
            }
        }
    }
}

/// The scheme and authority of the target's URL.
pub(crate) fn url_of(target: &Target) -> String {
    let scheme = match target.protocol.tls {
        Some(_) => "https",
        None => "http",
    };
    format!("{scheme}://{}", target.host)
}

fn target(place: &Endpoint, protocol: Protocol) -> Target {
    Target {
        address: match &place.socket {
            Some(path) => Address::Unix(path.clone()),
            None => Address::Tcp(place.address),
        },
        host: place.authority(),
        protocol,
    }
}

/// Creates a folder for Unix sockets if a system listens on one. It is outside the log folder, because the
/// kernel limits a socket's path to 107 bytes.
fn socket_folder(setups: &[&Setup]) -> Result<Option<TempDir>, Invalid> {
    // Without a socket there is no folder to remove later.
    if !setups.iter().any(|setup| setup.is_on_socket()) {
        return Ok(None);
    }
    let made = tempfile::Builder::new()
        .prefix("weigh-")
        .tempdir_in(crate::environment::socket_parent());
    made.map(Some).map_err(|error| {
        Invalid::new(
            InvalidKind::NotReady,
            format!("cannot create a temporary folder for Unix sockets: {error}"),
        )
    })
}
