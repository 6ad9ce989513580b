//! What is the same for every start and every load of a run.

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
use crate::stop::Stop;
use crate::systems::{Addresses, RunningSystems, Startup};

/// What is the same for every start and every load of a run.
pub(super) struct Session<'a> {
    pub(super) lab: &'a Lab,
    /// How requests arrive: the lab's load, or the one that the run has chosen.
    pub(super) load: Load,
    pub(super) stop: &'a Stop,
    pub(super) progress: Progress,
    /// The folder of all logs.
    pub(super) logs: PathBuf,
    pub(super) seed: u64,
    /// The recording counts the starts of measurements from here.
    pub(super) started: Instant,
    /// Where systems are that run already.
    pub(super) addresses: Addresses,
    /// The compose files of the lab.
    pub(super) projects: Projects,
    /// The cores that the generator may run on; none where it may run anywhere.
    pub(super) generator_cpus: Option<Vec<usize>>,
    /// The other generators of the load, where there are such.
    pub(super) peers: Option<Peers>,
}

impl Session<'_> {
    /// The part of the load that is sent from here.
    pub(super) fn shard(&self) -> Shard {
        self.peers.as_ref().map_or(Shard::WHOLE, Peers::shard)
    }

    /// # Errors
    ///
    /// When the user wants `weigh` to stop.
    pub(super) fn go_on(&self) -> Result<(), Invalid> {
        if self.stop.is_asked() {
            return Err(Invalid::interrupted());
        }
        Ok(())
    }

    /// Starts systems, beside those that all variants share; their logs are in this
    /// folder of all logs.
    ///
    /// # Errors
    ///
    /// As of [`RunningSystems::start`].
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

    /// What these systems are started from.
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

    /// A folder of all logs, made anew or not.
    ///
    /// # Errors
    ///
    /// When the user wants `weigh` to stop, or the folder cannot be made.
    pub(super) fn log_folder(&self, folder: &Path) -> Result<PathBuf, Invalid> {
        self.go_on()?;
        let logs = self.logs.join(folder);
        // Here and not once for the run: each variant and occasion has a folder of its own.
        fs::create_dir_all(&logs).map_err(|error| {
            Invalid::new(
                InvalidKind::NotReady,
                format!("`{}` cannot be created: {error}", logs.display()),
            )
        })?;
        Ok(logs)
    }

    /// Sends a load that is no measurement. `when` says in an error which load it was.
    ///
    /// # Errors
    ///
    /// When it cannot be sent. A wrong answer disqualifies here too: the variant would be measured
    /// doing something else.
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

    /// Sends such a load to several candidates at once, and takes a last look as
    /// [`load::run_together`] does. Answers are not judged here: a wrong one is found in the
    /// measurement too, where it disqualifies its candidate alone.
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

/// A load that could not be begun, as the reason of a row.
pub(super) fn load_failed(error: &LoadError) -> Invalid {
    Invalid::new(InvalidKind::LoadFailed, error.to_string())
}
