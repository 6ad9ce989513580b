//! What few loads want of each answer, behind one branch of those that do not.

use std::mem;

use stats::Histogram;

use super::{Blocks, Recorder, Times};
use crate::live::{Counts, Live, OwnJob};

/// The finer account of one thread.
#[derive(Default)]
pub(super) struct Finer {
    /// For a recording: latency in parts of the load.
    pub(super) blocks: Option<Blocks>,
    /// For those who look while the load runs.
    pub(super) job: Option<OwnJob>,
}

impl Finer {
    /// A complete answer came.
    pub(super) fn record(&mut self, times: Times) {
        let latency_ns = times.done_ns - times.due_ns;
        if let Some(blocks) = &mut self.blocks {
            blocks.record(times.done_ns, latency_ns);
        }
        if let Some(job) = &mut self.job {
            job.latency.record_ns(latency_ns);
            job.lateness.record_ns(times.sent_ns - times.due_ns);
        }
    }

    pub(super) fn absorb(&mut self, other: &Finer) {
        if let (Some(blocks), Some(others)) = (&mut self.blocks, &other.blocks) {
            blocks.absorb(others);
        }
    }

    pub(super) fn into_latencies(self) -> Vec<Histogram> {
        self.blocks.map_or_else(Vec::new, Blocks::into_latencies)
    }
}

impl Recorder {
    /// Counts durations for those who look while the load runs.
    pub(crate) fn with_live(mut self, is_wanted: bool) -> Recorder {
        if is_wanted {
            self.finer.get_or_insert_default().job = Some(OwnJob::new());
        }
        self
    }

    /// Adds to the live counts of a job, where somebody looks at them.
    pub(super) fn publish_job(&mut self, live: &Live, job: usize, (begun, ended): (u64, u64)) {
        let counts = Counts {
            begun,
            ended,
            sent: self.sent,
            passed: self.outcomes.passed,
            mismatched: self.outcomes.mismatched.total(),
            failed: self.outcomes.failed.total(),
            missed: self.outcomes.missed,
        };
        let own = self.finer.as_mut().and_then(|finer| finer.job.as_mut());
        let Some(own) = own else {
            return;
        };
        let before = mem::replace(&mut own.published, counts);
        live.add_of_job(job, &counts.since(&before), own);
    }
}
