//! A variant's systems: built, started on free ports, ready, and stopped again.

mod instances;
mod start;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use lab::{Lab, Setup, Text, Whereabouts};
use load::{Address, Protocol, Target, Trust, Version};
use report::recording::{InvalidKind, LimitsText, SystemRecord};
use report::summary::Invalidity;
use rig::{ReadyError, Rig, SpawnError, State, Usage};
use start::{Ports, Starter, probe};
use tempfile::TempDir;

use crate::exit::Exit;
use crate::sending;
use crate::stop::Stop;

pub(crate) use instances::{Shares, between, judge};

/// The hidden subcommand that keeps what `weigh` starts.
pub(crate) const KEEPER: &str = "keeper";
/// The hidden subcommand that becomes a system.
pub(crate) const LAUNCH: &str = "launch";

/// How long a system has to end by itself when it is asked to.
const GRACE: Duration = Duration::from_secs(5);

/// Why a variant has no number: a row of the report.
#[derive(Clone, Debug)]
pub(crate) struct Invalid {
    pub(crate) kind: InvalidKind,
    /// One line.
    pub(crate) reason: String,
}

impl Invalid {
    pub(crate) fn new(kind: InvalidKind, reason: impl Into<String>) -> Invalid {
        Invalid {
            kind,
            reason: reason.into(),
        }
    }

    /// How `weigh` leaves because of it.
    pub(crate) fn exit(&self) -> Exit {
        Exit::from(Invalidity::from(self.kind))
    }

    pub(crate) fn interrupted() -> Invalid {
        Invalid::new(InvalidKind::Interrupted, "stopped before it was measured")
    }
}

/// A variant's systems while they run; the target is the last.
pub(crate) struct Stack {
    running: Vec<Running>,
    /// The folder of their Unix sockets, where there are any.
    _sockets: Option<TempDir>,
}

/// One running process: a system, one of its instances, or a balancer.
struct Running {
    system: rig::System,
    /// The system of the records that it is, or is an instance of.
    record: String,
    /// The system whose address this is to others; none for an instance behind a balancer.
    serves: Option<String>,
    /// Its number, and how many there are.
    instance: Option<(u32, u32)>,
    /// The system before whose instances it stands, and where it says what it has counted.
    balances: Option<(String, SocketAddr)>,
    place: Whereabouts,
    protocol: Protocol,
    command: Vec<String>,
    env: BTreeMap<String, String>,
}

impl Stack {
    /// Starts every system in order, each once those before it are ready.
    ///
    /// # Errors
    ///
    /// The first system that did not start or become ready. Nothing is left running then.
    pub(crate) fn start(
        rig: &mut Rig,
        (lab, setups): (&Lab, &[Setup]),
        logs: &Path,
        stop: &Stop,
    ) -> Result<Stack, Invalid> {
        let sockets = socket_folder(setups)?;
        let ports = Ports::of(setups, sockets.as_ref().map(TempDir::path))?;
        let mut starter = Starter {
            rig,
            lab,
            logs,
            ports,
            target: target_of(setups),
        };
        let mut stack = Stack {
            running: Vec::new(),
            _sockets: sockets,
        };
        for setup in setups {
            let first = stack.running.len();
            let started = starter
                .start(setup, &mut stack.running)
                .and_then(|()| stack.wait_ready(starter.rig, (setup, first), stop));
            if let Err(invalid) = started {
                stack.stop(starter.rig);
                return Err(invalid);
            }
        }
        Ok(stack)
    }

    /// Waits for the processes of a setup: those from `first` on.
    fn wait_ready(
        &self,
        rig: &mut Rig,
        (setup, first): (&Setup, usize),
        stop: &Stop,
    ) -> Result<(), Invalid> {
        for running in &self.running[first..] {
            let mut target = running.target();
            // Whether it is ready is asked here, and not who it is.
            target.protocol.tls = target.protocol.tls.map(|_| Trust::Anybody);
            tracing::debug!(system = running.system.name(), url = url_of(&target), probe = ?setup.ready.probe, within = ?setup.ready.within, "waiting until it is ready");
            let mut probe = || probe(&setup.ready.probe, &target);
            rig.wait_ready(&running.system, setup.ready.within, &mut probe, stop.flag())
                .map_err(invalid_ready)?;
        }
        Ok(())
    }

    fn last(&self) -> &Running {
        self.running
            .last()
            .expect("a stack holds at least its target")
    }

    /// The processes of each system of the records, in the order they were started.
    fn by_record(&self) -> impl Iterator<Item = &[Running]> {
        self.running
            .chunk_by(|one, other| one.record == other.record)
    }

    /// Who gets the load.
    pub(crate) fn target(&self) -> Target {
        self.last().target()
    }

    /// How to speak with who listens there; in the clear with somebody else.
    pub(crate) fn target_at(&self, address: SocketAddr) -> Target {
        let mut running = self.running.iter();
        match running.find(|running| running.place.address == address) {
            Some(running) => running.target(),
            None => target(&address.into(), Protocol::default()),
        }
    }

    /// Where a system listens.
    pub(crate) fn find(&self, system: &str) -> Option<Whereabouts> {
        let mut running = self.running.iter();
        let found = running.find(|running| running.serves.as_deref() == Some(system))?;
        Some(found.place.clone())
    }

    /// Where each instance of a system listens, or the system itself where there is no balancer
    /// before it.
    pub(crate) fn addresses_of(&self, system: &str) -> Vec<SocketAddr> {
        let instances = self.running.iter().filter(|it| it.record == system);
        instances.map(|it| it.place.address).collect()
    }

    /// What every system has used so far, by name, all instances of it together; none for one that
    /// has ended.
    pub(crate) fn usage(&self, rig: &Rig) -> Vec<(String, Option<Usage>)> {
        self.by_record()
            .map(|group| {
                let usage = |running: &Running| rig.usage(&running.system).ok();
                let usages: Vec<Option<Usage>> = group.iter().map(usage).collect();
                (group[0].record.clone(), instances::together(&usages))
            })
            .collect()
    }

    /// The processes that each system consists of now, by name.
    pub(crate) fn processes(&self, rig: &Rig) -> Vec<(String, Vec<i32>)> {
        self.by_record()
            .map(|group| {
                let pids = group.iter().flat_map(|it| rig.processes(&it.system));
                (group[0].record.clone(), pids.collect())
            })
            .collect()
    }

    /// The first process that has ended, with how it ended and its last words.
    pub(crate) fn ended(&self, rig: &mut Rig) -> Option<String> {
        self.running
            .iter()
            .find_map(|running| match rig.state(&running.system) {
                State::Running => None,
                State::Exited { status, .. } => Some(format!(
                    "{} ended with {status}{}",
                    running.called(),
                    last_words(&running.system.last_lines())
                )),
            })
    }

    /// Completes the records of the systems with what only a start tells. Instances have one record,
    /// with the command of the first.
    pub(crate) fn describe(&self, records: &mut [SystemRecord]) {
        for (record, group) in records.iter_mut().zip(self.by_record()) {
            let running = &group[0];
            let enforced = running.system.enforced();
            record.command.clone_from(&running.command);
            record.env.clone_from(&running.env);
            record.limits_enforced = enforced.by.is_some().then_some(LimitsText {
                cpus: enforced.cpus,
                memory_bytes: enforced.memory,
            });
            record.limits_by = enforced.by.clone().or_else(|| enforced.why_not.clone());
        }
    }

    /// Each system's URL, for people.
    pub(crate) fn urls(&self) -> impl Iterator<Item = (&str, String)> {
        self.running
            .iter()
            .map(|running| (running.system.name(), url_of(&running.target())))
    }

    /// Stops everything, the target first.
    pub(crate) fn stop(self, rig: &mut Rig) {
        for running in self.running.into_iter().rev() {
            rig.stop(running.system, GRACE);
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

/// How it is spoken with a process: as the load does with the target, in HTTP/1.1 with others.
fn protocol_of(lab: &Lab, setup: &Setup, target: &str) -> Protocol {
    let protocol = sending::protocol(&lab.protocol, setup.is_encrypted);
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

impl Running {
    fn target(&self) -> Target {
        target(&self.place, self.protocol.clone())
    }

    /// Its name for people: `limiter-3`, instance 3 of 4 of `limiter`.
    fn called(&self) -> String {
        let name = self.system.name();
        match self.instance {
            None => format!("`{name}`"),
            Some((number, count)) => {
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

fn target(place: &Whereabouts, protocol: Protocol) -> Target {
    Target {
        address: match &place.socket {
            Some(path) => Address::Unix(path.clone()),
            None => Address::Tcp(place.address),
        },
        host: place.address.to_string(),
        protocol,
    }
}

/// A folder for Unix sockets, if anybody listens on one. Their paths have to be short.
fn socket_folder(setups: &[Setup]) -> Result<Option<TempDir>, Invalid> {
    if !setups.iter().any(Setup::is_on_socket) {
        return Ok(None);
    }
    let made = tempfile::Builder::new()
        .prefix("weigh-")
        .tempdir_in(crate::environment::socket_parent());
    made.map(Some).map_err(|error| {
        Invalid::new(
            InvalidKind::NotReady,
            format!("no temporary folder for Unix sockets: {error}"),
        )
    })
}

/// A command with every address filled in.
pub(crate) fn render_all(
    words: &[Text],
    find: &dyn Fn(&str) -> Option<Whereabouts>,
) -> Result<Vec<String>, String> {
    words.iter().map(|word| word.render(find)).collect()
}

/// The last line of a log, as the end of a sentence.
pub(crate) fn last_words(lines: &[String]) -> String {
    lines
        .iter()
        .rev()
        .map(|line| line.trim())
        .find(|line| !line.is_empty())
        .map(|line| format!("; its last words: {line}"))
        .unwrap_or_default()
}

/// A system that could not be started, as the reason of a row.
pub(crate) fn invalid_spawn(error: &SpawnError) -> Invalid {
    match error {
        // The folders searched are this machine's business, not the report's.
        SpawnError::ProgramMissing { name, program, .. } => Invalid::new(
            InvalidKind::ProgramMissing,
            format!(
                "`{name}` needs the program `{program}`, which was not found; install it or correct the command"
            ),
        ),
        _ => Invalid::new(InvalidKind::NotReady, one_line(&error.to_string())),
    }
}

fn invalid_ready(error: ReadyError) -> Invalid {
    match error {
        ReadyError::Interrupted { .. } => Invalid::interrupted(),
        ReadyError::Exited {
            system,
            status,
            last_lines,
            ..
        } => Invalid::new(
            InvalidKind::NotReady,
            format!(
                "`{system}` ended with {status} before it was ready{}",
                last_words(&last_lines)
            ),
        ),
        ReadyError::TimedOut {
            system,
            within,
            last_reason,
            last_lines,
            ..
        } => Invalid::new(
            InvalidKind::NotReady,
            format!(
                "`{system}` was not ready within {within:?}: {last_reason}{}",
                last_words(&last_lines)
            ),
        ),
    }
}

/// A message of several lines as one: a row of a table has no room for more.
fn one_line(text: &str) -> String {
    text.lines().map(str::trim).collect::<Vec<_>>().join(" ")
}
