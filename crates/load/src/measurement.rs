//! What one load came to.

use std::collections::BTreeMap;
use std::num::NonZeroU16;
use std::time::{Duration, Instant};

pub use model::{
    CodedAnswers, FailureKind, FailureSample, GeneratorCost, Iterations, Outcomes, Pause,
};
use stats::Histogram;

/// What one load came to. Histograms are in nanoseconds.
///
/// Every slot of the plan has exactly one outcome: `planned == outcomes.total()`, always.
#[derive(Clone, Debug)]
pub struct Measurement {
    /// From `due` to the last byte, of complete answers (passed and mismatched). Failed and missed
    /// slots have no latency; they are counted, and a report that shows latency must show them.
    pub latency: Histogram,
    /// From the actual send to the last byte, of complete answers.
    pub service: Histogram,
    /// Actual send minus `due`, of every request of an open loop that was sent. Empty in a closed
    /// loop, which has no plan to be late for.
    pub lateness: Histogram,
    /// Between one send of a plan and the next one of the same generator thread, as sent. Gaps that a
    /// pause of the generator or a wait for a connection has made are left out. Empty in a closed
    /// loop.
    pub gaps: Histogram,
    /// From `connect` to the established connection, of every connection.
    pub connect: Histogram,
    /// From the actual send to the first byte, of complete answers.
    pub first_byte: Histogram,
    /// How every slot ended.
    pub outcomes: Outcomes,
    /// Statuses of the complete answers.
    pub statuses: Statuses,
    /// Bytes read from the target's sockets.
    pub bytes_in: u64,
    /// Bytes of the bodies of complete answers, without framing.
    pub bytes_in_bodies: u64,
    /// Complete responses by `Content-Encoding`, such as `gzip`. Responses without one are `identity`.
    pub encodings: BTreeMap<String, u64>,
    /// Right answers with a `Content-Encoding`, by how their content was judged.
    pub coded: CodedAnswers,
    /// Bytes written to the target's sockets.
    pub bytes_out: u64,
    /// Slots of the plan. A closed loop plans as it goes, so an end by duration leaves only sent
    /// ones; an interrupted load counts the slots that had an outcome when it ended.
    pub planned: u64,
    /// Requests that left.
    pub sent: u64,
    /// Slots that had to wait because every connection was busy (open loop only). Unless a pause of
    /// the generator caused the queue, their lateness is the target's doing.
    pub waited: u64,
    /// Connections on which the target sent bytes while no request was under way; they carry no further
    /// request.
    pub unsolicited: u64,
    /// How often a request was sent again because the target had declared it unprocessed (HTTP/2). It
    /// counts once in `sent`, and its latency counts from its due, or where it has none, from its first
    /// send.
    pub sent_again: u64,
    /// The time of the load, to which rates and shares of time refer: from its start to its planned
    /// end, or to the last outcome where that is later. Without a planned end, or where a number of
    /// requests came before it, to the last outcome. An interrupted load ends when it stopped.
    pub elapsed: Duration,
    /// From the first send to the last send: `(sent - 1) / sending` is the rate that was achieved.
    pub sending: Duration,
    /// Length of a window: 100 ms, doubled as often as it takes to keep a long load at 36,000.
    pub window_width: Duration,
    /// What ended when, from the start of the load. The last window is usually a partial one.
    pub windows: Vec<Window>,
    /// What generating the load cost.
    pub generator: GeneratorCost,
    /// The first failing pairs of each kind, in order of time.
    pub failures: Vec<FailureSample>,
    /// The load was stopped before its end.
    pub interrupted: bool,
    /// Of a scenario, each step apart, in order; empty for a rotation.
    pub steps: Vec<StepMeasurement>,
    /// Of a scenario: what became of its iterations. All 0 for a rotation.
    pub iterations: Iterations,
    /// The times of every slot, in the order of their indices, where [`Job::keep_slots`] asks for
    /// them; else empty. Those that do not count are among them.
    ///
    /// [`Job::keep_slots`]: crate::Job::keep_slots
    pub slots: Vec<SlotTimes>,
    /// Latency of complete answers in 24 parts of the load, in order of time, where
    /// [`Job::keep_blocks`](crate::Job::keep_blocks) asks for them; else empty. Parts of a load that ends by
    /// time are equally long, those of one that ends by number have equally many answers.
    pub blocks: Vec<Histogram>,
    /// Latency of complete answers by status, in nanoseconds, where a request accepts several statuses
    /// ([`StatusRule::Among`](crate::StatusRule)); else empty.
    pub latency_by_status: BTreeMap<u16, Histogram>,
    /// How slots ended that began in the uncounted part of a [`Slice`](crate::Slice). Nothing but bytes
    /// and connects of them is in any other figure.
    pub discarded: Outcomes,
    /// The start of the load, from which all its times count; `None` where a load never began.
    pub began: Option<Instant>,
}

/// What one step of a scenario came to.
#[derive(Clone, Debug)]
pub struct StepMeasurement {
    /// Its name.
    pub name: String,
    /// From its due to the last byte, of complete answers, in nanoseconds.
    pub latency: Histogram,
    /// From the actual send to the last byte, of complete answers, in nanoseconds.
    pub service: Histogram,
    /// How it ended, in all iterations that came to it.
    pub outcomes: Outcomes,
    /// Iterations that ended before it because an earlier step did not pass. It was not sent in them,
    /// so it has no outcome there.
    pub skipped: u64,
}

impl StepMeasurement {
    pub(crate) fn new(name: String) -> StepMeasurement {
        StepMeasurement {
            name,
            latency: Histogram::new(),
            service: Histogram::new(),
            outcomes: Outcomes::default(),
            skipped: 0,
        }
    }

    /// Puts another thread's account on top.
    pub(crate) fn add(&mut self, other: &StepMeasurement) {
        self.latency.add(&other.latency);
        self.service.add(&other.service);
        self.outcomes.add(&other.outcomes);
        self.skipped += other.skipped;
    }
}

impl SlotTimes {
    /// True if its answer is complete and right.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.status.is_some()
    }
}

/// How often each status was answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statuses {
    /// Only codes that were seen.
    pub by_code: BTreeMap<u16, u64>,
}

impl Statuses {
    /// Answers of one class: `class(2)` counts 200 to 299.
    #[must_use]
    pub fn class(&self, hundreds: u16) -> u64 {
        self.by_code
            .range(hundreds * 100..hundreds * 100 + 100)
            .map(|(_, count)| count)
            .sum()
    }
}

/// What ended in one stretch of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// Complete answers, right or wrong.
    pub completed: u64,
    /// Slots that ended mismatched or failed.
    pub errors: u64,
    /// Sum of the latencies of the complete answers, in nanoseconds.
    pub latency_sum_ns: u64,
}

impl Window {
    /// Puts another window's counts on top.
    pub(crate) fn add(&mut self, other: &Window) {
        self.completed += other.completed;
        self.errors += other.errors;
        self.latency_sum_ns += other.latency_sum_ns;
    }
}

/// The times of one slot, in nanoseconds from the start of the load. Of a scenario, a slot is a whole
/// iteration: due and sent with its first step, done with the answer to its last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotTimes {
    /// Position in the whole load, from 0.
    pub index: u32,
    /// Which request of the rotation, from 0; the largest number stands for all beyond it. Of a scenario,
    /// 0.
    pub request: u16,
    /// The status of a complete and right answer; absent otherwise.
    pub status: Option<NonZeroU16>,
    /// When it should have left; in a closed loop, when it left, or when the connection for it began to
    /// be opened.
    pub due_ns: u64,
    /// When it left; when it ended, where it never did.
    pub sent_ns: u64,
    /// When it ended: the last byte, or the failure.
    pub done_ns: u64,
}
