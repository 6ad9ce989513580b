//! The owner's end of the pipes to the keeper. Orders go out. Events come in and are recorded by system.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use crate::cgroup::{self, Hierarchies};
use crate::error::RigError;
use crate::lines::{Lines, wait_readable, write_value};
use crate::log_tail::last_lines;
use crate::outcome::{Leftover, Manner, Status};
use crate::precedence::Precedence;
use crate::protocol::{Begin, Begun, Event, Order, Refusal, Started};
use crate::reaper::KILL_WITHIN;
use crate::spec::KeeperCommand;
use crate::usage::Usage;
use crate::{clock, processes};

/// The keeper normally responds at once. It needs this long only on a severely overloaded machine.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);
/// The shepherds, and then the keeper, each try to kill for [`KILL_WITHIN`].
const END_WITHIN: Duration = Duration::from_secs(3 * KILL_WITHIN.as_secs());

/// The connection to a keeper.
#[derive(Debug)]
pub(crate) struct Link {
    keeper: Child,
    /// `None` after the keeper received the order to end.
    orders: Option<ChildStdin>,
    events: ChildStdout,
    lines: Lines,
    pub(crate) run: String,
    pub(crate) leftovers: Vec<Leftover>,
    /// Reports of the keeper about each system that has not been stopped, by id.
    pub(crate) known: BTreeMap<u64, Known>,
    log: PathBuf,
    log_start_bytes: u64,
    /// The failure that made the keeper count as lost. `None` while it works.
    lost: Option<String>,
    unkillable: Vec<i32>,
    /// The keeper's reply to [`Order::TakePrecedence`]. The outer `None` means that no reply has arrived.
    precedence: Option<Option<Precedence>>,
}

/// Reports of the keeper about one system.
#[derive(Debug, Default)]
pub(crate) struct Known {
    pub(crate) started: Option<Started>,
    pub(crate) refusal: Option<Refusal>,
    pub(crate) exited: Option<(Status, Duration)>,
    pub(crate) stopped: Option<(Manner, Option<Usage>)>,
    pub(crate) is_lost: bool,
}

impl Link {
    /// Starts a keeper and waits for its first message.
    pub(crate) fn start(command: KeeperCommand, logs: &Path) -> Result<Self, RigError> {
        let log = logs.join("keeper.log");
        let open = || -> io::Result<(File, u64)> {
            fs::create_dir_all(logs)?;
            let file = File::options().create(true).append(true).open(&log)?;
            let length = file.metadata()?.len();
            Ok((file, length))
        };
        let (log_file, log_start_bytes) = open().map_err(|source| RigError::Log {
            path: log.clone(),
            source,
        })?;
        let cannot_start = |source| RigError::Start {
            program: command.program.clone(),
            source,
        };
        tracing::debug!(program = ?command.program, ?log, "starting the keeper");
        let mut keeper = Command::new(&command.program)
            .args(&command.keeper)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log_file)
            .spawn()
            .map_err(cannot_start)?;
        let (Some(orders), Some(events)) = (keeper.stdin.take(), keeper.stdout.take()) else {
            return Err(cannot_start(io::Error::other("it has no pipes")));
        };
        let mut link = Self {
            keeper,
            orders: Some(orders),
            events,
            lines: Lines::default(),
            run: String::new(),
            leftovers: Vec::new(),
            known: BTreeMap::new(),
            log,
            log_start_bytes,
            lost: None,
            unkillable: Vec::new(),
            precedence: None,
        };
        link.begin(command.launch)?;
        Ok(link)
    }

    fn begin(&mut self, launch: Vec<String>) -> Result<(), RigError> {
        let owner_pid = processes::own_pid();
        let begin = Begin {
            owner_pid,
            // Without `/proc` the start of a process cannot be read, and the shepherds report the missing
            // `/proc`.
            owner_start: processes::read(owner_pid).map_or(0, |me| me.start),
            launch,
        };
        self.write(&begin);
        let deadline = clock::now() + ANSWER_WITHIN;
        while self.lost.is_none() {
            match self.lines.next_value::<Begun>() {
                Some(Ok(begun)) => {
                    let (pid, leftovers) = (self.keeper.id(), begun.leftovers.len());
                    tracing::debug!(pid, run = begun.run, leftovers, "the keeper runs");
                    self.run = begun.run;
                    self.leftovers = begun.leftovers;
                    return Ok(());
                }
                Some(Err(error)) => self.lose(format!("broke the protocol ({error})")),
                None => self.receive(deadline),
            }
        }
        self.check()
    }

    /// Returns an error with the reason if the keeper is lost.
    pub(crate) fn check(&self) -> Result<(), RigError> {
        match &self.lost {
            None => Ok(()),
            Some(what) => Err(RigError::KeeperLost {
                what: what.clone(),
                log: self.log.clone(),
                last_lines: last_lines(&self.log, self.log_start_bytes),
            }),
        }
    }

    pub(crate) fn order(&mut self, order: &Order) -> Result<(), RigError> {
        self.write(order);
        self.check()
    }

    fn write(&mut self, value: &impl serde::Serialize) {
        tracing::trace!(json = ?serde_json::to_string(value).ok(), "to the keeper");
        let written = match &mut self.orders {
            Some(orders) => write_value(orders, value),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        };
        if let Err(error) = written {
            self.lose(format!("cannot receive orders ({error})"));
        }
    }

    /// Waits for events until `is_answered` holds. A keeper that exceeds the time limit counts as lost.
    pub(crate) fn wait_for(
        &mut self,
        id: u64,
        extra: Duration,
        is_answered: impl Fn(&Known) -> bool,
    ) -> Result<(), RigError> {
        let deadline = clock::now() + ANSWER_WITHIN + extra;
        loop {
            // An unknown system has no pending event.
            if self.known.get(&id).is_none_or(&is_answered) {
                return Ok(());
            }
            self.check()?;
            self.receive(deadline);
            self.note_events();
        }
    }

    /// Orders the keeper to give the run precedence over other programs. Returns true if it has.
    pub(crate) fn take_precedence(&mut self) -> Result<bool, RigError> {
        self.order(&Order::TakePrecedence)?;
        let deadline = clock::now() + ANSWER_WITHIN;
        loop {
            if let Some(answered) = &self.precedence {
                return Ok(answered.is_some());
            }
            self.check()?;
            self.receive(deadline);
            self.note_events();
        }
    }

    /// Records the keeper's events and waits at most `timeout` for more.
    pub(crate) fn listen(&mut self, timeout: Duration) {
        if self.lost.is_some() {
            return;
        }
        match wait_readable(&[&self.events], Some(timeout)) {
            Ok(ready) if ready[0] => self.fill(),
            Ok(_) => {}
            Err(error) => self.lose(format!("cannot be read from ({error})")),
        }
        self.note_events();
    }

    fn receive(&mut self, deadline: Instant) {
        let left = deadline.saturating_duration_since(clock::now());
        match wait_readable(&[&self.events], Some(left)) {
            Ok(ready) if ready[0] => self.fill(),
            Ok(_) if left.is_zero() => self.lose("does not answer".to_owned()),
            Ok(_) => {}
            Err(error) => self.lose(format!("cannot be read from ({error})")),
        }
    }

    fn fill(&mut self) {
        if !self.lines.fill(&mut self.events) {
            self.lose("has ended".to_owned());
        }
    }

    fn note_events(&mut self) {
        while let Some(event) = self.lines.next_value::<Event>() {
            match event {
                Ok(event) => self.note(event),
                Err(error) => self.lose(format!("broke the protocol ({error})")),
            }
        }
    }

    fn note(&mut self, event: Event) {
        tracing::trace!(?event, "from the keeper");
        let mut known = |id: u64, note: &mut dyn FnMut(&mut Known)| {
            if let Some(known) = self.known.get_mut(&id) {
                note(known);
            }
        };
        match event {
            Event::Started { id, started } => {
                known(id, &mut |known| known.started = Some(started.clone()));
            }
            Event::Refused { id, refusal } => {
                known(id, &mut |known| known.refusal = Some(refusal.clone()));
            }
            Event::Exited { id, status, at } => {
                known(id, &mut |known| known.exited = Some((status, at)));
            }
            Event::Stopped { id, manner, usage } => {
                known(id, &mut |known| {
                    known.stopped = Some((manner, usage.clone()))
                });
            }
            Event::Lost { id } => known(id, &mut |known| known.is_lost = true),
            Event::Precedence { taken } => self.precedence = Some(taken),
            Event::Unkillable { pids } => self.unkillable.extend(pids),
        }
    }

    /// Declares the keeper lost and cleans up its run. When it returns, no process of the run is left that
    /// this process can find and kill.
    fn lose(&mut self, what: String) {
        if self.lost.is_some() {
            return;
        }
        tracing::debug!(what, "the keeper is lost, so the whole run ends");
        self.lost = Some(what);
        // The keeper must not act while this process cleans up its run.
        self.orders = None;
        let _has_ended = self.keeper.kill();
        let _was_reaped = self.keeper.wait();
        if let Some(Some(precedence)) = &self.precedence {
            precedence.give_back();
        }
        let shepherds: Vec<(i32, u64)> = self
            .known
            .values()
            .filter_map(|known| known.started.as_ref())
            .map(|started| (started.shepherd_pid, started.shepherd_start))
            .collect();
        // Each shepherd has seen its socket close and is ending its system.
        clock::wait_until(END_WITHIN, || {
            !shepherds
                .iter()
                .any(|(pid, start)| processes::is_alive(*pid, *start))
        });
        if !self.run.is_empty() {
            let hierarchies = Hierarchies::detect();
            // Repeated, because a process may fork while it is being killed.
            clock::wait_until(KILL_WITHIN, || {
                cgroup::kill_run(&hierarchies, &self.run).is_empty()
            });
            tracing::debug!(run = self.run, "removing the cgroups of the run");
            cgroup::remove_run(&hierarchies, &self.run);
        }
        // This comes last, because a system counts as lost only after all its processes are gone.
        for known in self.known.values_mut() {
            known.is_lost = true;
        }
    }

    /// Makes the keeper end everything, and waits for it.
    pub(crate) fn end(&mut self) -> Result<(), RigError> {
        self.check()?;
        tracing::debug!(within = ?END_WITHIN, "waiting for the keeper to end everything");
        // The loop below notices the death of the keeper.
        let _lost = self.order(&Order::Finish);
        // The end of its input is the order to end everything.
        self.orders = None;
        let deadline = clock::now() + END_WITHIN;
        loop {
            let left = deadline.saturating_duration_since(clock::now());
            match wait_readable(&[&self.events], Some(left)) {
                Ok(ready) if ready[0] => {
                    let has_more = self.lines.fill(&mut self.events);
                    self.note_events();
                    if !has_more {
                        break;
                    }
                }
                Ok(_) if !left.is_zero() => {}
                _ => {
                    self.lose("does not end".to_owned());
                    return self.check();
                }
            }
        }
        // The output of the keeper has ended, so this does not wait for long.
        let ended = self.keeper.wait();
        self.lost = Some("has ended".to_owned());
        if !self.unkillable.is_empty() {
            return Err(RigError::Unkillable {
                pids: std::mem::take(&mut self.unkillable),
                within: KILL_WITHIN,
            });
        }
        match ended {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(RigError::KeeperLost {
                what: format!("ended with {status}"),
                log: self.log.clone(),
                last_lines: last_lines(&self.log, self.log_start_bytes),
            }),
            Err(error) => Err(RigError::KeeperLost {
                what: format!("cannot be waited for ({error})"),
                log: self.log.clone(),
                last_lines: Vec::new(),
            }),
        }
    }

    /// Process id of the keeper.
    pub(crate) fn keeper_pid(&self) -> u32 {
        self.keeper.id()
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // `drop` cannot return an error. `Rig::shut_down` can.
        let _unheard = self.end();
    }
}
