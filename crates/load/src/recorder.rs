//! The account of one generator thread: constant memory, and minimal work per request.

use std::num::{NonZeroU16, NonZeroU64};
use std::sync::atomic::Ordering;
use std::time::Duration;

use model::{CodedAnswers, Handshakes, Packets, StatusRule, handshakes, packets};
use stats::Histogram;

use crate::clock::Clock;
use crate::live::{Live, Progress};
use crate::measurement::{
    FailureKind, FailureSample, GeneratorCost, Iterations, Measurement, Outcomes, Pause, SlotTimes,
    Statuses, StepMeasurement,
};

mod blocks;
pub(crate) mod encodings;
pub(crate) mod events;
mod finer;
#[cfg(test)]
mod tests;
mod windows;
pub(crate) mod wrong;

pub(crate) use blocks::Blocks;
use encodings::Encodings;
use events::Events;
use finer::Finer;
use windows::Windows;

/// Bytes of a request or a response that are kept as evidence.
pub(crate) const EXCERPT_BYTES: usize = 4096;

/// Pauses beyond this many are only counted.
const PAUSES_MAX: usize = 1000;

/// The times of one request with a response.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    pub(crate) due_ns: u64,
    pub(crate) sent_ns: u64,
    pub(crate) first_byte_ns: u64,
    /// Time of the first event of a stream. 0 without an event.
    pub(crate) first_event_ns: u64,
    pub(crate) done_ns: u64,
}

/// Request and response of a slot that did not pass.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Evidence<'a> {
    pub(crate) request: &'a [u8],
    /// The received part of the response, in two stretches.
    pub(crate) answer: [&'a [u8]; 2],
}

/// The account of one generator thread, and finally of all threads.
pub(crate) struct Recorder {
    start_ns: u64,
    /// Latency, service time and first byte at once. In most responses they are equal, and one count is a
    /// third of the work.
    all_equal: Histogram,
    /// Service time and first byte at once.
    whole_at_once: Histogram,
    /// Latency and first byte from due at once.
    whole_from_due: Histogram,
    latency: Histogram,
    service: Histogram,
    first_byte: Histogram,
    first_byte_from_due: Histogram,
    /// The events of streams, if a request expects a stream.
    pub(crate) events: Option<Box<Events>>,
    lateness: Histogram,
    gaps: Histogram,
    /// The previous send, the start of the next gap.
    gap_from_ns: Option<u64>,
    /// Slots with an earlier due were delayed by a pause.
    pause_end_ns: u64,
    pub(crate) connect: Histogram,
    outcomes: Outcomes,
    /// Outcomes of slots that do not count.
    discarded: Outcomes,
    statuses: Vec<u64>,
    pub(crate) bytes_in: u64,
    pub(crate) bytes_in_bodies: u64,
    pub(crate) encodings: Encodings,
    pub(crate) coded: CodedAnswers,
    pub(crate) bytes_out: u64,
    waited: u64,
    pub(crate) unsolicited: u64,
    pub(crate) sent_again: u64,
    /// `None` if the packets are not those of the generator.
    pub(crate) packets: Option<Packets>,
    /// `None` without TLS.
    pub(crate) handshakes: Option<Handshakes>,
    sent: u64,
    first_sent_ns: u64,
    last_sent_ns: u64,
    /// The latest response, timeout or other end of a request.
    last_outcome_ns: u64,
    latency_sum_ns: u64,
    windows: Windows,
    /// Details of each response that only a few loads request.
    finer: Option<Finer>,
    failures: Vec<FailureSample>,
    failures_kept: usize,
    pauses: Vec<Pause>,
    pauses_dropped: u64,
    published: Progress,
    /// The steps of a scenario, each with its own account.
    pub(crate) steps: Vec<StepMeasurement>,
    pub(crate) iterations: Iterations,
    /// The times of every slot, if the job requests them and there were not too many slots.
    slots: Option<Vec<SlotTimes>>,
    /// The largest number of slots with kept times.
    slots_most: usize,
}

impl Recorder {
    pub(crate) fn new(start_ns: u64, failures_kept: usize) -> Recorder {
        Recorder {
            start_ns,
            all_equal: Histogram::new(),
            whole_at_once: Histogram::new(),
            whole_from_due: Histogram::new(),
            latency: Histogram::new(),
            service: Histogram::new(),
            first_byte: Histogram::new(),
            first_byte_from_due: Histogram::new(),
            events: None,
            lateness: Histogram::new(),
            gaps: Histogram::new(),
            gap_from_ns: None,
            pause_end_ns: 0,
            connect: Histogram::new(),
            outcomes: Outcomes::default(),
            discarded: Outcomes::default(),
            // Indexed by status, so that a count needs no search. A status has three digits.
            statuses: vec![0; 1000],
            bytes_in: 0,
            bytes_in_bodies: 0,
            encodings: Encodings::default(),
            coded: CodedAnswers::default(),
            bytes_out: 0,
            waited: 0,
            unsolicited: 0,
            sent_again: 0,
            packets: None,
            handshakes: None,
            sent: 0,
            // Later than any send, for `min`.
            first_sent_ns: u64::MAX,
            last_sent_ns: 0,
            last_outcome_ns: 0,
            latency_sum_ns: 0,
            windows: Windows::new(start_ns),
            finer: None,
            failures: Vec::new(),
            failures_kept,
            pauses: Vec::new(),
            pauses_dropped: 0,
            published: Progress::default(),
            steps: Vec::new(),
            iterations: Iterations::default(),
            slots: None,
            slots_most: 0,
        }
    }

    /// Keeps the times of every slot. With more than `most` slots, keeps no times.
    pub(crate) fn with_slots(mut self, most: Option<usize>) -> Recorder {
        // Room for all slots at once. Growing the list during the load would delay responses.
        self.slots = most.map(Vec::with_capacity);
        self.slots_most = most.unwrap_or(0);
        self
    }

    /// Also keeps latency in blocks.
    pub(crate) fn with_blocks(mut self, blocks: Option<Blocks>) -> Recorder {
        if blocks.is_some() {
            self.finer.get_or_insert_default().blocks = blocks;
        }
        self
    }

    /// Also records events of streams, with time stamps by this clock.
    pub(crate) fn with_events(mut self, clock: Option<Clock>) -> Recorder {
        self.events = clock.map(|clock| Box::new(Events::new(clock)));
        self
    }

    #[inline]
    pub(crate) fn keeps_slots(&self) -> bool {
        self.slots.is_some()
    }

    /// Records the end of a slot, with the status of its response if that is complete and correct.
    pub(crate) fn slot_ended(
        &mut self,
        index: u64,
        request: usize,
        times: Times,
        status: Option<NonZeroU16>,
    ) {
        let Some(slots) = &mut self.slots else {
            return;
        };
        if slots.len() >= self.slots_most {
            // The times of some slots alone would not describe the load.
            self.slots = None;
            return;
        }
        slots.push(SlotTimes {
            index: u32::try_from(index).expect("no run keeps more slots than 32 bits count"),
            request: u16::try_from(request).unwrap_or(u16::MAX),
            status,
            due_ns: times.due_ns - self.start_ns,
            sent_ns: times.sent_ns - self.start_ns,
            done_ns: times.done_ns - self.start_ns,
            first_byte_ns: times.first_byte_ns.saturating_sub(self.start_ns),
            first_event_ns: NonZeroU64::new(times.first_event_ns.saturating_sub(self.start_ns)),
        });
    }

    /// Returns the number of slots with an outcome. In a scenario, iterations.
    pub(crate) fn slots_ended(&self) -> u64 {
        if self.steps.is_empty() {
            return self.outcomes.total() + self.discarded.total();
        }
        self.iterations.completed + self.iterations.broken + self.iterations.cut
    }

    /// Adds accounts for the steps of a scenario with these names.
    pub(crate) fn for_steps(mut self, names: impl Iterator<Item = String>) -> Recorder {
        self.steps = names.map(StepMeasurement::new).collect();
        self
    }

    /// Records a complete response to this step.
    pub(crate) fn step_answered(&mut self, step: usize, times: Times, is_right: bool) {
        let step = &mut self.steps[step];
        let latency_ns = times.done_ns - times.due_ns;
        step.latency.record_ns(latency_ns);
        step.service.record_ns(times.done_ns - times.sent_ns);
        step.outcomes.passed += u64::from(is_right);
    }

    /// Records the end of a step that did not pass. Its iteration ends with it.
    pub(crate) fn step_failed(&mut self, step: usize, kind: FailureKind) {
        let Some(failed) = self.steps.get_mut(step) else {
            return;
        };
        failed.outcomes.count(kind);
        self.iterations.broken += 1;
        for later in &mut self.steps[step + 1..] {
            later.skipped += 1;
        }
    }

    /// Records a send. `due_ns` is its due time in a plan.
    #[inline]
    pub(crate) fn sent(&mut self, sent_ns: u64, due_ns: Option<u64>) {
        self.sent += 1;
        self.first_sent_ns = self.first_sent_ns.min(sent_ns);
        self.last_sent_ns = sent_ns;
        if let Some(due_ns) = due_ns {
            debug_assert!(sent_ns >= due_ns, "no request leaves before it is due");
            self.lateness.record_ns(sent_ns - due_ns);
            self.gap(sent_ns, due_ns);
        }
    }

    /// Records the gap before a planned send, unless a pause delayed the send. Pauses have their own account.
    #[inline]
    fn gap(&mut self, sent_ns: u64, due_ns: u64) {
        if due_ns < self.pause_end_ns {
            // The next gap would begin at a delayed send, so it is left out, too.
            self.gap_from_ns = None;
            return;
        }
        if let Some(from_ns) = self.gap_from_ns.replace(sent_ns) {
            self.gaps.record_ns(sent_ns - from_ns);
        }
    }

    /// Records that the next send waited for a connection. The target then decides when it leaves.
    #[inline]
    pub(crate) fn waited(&mut self, now_ns: u64) {
        self.waited += 1;
        self.pause_end_ns = self.pause_end_ns.max(now_ns);
    }

    /// Records a complete response.
    #[inline]
    pub(crate) fn answered(&mut self, times: Times, status: u16, is_right: bool) {
        debug_assert!(
            times.due_ns <= times.sent_ns && times.sent_ns <= times.first_byte_ns,
            "the clock of a thread never goes back: {times:?}"
        );
        let service_ns = times.done_ns - times.sent_ns;
        let latency_ns = times.done_ns - times.due_ns;
        let is_whole = times.first_byte_ns == times.done_ns;
        if is_whole && latency_ns == service_ns {
            self.all_equal.record_ns(latency_ns);
        } else if is_whole {
            self.whole_from_due.record_ns(latency_ns);
            self.whole_at_once.record_ns(service_ns);
        } else {
            self.latency.record_ns(latency_ns);
            self.service.record_ns(service_ns);
            self.first_byte
                .record_ns(times.first_byte_ns - times.sent_ns);
            self.first_byte_from_due
                .record_ns(times.first_byte_ns - times.due_ns);
        }
        // Not clamped: parser and library refuse a status of more than three digits.
        self.statuses[usize::from(status)] += 1;
        self.latency_sum_ns += latency_ns;
        self.last_outcome_ns = times.done_ns;
        let window = self.windows.at(times.done_ns);
        window.completed += 1;
        window.latency_sum_ns += latency_ns;
        if let Some(finer) = &mut self.finer {
            finer.record(times, status);
        }
        if is_right {
            self.outcomes.passed += 1;
        }
    }

    /// Records the end of a slot that does not count: passed, or with this failure.
    pub(crate) fn discard(&mut self, failure: Option<FailureKind>) {
        match failure {
            None => self.discarded.passed += 1,
            Some(kind) => self.discarded.count(kind),
        }
    }

    /// Records the end of a slot that did not pass. The reason is only formatted if it is kept.
    pub(crate) fn failed(
        &mut self,
        kind: FailureKind,
        at_ns: u64,
        evidence: Evidence<'_>,
        reason: impl FnOnce() -> String,
    ) {
        self.outcomes.count(kind);
        self.last_outcome_ns = self.last_outcome_ns.max(at_ns);
        if kind != FailureKind::Missed {
            self.windows.at(at_ns).errors += 1;
        }
        // A walk over a short list: at most `failures_kept` of each kind.
        let kept = self
            .failures
            .iter()
            .filter(|sample| sample.kind == kind)
            .count();
        if kept < self.failures_kept {
            self.failures.push(FailureSample {
                kind,
                reason: reason(),
                at: self.since_start(at_ns),
                request: excerpt([evidence.request, &[]]),
                answer: excerpt(evidence.answer),
            });
        }
    }

    /// Records a pause of the thread.
    pub(crate) fn paused(&mut self, at_ns: u64, length_ns: u64) {
        self.pause_end_ns = self.pause_end_ns.max(at_ns + length_ns);
        if self.pauses.len() < PAUSES_MAX {
            self.pauses.push(Pause {
                at: self.since_start(at_ns),
                length: Duration::from_nanos(length_ns),
            });
        } else {
            self.pauses_dropped += 1;
        }
    }

    /// Adds the events since the last call to the live counts. `job` is the number of the job. `begun` and
    /// `ended` are numbers of slots.
    pub(crate) fn publish(&mut self, live: &Live, job: usize, begun: u64, ended: u64) {
        let now = Progress {
            planned: 0,
            sent: self.sent,
            passed: self.outcomes.passed,
            mismatched: self.outcomes.mismatched.total(),
            failed: self.outcomes.failed.total(),
            missed: self.outcomes.missed,
            latency_sum_ns: self.latency_sum_ns,
        };
        let pushed_back = |status: &u16| self.statuses[usize::from(*status)] > 0;
        if StatusRule::PUSHED_BACK.iter().any(pushed_back) {
            live.pushed_back.store(true, Ordering::Relaxed);
        }
        let before = std::mem::replace(&mut self.published, now);
        live.add(&Progress {
            // Added once for all threads, before they begin.
            planned: 0,
            sent: now.sent - before.sent,
            passed: now.passed - before.passed,
            mismatched: now.mismatched - before.mismatched,
            failed: now.failed - before.failed,
            missed: now.missed - before.missed,
            latency_sum_ns: now.latency_sum_ns - before.latency_sum_ns,
        });
        self.publish_job(live, job, begun, ended);
    }

    /// Adds the account of another thread.
    pub(crate) fn absorb(&mut self, other: Recorder) {
        self.all_equal.add(&other.all_equal);
        self.whole_at_once.add(&other.whole_at_once);
        self.whole_from_due.add(&other.whole_from_due);
        self.first_byte_from_due.add(&other.first_byte_from_due);
        if let (Some(own), Some(others)) = (&mut self.events, &other.events) {
            own.absorb(others);
        }
        self.latency.add(&other.latency);
        self.service.add(&other.service);
        self.first_byte.add(&other.first_byte);
        self.lateness.add(&other.lateness);
        self.gaps.add(&other.gaps);
        self.connect.add(&other.connect);
        self.outcomes.add(&other.outcomes);
        self.discarded.add(&other.discarded);
        for (total, part) in self.statuses.iter_mut().zip(&other.statuses) {
            *total += part;
        }
        self.bytes_in += other.bytes_in;
        self.bytes_in_bodies += other.bytes_in_bodies;
        self.encodings.absorb(&other.encodings);
        self.coded.add(&other.coded);
        self.bytes_out += other.bytes_out;
        self.waited += other.waited;
        self.unsolicited += other.unsolicited;
        self.sent_again += other.sent_again;
        self.packets = packets([self.packets, other.packets]);
        self.handshakes = handshakes([self.handshakes, other.handshakes]);
        self.sent += other.sent;
        self.first_sent_ns = self.first_sent_ns.min(other.first_sent_ns);
        self.last_sent_ns = self.last_sent_ns.max(other.last_sent_ns);
        self.last_outcome_ns = self.last_outcome_ns.max(other.last_outcome_ns);
        self.windows.absorb(other.windows);
        if let (Some(finer), Some(others)) = (&mut self.finer, &other.finer) {
            finer.absorb(others);
        }
        // There may now be too many of a kind. `into_measurement` keeps the first of each kind.
        self.failures.extend(other.failures);
        self.pauses.extend(other.pauses);
        self.pauses_dropped += other.pauses_dropped;
        self.iterations.add(other.iterations);
        for (total, part) in self.steps.iter_mut().zip(&other.steps) {
            total.add(part);
        }
        // If one thread had too many slots, the slots of the other threads are incomplete.
        self.slots = match (self.slots.take(), other.slots) {
            (Some(mut slots), Some(others)) => {
                slots.extend(others);
                Some(slots)
            }
            _ => None,
        };
    }

    /// Returns the start of the load.
    pub(crate) fn start_ns(&self) -> u64 {
        self.start_ns
    }

    /// Returns the final account. The load lasts until `end_ns`, or until its last outcome if that is later
    /// or there is no end.
    pub(crate) fn into_measurement(
        mut self,
        mut generator: GeneratorCost,
        end_ns: Option<u64>,
    ) -> Measurement {
        let each = [
            &mut self.latency,
            &mut self.service,
            &mut self.first_byte,
            &mut self.first_byte_from_due,
        ];
        for histogram in each {
            histogram.add(&self.all_equal);
        }
        self.service.add(&self.whole_at_once);
        self.first_byte.add(&self.whole_at_once);
        self.latency.add(&self.whole_from_due);
        self.first_byte_from_due.add(&self.whole_from_due);
        // Each thread lists its pauses in order of time. The combined list is not in order.
        self.pauses.sort_unstable();
        let slots = in_order(self.slots);
        let events = self.events.map(|events| events.into_measurement());
        generator.pauses = self.pauses;
        generator.pauses_dropped = self.pauses_dropped;
        // Without a plan, no slot is due before the first send, which may wait for connections.
        let from_ns = match end_ns {
            None if self.sent > 0 => self.first_sent_ns.max(self.start_ns),
            _ => self.start_ns,
        };
        let end_ns = self.last_outcome_ns.max(end_ns.unwrap_or(0));
        // Without an end or an outcome no time has passed.
        let elapsed_ns = end_ns.saturating_sub(from_ns);
        if elapsed_ns > 0 {
            // Windows without ended slots are a part of the load, too.
            self.windows.at(end_ns - 1);
        }
        // Without a send the first is later than the last.
        let sending_ns = self.last_sent_ns.saturating_sub(self.first_sent_ns);
        let (window_width, windows) = self.windows.into_parts();
        let (blocks, latency_by_status) = self
            .finer
            .map_or_else(Default::default, Finer::into_latencies);
        Measurement {
            latency: self.latency,
            service: self.service,
            lateness: self.lateness,
            gaps: self.gaps,
            connect: self.connect,
            first_byte: self.first_byte,
            first_byte_from_due: self.first_byte_from_due,
            events: events.map(Box::new),
            outcomes: self.outcomes,
            statuses: statuses(&self.statuses),
            bytes_in: self.bytes_in,
            bytes_in_bodies: self.bytes_in_bodies,
            encodings: self.encodings.into_counts(),
            coded: self.coded,
            bytes_out: self.bytes_out,
            planned: self.outcomes.total(),
            sent: self.sent,
            waited: self.waited,
            unsolicited: self.unsolicited,
            sent_again: self.sent_again,
            packets: self.packets,
            handshakes: self.handshakes,
            elapsed: Duration::from_nanos(elapsed_ns),
            sending: Duration::from_nanos(sending_ns),
            window_width,
            windows,
            generator,
            failures: first_of_each_kind(self.failures, self.failures_kept),
            interrupted: false,
            steps: self.steps,
            iterations: self.iterations,
            slots,
            blocks,
            latency_by_status,
            discarded: self.discarded,
            began: None,
        }
    }

    fn since_start(&self, at_ns: u64) -> Duration {
        // A pause may have begun in the lead, before the first slot was due.
        Duration::from_nanos(at_ns.saturating_sub(self.start_ns))
    }
}

/// Returns the times of slots by index. Empty if the job did not request them, or if there were too many.
fn in_order(slots: Option<Vec<SlotTimes>>) -> Vec<SlotTimes> {
    let mut slots = slots.unwrap_or_default();
    // Responses end slots in any order, and slots are spread over threads.
    slots.sort_unstable_by_key(|slot| slot.index);
    slots
}

fn excerpt(stretches: [&[u8]; 2]) -> String {
    let bytes: Vec<u8> = stretches
        .into_iter()
        .flatten()
        .copied()
        .take(EXCERPT_BYTES)
        .collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn statuses(counts: &[u64]) -> Statuses {
    Statuses {
        by_code: (0..)
            .zip(counts)
            .filter(|(_, count)| **count > 0)
            .map(|(code, count)| (code, *count))
            .collect(),
    }
}

fn first_of_each_kind(mut samples: Vec<FailureSample>, kept: usize) -> Vec<FailureSample> {
    samples.sort_by_key(|sample| sample.at);
    let mut seen = [0; FailureKind::ALL.len()];
    samples.retain(|sample| {
        seen[sample.kind as usize] += 1;
        seen[sample.kind as usize] <= kept
    });
    samples
}
