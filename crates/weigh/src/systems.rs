//! A variant's systems: started on free ports, ready, read while they run, and stopped again.

mod addresses;
mod balancer;
mod container;
mod instances;
mod process;
mod project;
mod readiness;
mod restart;
mod start;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use lab::{Endpoint, Lab, Setup};
use load::{Address, Target};
use model::{InvalidKind, Protocol, Trust, Version};
use process::Process;
use report::recording::{LimitsText, SystemRecord};
use rig::{Rig, Usage};
use start::probe;
use tempfile::TempDir;

use crate::compose::Projects;
use crate::invalid::{Invalid, invalid_ready};
use crate::secrets;
use crate::stop::Stop;

pub(crate) use addresses::{Addresses, ConsentArgs};
pub(crate) use instances::{Shares, Tally, between};
pub(crate) use restart::closed;

/// How long a system has to end by itself when it is asked to.
const GRACE: Duration = Duration::from_secs(5);

/// A variant's systems while they run; the target is the last.
pub(crate) struct RunningSystems {
    running: Vec<RunningProcess>,
    /// The systems that these share with others, which run elsewhere.
    shared: Vec<SharedSystem>,
    /// The folders of their Unix sockets, where there are any: one for each start.
    sockets: Vec<TempDir>,
}

/// A system that serves all variants, as one of them knows it.
#[derive(Clone)]
struct SharedSystem {
    system: String,
    place: Endpoint,
    /// Where containers in their network find it; none of what is not in one.
    inner: Option<SocketAddr>,
    protocol: Protocol,
}

/// What systems are started from.
#[derive(Clone, Copy)]
pub(crate) struct Startup<'a> {
    pub(crate) lab: &'a Lab,
    /// In the order in which they start; the target is the last.
    pub(crate) setups: &'a [Setup],
    /// The folder of their logs, which exists.
    pub(crate) logs: &'a Path,
    pub(crate) stop: &'a Stop,
    /// Where systems are that were not started here.
    pub(crate) addresses: &'a Addresses,
    /// The compose files of the lab.
    pub(crate) projects: &'a Projects,
    /// Systems that run already and serve these; none where each variant has its own.
    pub(crate) shared: Option<&'a RunningSystems>,
}

/// What one system of the records has used since its start, all instances of it together.
pub(crate) struct UsageReading {
    pub(crate) system: String,
    /// The setup that it belongs to: of the same name, but for services of a compose file.
    pub(crate) setup: String,
    /// Absent when a process of it has ended.
    pub(crate) usage: Option<Usage>,
}

/// The processes that one system of the records consists of.
pub(crate) struct SystemProcesses {
    pub(crate) system: String,
    pub(crate) pids: Vec<i32>,
    /// Whether they are in a network of their own, where no address is in the way of others.
    pub(crate) has_own_network: bool,
}

/// One running process: a system, one of its instances, or a balancer.
struct RunningProcess {
    process: Process,
    /// The system of the records that it is, or is an instance of.
    record: String,
    /// The setup that it was started for: of the same name, but for services of a compose file.
    setup: String,
    /// The system whose address this is to others; none for an instance behind a balancer.
    serves: Option<String>,
    /// Which instance it is, where its system has several.
    instance: Option<InstanceNumber>,
    /// What it balances; absent for what is no balancer.
    balances: Option<BalancedSystem>,
    place: Endpoint,
    protocol: Protocol,
    command: Vec<String>,
    env: BTreeMap<String, String>,
    /// What its start took until it was ready; nothing while it is waited for.
    start: StartCost,
}

/// What it took to get ready.
#[derive(Clone, Copy, Default)]
struct StartCost {
    time: Duration,
    /// Zero where it cannot be read.
    processor_time: Duration,
}

/// Instance `number` of `count`, counted from 1.
struct InstanceNumber {
    number: u32,
    count: u32,
}

/// What a balancer stands before.
struct BalancedSystem {
    system: String,
    /// Where the balancer says what it has counted.
    statistics: SocketAddr,
}

impl RunningSystems {
    /// Starts every system in order, each once those before it are ready.
    ///
    /// # Errors
    ///
    /// The first system that did not start or become ready. Nothing is left running then.
    pub(crate) fn start(rig: &mut Rig, startup: Startup<'_>) -> Result<RunningSystems, Invalid> {
        let nothing = RunningSystems {
            running: Vec::new(),
            shared: startup.shared.map_or_else(Vec::new, RunningSystems::served),
            sockets: Vec::new(),
        };
        nothing.complete(rig, startup)
    }

    /// Waits for the processes of a setup: those from `first` on.
    fn wait_ready(
        &mut self,
        rig: &mut Rig,
        setup: &Setup,
        first: usize,
        stop: &Stop,
    ) -> Result<(), Invalid> {
        for running in &mut self.running[first..] {
            let mut target = running.target();
            // Only readiness is asked for here. The certificate is verified by the proof and the load.
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
                    // The others are up as their health checks say, and may listen nowhere.
                    if running.serves.is_some() {
                        service.wait_ready(setup, &mut probe, stop)?;
                    }
                    continue;
                }
            };
            let time = rig
                .wait_ready(system, setup.ready.within, &mut probe, stop.flag())
                .map_err(invalid_ready)?;
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

    /// The processes of each system of the records, in the order they were started.
    fn by_record(&self) -> impl Iterator<Item = &[RunningProcess]> {
        self.running
            // Instances of a system are started one after the other, so they are neighbors.
            .chunk_by(|one, other| one.record == other.record)
    }

    /// Who gets the load.
    pub(crate) fn target(&self) -> Target {
        self.last().target()
    }

    /// The protocol of the process that listens there; HTTP/1.1 in the clear for any other address.
    pub(crate) fn target_at(&self, address: SocketAddr) -> Target {
        let mut running = self.running.iter();
        let mut shared = self.shared.iter();
        match running.find(|running| running.place.address == address) {
            // Proofs may ask a system that speaks TLS, and know only its address.
            Some(running) => running.target(),
            None => match shared.find(|shared| shared.place.address == address) {
                Some(shared) => target(&shared.place, shared.protocol.clone()),
                None => target(&address.into(), Protocol::default()),
            },
        }
    }

    /// Where a system listens.
    pub(crate) fn find(&self, system: &str) -> Option<Endpoint> {
        let mut running = self.running.iter();
        let found = running.find(|running| running.serves.as_deref() == Some(system));
        let place = found.map(|running| running.place.clone());
        let mut shared = self.shared.iter();
        place.or_else(|| {
            let found = shared.find(|shared| shared.system == system)?;
            Some(found.place.clone())
        })
    }

    /// Where each instance of a system listens, or the system itself where there is no balancer
    /// before it.
    pub(crate) fn addresses_of(&self, system: &str) -> Vec<SocketAddr> {
        let is_own = |it: &&RunningProcess| {
            it.record == system || (it.setup == system && it.serves.is_some())
        };
        let instances = self.running.iter().filter(is_own);
        let shared = self.shared.iter().filter(|it| it.system == system);
        let own = instances.flat_map(|it| it.process.asked_at(it.place.address));
        own.chain(shared.map(|it| it.place.address)).collect()
    }

    /// Whether this is an address that one of them was given.
    pub(crate) fn is_given(&self, address: SocketAddr) -> bool {
        self.running.iter().any(|running| {
            let balances = running.balances.as_ref();
            // A system may listen on its port at every address.
            running.place.address.port() == address.port()
                || balances.is_some_and(|it| it.statistics.port() == address.port())
        })
    }

    /// What these systems are to those that share them.
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

    /// What every system has used so far, in the order in which they were started.
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

    /// Processor time of all systems together so far; none where one of them cannot be read.
    pub(crate) fn processor_time(&self, rig: &Rig) -> Option<Duration> {
        let usages = self.usage(rig).into_iter();
        usages.map(|one| Some(one.usage?.cpu)).sum()
    }

    /// The processes of all systems whose processor time can be read now, those included that were not
    /// started here.
    pub(crate) fn pids_watched(&self, rig: &Rig) -> Vec<i32> {
        let each = self.running.iter();
        each.flat_map(|it| it.process.pids_watched(rig)).collect()
    }

    /// The processes that each system consists of now.
    pub(crate) fn processes(&self, rig: &Rig) -> Vec<SystemProcesses> {
        self.by_record()
            .map(|group| SystemProcesses {
                system: group[0].record.clone(),
                pids: group
                    .iter()
                    .flat_map(|running| running.process.pids(rig))
                    .collect(),
                has_own_network: group.iter().all(|it| it.process.inner().is_some()),
            })
            .collect()
    }

    /// The first process that has ended, with how it ended and its last words.
    pub(crate) fn ended(&self, rig: &mut Rig) -> Option<String> {
        self.running.iter().find_map(|running| {
            let end = running.process.end(rig)?;
            Some(format!("{} {end}", running.called()))
        })
    }

    /// Completes the records of the systems with what only a start tells. Instances have one record,
    /// with the command of the first.
    pub(crate) fn describe(&self, records: &mut Vec<SystemRecord>) {
        self.list_services(records);
        for (record, group) in records.iter_mut().zip(self.by_record()) {
            assert_eq!(
                record.name, group[0].record,
                "systems start in the order in which the lab lists them"
            );
            // Instances differ in their addresses and numbers only, so the first stands for all.
            let running = &group[0];
            let Some(enforced) = running.process.enforced() else {
                continue;
            };
            // What was really started: the record has had the templates so far.
            record.command = secrets::words(&running.command);
            record.env = secrets::variables(&running.env);
            record.limits_enforced = enforced.by.is_some().then_some(LimitsText {
                cpus: enforced.cpus,
                memory_bytes: enforced.memory,
            });
            record.limits_by = enforced.by.clone().or_else(|| enforced.why_not.clone());
        }
    }

    /// Puts the services of each project, which only its start tells, in the place of its record.
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

    /// Each system's URL, for people.
    pub(crate) fn urls(&self) -> impl Iterator<Item = (&str, String)> {
        self.running
            .iter()
            // A service that is not loaded listens where only its project reaches it.
            .filter(|running| running.serves.is_some() || running.instance.is_some())
            .map(|running| (running.process.name(), url_of(&running.target())))
    }

    /// Stops everything, the target first: a system that loses what it depends on logs errors and
    /// may take its whole grace to end.
    pub(crate) fn stop(self, rig: &mut Rig) {
        // In reverse: a system may need those that started before it until it has ended.
        for running in self.running.into_iter().rev() {
            running.process.stop(rig);
        }
    }
}

/// The system that gets the load: a variant may have one of its own. It comes up last, behind its
/// balancer where it has one.
pub(crate) fn target_of(setups: &[Setup]) -> &str {
    setups.last().map_or("", |last| match &last.balances {
        Some(balances) => &balances.system,
        None => &last.system,
    })
}

/// The protocol in which a process is spoken to: the load's for the target, HTTP/1.1 for others.
fn protocol_of(lab: &Lab, setup: &Setup, target: &str) -> Protocol {
    let protocol = lab.protocol.with(setup.is_encrypted);
    // Behind a balancer, the load's version of HTTP is spoken with the balancer only.
    let is_target = match &setup.balances {
        Some(balances) => balances.system == target,
        None => setup.system == target && setup.replicas.is_none(),
    };
    if is_target {
        return protocol;
    }
    Protocol {
        version: Version::Http1,
        ..protocol
    }
}

impl RunningProcess {
    fn target(&self) -> Target {
        target(&self.place, self.protocol.clone())
    }

    /// Its name for people: `limiter-3`, instance 3 of 4 of `limiter`.
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

/// Scheme and authority.
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

/// A folder for Unix sockets, if a system listens on one. It is not among the logs, because the kernel
/// allows a socket's path 107 bytes.
fn socket_folder(setups: &[&Setup]) -> Result<Option<TempDir>, Invalid> {
    // A folder is made only where it is used: it would be one more thing to clear up.
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
