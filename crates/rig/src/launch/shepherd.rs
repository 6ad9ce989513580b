//! The shepherd: parent of one system, and of every orphan the system makes.

use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitStatus, kill_process_group};

use super::own_socket;
use crate::cgroup::{self, Groups, Hierarchies};
use crate::lines::{Lines, wait_readable, write_value};
use crate::outcome::{Enforced, Manner, Status};
use crate::processes::{self, Process};
use crate::protocol::{Event, Job, Launch, Order, Refusal, Started, Step};
use crate::reaper::{Reaped, adopt_orphans, kill_everything, reap};
use crate::usage::{self, Usage};
use crate::wakeups::Wakeups;
use crate::{clock, console};

/// Starts one system, watches it, and exits when all its processes have ended.
pub(super) fn run() -> io::Result<()> {
    let mut socket = own_socket()?;
    // A second handle, because the watch takes the first and the last event follows the watch.
    let mut last_word = socket.try_clone()?;
    let wakeups = Wakeups::new()?;
    adopt_orphans()?;
    // Shown by `ps` and `top`. Otherwise they would show the file name `exe`.
    let _unnamed = rustix::thread::set_name(c"weigh-shepherd");
    let mut lines = Lines::default();
    let Order::Start(job) = lines.wait_value(&mut socket)? else {
        return Err(io::Error::other("expected an order to start a system"));
    };
    let me = processes::read(processes::own_pid())
        .ok_or_else(|| io::Error::other("cannot read /proc. Is it mounted?"))?;
    let hierarchies = Hierarchies::detect();
    let instance = instance_path(&job);
    let id = job.id;
    let start = clock::now();
    let event = match start_program(&job, me, &hierarchies) {
        Ok(started) => {
            // If the keeper is gone, the watch below notices it and ends everything.
            let event = Event::Started {
                id,
                started: started.clone(),
            };
            let _keeper_is_gone = write_value(&mut socket, &event);
            let watched = WatchedSystem {
                id,
                me,
                start,
                socket,
                wakeups,
                first: started.pid,
                groups: started.groups,
                status: None,
                stopping: None,
            };
            watched.watch(lines)
        }
        Err(refusal) => {
            kill_everything(&wakeups, || {}, |_, _| {});
            Some(Event::Refused { id, refusal })
        }
    };
    // Before the last message, because its reader may rely on the groups being removed.
    cgroup::remove_instance(&hierarchies, &instance);
    match event {
        Some(event) => write_value(&mut last_word, &event),
        // The keeper is gone and cannot clean up after the last shepherd.
        None => {
            cgroup::remove_run(&hierarchies, &job.run);
            Ok(())
        }
    }
}

/// The system's groups, relative to the place of the run's groups.
fn instance_path(job: &Job) -> PathBuf {
    PathBuf::from(&job.run).join(crate::protocol::instance_name(job.id, &job.name))
}

fn start_program(job: &Job, me: Process, hierarchies: &Hierarchies) -> Result<Started, Refusal> {
    let (log, log_start_bytes) = open_log(job).map_err(|error| Step::Log.refused(error))?;
    let (mut socket, its_socket) =
        UnixStream::pair().map_err(|error| Step::Watch.refused(error))?;
    let pid = spawn_launcher(job, its_socket, &log).map_err(|error| Step::Watch.refused(error))?;
    // The launcher still waits for its orders, so the program never runs outside of its groups.
    let (groups, enforced): (Groups, Enforced) =
        cgroup::settle(hierarchies, &instance_path(job), job.limits, pid);
    let launch = Launch {
        parent: me.pid,
        program: job.program.clone(),
        cpus_allowed: job.cpus_allowed.clone(),
    };
    write_value(&mut socket, &launch).map_err(|error| Step::Watch.refused(error))?;
    match Lines::default().wait_value::<Refusal>(&mut socket) {
        Ok(refusal) => Err(refusal),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Err(Step::Watch.refused(error)),
        // The launcher's end of the socket closed without a message, so the program runs.
        Err(_) => Ok(Started {
            pid,
            shepherd_pid: me.pid,
            shepherd_start: me.start,
            groups,
            enforced,
            log_start_bytes,
        }),
    }
}

/// Opens the log. Also returns its length in bytes.
fn open_log(job: &Job) -> io::Result<(File, u64)> {
    if let Some(folder) = job.log.parent() {
        fs::create_dir_all(folder)?;
    }
    // Appending, so that standard output and error do not overwrite each other.
    let log = File::options().create(true).append(true).open(&job.log)?;
    let length = log.metadata()?.len();
    Ok((log, length))
}

fn spawn_launcher(job: &Job, socket: UnixStream, log: &File) -> io::Result<i32> {
    let child = Command::new("/proc/self/exe")
        .args(&job.launch)
        .args(["exec", &job.name])
        .stdin(Stdio::from(OwnedFd::from(socket)))
        .stdout(log.try_clone()?)
        .stderr(log.try_clone()?)
        // A process group of its own, so that SIGTERM reaches it and not the shepherd.
        .process_group(0)
        .spawn()?;
    // Reaped by `reap`, like every other child.
    i32::try_from(child.id()).map_err(io::Error::other)
}

/// A running system and its shepherd's view of it.
struct WatchedSystem {
    id: u64,
    me: Process,
    start: Instant,
    socket: UnixStream,
    wakeups: Wakeups,
    /// Process id of the first process.
    first: i32,
    groups: Groups,
    /// Exit status of the first process. `None` while it runs.
    status: Option<Status>,
    stopping: Option<Stopping>,
}

/// A stop order in progress.
struct Stopping {
    deadline: Instant,
    manner: Manner,
    usage: Option<Usage>,
    /// True if SIGTERM was sent to the processes that outlived the first one.
    orphans_asked: bool,
}

impl WatchedSystem {
    /// Watches until a stop order has arrived and all processes of the system have ended. `None` if the
    /// keeper is gone.
    fn watch(mut self, mut lines: Lines) -> Option<Event> {
        loop {
            // Cleared before the check, so that a child that ends during the check ends the wait.
            self.wakeups.clear();
            let has_children = self.reap_ended();
            if let Some(stopping) = &self.stopping
                && (!has_children || clock::now() >= stopping.deadline)
            {
                return self.finish(has_children);
            }
            self.ask_orphans();
            let timeout = self
                .stopping
                .as_ref()
                .map(|stopping| stopping.deadline.saturating_duration_since(clock::now()));
            let ready = wait_readable(&[&self.socket, &self.wakeups], timeout);
            let has_order = ready.is_ok_and(|ready| ready[0]);
            let is_alone = has_order && !lines.fill(&mut self.socket);
            if is_alone || self.wakeups.asked_to_end() {
                self.kill_rest();
                return None;
            }
            match lines.next_value() {
                Some(Ok(Order::Stop { grace, .. })) if self.stopping.is_none() => {
                    self.ask_to_stop(grace);
                }
                Some(Err(error)) => console::complain("shepherd", &error),
                _ => {}
            }
        }
    }

    /// Reaps ended processes. Returns true if children are left.
    fn reap_ended(&mut self) -> bool {
        loop {
            match reap() {
                Reaped::Ended(pid, status) => self.note_end(pid, status),
                Reaped::NoneYet => return true,
                Reaped::NoChildren => return false,
            }
        }
    }

    fn note_end(&mut self, pid: i32, wait_status: WaitStatus) {
        // Orphans end here as well. The kernel may also reuse a process id after it was reaped.
        if pid != self.first || self.status.is_some() {
            return;
        }
        let status = match (wait_status.exit_status(), wait_status.terminating_signal()) {
            (Some(code), _) => Status::Code(code),
            (None, Some(signal)) => Status::Signal {
                signal,
                out_of_memory: self.groups.out_of_memory_kills() > 0,
            },
            // A stopped or continued process. `wait` was not called for these.
            (None, None) => return,
        };
        self.status = Some(status);
        let event = Event::Exited {
            id: self.id,
            status,
            at: clock::now().duration_since(self.start),
        };
        let _keeper_is_gone = write_value(&mut self.socket, &event);
    }

    fn ask_to_stop(&mut self, grace: Duration) {
        // Before the signal, because memory and threads of an ended process can no longer be read.
        let usage = usage::read(&self.groups, self.me);
        let is_gone = processes::descendants(self.me.pid).is_empty();
        self.stopping = Some(Stopping {
            deadline: clock::now() + grace,
            manner: if is_gone {
                Manner::AlreadyGone
            } else {
                Manner::OnRequest
            },
            usage,
            orphans_asked: false,
        });
        // After the first process is reaped, its process id may belong to another group. The remaining
        // processes then receive the signal one by one.
        if self.status.is_none()
            && let Some(group) = Pid::from_raw(self.first)
        {
            let _gone = kill_process_group(group, Signal::TERM);
        }
    }

    /// Sends SIGTERM once to each process that outlived the first one, because it may not have been in the
    /// first one's group.
    fn ask_orphans(&mut self) {
        let Some(stopping) = &mut self.stopping else {
            return;
        };
        if self.status.is_some() && !stopping.orphans_asked {
            stopping.orphans_asked = true;
            for process in processes::descendants(self.me.pid) {
                processes::signal(process.pid, Signal::TERM);
            }
        }
    }

    fn finish(mut self, has_children: bool) -> Option<Event> {
        if has_children {
            self.kill_rest();
        }
        let stopping = self.stopping?;
        Some(Event::Stopped {
            id: self.id,
            manner: if has_children {
                Manner::Killed
            } else {
                stopping.manner
            },
            usage: stopping.usage,
        })
    }

    fn kill_rest(&mut self) {
        let groups = self.groups.clone();
        let mut ended = Vec::new();
        let left = kill_everything(
            &self.wakeups,
            || groups.kill(),
            |pid, status| ended.push((pid, status)),
        );
        for (pid, status) in ended {
            self.note_end(pid, status);
        }
        if !left.is_empty() {
            console::complain("shepherd", &format!("cannot kill {left:?}"));
        }
    }
}
