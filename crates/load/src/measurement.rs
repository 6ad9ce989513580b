//! The result of one load.

use std::collections::BTreeMap;
use std::num::{NonZeroU16, NonZeroU64};
use std::time::{Duration, Instant};

pub use crate::recorder::events::{EventsMeasurement, PositionSum, TimedSum};
pub use model::{
    CodedAnswers, FailureKind, FailureSample, GeneratorCost, Handshakes, Iterations, Outcomes,
    Packets, Pause,
};
use stats::Histogram;

/// The result of one load. Histograms are in nanoseconds.
///
/// Every slot of the plan has exactly one outcome: `planned == outcomes.total()`, always.
#[derive(Clone, Debug)]
pub struct Measurement {
    /// From `due` to the last byte, of complete responses (passed and mismatched). Failed and missed slots
    /// have no latency. They are counted, and a report that shows latency must show them.
    pub latency: Histogram,
    /// From the actual send to the last byte, of complete responses.
    pub service: Histogram,
    /// Actual send minus `due`, of every sent request of an open loop. Empty in a closed loop, which has no
    /// plan.
    pub lateness: Histogram,
    /// Time between two consecutive sends of a plan in one generator thread, as sent. Gaps from a pause of
    /// the generator or a wait for a connection are left out. Empty in a closed loop.
    pub gaps: Histogram,
    /// From `connect` to the established connection, of every connection.
    pub connect: Histogram,
    /// From the actual send to the first byte, of complete responses.
    pub first_byte: Histogram,
    /// From `due` to the first byte, of complete responses.
    pub first_byte_from_due: Histogram,
    /// The events of streamed responses. `None` if no request expects a stream.
    pub events: Option<Box<EventsMeasurement>>,
    /// The outcomes of all slots.
    pub outcomes: Outcomes,
    /// Statuses of the complete responses.
    pub statuses: Statuses,
    /// Bytes read from the target's sockets.
    pub bytes_in: u64,
    /// Bytes of the bodies of complete responses, without framing.
    pub bytes_in_bodies: u64,
    /// Complete responses by `Content-Encoding`, such as `gzip`. Responses without this header are
    /// `identity`.
    pub encodings: BTreeMap<String, u64>,
    /// Correct responses with a `Content-Encoding`, by the method that judged their content.
    pub coded: CodedAnswers,
    /// Bytes written to the target's sockets.
    pub bytes_out: u64,
    /// Slots of the plan. A closed loop plans while it runs, so an end by duration leaves only sent slots. An
    /// interrupted load counts the slots that had an outcome at its end.
    pub planned: u64,
    /// Requests sent.
    pub sent: u64,
    /// Slots that waited because every connection was busy (open loop only). Unless a pause of the generator
    /// caused the queue, the target caused their lateness.
    pub waited: u64,
    /// Connections on which the target sent bytes while no request was under way. They carry no further
    /// request.
    pub unsolicited: u64,
    /// Requests that were sent again because the target had declared them unprocessed (HTTP/2). Such a
    /// request counts once in `sent`. Its latency counts from its due, or without a due from its first send.
    pub sent_again: u64,
    /// Packets that the generator sent. `None` over TCP, whose packets the kernel sends.
    pub packets: Option<Packets>,
    /// Handshakes of TLS. `None` without TLS.
    pub handshakes: Option<Handshakes>,
    /// The duration of the load, the basis of rates and shares of time. It lasts from the start to the
    /// planned end, or to the last outcome if that is later. Without a planned end, or if a number of
    /// requests came before it, it lasts to the last outcome. An interrupted load ends when it stopped.
    pub elapsed: Duration,
    /// From the first send to the last send. The achieved rate is `(sent - 1) / sending`.
    pub sending: Duration,
    /// Length of a window: 100 ms, doubled until a long load has at most 36,000 windows.
    pub window_width: Duration,
    /// Counts of ended slots per window, from the start of the load. The last window is usually a partial
    /// one.
    pub windows: Vec<Window>,
    /// The cost of generating the load.
    pub generator: GeneratorCost,
    /// The first failing pairs of each kind, in order of time.
    pub failures: Vec<FailureSample>,
    /// True if the load was stopped before its end.
    pub interrupted: bool,
    /// The steps of a scenario, in order. Empty for a rotation.
    pub steps: Vec<StepMeasurement>,
    /// The outcomes of the iterations of a scenario. All 0 for a rotation.
    pub iterations: Iterations,
    /// The times of every slot, in the order of their indices, with [`Job::keep_slots`]. Otherwise empty.
    /// Slots that do not count are included.
    ///
    /// [`Job::keep_slots`]: crate::Job::keep_slots
    pub slots: Vec<SlotTimes>,
    /// Latency of complete responses in 24 parts of the load, in order of time, with
    /// [`Job::keep_blocks`](crate::Job::keep_blocks). Otherwise empty. The parts of a load that ends by time
    /// are equally long. The parts of a load that ends by number have equally many responses.
    pub blocks: Vec<Histogram>,
    /// Latency of complete responses by status, in nanoseconds, if a request accepts several statuses
    /// ([`StatusRule::Among`](crate::StatusRule)). Otherwise empty.
    pub latency_by_status: BTreeMap<u16, Histogram>,
    /// Outcomes of slots that began in the uncounted part of a [`Slice`](crate::Slice). Other figures include
    /// only their bytes and connects.
    pub discarded: Outcomes,
    /// The start of the load, the origin of all its times. `None` if the load never began.
    pub began: Option<Instant>,
}

/// The result of one step of a scenario.
#[derive(Clone, Debug)]
pub struct StepMeasurement {
    /// Name of the step.
    pub name: String,
    /// From its due to the last byte, of complete responses, in nanoseconds.
    pub latency: Histogram,
    /// From the actual send to the last byte, of complete responses, in nanoseconds.
    pub service: Histogram,
    /// Outcomes of the step, in all iterations that reached it.
    pub outcomes: Outcomes,
    /// Iterations that ended before it because an earlier step did not pass. They did not send it, so it has
    /// no outcome in them.
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

    /// Adds the account of another thread.
    pub(crate) fn add(&mut self, other: &StepMeasurement) {
        self.latency.add(&other.latency);
        self.service.add(&other.service);
        self.outcomes.add(&other.outcomes);
        self.skipped += other.skipped;
    }
}

impl SlotTimes {
    /// True if its response is complete and correct.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.status.is_some()
    }
}

/// Number of responses per status.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statuses {
    /// The counts by code. Absent codes were not seen.
    pub by_code: BTreeMap<u16, u64>,
}

impl Statuses {
    /// Returns the responses of one class: `class(2)` counts 200 to 299.
    #[must_use]
    pub fn class(&self, hundreds: u16) -> u64 {
        self.by_code
            .range(hundreds * 100..hundreds * 100 + 100)
            .map(|(_, count)| count)
            .sum()
    }
}

/// Counts of one window of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// Complete responses, correct or not.
    pub completed: u64,
    /// Slots that ended mismatched or failed.
    pub errors: u64,
    /// Sum of the latencies of the complete responses, in nanoseconds.
    pub latency_sum_ns: u64,
}

impl Window {
    /// Adds the counts of another window.
    pub(crate) fn add(&mut self, other: &Window) {
        self.completed += other.completed;
        self.errors += other.errors;
        self.latency_sum_ns += other.latency_sum_ns;
    }
}

/// The times of one slot, in nanoseconds from the start of the load. In a scenario, a slot is a whole
/// iteration: due and sent with its first step, done with the response to its last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotTimes {
    /// Position in the whole load, from 0.
    pub index: u32,
    /// Index of the request in the rotation, from 0. The largest number stands for all larger indices. In a
    /// scenario, 0.
    pub request: u16,
    /// The status of a complete and correct response, otherwise `None`.
    pub status: Option<NonZeroU16>,
    /// The due time of the request. In a closed loop, the time of the send, or of the start of its
    /// connection.
    pub due_ns: u64,
    /// The time of the send. The time of the end if it was never sent.
    pub sent_ns: u64,
    /// The time of the end: the last byte, or the failure.
    pub done_ns: u64,
    /// The time of the first byte of the response. The time of the end if no byte arrived.
    pub first_byte_ns: u64,
    /// The time of the first event of a stream. `None` without an event, or in a scenario.
    pub first_event_ns: Option<NonZeroU64>,
}
