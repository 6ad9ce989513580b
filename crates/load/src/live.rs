//! Counts that a progress display may read while a load runs.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

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
