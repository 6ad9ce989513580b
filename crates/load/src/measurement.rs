//! What one load came to.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

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
    /// Connections that the target spoiled by bytes nobody had asked for, while no request was under
    /// way.
    pub unsolicited: u64,
    /// From the first send to the last answer.
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
    /// Of a scenario: what became of its passes. All 0 for a rotation.
    pub passes: Passes,
    /// The times of every slot, in the order of their indices, where [`Job::keep_slots`] asks for
    /// them; else empty.
    ///
    /// [`Job::keep_slots`]: crate::Job::keep_slots
    pub slots: Vec<SlotTimes>,
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
    /// How it ended, in all passes that came to it.
    pub outcomes: Outcomes,
    /// Passes that ended before it because an earlier step did not pass. It was not sent in them,
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

/// What became of the passes through a scenario.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passes {
    /// All steps passed.
    pub completed: u64,
    /// A step did not pass, which ended the pass.
    pub broken: u64,
    /// The time of a closed loop was over before the last step was due.
    pub cut: u64,
}

impl Passes {
    pub(crate) fn add(&mut self, other: Passes) {
        self.completed += other.completed;
        self.broken += other.broken;
        self.cut += other.cut;
    }
}

/// How every slot ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcomes {
    /// Complete and right.
    pub passed: u64,
    /// Complete and wrong.
    pub mismatched: Mismatched,
    /// Without a complete answer.
    pub failed: Failed,
    /// Due, but never sent: all connections were busy until the grace after the plan had passed.
    pub missed: u64,
}

/// Complete but wrong answers, by the first rule that was broken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mismatched {
    /// Another status.
    pub status: u64,
    /// A top-level `errors` member, or no JSON object at all.
    pub graphql: u64,
    /// Another body.
    pub body: u64,
    /// An expected header is missing or different.
    pub header: u64,
}

/// Requests without a complete answer, by what went wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Failed {
    /// No connection.
    pub connect: u64,
    /// No complete answer in time.
    pub timeout: u64,
    /// The target reset the connection under the request.
    pub reset: u64,
    /// The target closed the connection before the answer was complete.
    pub closed: u64,
    /// What came was not an HTTP answer, or there was more of it than promised.
    pub protocol: u64,
    /// The answer was larger than [`Bounds`](crate::Bounds) allow.
    pub too_large: u64,
}

impl Outcomes {
    /// All slots.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.passed + self.mismatched.total() + self.failed.total() + self.missed
    }

    /// Counts one slot that did not pass.
    pub(crate) fn count(&mut self, kind: FailureKind) {
        *match kind {
            FailureKind::Status => &mut self.mismatched.status,
            FailureKind::Graphql => &mut self.mismatched.graphql,
            FailureKind::Body => &mut self.mismatched.body,
            FailureKind::Header => &mut self.mismatched.header,
            FailureKind::Connect => &mut self.failed.connect,
            FailureKind::Timeout => &mut self.failed.timeout,
            FailureKind::Reset => &mut self.failed.reset,
            FailureKind::Closed => &mut self.failed.closed,
            FailureKind::Protocol => &mut self.failed.protocol,
            FailureKind::TooLarge => &mut self.failed.too_large,
            FailureKind::Missed => &mut self.missed,
        } += 1;
    }

    /// The account of two threads together.
    pub(crate) fn add(&mut self, other: &Outcomes) {
        self.passed += other.passed;
        self.mismatched.status += other.mismatched.status;
        self.mismatched.graphql += other.mismatched.graphql;
        self.mismatched.body += other.mismatched.body;
        self.mismatched.header += other.mismatched.header;
        self.failed.connect += other.failed.connect;
        self.failed.timeout += other.failed.timeout;
        self.failed.reset += other.failed.reset;
        self.failed.closed += other.failed.closed;
        self.failed.protocol += other.failed.protocol;
        self.failed.too_large += other.failed.too_large;
        self.missed += other.missed;
    }
}

impl Mismatched {
    /// All kinds together.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.status + self.graphql + self.body + self.header
    }
}

impl Failed {
    /// All kinds together.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.connect + self.timeout + self.reset + self.closed + self.protocol + self.too_large
    }
}

/// Every way in which a slot can end other than passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FailureKind {
    /// Mismatched: the status.
    Status,
    /// Mismatched: GraphQL errors.
    Graphql,
    /// Mismatched: the body.
    Body,
    /// Mismatched: a header.
    Header,
    /// Failed: no connection.
    Connect,
    /// Failed: no complete answer in time.
    Timeout,
    /// Failed: the connection was reset.
    Reset,
    /// Failed: the connection was closed too early.
    Closed,
    /// Failed: not an HTTP answer.
    Protocol,
    /// Failed: more than the bounds allow.
    TooLarge,
    /// Missed: never sent.
    Missed,
}

impl FailureKind {
    /// Every kind, in the order of the outcomes.
    pub const ALL: [FailureKind; 11] = [
        FailureKind::Status,
        FailureKind::Graphql,
        FailureKind::Body,
        FailureKind::Header,
        FailureKind::Connect,
        FailureKind::Timeout,
        FailureKind::Reset,
        FailureKind::Closed,
        FailureKind::Protocol,
        FailureKind::TooLarge,
        FailureKind::Missed,
    ];

    /// The word that recordings and reports use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            FailureKind::Status => "status",
            FailureKind::Graphql => "graphql",
            FailureKind::Body => "body",
            FailureKind::Header => "header",
            FailureKind::Connect => "connect",
            FailureKind::Timeout => "timeout",
            FailureKind::Reset => "reset",
            FailureKind::Closed => "closed",
            FailureKind::Protocol => "protocol",
            FailureKind::TooLarge => "too-large",
            FailureKind::Missed => "missed",
        }
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
    /// Mean latency of the complete answers; `None` when there were none.
    #[must_use]
    pub fn latency_mean(&self) -> Option<Duration> {
        self.latency_sum_ns
            .checked_div(self.completed)
            .map(Duration::from_nanos)
    }

    /// Puts another window's counts on top.
    pub(crate) fn add(&mut self, other: &Window) {
        self.completed += other.completed;
        self.errors += other.errors;
        self.latency_sum_ns += other.latency_sum_ns;
    }
}

/// What generating the load cost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GeneratorCost {
    /// User and system time of the generator threads, from the start of the load to its end.
    pub cpu: Duration,
    /// Generator threads that really ran.
    pub threads: u32,
    /// How long its threads were ready to run and waited for a CPU that others had, summed over
    /// threads; `None` where the kernel does not count it (`/proc/thread-self/schedstat`).
    pub waited_for_cpu: Option<Duration>,
    /// Whether all its threads could have real-time priority; see
    /// [`Job::realtime`](crate::Job::realtime).
    pub realtime: bool,
    /// How long they had it, summed over threads.
    pub realtime_for: Duration,
    /// When a generator thread did not run although it should have, in order of time.
    pub pauses: Vec<Pause>,
    /// Pauses that are not in the list because it was full.
    pub pauses_dropped: u64,
}

/// A stretch in which a generator thread did not run although there was work: latencies measured
/// across it contain the generator's own delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pause {
    /// Its begin, from the start of the load.
    pub at: Duration,
    /// How long.
    pub length: Duration,
}

/// A slot that did not pass, as evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailureSample {
    /// What was wrong.
    pub kind: FailureKind,
    /// What was wrong, in words.
    pub reason: String,
    /// When it was noticed, from the start of the load.
    pub at: Duration,
    /// The request: its head and the begin of its body.
    pub request: String,
    /// What had come of the answer: its begin; empty if nothing had.
    pub answer: String,
}

/// The times of one slot, in nanoseconds from the start of the load. Of a scenario, a slot is a whole
/// pass: due and sent with its first step, done with the answer to its last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotTimes {
    /// Position in the whole load, from 0.
    pub index: u32,
    /// Complete and right.
    pub passed: bool,
    /// When it should have left; in a closed loop, when it left.
    pub due_ns: u64,
    /// When it left; when it ended, where it never did.
    pub sent_ns: u64,
    /// When it ended: the last byte, or the failure.
    pub done_ns: u64,
}
