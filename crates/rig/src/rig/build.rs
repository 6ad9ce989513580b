//! Build steps: commands that run to their end before anything starts.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::{Rig, absolute, resolve};
use crate::clock;
use crate::error::BuildError;
use crate::outcome::State;
use crate::protocol::Job;
use crate::spec::{BuildSpec, ProcessLimits};

/// Interval at which a running build polls the stop flag.
const BUILD_LOOKS_UP: Duration = Duration::from_millis(50);
/// Time that an interrupted build has to end by itself.
const BUILD_GRACE: Duration = Duration::from_secs(1);

impl Rig {
    /// Runs the command of a build step to its end. Then ends every process that it has left running. `stop`
    /// ends it early.
    ///
    /// # Errors
    /// If it cannot be started, ends with a status other than exit code 0, takes longer than its `within`, or
    /// is interrupted.
    pub fn build(&mut self, step: &BuildSpec, stop: &AtomicBool) -> Result<(), BuildError> {
        let interrupted = || BuildError::Interrupted {
            name: step.name.clone(),
        };
        if stop.load(Ordering::Relaxed) {
            return Err(interrupted());
        }
        let job = Job {
            id: 0,
            run: String::new(),
            launch: Vec::new(),
            name: step.name.clone(),
            program: resolve(&step.name, &step.command, &step.folder, &step.env)?,
            log: absolute(&step.log),
            limits: ProcessLimits::default(),
            cpus_allowed: None,
        };
        let start = clock::now();
        let system = self.launch(job)?;
        let command = as_typed(&step.command);
        tracing::debug!(name = step.name, command, log = ?step.log, "waiting for a build command");
        let status = loop {
            if let State::Exited { status, .. } = self.state_within(&system, BUILD_LOOKS_UP) {
                break status;
            }
            if stop.load(Ordering::Relaxed) {
                self.stop(system, BUILD_GRACE);
                return Err(interrupted());
            }
            if let Some(within) = step.within.filter(|within| start.elapsed() > *within) {
                let last_lines = system.last_lines();
                self.stop(system, BUILD_GRACE);
                return Err(BuildError::TimedOut {
                    name: step.name.clone(),
                    command,
                    within,
                    log: step.log.clone(),
                    last_lines,
                });
            }
        };
        let last_lines = system.last_lines();
        let took = clock::now().duration_since(start);
        tracing::debug!(name = step.name, %status, ?took, "the build command has ended");
        // After success too, because the command may have left processes running.
        self.stop(system, Duration::ZERO);
        if status.is_success() {
            return Ok(());
        }
        Err(BuildError::Failed {
            name: step.name.clone(),
            command,
            status,
            log: step.log.clone(),
            last_lines,
        })
    }
}

/// A command for display, not for a shell.
fn as_typed(command: &[String]) -> String {
    let word = |word: &String| {
        if word.is_empty() || word.contains(char::is_whitespace) {
            format!("'{word}'")
        } else {
            word.clone()
        }
    };
    command.iter().map(word).collect::<Vec<_>>().join(" ")
}
