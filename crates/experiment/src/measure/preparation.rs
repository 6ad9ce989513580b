//! Steps before the first round: builds and first proofs.

use std::time::Duration;

use analysis::summary::BodyNote;
use model::{InvalidKind, Order};

use super::Experiment;
use super::candidate_id::CandidateId;
use super::footprint::Footprint;
use super::running::{Running, root_cause};
use super::variant_run::VariantRun;
use crate::build_cache::{BuildCache, missing_program};
use crate::environment::instant;
use crate::invalid::Invalid;
use crate::prove::Proven;

/// A longer build prints a note.
const BUILD_WORTH_TELLING: Duration = Duration::from_secs(1);

impl Experiment<'_> {
    /// True if candidates that are up together share systems.
    pub(super) fn shares(&self) -> bool {
        let mut setups = self.session.lab.all().flat_map(|one| one.systems());
        self.design.order == Order::SideBySide && setups.any(|setup| setup.is_shared)
    }

    /// Builds and proves every candidate. Each follows its baseline, because its responses are compared with
    /// it.
    pub(super) fn prepare(&mut self, builds: &mut BuildCache) {
        for id in self.candidates.ids() {
            if self.candidates.get(id).invalid().is_some() {
                continue;
            }
            let outcome = self.build(builds, id).and_then(|()| self.prove(id));
            if let Err(invalid) = outcome {
                self.reject(id, invalid);
            }
        }
    }

    fn build(&mut self, builds: &mut BuildCache, id: CandidateId) -> Result<(), Invalid> {
        self.session.go_on()?;
        let candidate = self.candidates.get_mut(id);
        let (name, setups) = (candidate.name(), candidate.variant.systems());
        let (progress, logs) = (&self.session.progress, &self.session.logs);
        // Checked before the build, which may take minutes.
        if let Some(missing) = missing_program(setups) {
            return Err(missing);
        }
        for (setup, record) in setups.iter().zip(&mut candidate.systems) {
            if let Some(log) = builds.will_build(setup, logs) {
                let line = format!(
                    "building {} for {name}, log: {}",
                    setup.system,
                    log.display()
                );
                progress.show(&line);
                progress.note(&line);
            }
            let took = builds.build(&mut self.rig, setup, logs, self.session.stop)?;
            let images = builds.images(
                &mut self.rig,
                setup,
                &self.session.projects,
                logs,
                self.session.stop,
            )?;
            let took = took.or(images);
            if let Some(took) = took.filter(|took| *took > BUILD_WORTH_TELLING) {
                progress.note(&format!(
                    "built `{}` for `{name}` in {:.1} s",
                    setup.system,
                    took.as_secs_f64()
                ));
            }
            record.build_ms = took.map(|took| {
                u64::try_from(took.as_millis()).expect("no build takes 584 million years")
            });
            record.version = builds.version(&mut self.rig, setup, logs, self.session.stop)?;
        }
        Ok(())
    }

    fn prove(&mut self, id: CandidateId) -> Result<(), Invalid> {
        // A system that is started here and kept stays on its cores.
        let cores = self.design.cores().filter(|_| self.reused.is_on());
        let run = VariantRun::of_proof(&self.session, self.candidates.get(id)).on(cores);
        tracing::debug!(variant = run.candidate.name(), "proving");
        self.session.progress.show(&run.label());
        // Without a proven baseline there is no comparison.
        if self.candidates.has_lost_baseline(id) {
            return Err(self.candidates.why_unmeasured(id, None));
        }
        let began = instant();
        let mut running = run.start(&mut self.rig)?;
        let candidate = run.candidate;
        let baseline = self.candidates.baseline_of(id);
        let proven = run.prove(&mut running, baseline.map(|baseline| baseline.proven()));
        let start = instant().duration_since(began);
        let ended = running.ended(&mut self.rig);
        let footprint = Footprint::of(&self.rig, candidate.variant.systems(), &running.systems);
        // A candidate is not kept if it has a fixed address, or systems that all candidates share.
        let may_stay = !footprint.has_fixed_address() && !self.shares();
        let candidate = self.candidates.get_mut(id);
        candidate.footprint = footprint;
        // Filled in even if the proof fails, so that the row shows the started systems.
        running.systems.describe(&mut candidate.systems);
        // A proof stays valid if a process ends right after it. The first round then restarts the systems,
        // which shows if they end again.
        let is_well = proven.is_ok() && ended.is_none() && may_stay;
        let proven = match proven {
            Ok(proven) => {
                self.tell_of_bodies(id, &proven);
                self.candidates.get_mut(id).set_proven(proven);
                Ok(())
            }
            Err(symptom) => Err(root_cause(ended, symptom)),
        };
        let tried = proven.and_then(|()| self.try_out(id, &mut running, start));
        self.reused
            .keep_or_stop(&mut self.rig, id, running, is_well && tried.is_ok());
        tried
    }

    /// Prints notes about the bodies of a variant.
    fn tell_of_bodies(&self, id: CandidateId, proven: &Proven) {
        let candidate = self.candidates.get(id);
        for request in proven.varying(candidate.variant) {
            self.session.progress.note(&format!(
                "`{}`: the answer to request `{request}` has a different body each time, so bodies are not compared",
                candidate.name()
            ));
        }
        // A finding about several variants is printed for the first. The report names all.
        let others = self.candidates.iter().filter(|other| other.is_proven());
        let told: Vec<BodyNote> = others
            .flat_map(|other| analysis::body_notes(&other.proven().proof))
            .collect();
        for note in analysis::body_notes(&proven.proof) {
            if !told.contains(&note) {
                let sentence = note.sentence(&format!("`{}`", candidate.name()));
                self.session.progress.note(&sentence);
            }
        }
    }

    /// Sends the short loads of a trial, if the run needs them.
    fn try_out(
        &mut self,
        id: CandidateId,
        running: &mut Running,
        start: Duration,
    ) -> Result<(), Invalid> {
        if !self.tries_out {
            return Ok(());
        }
        let run = VariantRun::of_proof(&self.session, self.candidates.get(id));
        let tried = run.try_out(&self.rig, running, start);
        let ended = running.ended(&mut self.rig);
        // A rate choice needs the trial of every variant. For a prediction, a failed trial does not matter.
        if self.session.lab.rate_choice.is_none() {
            self.candidates.get_mut(id).trial = tried.ok().flatten();
            return Ok(());
        }
        let trial = match tried {
            Ok(trial) if ended.is_none() => trial,
            // A system that ends under a few requests has no number. The reason is its end.
            Ok(_) => {
                return Err(Invalid::new(
                    InvalidKind::Crashed,
                    ended.unwrap_or_default(),
                ));
            }
            Err(symptom) => return Err(root_cause(ended, symptom)),
        };
        self.candidates.get_mut(id).trial = trial;
        Ok(())
    }
}
