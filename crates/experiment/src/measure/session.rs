//! The parts of a run that stay the same for every start and every load.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use lab::{Lab, Setup};
use load::{Job, LoadError, Measurement};
use model::{InvalidKind, Load, Shard};
use rig::Rig;

use super::peers::Peers;
use crate::compose::Projects;
use crate::invalid::Invalid;
use crate::progress::Progress;
use crate::record;
use crate::stop::StopSignal;
use crate::systems::{Addresses, RunningSystems, Startup};

/// The parts of a run that stay the same for every start and every load.
pub(super) struct Session<'a> {
    pub(super) lab: &'a Lab,
    /// The lab's load, or the load that the run has chosen.
    pub(super) load: Load,
    pub(super) stop: &'a StopSignal,
    pub(super) progress: Progress,
    /// The folder of all logs.
    pub(super) logs: PathBuf,
    pub(super) seed: u64,
    /// The zero point of the recording's start offsets.
    pub(super) started: Instant,
    /// Addresses of the systems that run already.
    pub(super) addresses: Addresses,
    /// The compose files of the lab.
    pub(super) projects: Projects,
    /// The cores for the generator. `None` if it may run on every core.
    pub(super) generator_cpus: Option<Vec<usize>>,
    /// The other generators of the load, if there are any.
    pub(super) peers: Option<Peers>,
}

impl Session<'_> {
    /// The part of the load that this process sends.
    pub(super) fn shard(&self) -> Shard {
        self.peers.as_ref().map_or(Shard::WHOLE, Peers::shard)
    }

    /// # Errors
    ///
    /// When the user has stopped the run.
    pub(super) fn go_on(&self) -> Result<(), Invalid> {
        if self.stop.is_asked() {
            return Err(Invalid::interrupted());
        }
        Ok(())
    }

    /// Starts systems, next to the systems that all variants share. `folder` is relative to the folder of all
    /// logs.
    ///
    /// # Errors
    ///
    /// Like [`RunningSystems::start`].
    pub(super) fn start(
        &self,
        rig: &mut Rig,
        setups: &[Setup],
        folder: &Path,
        shared: Option<&RunningSystems>,
    ) -> Result<RunningSystems, Invalid> {
        let logs = self.log_folder(folder)?;
        RunningSystems::start(rig, self.startup(setups, &logs, shared))
    }

    /// The inputs for the start of these systems.
    pub(super) fn startup<'s>(
        &'s self,
        setups: &'s [Setup],
        logs: &'s Path,
        shared: Option<&'s RunningSystems>,
    ) -> Startup<'s> {
        Startup {
            lab: self.lab,
            setups,
            logs,
            stop: self.stop,
            addresses: &self.addresses,
            projects: &self.projects,
            shared,
        }
    }

    /// A folder inside the folder of all logs. Creates it if necessary.
    ///
    /// # Errors
    ///
    /// When the user has stopped the run, or the folder cannot be created.
    pub(super) fn log_folder(&self, folder: &Path) -> Result<PathBuf, Invalid> {
        self.go_on()?;
        let logs = self.logs.join(folder);
        // Created per start, because each variant and phase has its own folder.
        fs::create_dir_all(&logs).map_err(|error| {
            Invalid::new(
                InvalidKind::NotReady,
                format!("`{}` cannot be created: {error}", logs.display()),
            )
        })?;
        Ok(logs)
    }

    /// Sends a load that does not count. `when` names the load in error messages.
    ///
    /// # Errors
    ///
    /// When it cannot be sent. A wrong response also disqualifies the variant, because the measurement would
    /// not show its real work.
    pub(super) fn discard(
        &self,
        job: &Job,
        label: &str,
        when: &str,
    ) -> Result<Measurement, Invalid> {
        tracing::debug!(label, "load that is thrown away begins");
        let sent = self
            .progress
            .during(label, |live| load::run(job, live, self.stop.flag()))
            .map_err(|error| load_failed(&error))?;
        match record::wrong_in(&sent) {
            None => Ok(sent),
            Some(reason) => Err(Invalid::new(
                InvalidKind::Mismatched,
                format!("{when}, {reason}"),
            )),
        }
    }

    /// Sends such a load to several candidates at once, with a last look as in [`load::run_together`]. Does
    /// not judge responses. The measurement will find wrong responses too, and then disqualifies only the
    /// candidate at fault.
    ///
    /// # Errors
    ///
    /// When it cannot be sent.
    pub(super) fn discard_together<T>(
        &self,
        jobs: &[Job],
        label: &str,
        look: impl FnOnce() -> T,
    ) -> Result<(Vec<Measurement>, T), Invalid> {
        tracing::debug!(label, "load that is thrown away begins");
        let send = |live: &load::Live| load::run_together(jobs, live, self.stop.flag(), look);
        let sent = self.progress.during(label, send);
        sent.map_err(|error| load_failed(&error))
    }
}

/// A load that could not start, as the reason in a row.
pub(super) fn load_failed(error: &LoadError) -> Invalid {
    Invalid::new(InvalidKind::LoadFailed, error.to_string())
}
