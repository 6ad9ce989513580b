//! The settling load after a start ([`super::settling`]), to all candidates of a round side by side.

use std::time::Duration;

use load::Job;

use super::Experiment;
use super::group_round::GroupContext;
use super::round::Round;
use super::running_variant::RunningVariant;
use super::settling::Settling;
use crate::invalid::Invalid;

/// Length of the settling load if equal systems have settled in an earlier round. It fills connections, pools
/// and caches.
pub(super) const RESETTLE: Duration = Duration::from_millis(300);

impl Experiment<'_> {
    /// Sends the settling load to all candidates at once, until no candidate gets faster. One after the other
    /// would take most of a round. A settled candidate receives no more load, so that a slow candidate has
    /// the machine for itself. Returns the final processor time per response of each candidate, if it is
    /// known.
    pub(super) fn settle_together(
        &mut self,
        round: &Round,
        up: &mut [RunningVariant],
        context: &GroupContext<'_>,
    ) -> Result<Vec<Option<Duration>>, Invalid> {
        let lab_settle = self.session.lab.settle;
        let mut unsettled = up.iter().filter(|one| !one.running.is_settled).peekable();
        let Some(mut settle) = lab_settle.filter(|_| unsettled.peek().is_some()) else {
            return Ok(vec![None; up.len()]);
        };
        // A candidate that has never settled needs the whole time, and all settle at once.
        if unsettled.all(|one| one.running.has_settled_before) {
            settle.within = settle.within.min(RESETTLE);
        }
        let mut settlings: Vec<Settling> = up
            .iter()
            .map(|one| Settling::new(settle, one.running.compiles()))
            .collect();
        let label = context.label(round, "settling side by side");
        while !self.session.stop.is_asked() {
            // If one candidate finishes, the other candidates can only get faster. That counts as a gain, so
            // they settle longer and never too briefly.
            let jobs: Vec<(usize, Job)> = (0..up.len())
                .filter(|index| settlings[*index].goes_on())
                .map(|index| {
                    let (one, settling) = (&up[index], &settlings[index]);
                    let run = self.run_of(round, one);
                    (index, run.settling_job(&one.running, settling))
                })
                .collect();
            if jobs.is_empty() {
                break;
            }
            self.settling_window(up, &jobs, &mut settlings, &label)?;
        }
        for one in up {
            one.running.is_settled = true;
        }
        Ok(settlings.iter().map(Settling::cost).collect())
    }

    /// Sends one window of the settling load to the unsettled candidates, by their positions.
    fn settling_window(
        &self,
        up: &[RunningVariant],
        jobs: &[(usize, Job)],
        settlings: &mut [Settling],
        label: &str,
    ) -> Result<(), Invalid> {
        let (busy, jobs): (Vec<usize>, Vec<Job>) = jobs.iter().cloned().unzip();
        let processor_time = || -> Vec<Option<Duration>> {
            let systems = busy.iter().map(|&index| &up[index].running.systems);
            systems
                .map(|systems| systems.processor_time(&self.rig))
                .collect()
        };
        let before = processor_time();
        let (windows, after) = self
            .session
            .discard_together(&jobs, label, processor_time)?;
        let times = before.into_iter().zip(after);
        for ((&index, window), (before, after)) in busy.iter().zip(&windows).zip(times) {
            let settling = &mut settlings[index];
            let time = before
                .zip(after)
                .map(|(before, after)| after.saturating_sub(before));
            // Without any processor time, the speed would be infinite.
            match time.filter(|time| !time.is_zero()) {
                Some(time) => settling.add_in(window.outcomes.passed, time),
                None => settling.add(window),
            }
            if !settling.goes_on() {
                let name = self.candidates.get(up[index].position.candidate).name();
                tracing::debug!(label, name, steps = settling.steps(), "has settled");
            }
        }
        Ok(())
    }
}
