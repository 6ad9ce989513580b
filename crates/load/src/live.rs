//! Counts that a progress display may read while a load runs.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

mod cells;

pub use cells::Durations;
pub(crate) use cells::{Cells, OwnCells};

/// Counts of a running load.
///
/// Generator threads write them about every tenth of a second, so progress costs the hot path no time. The
/// [`Measurement`](crate::Measurement) is the exact account.
#[derive(Debug, Default)]
pub struct Live {
    /// Slots of the plan. 0 while a closed loop runs for a duration only.
    pub planned: AtomicU64,
    /// Requests sent.
    pub sent: AtomicU64,
    /// Complete and correct responses.
    pub passed: AtomicU64,
    /// Complete responses that did not match the expectation.
    pub mismatched: AtomicU64,
    /// Requests without a complete response.
    pub failed: AtomicU64,
    /// Slots that were never sent.
    pub missed: AtomicU64,
    /// Sum of the latencies of the complete responses, in nanoseconds.
    pub latency_sum_ns: AtomicU64,
    /// True if a response was 429 or 503.
    pub pushed_back: AtomicBool,
    /// The counts of each job, with durations. Empty without [`Live::with_jobs`].
    jobs: Vec<JobCells>,
}

/// The counts of one job from all threads.
#[derive(Debug)]
struct JobCells {
    counts: Counts<AtomicU64>,
    latency: Cells,
    lateness: Cells,
}

/// The counts of one job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts<N> {
    /// Slots that began. In a scenario, iterations.
    pub begun: N,
    /// Begun slots that have ended.
    pub ended: N,
    /// Requests sent.
    pub sent: N,
    /// Complete and correct responses.
    pub passed: N,
    /// Complete responses that did not match the expectation.
    pub mismatched: N,
    /// Requests without a complete response.
    pub failed: N,
    /// Slots that were never sent.
    pub missed: N,
}

/// One reading of the counts of one job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobProgress {
    /// Counts of slots and requests.
    pub counts: Counts<u64>,
    /// Latency of the complete responses, from due.
    pub latency: Durations,
    /// Time from due to the actual send, of requests with a complete response. In a closed loop, the time to
    /// open a connection, if the request needed one.
    pub lateness: Durations,
}

/// One reading of [`Live`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// See [`Live::planned`].
    pub planned: u64,
    /// See [`Live::sent`].
    pub sent: u64,
    /// See [`Live::passed`].
    pub passed: u64,
    /// See [`Live::mismatched`].
    pub mismatched: u64,
    /// See [`Live::failed`].
    pub failed: u64,
    /// See [`Live::missed`].
    pub missed: u64,
    /// See [`Live::latency_sum_ns`].
    pub latency_sum_ns: u64,
}

impl Live {
    /// Returns counters at zero.
    #[must_use]
    pub fn new() -> Live {
        Live::default()
    }

    /// Returns counters at zero, with separate counts and durations for `jobs` jobs. This costs a few
    /// nanoseconds for each response, and a microsecond every tenth of a second.
    #[must_use]
    pub fn with_jobs(jobs: usize) -> Live {
        let cells = |_| JobCells {
            counts: Counts::default(),
            latency: Cells::new(),
            lateness: Cells::new(),
        };
        Live {
            jobs: (0..jobs).map(cells).collect(),
            ..Live::default()
        }
    }

    /// Returns the current counts of each job. Empty without [`Live::with_jobs`].
    #[must_use]
    pub fn read_jobs(&self) -> Vec<JobProgress> {
        let read = |job: &JobCells| JobProgress {
            counts: job.counts.read(),
            latency: job.latency.read(),
            lateness: job.lateness.read(),
        };
        self.jobs.iter().map(read).collect()
    }

    /// True if durations of this job are counted.
    pub(crate) fn wants(&self, job: usize) -> bool {
        job < self.jobs.len()
    }

    /// Adds the counts of one thread for a job since its last call.
    pub(crate) fn add_of_job(&self, job: usize, more: &Counts<u64>, own: &mut OwnJob) {
        let Some(job) = self.jobs.get(job) else {
            return;
        };
        job.counts.add(more);
        own.latency.publish(&job.latency);
        own.lateness.publish(&job.lateness);
    }

    /// Returns the current counts. They are read one after the other, so they may differ by a moment.
    #[must_use]
    pub fn read(&self) -> Progress {
        Progress {
            planned: self.planned.load(Ordering::Relaxed),
            sent: self.sent.load(Ordering::Relaxed),
            passed: self.passed.load(Ordering::Relaxed),
            mismatched: self.mismatched.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
            missed: self.missed.load(Ordering::Relaxed),
            latency_sum_ns: self.latency_sum_ns.load(Ordering::Relaxed),
        }
    }

    /// Adds the counts of one thread since its last call.
    pub(crate) fn add(&self, more: &Progress) {
        for (total, part) in [
            (&self.planned, more.planned),
            (&self.sent, more.sent),
            (&self.passed, more.passed),
            (&self.mismatched, more.mismatched),
            (&self.failed, more.failed),
            (&self.missed, more.missed),
            (&self.latency_sum_ns, more.latency_sum_ns),
        ] {
            // Relaxed: the counts are displayed, and no other memory is read on their strength.
            total.fetch_add(part, Ordering::Relaxed);
        }
    }
}

/// The durations of one job from one thread.
#[derive(Debug)]
pub(crate) struct OwnJob {
    pub(crate) latency: OwnCells,
    pub(crate) lateness: OwnCells,
    pub(crate) published: Counts<u64>,
}

impl OwnJob {
    pub(crate) fn new() -> OwnJob {
        OwnJob {
            latency: OwnCells::new(),
            lateness: OwnCells::new(),
            published: Counts::default(),
        }
    }
}

impl<N> Counts<N> {
    fn each(&self) -> [&N; 7] {
        [
            &self.begun,
            &self.ended,
            &self.sent,
            &self.passed,
            &self.mismatched,
            &self.failed,
            &self.missed,
        ]
    }
}

impl Counts<AtomicU64> {
    fn add(&self, more: &Counts<u64>) {
        for (total, part) in self.each().into_iter().zip(more.each()) {
            // Relaxed, as above.
            total.fetch_add(*part, Ordering::Relaxed);
        }
    }

    fn read(&self) -> Counts<u64> {
        // `ended` is read before `begun`. A change between the two reads can then show too many slots under
        // way, but never a negative number.
        let ended = self.ended.load(Ordering::Relaxed);
        Counts {
            begun: self.begun.load(Ordering::Relaxed),
            ended,
            sent: self.sent.load(Ordering::Relaxed),
            passed: self.passed.load(Ordering::Relaxed),
            mismatched: self.mismatched.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
            missed: self.missed.load(Ordering::Relaxed),
        }
    }
}

impl Counts<u64> {
    /// Returns the growth since `before`.
    pub(crate) fn since(&self, before: &Counts<u64>) -> Counts<u64> {
        Counts {
            begun: self.begun - before.begun,
            ended: self.ended - before.ended,
            sent: self.sent - before.sent,
            passed: self.passed - before.passed,
            mismatched: self.mismatched - before.mismatched,
            failed: self.failed - before.failed,
            missed: self.missed - before.missed,
        }
    }

    /// Adds other counts.
    pub fn add_all(&mut self, more: &Counts<u64>) {
        self.begun += more.begun;
        self.ended += more.ended;
        self.sent += more.sent;
        self.passed += more.passed;
        self.mismatched += more.mismatched;
        self.failed += more.failed;
        self.missed += more.missed;
    }

    /// Slots that were begun and have not ended.
    #[must_use]
    pub fn under_way(&self) -> u64 {
        self.begun.saturating_sub(self.ended)
    }
}

impl Progress {
    /// Slots that ended, with any outcome.
    #[must_use]
    pub fn finished(&self) -> u64 {
        self.passed + self.mismatched + self.failed + self.missed
    }

    /// Mean latency of the complete responses in nanoseconds. `None` before the first response.
    #[must_use]
    pub fn latency_mean_ns(&self) -> Option<u64> {
        self.latency_sum_ns
            .checked_div(self.passed + self.mismatched)
    }
}
