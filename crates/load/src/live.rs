//! Counts that a progress display may read while a load runs.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

mod cells;

pub use cells::Durations;
pub(crate) use cells::{Cells, OwnCells};

/// Written by the generator threads about every tenth of a second, so that showing progress costs
/// the hot path nothing. The [`Measurement`](crate::Measurement) is the exact account.
#[derive(Debug, Default)]
pub struct Live {
    /// Slots of the plan; 0 while a closed loop runs for a duration only.
    pub planned: AtomicU64,
    /// Requests sent.
    pub sent: AtomicU64,
    /// Complete, right answers.
    pub passed: AtomicU64,
    /// Complete, wrong answers.
    pub mismatched: AtomicU64,
    /// Requests without a complete answer.
    pub failed: AtomicU64,
    /// Slots that were never sent.
    pub missed: AtomicU64,
    /// Sum of the latencies of the complete answers, in nanoseconds.
    pub latency_sum_ns: AtomicU64,
    /// Whether an answer was 429 or 503.
    pub pushed_back: AtomicBool,
    /// The same for each job, with durations; empty unless asked for.
    jobs: Vec<JobCells>,
}

/// What all threads counted of one job.
#[derive(Debug)]
struct JobCells {
    counts: Counts<AtomicU64>,
    latency: Cells,
    lateness: Cells,
}

/// What is counted of one job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts<N> {
    /// Slots that were begun: of a scenario, iterations.
    pub begun: N,
    /// Of these, those that have ended. The others are under way.
    pub ended: N,
    /// Requests sent.
    pub sent: N,
    /// Complete, right answers.
    pub passed: N,
    /// Complete, wrong answers.
    pub mismatched: N,
    /// Requests without a complete answer.
    pub failed: N,
    /// Slots that were never sent.
    pub missed: N,
}

/// One reading of what was counted of one job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobProgress {
    /// Slots and requests.
    pub counts: Counts<u64>,
    /// Latency of the complete answers, from due.
    pub latency: Durations,
    /// How long after its due time a request left, of the complete answers. In a closed loop, how
    /// long a connection took where one was needed.
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
    /// All counts at zero.
    #[must_use]
    pub fn new() -> Live {
        Live::default()
    }

    /// The same, for so many jobs, each of which is counted apart, with its durations. This costs a
    /// few nanoseconds for each answer, and a microsecond every tenth of a second.
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

    /// What was counted of each job by now; empty without [`Live::with_jobs`].
    #[must_use]
    pub fn read_jobs(&self) -> Vec<JobProgress> {
        let read = |job: &JobCells| JobProgress {
            counts: job.counts.read(),
            latency: job.latency.read(),
            lateness: job.lateness.read(),
        };
        self.jobs.iter().map(read).collect()
    }

    /// Whether durations of this job are wanted.
    pub(crate) fn wants(&self, job: usize) -> bool {
        job < self.jobs.len()
    }

    /// Adds what one thread counted of a job since it last did so.
    pub(crate) fn add_of_job(&self, job: usize, more: &Counts<u64>, own: &mut OwnJob) {
        let Some(job) = self.jobs.get(job) else {
            return;
        };
        job.counts.add(more);
        own.latency.publish(&job.latency);
        own.lateness.publish(&job.lateness);
    }

    /// The counts now. They are read one after the other, so they may differ by a moment.
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

    /// Adds what one thread counted since it last did so.
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

/// What one thread counted of one job.
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
        // Ended before begun, so that a moment between the two shows too many under way and never
        // fewer than none.
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
    /// What these have beyond earlier ones.
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

    /// Adds others to them.
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
    /// Slots that ended one way or the other.
    #[must_use]
    pub fn finished(&self) -> u64 {
        self.passed + self.mismatched + self.failed + self.missed
    }

    /// Mean latency of the complete answers in nanoseconds; `None` before the first.
    #[must_use]
    pub fn latency_mean_ns(&self) -> Option<u64> {
        self.latency_sum_ns
            .checked_div(self.passed + self.mismatched)
    }
}
