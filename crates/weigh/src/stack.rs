//! A variant's systems: built, started on free ports, ready, and stopped again.

use std::collections::BTreeMap;
use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use lab::{Lab, Probe, Setup, Text};
use load::{Address, Expectation, Protocol, Request, StatusRule, Target, Trust, Version};
use report::recording::{InvalidKind, LimitsText, SystemRecord};
use report::summary::Invalidity;
use rig::{BuildError, BuildSpec, ReadyError, Rig, SpawnError, State, SystemSpec, Usage};

use crate::environment::{instant, search_path};
use crate::exit::Exit;
use crate::sending;
use crate::stop::Stop;

/// The hidden subcommand that keeps what `weigh` starts.
pub(crate) const KEEPER: &str = "keeper";
/// The hidden subcommand that becomes a system.
pub(crate) const LAUNCH: &str = "launch";

/// How long a system has to end by itself when it is asked to.
const GRACE: Duration = Duration::from_secs(5);
/// How long one readiness probe may take.
const PROBE: Duration = Duration::from_secs(1);

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
}

/// One running system.
struct Running {
    system: rig::System,
    address: SocketAddr,
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
        let mut leases = BTreeMap::new();
        for setup in setups {
            let lease = rig::free_port().map_err(|error| {
                Invalid::new(
                    InvalidKind::NotReady,
                    format!("no free port for `{}`: {error}", setup.system),
                )
            })?;
            leases.insert(setup.system.clone(), lease);
        }
        let addresses: BTreeMap<String, SocketAddr> = leases
            .iter()
            .map(|(system, lease)| (system.clone(), lease.addr()))
            .collect();
        let mut stack = Stack {
            running: Vec::new(),
        };
        for setup in setups {
            // The port is let go right before the system takes it.
            drop(leases.remove(&setup.system));
            let started = start_one(rig, setup, &addresses, logs).and_then(|running| {
                let protocol = protocol_of(lab, setup);
                stack.running.push(Running {
                    protocol,
                    ..running
                });
                stack.wait_ready(rig, setup, stop)
            });
            if let Err(invalid) = started {
                stack.stop(rig);
                return Err(invalid);
            }
        }
        Ok(stack)
    }

    fn wait_ready(&self, rig: &mut Rig, setup: &Setup, stop: &Stop) -> Result<(), Invalid> {
        let running = self.last();
        let mut target = running.target();
        // Whether it is ready is asked here, and not who it is.
        target.protocol.tls = target.protocol.tls.map(|_| Trust::Anybody);
        let mut probe = || probe(&setup.ready.probe, running.address, &target);
        rig.wait_ready(&running.system, setup.ready.within, &mut probe, stop.flag())
            .map(|_| ())
            .map_err(invalid_ready)
    }

    fn last(&self) -> &Running {
        self.running
            .last()
            .expect("a stack holds at least its target")
    }

    /// Who gets the load.
    pub(crate) fn target(&self) -> Target {
        self.last().target()
    }

    /// How to speak with who listens there; in the clear with somebody else.
    pub(crate) fn target_at(&self, address: SocketAddr) -> Target {
        let mut running = self.running.iter();
        match running.find(|running| running.address == address) {
            Some(running) => running.target(),
            None => target(address, Protocol::default()),
        }
    }

    /// Where a system listens.
    pub(crate) fn address_of(&self, system: &str) -> Option<SocketAddr> {
        let mut running = self.running.iter();
        let found = running.find(|running| running.system.name() == system)?;
        Some(found.address)
    }

    /// What every system has used so far, by name; none for one that has ended.
    pub(crate) fn usage(&self, rig: &Rig) -> Vec<(String, Option<Usage>)> {
        self.running
            .iter()
            .map(|running| {
                let name = running.system.name().to_owned();
                (name, rig.usage(&running.system).ok())
            })
            .collect()
    }

    /// The processes that each system consists of now, by name.
    pub(crate) fn processes(&self, rig: &Rig) -> Vec<(String, Vec<i32>)> {
        self.running
            .iter()
            .map(|running| {
                let name = running.system.name().to_owned();
                (name, rig.processes(&running.system))
            })
            .collect()
    }

    /// The first system that has ended, with how it ended and its last words.
    pub(crate) fn ended(&self, rig: &mut Rig) -> Option<String> {
        self.running
            .iter()
            .find_map(|running| match rig.state(&running.system) {
                State::Running => None,
                State::Exited { status, .. } => Some(format!(
                    "`{}` ended with {status}{}",
                    running.system.name(),
                    last_words(&running.system.last_lines())
                )),
            })
    }

    /// Completes the records of the systems with what only a start tells.
    pub(crate) fn describe(&self, records: &mut [SystemRecord]) {
        for (record, running) in records.iter_mut().zip(&self.running) {
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

fn start_one(
    rig: &mut Rig,
    setup: &Setup,
    addresses: &BTreeMap<String, SocketAddr>,
    logs: &Path,
) -> Result<Running, Invalid> {
    let not_ready = |reason: String| Invalid::new(InvalidKind::NotReady, reason);
    let address_of = |system: &str| addresses.get(system).copied();
    let command = render_all(&setup.run, &address_of).map_err(not_ready)?;
    let mut env = BTreeMap::new();
    for (name, value) in &setup.env {
        env.insert(name.clone(), value.render(&address_of).map_err(not_ready)?);
    }
    let spec = SystemSpec {
        name: setup.system.clone(),
        command: command.clone(),
        folder: setup.folder.clone(),
        env: env.clone().into_iter().collect(),
        limits: rig::Limits {
            cpus: setup.limits.cpus,
            memory: setup.limits.memory,
        },
        cpus_allowed: setup.pin.clone(),
        log: logs.join(format!("{}.log", setup.system)),
    };
    let system = rig.spawn(&spec).map_err(|error| invalid_spawn(&error))?;
    Ok(Running {
        system,
        address: addresses[&setup.system],
        protocol: Protocol::default(),
        command,
        env,
    })
}

/// How it is spoken with a system: as the load does with the target, in HTTP/1.1 with others.
fn protocol_of(lab: &Lab, setup: &Setup) -> Protocol {
    let protocol = sending::protocol(&lab.protocol, setup.is_encrypted);
    if setup.system == lab.target {
        return protocol;
    }
    Protocol {
        version: Version::Http1,
        ..protocol
    }
}

impl Running {
    fn target(&self) -> Target {
        target(self.address, self.protocol.clone())
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

fn target(address: SocketAddr, protocol: Protocol) -> Target {
    Target {
        address: Address::Tcp(address),
        host: address.to_string(),
        protocol,
    }
}

fn probe(kind: &Probe, address: SocketAddr, target: &Target) -> Result<(), String> {
    match kind {
        Probe::Listening => TcpStream::connect_timeout(&address, PROBE)
            .map(|_| ())
            .map_err(|error| format!("no connection: {error}")),
        Probe::Answers { path, status } => {
            let request = Request {
                method: "GET".to_owned(),
                path: path.clone(),
                headers: Vec::new(),
                body: Vec::new(),
                expect: Expectation {
                    status: StatusRule::Exactly(*status),
                    ..Expectation::default()
                },
                weight: 1,
            };
            let answer =
                load::exchange(target, &request, PROBE).map_err(|failure| failure.to_string())?;
            load::check(&request.expect, &answer).map_err(|mismatch| mismatch.to_string())
        }
    }
}

/// Programs a variant needs and this machine lacks.
pub(crate) fn missing_program(setups: &[Setup]) -> Option<Invalid> {
    let path = search_path();
    setups.iter().find_map(|setup| {
        let missing = setup
            .needs
            .iter()
            .find(|program| rig::find_program(program, &setup.folder, &path).is_none())?;
        Some(Invalid::new(
            InvalidKind::ProgramMissing,
            format!("`{missing}` is not installed; `{}` needs it", setup.system),
        ))
    })
}

/// Builds and versions that several variants share, done once.
#[derive(Default)]
pub(crate) struct Workshop {
    /// What a build came to: how long it took, or why it failed.
    built: BTreeMap<Vec<String>, Result<Duration, Invalid>>,
    versions: BTreeMap<Vec<String>, Option<String>>,
}

impl Workshop {
    /// The log of the build that [`Workshop::build`] would now run; none when there is nothing to do.
    pub(crate) fn will_build(&self, setup: &Setup, logs: &Path) -> Option<PathBuf> {
        setup.build.iter().find_map(|command| {
            let spec = step(setup, command, logs, "build").ok()?;
            (!self.built.contains_key(&key_of(&spec))).then_some(spec.log)
        })
    }

    /// Builds one system; a command that was run before is not run again.
    pub(crate) fn build(
        &mut self,
        rig: &mut Rig,
        setup: &Setup,
        logs: &Path,
        stop: &Stop,
    ) -> Result<Option<Duration>, Invalid> {
        let mut took = None;
        for command in &setup.build {
            let spec = step(setup, command, logs, "build")?;
            let key = key_of(&spec);
            if let Some(earlier) = self.built.get(&key) {
                earlier.clone()?;
                continue;
            }
            let start = instant();
            let outcome = rig
                .build(&spec, stop.flag())
                .map(|()| start.elapsed())
                .map_err(invalid_build);
            self.built.insert(key, outcome.clone());
            took = Some(took.unwrap_or(Duration::ZERO) + outcome?);
        }
        Ok(took)
    }

    /// The first line that the version command prints; none without such a command, or when it
    /// fails: a version that is not known is not made up.
    pub(crate) fn version(
        &mut self,
        rig: &mut Rig,
        setup: &Setup,
        logs: &Path,
        stop: &Stop,
    ) -> Option<String> {
        let command = setup.version.as_ref()?;
        let mut spec = step(setup, command, logs, "version").ok()?;
        let key = key_of(&spec);
        if let Some(known) = self.versions.get(&key) {
            return known.clone();
        }
        // A file of its own: its first line is the answer.
        spec.log = logs.join(format!("version-{}.log", self.versions.len()));
        let version = rig
            .build(&spec, stop.flag())
            .ok()
            .and_then(|()| fs::read_to_string(&spec.log).ok())
            .and_then(|text| text.lines().next().map(|line| line.trim().to_owned()))
            .filter(|line| !line.is_empty());
        self.versions.insert(key, version.clone());
        version
    }
}

fn step(setup: &Setup, command: &[Text], logs: &Path, what: &str) -> Result<BuildSpec, Invalid> {
    let nowhere = |_: &str| None;
    let command = render_all(command, &nowhere).map_err(|reason| {
        Invalid::new(
            InvalidKind::BuildFailed,
            format!(
                "{reason}; nothing runs yet when `{}` is built",
                setup.system
            ),
        )
    })?;
    // Variables that name addresses are for the running system only.
    let env = setup
        .env
        .iter()
        .filter_map(|(name, value)| Some((name.clone(), value.render(&nowhere).ok()?)))
        .collect();
    Ok(BuildSpec {
        name: setup.system.clone(),
        command,
        folder: setup.folder.clone(),
        env,
        log: logs.join(format!("{what}-{}.log", setup.system)),
    })
}

fn key_of(spec: &BuildSpec) -> Vec<String> {
    let mut key = vec![spec.folder.display().to_string()];
    key.extend(
        spec.env
            .iter()
            .map(|(name, value)| format!("{name}={value}")),
    );
    key.extend(spec.command.iter().cloned());
    key
}

fn render_all(
    words: &[Text],
    address_of: &dyn Fn(&str) -> Option<SocketAddr>,
) -> Result<Vec<String>, String> {
    words.iter().map(|word| word.render(address_of)).collect()
}

/// The last line of a log, as the end of a sentence.
fn last_words(lines: &[String]) -> String {
    lines
        .iter()
        .rev()
        .map(|line| line.trim())
        .find(|line| !line.is_empty())
        .map(|line| format!("; its last words: {line}"))
        .unwrap_or_default()
}

fn invalid_spawn(error: &SpawnError) -> Invalid {
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

fn invalid_build(error: BuildError) -> Invalid {
    match error {
        BuildError::Spawn(error) => invalid_spawn(&error),
        BuildError::Interrupted { .. } => Invalid::interrupted(),
        BuildError::Failed {
            name,
            command,
            status,
            last_lines,
            ..
        } => Invalid::new(
            InvalidKind::BuildFailed,
            format!(
                "`{command}` (building `{name}`) ended with {status}{}",
                last_words(&last_lines)
            ),
        ),
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
