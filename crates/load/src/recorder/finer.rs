//! Details of each response that only a few loads request. For all other loads they cost one branch.

use std::collections::BTreeMap;
use std::mem;

use stats::Histogram;

use super::{Blocks, Recorder, Times};
use crate::live::{Counts, Live, OwnJob};

/// The finer account of one thread.
#[derive(Default)]
pub(super) struct Finer {
    /// Latency in parts of the load, for a recording.
    pub(super) blocks: Option<Blocks>,
    /// Counts of the job that other programs read while the load runs.
    pub(super) job: Option<OwnJob>,
    /// Latency of each status, if several are correct.
    by_status: Option<BTreeMap<u16, Histogram>>,
}

impl Finer {
    /// Records a complete response.
    pub(super) fn record(&mut self, times: Times, status: u16) {
        let latency_ns = times.done_ns - times.due_ns;
        if let Some(blocks) = &mut self.blocks {
            blocks.record(times.done_ns, latency_ns);
        }
        if let Some(job) = &mut self.job {
            job.latency.record_ns(latency_ns);
            job.lateness.record_ns(times.sent_ns - times.due_ns);
        }
        if let Some(by_status) = &mut self.by_status {
            by_status
                .entry(status)
                .or_insert_with(Histogram::new)
                .record_ns(latency_ns);
        }
    }

    pub(super) fn absorb(&mut self, other: &Finer) {
        if let (Some(blocks), Some(others)) = (&mut self.blocks, &other.blocks) {
            blocks.absorb(others);
        }
        if let (Some(own), Some(others)) = (&mut self.by_status, &other.by_status) {
            for (status, latency) in others {
                own.entry(*status)
                    .or_insert_with(Histogram::new)
                    .add(latency);
            }
        }
    }

    /// Returns latency in blocks, and by status.
    pub(super) fn into_latencies(self) -> (Vec<Histogram>, BTreeMap<u16, Histogram>) {
        (
            self.blocks.map_or_else(Vec::new, Blocks::into_latencies),
            self.by_status.unwrap_or_default(),
        )
    }
}

impl Recorder {
    /// Counts durations for readers while the load runs.
    pub(crate) fn with_live(mut self, is_wanted: bool) -> Recorder {
        if is_wanted {
            self.finer.get_or_insert_default().job = Some(OwnJob::new());
        }
        self
    }

    /// Keeps the latency of each status separately.
    pub(crate) fn with_statuses_apart(mut self, is_wanted: bool) -> Recorder {
        if is_wanted {
            self.finer.get_or_insert_default().by_status = Some(BTreeMap::new());
        }
        self
    }

    /// Adds to the live counts of a job, if they have readers.
    pub(super) fn publish_job(&mut self, live: &Live, job: usize, begun: u64, ended: u64) {
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
