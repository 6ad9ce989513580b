//! A project of a compose file. Compose starts it, and `weigh` inspects and removes it through the engine.

use std::fs::{self, File};
use std::io::Write as _;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use engine::{Engine, Health, Member};
use lab::{Compose, Endpoint, Setup};
use model::InvalidKind;
use recording::{LimitsText, SystemRecord};
use rig::{Attached, Rig, State, SystemSpec, Usage};

use super::readiness::wait_until_ready;
use super::{GRACE, instances};
use crate::compose::{Entrance, Labels, OF_OTHERS, Planned, Projects, Tool, Written, shown};
use crate::containers;
use crate::environment::instant;
use crate::invalid::Invalid;
use crate::invalid::invalid_spawn;
use crate::invalid::last_words;
use crate::secrets;
use crate::stop::StopSignal;

/// Time limit for the start of a project, including image pulls and waits for services. Without it, a service
/// that never becomes healthy would block the run forever.
const UP_WITHIN: Duration = Duration::from_secs(600);
/// Pause between two checks of a starting project.
const PAUSE: Duration = Duration::from_millis(50);
/// Number of log lines that a row shows of a container that has ended.
const LAST_LINES: u32 = 20;

/// A running project. It is removed when the last of its services stops.
struct Project {
    engine: &'static Engine,
    run: String,
    name: String,
    /// The name of the system in the lab.
    system: String,
    logs: PathBuf,
}

/// One service of a project, with all its containers.
pub(super) struct Service {
    /// The system and the service, such as `stack/nginx`.
    name: String,
    planned: Planned,
    /// The environment variables that the lab has changed.
    env: Vec<(String, String)>,
    containers: Vec<ServiceContainer>,
    /// The digest of the image.
    digest: Option<String>,
    project: Arc<Project>,
}

struct ServiceContainer {
    member: Member,
    attached: Attached,
}

/// The inputs of a project's start.
#[derive(Clone, Copy)]
pub(super) struct Plan<'a> {
    pub(super) setup: &'a Setup,
    pub(super) compose: &'a Compose,
    pub(super) projects: &'a Projects,
    /// The folder of the project's logs.
    pub(super) logs: &'a Path,
    pub(super) stop: &'a StopSignal,
}

/// Running services, with the loaded one last, and the address of the loaded one.
pub(super) struct RunningProject {
    pub(super) services: Vec<Service>,
    pub(super) place: Endpoint,
}

impl Plan<'_> {
    /// Starts the project and waits until its services run and all health checks succeed.
    ///
    /// # Errors
    ///
    /// The mistake in the file, or the service that did not start with its last lines of output. No container
    /// is left then.
    pub(super) fn start(self, rig: &mut Rig) -> Result<RunningProject, Invalid> {
        let began = instant();
        let engine = containers::engine()?;
        containers::keep(rig, engine)?;
        let run = rig.run().to_owned();
        let labels = Labels::from([
            (
                engine::MANAGED_BY.to_owned(),
                engine::WEIGHBRIDGE.to_owned(),
            ),
            (engine::RUN.to_owned(), run.clone()),
        ]);
        let system = &self.setup.system;
        let (tool, written) = self.projects.written(system, self.compose, &labels)?;
        let name = self.projects.new_name(&run);
        let file = self.projects.save(&name, &written.file)?;
        self.keep(&written)?;
        let project = Project {
            engine,
            run,
            name,
            system: system.clone(),
            logs: self.logs.to_owned(),
        };
        let up = self
            .bring_up(rig, tool, &project, &file, &written)
            .and_then(|()| project.settle(&written, began + UP_WITHIN, self.stop));
        match up {
            Ok(members) => self.watched(project, members, &written),
            Err(invalid) => {
                project.end();
                Err(invalid)
            }
        }
    }

    /// Saves the effective compose file with the logs, without credentials.
    fn keep(&self, written: &Written) -> Result<(), Invalid> {
        let mut kept = shown(&written.file);
        kept["x-changed-by-weighbridge"] = written.notes.clone().into();
        let path = self
            .logs
            .join(format!("{}.compose.json", self.setup.system));
        fs::write(&path, format!("{kept:#}\n")).map_err(|error| {
            let reason = format!("`{}` cannot be written: {error}", path.display());
            Invalid::new(InvalidKind::NotReady, reason)
        })
    }

    /// Runs compose to start all services.
    fn bring_up(
        &self,
        rig: &mut Rig,
        tool: &Tool,
        project: &Project,
        file: &Path,
        written: &Written,
    ) -> Result<(), Invalid> {
        let mut words: Vec<String> = ["up", "-d", "--no-build", "--no-color"]
            .map(str::to_owned)
            .to_vec();
        for service in written.services.iter().filter(|it| it.replicas != 1) {
            words.push("--scale".to_owned());
            words.push(format!("{}={}", service.name, service.replicas));
        }
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let others = OF_OTHERS.map(|name| (name.to_owned(), String::new()));
        let host = ("DOCKER_HOST".to_owned(), project.engine.host().to_string());
        let log = self.logs.join(format!("{}.up.log", self.setup.system));
        let spec = SystemSpec {
            name: self.setup.system.clone(),
            command: tool.command(&project.name, file, &words),
            folder: self.logs.to_owned(),
            env: others.into_iter().chain([host]).collect(),
            limits: rig::ProcessLimits::default(),
            cpus_allowed: None,
            log: log.clone(),
        };
        let command = rig.spawn(&spec).map_err(|error| invalid_spawn(&error))?;
        let deadline = instant() + UP_WITHIN;
        let ended = loop {
            if let State::Exited { status, .. } = rig.state(&command) {
                break Ok(status);
            }
            if self.stop.is_asked() {
                break Err(Invalid::interrupted());
            }
            if instant() >= deadline {
                let reason = format!(
                    "`{}`: `{} up` did not end within {UP_WITHIN:?}{}",
                    self.setup.system,
                    tool.name(),
                    last_words(&command.last_lines(), &log)
                );
                break Err(Invalid::new(InvalidKind::NotReady, reason).logged(&log));
            }
            thread::park_timeout(PAUSE);
        };
        let lines = command.last_lines();
        rig.stop(command, GRACE);
        match ended? {
            status if status.is_success() => Ok(()),
            status => Err(Invalid::new(
                InvalidKind::NotReady,
                format!(
                    "`{}`: `{} up` ended with {status}{}",
                    self.setup.system,
                    tool.name(),
                    last_words(&lines, &log)
                ),
            )
            .logged(&log)),
        }
    }

    /// The services of a running project, as systems with readable usage.
    fn watched(
        &self,
        project: Project,
        members: Vec<Member>,
        written: &Written,
    ) -> Result<RunningProject, Invalid> {
        let place = match place_of(&members, &written.entrance) {
            Some(address) => Endpoint::from(address),
            None => {
                let reason = format!(
                    "`{}`: the container of `{}` is not reachable from this machine at its port {}",
                    project.system, written.entrance.service, written.entrance.port
                );
                project.end();
                return Err(Invalid::new(InvalidKind::NotReady, reason));
            }
        };
        let project = Arc::new(project);
        let mut services = Vec::new();
        for planned in &written.services {
            let own = members.iter().filter(|it| it.service == planned.name);
            // A container that has finished its work costs the load no resources.
            let living = own.filter(|it| it.container.is_running);
            let containers: Result<Vec<ServiceContainer>, String> =
                living.map(|member| watched(member.clone())).collect();
            match containers {
                Ok(containers) if containers.is_empty() => continue,
                Ok(containers) => services.push(self.service(&project, planned, containers)),
                Err(reason) => {
                    drop(services);
                    if let Some(project) = Arc::into_inner(project) {
                        project.end();
                    }
                    let reason = format!("`{}` cannot be watched: {reason}", self.setup.system);
                    return Err(Invalid::new(InvalidKind::NotReady, reason));
                }
            }
        }
        // The loaded service is last, because the target is always the last system.
        services.sort_by_key(|it| it.planned.name == self.compose.service);
        Ok(RunningProject { services, place })
    }

    fn service(
        &self,
        project: &Arc<Project>,
        planned: &Planned,
        containers: Vec<ServiceContainer>,
    ) -> Service {
        let mut changes = self.compose.services.iter();
        let change = changes.find(|change| change.service == planned.name);
        let image = containers.first().map(|it| it.member.image.clone());
        let found = image.and_then(|image| project.engine.image(&image).ok().flatten());
        Service {
            name: format!("{}/{}", self.setup.system, planned.name),
            planned: planned.clone(),
            env: change.map_or_else(Vec::new, |change| change.env.clone()),
            containers,
            digest: found.map(|image| image.digest().to_owned()),
            project: Arc::clone(project),
        }
    }
}

fn watched(member: Member) -> Result<ServiceContainer, String> {
    let container = &member.container;
    let pid = container
        .pid
        .ok_or_else(|| format!("`{}` has no process", member.name))?;
    let attached = Attached::groups_of(pid, &container.id).map_err(|error| error.to_string())?;
    Ok(ServiceContainer { member, attached })
}

/// The address of a container. It is the container's own address if this machine is in the engine's network,
/// because that path has no proxy. Otherwise it is the published port.
fn place_of(members: &[Member], entrance: &Entrance) -> Option<SocketAddr> {
    let mut own = members.iter().filter(|it| it.service == entrance.service);
    let member = own.next()?;
    let is_here = |gateway| TcpListener::bind((gateway, 0)).is_ok();
    let mut places = member.places.iter();
    let direct = places.find(|place| place.gateway.is_some_and(is_here));
    let direct = direct.map(|place| SocketAddr::new(place.address, entrance.port));
    direct.or_else(|| {
        let mut published = member.published.iter();
        let found = published.find(|it| it.port == entrance.port)?;
        Some(found.at)
    })
}

impl Project {
    /// Waits until all expected containers run and all health checks succeed.
    fn settle(
        &self,
        written: &Written,
        deadline: Instant,
        stop: &StopSignal,
    ) -> Result<Vec<Member>, Invalid> {
        loop {
            let members = self.members()?;
            for member in &members {
                self.check(member)?;
            }
            let is_starting = |it: &Member| it.container.health == Some(Health::Starting);
            let loaded = members
                .iter()
                .filter(|it| it.service == written.entrance.service);
            let is_up = loaded.count() > 0 && !members.iter().any(is_starting);
            if is_up {
                return Ok(members);
            }
            if stop.is_asked() {
                return Err(Invalid::interrupted());
            }
            if instant() >= deadline {
                let waiting = members.iter().find(|it| is_starting(it));
                let service = waiting.map_or(&written.entrance.service, |it| &it.service);
                let reason = format!(
                    "`{}/{service}` was not healthy within {UP_WITHIN:?}",
                    self.system
                );
                return Err(Invalid::new(InvalidKind::NotReady, reason));
            }
            thread::park_timeout(PAUSE);
        }
    }

    fn members(&self) -> Result<Vec<Member>, Invalid> {
        self.engine
            .project(&self.name)
            .map_err(|error| Invalid::new(InvalidKind::NotReady, error.to_string()))
    }

    /// # Errors
    ///
    /// The service that has failed or is unhealthy, with its last lines of output.
    fn check(&self, member: &Member) -> Result<(), Invalid> {
        let what = match (&member.container.health, member.container.exit_code) {
            // A task that has finished, such as a migration or a seed.
            (_, Some(0)) | (None | Some(Health::Starting | Health::Healthy), None) => return Ok(()),
            (Some(Health::Unhealthy), None) => "is unhealthy".to_owned(),
            (_, Some(code)) => ended(member, code),
        };
        let reason = format!("{}{}", self.called(member, &what), self.last_words(member));
        let log = self.log_of(&member.service);
        Err(Invalid::new(InvalidKind::NotReady, reason).logged(&log))
    }

    fn called(&self, member: &Member, what: &str) -> String {
        format!("`{}/{}` {what}", self.system, member.service)
    }

    /// The last log lines of a container, as the end of a sentence.
    fn last_words(&self, member: &Member) -> String {
        let mut said = Vec::new();
        // Without the log the sentence still describes the failure.
        let _unread = self
            .engine
            .logs(&member.container.id, Some(LAST_LINES), &mut said);
        let said = String::from_utf8_lossy(&said);
        let lines: Vec<String> = said.lines().map(str::to_owned).collect();
        last_words(&lines, &self.log_of(&member.service))
    }

    fn log_of(&self, service: &str) -> PathBuf {
        self.logs.join(format!("{}-{service}.log", self.system))
    }

    /// Saves the output of every container, and removes the whole project.
    fn end(&self) {
        for member in self.engine.project(&self.name).unwrap_or_default() {
            let mut options = File::options();
            let file = options
                .create(true)
                .append(true)
                .open(self.log_of(&member.service));
            // If a log cannot be saved, its file contains the error. The removal continues.
            let _unwritten = file.map(|mut file| {
                if let Err(error) = self.engine.logs(&member.container.id, None, &mut file) {
                    let _unwritten = writeln!(file, "weigh: {error}");
                }
            });
        }
        if let Err(error) = self.engine.remove_project(&self.run, &self.name) {
            // The keeper tries again when the run ends.
            tracing::warn!(%error, project = self.name, "a project stays for now");
        }
    }
}

/// Describes the end of a container.
fn ended(member: &Member, code: i64) -> String {
    match (&member.container.error, member.container.is_out_of_memory) {
        (_, true) => "was killed because of its memory limit".to_owned(),
        (Some(error), _) => format!("did not start: {error}"),
        (None, false) => format!("ended with exit code {code}"),
    }
}

impl Service {
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// True if this is the service `service`.
    pub(super) fn is_of(&self, service: &str) -> bool {
        self.planned.name == service
    }

    /// The sum of the usage of all its containers. `None` if one of them is gone.
    pub(super) fn usage(&self) -> Option<Usage> {
        let usages = self.containers.iter().map(|it| it.attached.usage());
        instances::together(&usages.collect::<Vec<_>>())
    }

    /// The processes on this machine.
    pub(super) fn pids(&self) -> Vec<i32> {
        let pids = self.containers.iter().map(|it| it.attached.pids());
        pids.flatten().collect()
    }

    /// The end of one of its containers, with its last lines of output. `None` while all run.
    pub(super) fn ended(&self) -> Option<String> {
        // A control group ends with its container, so no request to the engine is needed.
        let gone = self
            .containers
            .iter()
            .find(|it| it.attached.pids().is_empty())?;
        let project = &self.project;
        let id = &gone.member.container.id;
        let what = match project.engine.inspect(id) {
            Ok(container) => {
                let member = Member {
                    container: container.clone(),
                    ..gone.member.clone()
                };
                ended(&member, container.exit_code.unwrap_or_default())
            }
            Err(error) => format!("is gone: {error}"),
        };
        Some(what + &project.last_words(&gone.member))
    }

    /// Checks that no service of the project has failed.
    ///
    /// # Errors
    ///
    /// The service that has ended or is unhealthy.
    fn check_project(&self) -> Result<(), Invalid> {
        for member in self.project.members()? {
            self.project.check(&member)?;
        }
        match self.ended() {
            Some(end) => {
                let reason = format!("`{}` {end}", self.name);
                Err(Invalid::new(InvalidKind::NotReady, reason))
            }
            None => Ok(()),
        }
    }

    /// Waits until the service is ready, while every service of its project lives.
    ///
    /// # Errors
    ///
    /// The probe did not succeed in time, or a service has ended.
    pub(super) fn wait_ready(
        &self,
        setup: &Setup,
        probe: &mut dyn FnMut() -> Result<(), String>,
        stop: &StopSignal,
    ) -> Result<(), Invalid> {
        let within = setup.ready.within;
        let overdue = |reason: String| {
            let words = self.containers.first();
            let words = words.map_or_else(String::new, |it| self.project.last_words(&it.member));
            format!(
                "`{}` was not ready within {within:?}: {reason}{words}",
                self.name
            )
        };
        wait_until_ready(within, stop, probe, || self.check_project(), overdue)
    }

    /// The service's record in the recording. `system` is the record of the system that contains it.
    pub(super) fn record(&self, system: &SystemRecord) -> SystemRecord {
        let first = self.containers.first();
        let enforced = first.map(|it| it.attached.limits()).unwrap_or_default();
        let is_limited = enforced.by.is_some();
        SystemRecord {
            name: self.name.clone(),
            command: first.map_or_else(Vec::new, |it| secrets::words(&it.member.command)),
            image: first.map(|it| it.member.image.clone()),
            version: self.digest.clone(),
            env: secrets::variables(&self.env.iter().cloned().collect()),
            limits_asked: LimitsText {
                cpus: self.planned.cpus,
                memory_bytes: self.planned.memory,
            },
            limits_enforced: is_limited.then_some(LimitsText {
                cpus: enforced.cpus,
                memory_bytes: enforced.memory,
            }),
            limits_by: enforced.by,
            ..system.clone()
        }
    }

    /// Releases the service. The last release removes the project.
    pub(super) fn stop(self) {
        if let Some(project) = Arc::into_inner(self.project) {
            project.end();
        }
    }
}
