//! Everything that belongs to one receiver of load, whichever carrier brings it its requests.
//!
//! The one idea: a carrier knows how bytes travel, and a lane knows what they mean. A carrier asks its
//! lane for a slot, for what comes next in it, and tells it what came of it; the lane keeps the
//! plan, the scenario, the rules that answers are checked by, and the account. A thread has one lane
//! for each receiver.

use std::num::NonZeroU16;
use std::ops::Range;

use crate::measurement::FailureKind;
use crate::mismatch::Mismatch;
use crate::recorder::wrong::FoundWrong;
use crate::recorder::{Evidence, Recorder, Times};
use crate::rendered::Rotation;
use crate::sample::{Kept, Sample};
use crate::script::{Next, Script, SlotState};
use crate::slot_queue::SlotQueue;
use crate::socket::Peer;
use crate::supply::{Supply, Taken};

/// What a lane sends, and to which address.
#[derive(Clone)]
pub(crate) struct Workload {
    pub(crate) peer: Peer,
    /// The longest time from the send, or from the connect where one was needed, to the last byte.
    pub(crate) timeout_ns: u64,
    pub(crate) keep_alive: bool,
    pub(crate) rotation: Rotation,
    pub(crate) script: Script,
    /// How the carrier writes a rendered request as evidence; `None`: as it was rendered.
    pub(crate) as_evidence: Option<Rewrite>,
}

/// From the bytes that HTTP/1.1 would carry to what another carrier sent, for readers.
pub(crate) type Rewrite = fn(&[u8]) -> Vec<u8>;

/// What went wrong with the request of a slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fault<'a> {
    pub(crate) kind: FailureKind,
    /// When it was noticed.
    pub(crate) at_ns: u64,
    /// What came of the answer, in two stretches.
    pub(crate) answer: [&'a [u8]; 2],
}

/// One receiver of load, on one generator thread.
pub(crate) struct Lane {
    pub(crate) work: Workload,
    pub(crate) queue: SlotQueue,
    pub(crate) recorder: Recorder,
    /// Encoded bodies that are not yet decoded.
    sample: Sample,
}

impl Lane {
    /// A lane without slots, for connections to be opened before there is a start.
    pub(crate) fn new(work: Workload, places: Range<usize>) -> Lane {
        Lane {
            work,
            queue: SlotQueue::new(places),
            recorder: Recorder::new(0, 0),
            sample: Sample::new(),
        }
    }

    /// The load begins. What connecting took before counts.
    pub(crate) fn start(&mut self, supply: Supply, recorder: Recorder) {
        self.queue.supply = supply;
        let connect = std::mem::replace(&mut self.recorder, recorder).connect;
        self.recorder.connect.add(&connect);
    }

    /// A place begins a slot.
    #[inline]
    pub(crate) fn begin(&mut self, slot: &mut SlotState, taken: Taken, now_ns: u64) -> Next {
        slot.index = taken.index;
        slot.due_ns = taken.due_ns;
        slot.slot_due_ns = taken.due_ns;
        slot.is_discarded = taken.is_discarded;
        slot.slot_sent_ns = None;
        if let Some(think_ns) = self.work.script.think_ns(0) {
            return self.begin_iteration(slot, think_ns, now_ns);
        }
        slot.request = self.work.rotation.pick(taken.index);
        self.fill(slot);
        Next::Send
    }

    fn begin_iteration(&mut self, slot: &mut SlotState, think_ns: u64, now_ns: u64) -> Next {
        // Values of the iteration before must not reach this one.
        slot.captured.clear();
        let captures = self.work.script.captures();
        slot.captured.resize_with(captures, String::new);
        if think_ns > 0 {
            let from_ns = slot.due_ns.unwrap_or(now_ns);
            return self.begin_step(slot, 0, from_ns.saturating_add(think_ns), now_ns);
        }
        slot.request = 0;
        self.fill(slot);
        Next::Send
    }

    /// Makes a step ready for its time, unless the load is over by then.
    fn begin_step(&mut self, slot: &mut SlotState, step: usize, due_ns: u64, now_ns: u64) -> Next {
        let end_ns = self.queue.supply.end_ns();
        if let Some(end_ns) = end_ns.filter(|end_ns| due_ns >= *end_ns) {
            self.recorder.iterations.cut += 1;
            self.queue.ended();
            return Next::Cut { end_ns };
        }
        slot.request = step;
        slot.due_ns = Some(due_ns);
        self.fill(slot);
        if due_ns <= now_ns {
            Next::Send
        } else {
            Next::Wait { due_ns }
        }
    }

    #[inline]
    fn fill(&self, slot: &mut SlotState) {
        self.work.rotation.requests[slot.request].fill(
            slot.index,
            &slot.captured,
            &mut slot.filled,
        );
    }

    /// The request of a slot left, or a part of it, at `slot.sent_ns`.
    #[inline]
    pub(crate) fn sent(&mut self, slot: &mut SlotState) {
        slot.slot_sent_ns.get_or_insert(slot.sent_ns);
        if slot.is_discarded {
            return;
        }
        // In a closed loop only requests that needed a connect have a `due`, and it is no plan's.
        let is_planned = self.queue.supply.is_planned();
        let due_ns = slot.due_ns.filter(|_| is_planned);
        self.recorder.sent(slot.sent_ns, due_ns);
    }

    /// The answer is complete: judges it and records its times. A mismatch is to be handed to
    /// [`Lane::failed`] with what came of the answer.
    #[inline]
    pub(crate) fn answered(&mut self, slot: &mut SlotState, done_ns: u64) -> Option<Mismatch> {
        let request = &mut self.work.rotation.requests[slot.request];
        let mismatch = slot.findings.conclude(&mut request.rules);
        if slot.is_discarded {
            if mismatch.is_none() {
                self.recorder.discard(None);
            }
            return mismatch;
        }
        let times = slot.times(done_ns);
        self.recorder.bytes_in_bodies += slot.findings.body_bytes;
        self.recorder.encodings.count(&slot.findings.encoding);
        let is_right = mismatch.is_none();
        if is_right && let Some(judged_by) = slot.findings.judged_by {
            judged_by.count(&mut self.recorder.coded);
            if let Some(body) = slot.findings.encoded() {
                self.sample.offer(|| Kept {
                    slot: slot.index,
                    request: slot.request,
                    done_ns,
                    body: body.to_vec(),
                });
            }
        }
        self.recorder
            .answered(times, slot.findings.status, is_right);
        if !self.work.script.is_empty() {
            self.recorder.step_answered(slot.request, times, is_right);
        }
        mismatch
    }

    /// A request did not pass. The reason is only put into words when it is kept.
    pub(crate) fn failed(
        &mut self,
        slot: &SlotState,
        fault: Fault<'_>,
        reason: impl FnOnce() -> String,
    ) {
        if slot.is_discarded {
            self.recorder.discard(Some(fault.kind));
            return;
        }
        let rendered = self.work.rotation.requests[slot.request].bytes(&slot.filled);
        let rewritten = self.work.as_evidence.map(|rewrite| rewrite(rendered));
        let evidence = Evidence {
            request: rewritten.as_deref().unwrap_or(rendered),
            answer: match fault.kind {
                // Nothing came of an answer where there was no connection; the buffers hold an
                // older one.
                FailureKind::Connect | FailureKind::LocalPort => [&[], &[]],
                _ => fault.answer,
            },
        };
        self.recorder
            .failed(fault.kind, fault.at_ns, evidence, reason);
        self.recorder.step_failed(slot.request, fault.kind);
    }

    /// A request of a slot has its outcome: what comes next.
    #[inline]
    pub(crate) fn next(&mut self, slot: &mut SlotState, passed: bool, now_ns: u64) -> Next {
        if passed && !self.work.script.is_empty() {
            for (place, value) in slot.findings.captured.drain(..) {
                slot.captured[place] = value;
            }
            let step = slot.request + 1;
            if let Some(think_ns) = self.work.script.think_ns(step) {
                return self.begin_step(slot, step, now_ns.saturating_add(think_ns), now_ns);
            }
            self.recorder.iterations.completed += 1;
        }
        self.queue.ended();
        self.trace(slot, passed, now_ns);
        Next::Over
    }

    /// Writes down the times of a slot that has ended, where they are asked for.
    #[inline]
    fn trace(&mut self, slot: &SlotState, passed: bool, done_ns: u64) {
        if !self.recorder.keeps_slots() {
            return;
        }
        let sent_ns = slot.slot_sent_ns.unwrap_or(done_ns);
        // In a closed loop a request that needed a connection counts from there. The steps of a
        // scenario each set the time anew, so of an iteration it says nothing.
        let connect_ns = slot.due_ns.filter(|_| self.work.script.is_empty());
        let times = Times {
            due_ns: slot.slot_due_ns.or(connect_ns).unwrap_or(sent_ns),
            sent_ns,
            first_byte_ns: sent_ns,
            done_ns,
        };
        // The requests of a scenario are its steps, and its slots are whole iterations.
        let request = match self.work.script.is_empty() {
            true => slot.request,
            false => 0,
        };
        let status = NonZeroU16::new(slot.findings.status).filter(|_| passed);
        self.recorder.slot_ended(slot.index, request, times, status);
    }

    /// Counts the slots of a plan that no place was free for until the end of the grace.
    #[inline]
    pub(crate) fn give_up_missed(&mut self, now_ns: u64) {
        while let Some(taken) = self.queue.take_missed(now_ns) {
            let mut slot = SlotState {
                index: taken.index,
                // Of a scenario, the first step: its rotation names no other.
                request: self.work.rotation.pick(taken.index),
                ..SlotState::default()
            };
            // As evidence of what should have been sent.
            self.fill(&mut slot);
            let fault = Fault {
                kind: FailureKind::Missed,
                at_ns: now_ns,
                answer: [&[], &[]],
            };
            self.failed(&slot, fault, || {
                "every connection was busy until the end of the grace period".to_owned()
            });
            self.trace(&slot, false, now_ns);
        }
    }

    /// A place became free: the next slot for it, or it is parked.
    #[inline]
    pub(crate) fn release(&mut self, place: usize, is_open: bool, now_ns: u64) -> Option<Taken> {
        self.queue
            .release(place, is_open, now_ns, &mut self.recorder)
    }

    /// The account, after the end.
    ///
    /// # Panics
    /// When a slot was lost or ended twice, unless the load was interrupted, which leaves the slots
    /// under way without an outcome.
    pub(crate) fn finish(mut self, was_interrupted: bool) -> Recorder {
        self.judge_sample();
        let (taken, ended) = (self.queue.taken(), self.recorder.slots_ended());
        assert!(
            was_interrupted || taken == ended,
            "every slot ends in exactly one outcome: {taken} were taken, {ended} have ended"
        );
        self.recorder
    }

    /// Decodes the encoded bodies that were kept, now that the load is over.
    fn judge_sample(&mut self) {
        let sample = std::mem::replace(&mut self.sample, Sample::new());
        for kept in sample.into_kept() {
            let request = &self.work.rotation.requests[kept.request];
            self.recorder.coded.sampled += 1;
            let Err(mismatch) = request.rules.judge_sampled(&kept.body) else {
                continue;
            };
            let evidence = Evidence {
                // Where requests differ from slot to slot, that of this slot is not kept.
                request: request.bytes(&[]),
                answer: [&kept.body, &[]],
            };
            let wrong = FoundWrong {
                slot: kept.slot,
                request: kept.request,
                kind: mismatch.kind(),
                at_ns: kept.done_ns,
            };
            self.recorder
                .found_wrong(&wrong, evidence, || mismatch.to_string());
        }
    }
}

/// The lane that sends next: of those with a free place and a slot that exists, the one whose slot
/// was due first, so that lanes that were held up together go on in the order of their plans.
#[inline]
pub(crate) fn next_of(lanes: &[Lane], now_ns: u64) -> Option<usize> {
    let ready = |(index, lane): (usize, &Lane)| Some((lane.queue.ready_since_ns(now_ns)?, index));
    let first = lanes.iter().enumerate().filter_map(ready).min();
    first.map(|(_, index)| index)
}
