//! The load after a start ([`super::settling`]), to all candidates of a round side by side.

use std::time::Duration;

use load::Job;

use super::Experiment;
use super::beside::Beside;
use super::round::Round;
use super::settling::Settling;
use super::up::Up;
use crate::invalid::Invalid;

/// Load after a start of systems whose like have settled in an earlier round: connections, pools and
/// caches are filled by it.
pub(super) const RESETTLE: Duration = Duration::from_millis(300);

impl Experiment<'_> {
    /// Sends the load that comes once after a start to all candidates at once, until none of them gets
    /// faster: one after the other would take most of a round. Who has settled rests, so that a slow
    /// one among them has the machine for itself.
    /// Gives the processor time per answer of each that it ended with, where that is known.
    pub(super) fn settle_together(
        &mut self,
        round: &Round,
        up: &mut [Up],
        beside: &Beside<'_>,
    ) -> Result<Vec<Option<Duration>>, Invalid> {
        let lab_settle = self.session.lab.settle;
        let mut unsettled = up.iter().filter(|one| !one.running.is_settled).peekable();
        let Some(mut settle) = lab_settle.filter(|_| unsettled.peek().is_some()) else {
            return Ok(vec![None; up.len()]);
        };
        // A single one that has never settled needs the whole time, and all settle at once.
        if unsettled.all(|one| one.running.has_settled_before) {
            settle.within = settle.within.min(RESETTLE);
        }
        let mut settlings: Vec<Settling> = up
            .iter()
            .map(|one| Settling::new(settle, one.running.compiles()))
            .collect();
        let label = beside.label(round, "settling side by side");
        while !self.session.stop.is_asked() {
            // A neighbor that leaves can only make the others faster, which is a gain to them: they
            // go on for longer, never for too short a time.
            let jobs: Vec<(usize, Job)> = (0..up.len())
                .filter(|index| settlings[*index].goes_on())
                .map(|index| {
                    let (one, settling) = (&up[index], &settlings[index]);
                    let turn = self.turn_of(round, one);
                    (index, turn.settling_job(&one.running, settling))
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

    /// One window of that load, to those that have not settled, by their positions.
    fn settling_window(
        &self,
        up: &[Up],
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
            // Divided by no time at all, the speed would be infinite.
            match time.filter(|time| !time.is_zero()) {
                Some(time) => settling.add_in(window.outcomes.passed, time),
                None => settling.add(window),
            }
            if !settling.goes_on() {
                let name = self.candidates.get(up[index].seat.candidate).name();
                tracing::debug!(label, name, steps = settling.steps(), "has settled");
            }
        }
        Ok(())
    }
}
