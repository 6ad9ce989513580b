//! The keeper: the only process of a run that outlives its owner.
//!
//! The keeper exchanges JSON lines with the owner over its standard input and output. It starts a shepherd
//! for each system and passes orders and events on. It leads a session of its own, so Ctrl-C in a terminal
//! reaches only the owner. When its input closes, the owner has closed it or is dead. In both cases the
//! keeper ends the systems, removes the cgroups, runs the cleanup tasks, removes temporary folders, and exits.
//! A cleanup task (`errand`) releases resources that another service holds for the owner. Only the owner's
//! program understands it. [`crate::launch`] describes the events after the death of the keeper itself.
//!
//! Absent on purpose: threads (a parent-death signal follows the thread that forked) and decisions (readiness
//! and grace periods belong to the owner).

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use rustix::process::Signal;

use crate::cgroup::{self, Hierarchies};
use crate::lines::{Lines, wait_readable, write_value};
use crate::precedence::Precedence;
use crate::protocol::{Begin, Begun, Event, Job, Order, Step, instance_name};
use crate::reaper::{KILL_WITHIN, Reaped, adopt_orphans, kill_everything, reap};
use crate::wakeups::Wakeups;
use crate::{clock, console, processes};

/// Time limit for retries when folders are removed. A program that another keeper is just ending may add
/// files until it is dead.
const REMOVE_WITHIN: Duration = KILL_WITHIN;
/// Time that shepherds have to end their systems before the keeper ends them.
const SHEPHERDS_END_WITHIN: Duration = KILL_WITHIN.saturating_add(Duration::from_secs(5));

/// The end of a keeper's owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnerEnd {
    /// The owner announced its end. It has waited for the work that it had requested from other services.
    Finished,
    /// The owner is gone. Another service may still be working for it.
    Gone,
}

/// Function of the program that runs the cleanup tasks of [`crate::Rig::run_at_end`]. The rig does not
/// interpret their text.
pub type RunErrand = fn(errand: &str, owner: OwnerEnd) -> Result<(), String>;

/// Runs the keeper until its standard input closes.
#[must_use]
pub fn main(run_errand: RunErrand) -> ExitCode {
    match run(run_errand) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            console::complain("keeper", &error);
            ExitCode::FAILURE
        }
    }
}

fn run(run_errand: RunErrand) -> io::Result<()> {
    // Fails only for a process that already leads a group, and a terminal does not signal that process
    // either.
    let _leads_already = rustix::process::setsid();
    let wakeups = Wakeups::new()?;
    adopt_orphans()?;
    let _unnamed = rustix::thread::set_name(c"weigh-keeper");
    let mut orders = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut events = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let mut lines = Lines::default();
    let begin: Begin = lines.wait_value(&mut orders)?;
    let hierarchies = Hierarchies::detect();
    let run = cgroup::run_name(begin.owner_pid, begin.owner_start, processes::own_pid());
    let begun = Begun {
        run: run.clone(),
        leftovers: cgroup::leftovers(&hierarchies),
    };
    write_value(&mut events, &begun)?;
    let mut keeper = Keeper {
        run,
        owner_pid: begin.owner_pid,
        launch: begin.launch,
        hierarchies,
        wakeups,
        events,
        shepherds: BTreeMap::new(),
        folders: Vec::new(),
        precedence: None,
        errands: Vec::new(),
        run_errand,
        owner: OwnerEnd::Gone,
    };
    keeper.keep(&mut orders, &mut lines);
    keeper.end_everything()
}

struct Keeper {
    run: String,
    owner_pid: i32,
    launch: Vec<String>,
    hierarchies: Hierarchies,
    wakeups: Wakeups,
    /// Receives the events for the owner.
    events: File,
    shepherds: BTreeMap<u64, Shepherd>,
    /// Removed after everything else.
    folders: Vec<PathBuf>,
    /// Given back at the end of the run.
    precedence: Option<Precedence>,
    /// Cleanup tasks. They run after all processes have ended.
    errands: Vec<String>,
    run_errand: RunErrand,
    owner: OwnerEnd,
}

struct Shepherd {
    pid: i32,
    name: String,
    socket: UnixStream,
    lines: Lines,
    /// True after its last message. Its death is then expected.
    is_done: bool,
}

impl Keeper {
    /// Passes orders and events on. Returns when the owner is gone or a signal requests the end.
    fn keep(&mut self, orders: &mut File, lines: &mut Lines) {
        loop {
            self.wakeups.clear();
            while let Reaped::Ended(..) = reap() {}
            if self.wakeups.asked_to_end() {
                return;
            }
            // A snapshot, because the flags of `wait_readable` are matched to shepherds by position.
            let ids: Vec<u64> = self.shepherds.keys().copied().collect();
            let mut sources: Vec<&dyn AsFd> = vec![orders, &self.wakeups];
            sources.extend(self.shepherds.values().map(|s| &s.socket as &dyn AsFd));
            let Ok(ready) = wait_readable(&sources, None) else {
                return;
            };
            // Events come before orders, because an order may refer to a system that has just reported its
            // end.
            for (id, _) in ids.iter().zip(&ready[2..]).filter(|(_, ready)| **ready) {
                self.pass_on_events(*id);
            }
            if ready[0] {
                if !lines.fill(orders) {
                    return;
                }
                while let Some(order) = lines.next_value() {
                    match order {
                        Ok(order) => self.carry_out(order),
                        Err(error) => console::complain("keeper", &error),
                    }
                }
            }
        }
    }

    fn tell_owner(&mut self, event: &Event) {
        // The end of the orders reveals that the owner is gone.
        let _owner_is_gone = write_value(&mut self.events, event);
    }

    fn carry_out(&mut self, order: Order) {
        match order {
            Order::Start(mut job) => {
                // The owner leaves these two fields to the keeper.
                job.run.clone_from(&self.run);
                job.launch.clone_from(&self.launch);
                let id = job.id;
                if let Err(error) = self.start(job) {
                    let refusal = Step::Watch.refused(error);
                    self.tell_owner(&Event::Refused { id, refusal });
                }
            }
            Order::Stop { id, grace } => {
                if let Some(shepherd) = self.shepherds.get_mut(&id) {
                    // The end of its events reveals a dead shepherd.
                    let order = Order::Stop { id, grace };
                    let _dead = write_value(&mut shepherd.socket, &order);
                } else {
                    self.tell_owner(&Event::Lost { id });
                }
            }
            Order::RemoveAtEnd(folder) => self.folders.push(folder),
            Order::TakePrecedence => self.take_precedence(),
            Order::RunAtEnd(errand) => self.errands.push(errand),
            Order::Finish => self.owner = OwnerEnd::Finished,
        }
    }

    fn take_precedence(&mut self) {
        if self.precedence.is_none() {
            let own_pid = processes::own_pid();
            self.precedence =
                Precedence::take(self.owner_pid, own_pid, &self.hierarchies, &self.run);
        }
        let taken = self.precedence.clone();
        self.tell_owner(&Event::Precedence { taken });
    }

    fn start(&mut self, job: Box<Job>) -> io::Result<()> {
        let (mut socket, its_socket) = UnixStream::pair()?;
        // The running program, even if its file has been replaced meanwhile.
        let child = Command::new("/proc/self/exe")
            .args(&self.launch)
            .args(["shepherd", &job.name])
            .stdin(Stdio::from(OwnedFd::from(its_socket)))
            .stdout(Stdio::null())
            .spawn()
            .map_err(|error| explained(error, |path| Path::new(path).exists()))?;
        let shepherd = Shepherd {
            pid: i32::try_from(child.id()).map_err(io::Error::other)?,
            name: job.name.clone(),
            socket: socket.try_clone()?,
            lines: Lines::default(),
            is_done: false,
        };
        // Registered before the write. If the write fails, the end of the socket removes the shepherd again.
        self.shepherds.insert(job.id, shepherd);
        write_value(&mut socket, &Order::Start(job))
    }

    fn pass_on_events(&mut self, id: u64) {
        let Some(shepherd) = self.shepherds.get_mut(&id) else {
            return;
        };
        let is_alive = shepherd.lines.fill(&mut shepherd.socket);
        // Collected first, because `tell_owner` borrows the keeper and the shepherd is part of it.
        let mut said = Vec::new();
        while let Some(event) = shepherd.lines.next_value::<Event>() {
            match event {
                Ok(event) => {
                    shepherd.is_done |=
                        matches!(event, Event::Stopped { .. } | Event::Refused { .. });
                    said.push(event);
                }
                Err(error) => console::complain("keeper", &error),
            }
        }
        for event in said {
            self.tell_owner(&event);
        }
        if !is_alive && let Some(shepherd) = self.shepherds.remove(&id) {
            self.replace_shepherd(id, &shepherd);
        }
    }

    /// Ends the remains of a shepherd that died too early.
    fn replace_shepherd(&mut self, id: u64, shepherd: &Shepherd) {
        if shepherd.is_done {
            return;
        }
        // The keeper is a subreaper, so the orphans of the shepherd are now its own children.
        self.kill_strays();
        let instance = Path::new(&self.run).join(instance_name(id, &shepherd.name));
        cgroup::remove_instance(&self.hierarchies, &instance);
        self.tell_owner(&Event::Lost { id });
    }

    /// Kills every child that is not a shepherd, with its descendants. Such a child is an orphan of a
    /// shepherd that died.
    fn kill_strays(&self) {
        let has_none = || {
            while let Reaped::Ended(..) = reap() {}
            let me = processes::own_pid();
            let below = processes::descendants(me);
            let strays: Vec<i32> = below
                .iter()
                .filter(|process| process.parent == me && !process.is_zombie)
                .map(|process| process.pid)
                .filter(|pid| !self.shepherds.values().any(|s| s.pid == *pid))
                .collect();
            for stray in &strays {
                for process in processes::descendants(*stray) {
                    processes::signal(process.pid, Signal::KILL);
                }
                processes::signal(*stray, Signal::KILL);
            }
            strays.is_empty()
        };
        if !clock::wait_until(KILL_WITHIN, has_none) {
            console::complain(
                "keeper",
                &"cannot kill the remaining processes of a shepherd",
            );
        }
    }

    fn end_everything(mut self) -> io::Result<()> {
        if let Some(precedence) = &self.precedence {
            precedence.give_back();
        }
        // Kills all systems at once if the kernel supports it. Shepherds end the remaining processes when
        // their sockets close.
        cgroup::kill_run(&self.hierarchies, &self.run);
        let mut shepherds: BTreeSet<i32> = self.shepherds.values().map(|s| s.pid).collect();
        // This closes their sockets, and a closed socket is the signal for a shepherd to end.
        self.shepherds.clear();
        let deadline = clock::now() + SHEPHERDS_END_WITHIN;
        loop {
            self.wakeups.clear();
            while let Reaped::Ended(pid, _) = reap() {
                shepherds.remove(&pid);
            }
            let left = deadline.saturating_duration_since(clock::now());
            if shepherds.is_empty() || left.is_zero() {
                break;
            }
            let _interrupted = wait_readable(&[&self.wakeups], Some(left));
        }
        // Kills no process unless a shepherd was killed or hangs.
        let left = kill_everything(&self.wakeups, || {}, |_, _| {});
        cgroup::remove_run(&self.hierarchies, &self.run);
        for errand in &self.errands {
            if let Err(error) = (self.run_errand)(errand, self.owner) {
                console::complain("keeper", &error);
            }
        }
        for folder in &self.folders {
            remove(folder);
        }
        if !left.is_empty() {
            self.tell_owner(&Event::Unkillable { pids: left });
        }
        Ok(())
    }
}

/// Removes a folder and its contents. It does not follow symbolic links.
fn remove(folder: &Path) {
    let mut last = None;
    let is_gone = || {
        last = fs::remove_dir_all(folder).err();
        // The error may refer to a file that disappeared at the same time.
        last.is_none() || fs::symlink_metadata(folder).is_err()
    };
    if !clock::wait_until(REMOVE_WITHIN, is_gone)
        && let Some(error) = last
    {
        console::complain(
            "keeper",
            &format!("cannot remove `{}`: {error}", folder.display()),
        );
    }
}

/// Files that every started process needs, each with the mount that a bare container or a chroot may lack.
const NEEDED: [(&str, &str); 2] = [("/proc/self/exe", "/proc"), ("/dev/null", "/dev")];

/// Adds the name of the missing file, because the system's error does not contain it.
fn explained(error: io::Error, exists: impl Fn(&str) -> bool) -> io::Error {
    let missing = NEEDED.iter().find(|(path, _)| !exists(path));
    match missing.filter(|_| error.kind() == io::ErrorKind::NotFound) {
        Some((path, mount)) => io::Error::new(
            error.kind(),
            format!("`{path}` does not exist. Mount `{mount}` where weigh runs"),
        ),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_bare_container_lacks_is_named() {
        let not_found = || io::Error::from(io::ErrorKind::NotFound);
        let said = explained(not_found(), |path| path != "/dev/null").to_string();
        assert_eq!(
            said,
            "`/dev/null` does not exist. Mount `/dev` where weigh runs"
        );
        let other = io::Error::from(io::ErrorKind::PermissionDenied);
        assert_eq!(
            explained(other, |_| false).kind(),
            io::ErrorKind::PermissionDenied
        );
        assert!(
            !explained(not_found(), |_| true)
                .to_string()
                .contains("mount")
        );
    }
}
