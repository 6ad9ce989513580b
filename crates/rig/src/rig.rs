//! The caller's interface of the rig.

mod build;
mod readiness;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::error::{RigError, SpawnError, UsageError};
use crate::link::{Known, Link};
use crate::log_tail::last_lines;
use crate::outcome::{Enforced, Leftover, Manner, State, Status, Stopped};
use crate::processes::Process;
use crate::program::{find_program, path_of};
use crate::protocol::{Job, Order, Program, Refusal, Started, Step};
use crate::spec::{KeeperCommand, ProcessLimits, SystemSpec};
use crate::usage::{self, Usage};
use crate::{clock, processes};

/// Owns the keeper and with it every system. Dropping it kills them all.
#[derive(Debug)]
pub struct Rig {
    link: Link,
    next_id: u64,
    /// Cleanup tasks that the keeper has received.
    errands: BTreeSet<String>,
    /// Number of stops that had to kill, for each name of a system.
    killed: BTreeMap<String, u32>,
}

/// A started system. Dropping the handle does not stop the system. [`Rig::stop`] and the end of the [`Rig`]
/// do.
#[derive(Debug)]
pub struct System {
    id: u64,
    name: String,
    log: PathBuf,
    started: Started,
    start: Instant,
}

impl System {
    /// The name given in [`SystemSpec::name`].
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Process id of the process that was started.
    #[must_use]
    pub fn pid(&self) -> i32 {
        self.started.pid
    }

    /// The limits that are in force.
    #[must_use]
    pub fn enforced(&self) -> &Enforced {
        &self.started.enforced
    }

    /// The log given in [`SystemSpec::log`].
    #[must_use]
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// The last lines that this system has logged since it was started: at most
    /// 20, from at most 8 KiB.
    #[must_use]
    pub fn last_lines(&self) -> Vec<String> {
        last_lines(&self.log, self.started.log_start_bytes)
    }
}

impl Rig {
    /// Starts the keeper. `logs` is created if it does not exist, and receives `keeper.log`.
    ///
    /// # Errors
    /// If the log cannot be written or the keeper does not start.
    pub fn start(keeper_command: KeeperCommand, logs: &Path) -> Result<Self, RigError> {
        Ok(Self {
            link: Link::start(keeper_command, logs)?,
            next_id: 1,
            errands: BTreeSet::new(),
            killed: BTreeMap::new(),
        })
    }

    /// Processes that an earlier run left behind because it was killed together with its keeper. The rig does
    /// not touch them.
    #[must_use]
    pub fn leftovers(&self) -> &[Leftover] {
        &self.link.leftovers
    }

    /// Process id of the keeper.
    #[must_use]
    pub fn keeper_pid(&self) -> u32 {
        self.link.keeper_pid()
    }

    /// Registers a folder that the keeper removes with its contents after everything has ended, in whatever
    /// way it ends. Call this before the folder is created. A missing folder is no error.
    ///
    /// # Errors
    /// If the keeper is gone.
    pub fn remove_at_end(&mut self, folder: &Path) -> Result<(), RigError> {
        self.link.order(&Order::RemoveAtEnd(absolute(folder)))
    }

    /// Gives this process and all systems precedence over other programs on the same cores until the rig
    /// ends, in whatever way it ends. Returns false if the system refuses or has no such weights. Then
    /// everything stays unchanged. Systems and this process share the cores among each other as before.
    ///
    /// The precedence applies to the session of this process, including any other program in that session.
    ///
    /// # Errors
    /// If the keeper is gone.
    pub fn take_precedence(&mut self) -> Result<bool, RigError> {
        self.link.take_precedence()
    }

    /// Registers a cleanup task. The keeper runs it after every process has ended, in whatever way they end.
    /// It passes `errand` to the function that was given to [`crate::keeper::main`]. A task that is already
    /// registered is not registered again. Call this before the resources exist that it cleans up.
    ///
    /// # Errors
    /// If the keeper is gone.
    pub fn run_at_end(&mut self, errand: &str) -> Result<(), RigError> {
        if self.errands.insert(errand.to_owned()) {
            self.link.order(&Order::RunAtEnd(errand.to_owned()))?;
        }
        Ok(())
    }

    /// The name of the run, unique on this machine. It consists of the owner, the owner's start and the
    /// keeper.
    #[must_use]
    pub fn run(&self) -> &str {
        &self.link.run
    }

    /// Starts a system. Returns when the kernel has accepted its program.
    ///
    /// The system inherits the environment, the CPU affinity and the resource limits that the caller had in
    /// [`Rig::start`]. Its standard input is empty. A limit that this machine cannot enforce is no error but
    /// is reported in [`System::enforced`].
    ///
    /// # Errors
    /// See [`SpawnError`]. After an error no process is left running.
    pub fn spawn(&mut self, system: &SystemSpec) -> Result<System, SpawnError> {
        check_limits(&system.name, system.limits)?;
        let job = Job {
            id: 0,
            run: String::new(),
            launch: Vec::new(),
            name: system.name.clone(),
            program: resolve(&system.name, &system.command, &system.folder, &system.env)?,
            log: absolute(&system.log),
            limits: system.limits,
            cpus_allowed: system.cpus_allowed.clone(),
        };
        self.launch(job)
    }

    fn launch(&mut self, mut job: Job) -> Result<System, SpawnError> {
        let id = self.next_id;
        self.next_id += 1;
        job.id = id;
        self.link.check()?;
        // Before the order, because events about unknown systems are dropped.
        self.link.known.insert(id, Known::default());
        let start = clock::now();
        let order = Order::Start(Box::new(job.clone()));
        let Program { path, args, .. } = &job.program;
        tracing::debug!(id, name = job.name, ?path, ?args, log = ?job.log, "starting a process");
        let answered = self.link.order(&order).and_then(|()| {
            let is_answered =
                |known: &Known| known.started.is_some() || known.refusal.is_some() || known.is_lost;
            self.link.wait_for(id, Duration::ZERO, is_answered)
        });
        let known = self.link.known.get_mut(&id);
        let (started, refusal) = known.map_or((None, None), |known| {
            (known.started.clone(), known.refusal.take())
        });
        if let Some(started) = started {
            let (pid, enforced) = (started.pid, &started.enforced);
            tracing::debug!(id, pid, ?enforced, groups = ?started.groups, "the process runs");
            return Ok(System {
                id,
                name: job.name,
                log: job.log,
                started,
                start,
            });
        }
        // It did not start, so no relevant event about it can follow.
        self.link.known.remove(&id);
        answered?;
        self.link.check()?;
        // Neither started nor refused. The keeper lives, so the shepherd must be dead.
        let refusal = refusal.unwrap_or_else(|| Step::Watch.refused("its shepherd was killed"));
        let error = explain(job, refusal);
        tracing::debug!(id, %error, "the process does not start");
        Err(error)
    }

    /// Resource usage of the system since its start (see [`Usage`]).
    ///
    /// # Errors
    /// If all processes of the system have ended.
    pub fn usage(&self, system: &System) -> Result<Usage, UsageError> {
        let shepherd = processes::read(system.started.shepherd_pid)
            .filter(|process| process.start == system.started.shepherd_start && !process.is_zombie);
        shepherd
            .and_then(|shepherd: Process| usage::read(&system.started.groups, shepherd))
            .ok_or_else(|| UsageError::Gone {
                system: system.name.clone(),
            })
    }

    /// The process ids of the system. Empty if the system has ended.
    #[must_use]
    pub fn processes(&self, system: &System) -> Vec<i32> {
        let shepherd = processes::read(system.started.shepherd_pid)
            .filter(|process| process.start == system.started.shepherd_start);
        shepherd.map_or_else(Vec::new, |shepherd| {
            let tree = processes::descendants(shepherd.pid);
            let living = tree.iter().filter(|process| !process.is_zombie);
            living.map(|process| process.pid).collect()
        })
    }

    /// Returns the state of the system without waiting.
    pub fn state(&mut self, system: &System) -> State {
        self.state_within(system, Duration::ZERO)
    }

    /// Returns the state. Waits at most `timeout` for an event of any system.
    fn state_within(&mut self, system: &System, timeout: Duration) -> State {
        if let State::Exited { status, at } = self.known_state(system) {
            return State::Exited { status, at };
        }
        self.link.listen(timeout);
        self.known_state(system)
    }

    fn known_state(&self, system: &System) -> State {
        match self.link.known.get(&system.id) {
            Some(known) if known.exited.is_none() && !known.is_lost => State::Running,
            // It has ended, was lost with its shepherd or keeper, or is no longer known.
            known => {
                let (status, at) = known
                    .and_then(|known| known.exited)
                    .unwrap_or_else(|| (Status::Lost, clock::now().duration_since(system.start)));
                State::Exited { status, at }
            }
        }
    }

    /// Sends SIGTERM to the process group of the system's first process, and then to every process that
    /// outlives it. Waits for at most `grace`, and kills the remaining processes. Afterwards no process of
    /// the system is left.
    pub fn stop(&mut self, system: System, grace: Duration) -> Stopped {
        let id = system.id;
        tracing::debug!(id, name = system.name, ?grace, "stopping a process");
        let is_stopped = |known: &Known| known.stopped.is_some() || known.is_lost;
        // An error here means that the keeper died, and its death ends the system.
        let _keeper_lost = self
            .link
            .order(&Order::Stop { id, grace })
            .and_then(|()| self.link.wait_for(id, grace, is_stopped));
        let known = self.link.known.remove(&id).unwrap_or_default();
        let status = known.exited.map_or(Status::Lost, |(status, _)| status);
        // Without a last message of its shepherd, the death of the keeper or the shepherd has killed it.
        if let Some((Manner::Killed, _)) = known.stopped {
            *self.killed.entry(system.name).or_default() += 1;
        }
        let (manner, usage) = known.stopped.unwrap_or((Manner::Killed, None));
        tracing::debug!(id, %status, ?manner, "the process is gone");
        Stopped {
            status,
            manner,
            usage,
        }
    }

    /// The systems that SIGTERM did not end in time, each with the number of its stops that had to kill.
    pub fn killed(&self) -> impl Iterator<Item = (&str, u32)> {
        self.killed
            .iter()
            .map(|(name, stops)| (name.as_str(), *stops))
    }

    /// Kills every system and ends the keeper.
    ///
    /// # Errors
    /// If processes survive SIGKILL or the keeper does not end normally.
    pub fn shut_down(mut self) -> Result<(), RigError> {
        self.link.end()
    }
}

fn check_limits(name: &str, limits: ProcessLimits) -> Result<(), SpawnError> {
    let wrong = |limit, found: String, expected| {
        Err(SpawnError::Limit {
            name: name.to_owned(),
            limit,
            found,
            expected,
        })
    };
    match (limits.cpus, limits.memory) {
        // The kernel's smallest quota is 1 ms in 100 ms.
        (Some(cpus), _) if !(0.01..=100_000.0).contains(&cpus) => {
            wrong("cpus", cpus.to_string(), "Give 0.01 or more")
        }
        (_, Some(0)) => wrong("memory", "0".to_owned(), "Give at least a few MiB"),
        _ => Ok(()),
    }
}

fn resolve(
    name: &str,
    command: &[String],
    folder: &Path,
    env: &[(String, String)],
) -> Result<Program, SpawnError> {
    let name = name.to_owned();
    let Some((program, args)) = command.split_first() else {
        return Err(SpawnError::EmptyCommand { name });
    };
    let folder = absolute(folder);
    if !folder.is_dir() {
        return Err(SpawnError::FolderMissing { name, folder });
    }
    let path_variable = path_of(env);
    let Some(path) = find_program(program, &folder, &path_variable) else {
        let searched = if program.contains('/') {
            format!("an executable file in `{}`", folder.display())
        } else {
            format!("in any folder of PATH (`{}`)", path_variable.display())
        };
        return Err(SpawnError::ProgramMissing {
            name,
            program: program.clone(),
            searched,
        });
    };
    Ok(Program {
        path,
        arg0: program.clone(),
        args: args.to_vec(),
        folder,
        env: env.to_vec(),
    })
}

/// The keeper has the caller's working directory, but a path should not depend on that.
fn absolute(path: &Path) -> PathBuf {
    // Fails for an empty path and without a working directory. A later step reports the path that it cannot
    // find.
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

fn explain(job: Job, refusal: Refusal) -> SpawnError {
    let Job { name, log, .. } = job;
    let reason = refusal.reason;
    match refusal.step {
        Step::Watch => SpawnError::Watch { name, reason },
        Step::Log => SpawnError::Log { name, log, reason },
        Step::Folder => SpawnError::FolderMissing {
            name,
            folder: job.program.folder,
        },
        Step::Pin => SpawnError::Pin {
            name,
            cpus: job.cpus_allowed.expect("only a job with CPUs is pinned"),
            reason,
        },
        Step::Exec => SpawnError::Exec {
            name,
            program: job.program.path,
            reason,
        },
    }
}
