//! The caller's side: orders go to the keeper, answers come back.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::error::{BuildError, ReadyError, RigError, SpawnError, UsageError};
use crate::outcome::{Enforced, Leftover, State, Stopped};
use crate::spec::{BuildSpec, KeeperCommand, SystemSpec};
use crate::usage::Usage;

/// Owns the keeper and with it every system. Dropping it kills them all.
#[derive(Debug)]
pub struct Rig {}

/// A system that was started. Dropping the handle does not stop the system;
/// [`Rig::stop`] and the end of the [`Rig`] do.
#[derive(Debug)]
pub struct System {}

impl System {
    /// The name given in [`SystemSpec::name`].
    #[must_use]
    pub fn name(&self) -> &str {
        unimplemented!()
    }

    /// The process that was started.
    #[must_use]
    pub fn pid(&self) -> i32 {
        unimplemented!()
    }

    /// The limits in force.
    #[must_use]
    pub fn enforced(&self) -> &Enforced {
        unimplemented!()
    }

    /// The log given in [`SystemSpec::log`].
    #[must_use]
    pub fn log(&self) -> &Path {
        unimplemented!()
    }

    /// The last lines that this system has logged since it was started.
    #[must_use]
    pub fn last_lines(&self) -> Vec<String> {
        unimplemented!()
    }
}

impl Rig {
    /// Starts the keeper. `logs` is made if need be and receives `keeper.log`.
    pub fn start(_keeper_command: KeeperCommand, _logs: &Path) -> Result<Self, RigError> {
        unimplemented!()
    }

    /// Processes that an earlier, killed run has left behind.
    #[must_use]
    pub fn leftovers(&self) -> &[Leftover] {
        unimplemented!()
    }

    /// Starts a system; returns when the kernel has accepted its program.
    pub fn spawn(&mut self, _system: &SystemSpec) -> Result<System, SpawnError> {
        unimplemented!()
    }

    /// Carries out a build step; `stop` ends it early.
    pub fn build(&mut self, _step: &BuildSpec, _stop: &AtomicBool) -> Result<(), BuildError> {
        unimplemented!()
    }

    /// What the system has used so far.
    pub fn usage(&self, _system: &System) -> Result<Usage, UsageError> {
        unimplemented!()
    }

    /// What the system is doing; does not wait.
    pub fn state(&mut self, _system: &System) -> State {
        unimplemented!()
    }

    /// Asks the system to end (SIGTERM), waits for `grace`, kills what is left.
    pub fn stop(&mut self, _system: System, _grace: Duration) -> Stopped {
        unimplemented!()
    }

    /// Calls `probe` until it says `Ok`; returns the time since the start of
    /// the system.
    pub fn wait_ready(
        &mut self,
        _system: &System,
        _within: Duration,
        _probe: &mut dyn FnMut() -> Result<(), String>,
        _stop: &AtomicBool,
    ) -> Result<Duration, ReadyError> {
        unimplemented!()
    }

    /// Kills every system and ends the keeper.
    pub fn shut_down(self) -> Result<(), RigError> {
        unimplemented!()
    }
}
