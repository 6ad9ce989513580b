//! The state of one receiver of load, for every carrier.
//!
//! A carrier moves bytes, and a lane interprets them. A carrier requests a slot and its next action from the
//! lane, and reports results to the lane. The lane has the plan, the scenario, the checks of responses, and
//! the account. A thread has one lane for each receiver.

use std::num::NonZeroU16;
use std::ops::Range;

use crate::check::Judge;
use crate::check::stream::Arrival;
use crate::measurement::FailureKind;
use crate::mismatch::Mismatch;
use crate::recorder::wrong::FoundWrong;
use crate::recorder::{Evidence, Recorder, Times};
use crate::rendered::Rotation;
use crate::sample::{Kept, Sample};
use crate::scenario::CapturedValue;
use crate::script::{Next, Script, SlotState};
use crate::slot_queue::SlotQueue;
use crate::socket::Peer;
use crate::supply::{Supply, Taken};

/// The requests of a lane, and its address.
#[derive(Clone)]
pub(crate) struct Workload {
    pub(crate) peer: Peer,
    /// The longest time to the last byte, from the send, or from the connect if the request needed one.
    pub(crate) timeout_ns: u64,
    pub(crate) keep_alive: bool,
    pub(crate) rotation: Rotation,
    pub(crate) script: Script,
    /// Converts a rendered request to the carrier's form for evidence. `None` keeps the rendered form.
    pub(crate) as_evidence: Option<Rewrite>,
}

/// Converts the bytes of HTTP/1.1 to a readable form of another carrier's bytes.
pub(crate) type Rewrite = fn(&[u8]) -> Vec<u8>;

/// The failure of a slot's request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fault<'a> {
    pub(crate) kind: FailureKind,
    /// The time at which the failure was found.
    pub(crate) at_ns: u64,
    /// The received part of the response, in two stretches.
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
    /// Returns a lane without slots, to open connections before there is a start.
    pub(crate) fn new(work: Workload, places: Range<usize>) -> Lane {
        Lane {
            work,
            queue: SlotQueue::new(places),
            recorder: Recorder::new(0, 0),
            sample: Sample::new(),
        }
    }

    /// Starts the load. Earlier connect times count.
    pub(crate) fn start(&mut self, supply: Supply, recorder: Recorder) {
        self.queue.supply = supply;
        let connect = std::mem::replace(&mut self.recorder, recorder).connect;
        self.recorder.connect.add(&connect);
    }

    /// Begins a slot in a place.
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
        // Values of the previous iteration must not reach this iteration.
        slot.captured.clear();
        let captures = self.work.script.captures();
        slot.captured.resize_with(captures, CapturedValue::default);
        if think_ns > 0 {
            let from_ns = slot.due_ns.unwrap_or(now_ns);
            return self.begin_step(slot, 0, from_ns.saturating_add(think_ns), now_ns);
        }
        slot.request = 0;
        self.fill(slot);
        Next::Send
    }

    /// Prepares a step for its time, unless the load is over by then.
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

    /// Records that the request of a slot, or a part of it, left at `slot.sent_ns`.
    #[inline]
    pub(crate) fn sent(&mut self, slot: &mut SlotState) {
        slot.slot_sent_ns.get_or_insert(slot.sent_ns);
        if slot.is_discarded {
            return;
        }
        // In a closed loop only requests that needed a connect have a `due`, which does not belong to a plan.
        let is_planned = self.queue.supply.is_planned();
        let due_ns = slot.due_ns.filter(|_| is_planned);
        self.recorder.sent(slot.sent_ns, due_ns);
    }

    /// Returns the judge of a piece of a response, which arrived now.
    #[inline]
    pub(crate) fn judge<'a>(&'a mut self, slot: &'a mut SlotState, now_ns: u64) -> Judge<'a> {
        let due_ns = slot.start_ns();
        let events = self.recorder.events.as_deref_mut();
        Judge {
            rules: &self.work.rotation.requests[slot.request].rules,
            findings: &mut slot.findings,
            at: Arrival {
                now_ns,
                due_ns,
                events: events.filter(|_| !slot.is_discarded),
            },
        }
    }

    /// Judges a complete response and records its times. The caller passes a mismatch to [`Lane::failed`],
    /// with the received response.
    #[inline]
    pub(crate) fn answered(&mut self, slot: &mut SlotState, done_ns: u64) -> Option<Mismatch> {
        self.judge(slot, done_ns).end();
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
        // Other requests of the load may have one answer, which is no stream.
        let is_stream = request.rules.stream.is_some();
        if let Some(events) = self.recorder.events.as_mut().filter(|_| is_stream) {
            let stream = &slot.findings.stream;
            events.ended(stream.count(), stream.first_ns(), times.due_ns);
        }
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

    /// Records a request that did not pass. The reason is only formatted if it is kept.
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
                // Without a connection there was no response. The buffers contain an older response.
                FailureKind::Connect | FailureKind::LocalPort => [&[], &[]],
                _ => fault.answer,
            },
        };
        self.recorder
            .failed(fault.kind, fault.at_ns, evidence, reason);
        self.recorder.step_failed(slot.request, fault.kind);
    }

    /// Ends a request of a slot and returns the next action.
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

    /// Records the times of a slot that has ended, if the job requests them.
    #[inline]
    fn trace(&mut self, slot: &SlotState, passed: bool, done_ns: u64) {
        if !self.recorder.keeps_slots() {
            return;
        }
        let sent_ns = slot.slot_sent_ns.unwrap_or(done_ns);
        // In a closed loop, a request that needed a connection counts from the connect. Each step of a
        // scenario sets that time again, so it does not describe an iteration.
        let connect_ns = slot.due_ns.filter(|_| self.work.script.is_empty());
        let times = Times {
            due_ns: slot.slot_due_ns.or(connect_ns).unwrap_or(sent_ns),
            sent_ns,
            first_byte_ns: match slot.first_byte_ns {
                0 => done_ns,
                first_byte_ns => first_byte_ns.min(done_ns),
            },
            first_event_ns: match self.work.script.is_empty() {
                true => slot.findings.stream.first_ns(),
                false => 0,
            },
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

    /// Counts the slots of a plan that had no free place until the end of the grace.
    #[inline]
    pub(crate) fn give_up_missed(&mut self, now_ns: u64) {
        while let Some(taken) = self.queue.take_missed(now_ns) {
            let mut slot = SlotState {
                index: taken.index,
                // In a scenario this is the first step, the only request of its rotation.
                request: self.work.rotation.pick(taken.index),
                ..SlotState::default()
            };
            // Evidence of the request that should have been sent.
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

    /// Takes the next slot for a free place, or parks the place.
    #[inline]
    pub(crate) fn release(&mut self, place: usize, is_open: bool, now_ns: u64) -> Option<Taken> {
        self.queue
            .release(place, is_open, now_ns, &mut self.recorder)
    }

    /// Returns the account, after the end.
    ///
    /// # Panics
    /// If a slot was lost or ended twice. An interrupted load is exempt, because its slots under way have no
    /// outcome.
    pub(crate) fn finish(mut self, was_interrupted: bool) -> Recorder {
        self.judge_sample();
        let (taken, ended) = (self.queue.taken(), self.recorder.slots_ended());
        assert!(
            was_interrupted || taken == ended,
            "every slot ends in exactly one outcome: {taken} were taken, {ended} have ended"
        );
        self.recorder
    }

    /// Decodes the kept encoded bodies after the load.
    fn judge_sample(&mut self) {
        let sample = std::mem::replace(&mut self.sample, Sample::new());
        for kept in sample.into_kept() {
            let request = &self.work.rotation.requests[kept.request];
            self.recorder.coded.sampled += 1;
            let Err(mismatch) = request.rules.judge_sampled(&kept.body) else {
                continue;
            };
            let evidence = Evidence {
                // If requests differ from slot to slot, the request of this slot is not kept.
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

/// Returns the lane that sends next: among lanes with a free place and a slot, the lane with the earliest
/// due. Delayed lanes therefore continue in the order of their plans.
#[inline]
pub(crate) fn next_of(lanes: &[Lane], now_ns: u64) -> Option<usize> {
    let ready = |(index, lane): (usize, &Lane)| Some((lane.queue.ready_since_ns(now_ns)?, index));
    let first = lanes.iter().enumerate().filter_map(ready).min();
    first.map(|(_, index)| index)
}
