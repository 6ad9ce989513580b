//! The work of a place, slot after slot: connection, request, response, verdict.

use std::mem::replace;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use super::feed::Feed;
use super::grpc;
use super::http1::{self, Exchange, Idle};
use super::http2::{self, Limits};
use super::http3;
use super::link::Purpose;
use super::message::Message;
use super::planned::PlaceAlarms;
use super::progress::{ExchangeError, Judging, ResponseProgress};
use super::route::{Channel, Session};
use super::{EngineState, Place};
use crate::grpc::Calling;
use crate::lane::Fault;
use crate::measurement::FailureKind;
use crate::parser::Parser;
use crate::script::{Next, SlotState};
use crate::supply::Taken;

/// The largest number of times that a request is sent again.
const REPEATS_MAX: u32 = 10;

/// The largest number of doublings of the pause before a repeat, from 1 ms to 64 ms.
const PAUSE_DOUBLINGS_MAX: u32 = 6;

/// A slot under way, and the buffers that the place reuses for every slot.
pub(super) struct Slot {
    pub(super) state: SlotState,
    /// The time limit of a new connection, if the slot needed one.
    give_up_ns: Option<u64>,
    /// Number of times the target has declared the request unprocessed.
    repeats: u32,
    /// The time limit of the current attempt.
    attempt_until_ns: u64,
    /// The time limit of a request that is sent again, on any connection.
    repeat_until_ns: u64,
    /// True if the request left at least once.
    pub(super) is_sent: bool,
    pub(super) progress: ResponseProgress,
    parser: Parser,
}

/// The end of a slot for its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The slot ended, with or without a response.
    Over,
    /// The target gave no connection.
    Refused,
    /// The load is over at this time.
    Cut { end_ns: u64 },
}

/// Carries a slot, and then all further slots for this place.
pub(super) async fn work(state: Rc<EngineState>, place: Place, first: Taken) {
    let endpoint = &state.endpoints[place.lane];
    let mut slot = Slot {
        state: SlotState::default(),
        give_up_ns: None,
        repeats: 0,
        attempt_until_ns: u64::MAX,
        repeat_until_ns: u64::MAX,
        is_sent: false,
        progress: ResponseProgress::default(),
        parser: Parser::new(endpoint.bounds),
    };
    let mut next = Some(first);
    while let Some(taken) = next {
        let end = state.carry(place, &mut slot, taken).await;
        // Before any pause, because the load may be over with this slot.
        state.ended();
        let is_planned = state.lanes.borrow()[place.lane].queue.supply.is_planned();
        match end {
            // A plan has its own pace, and continues at once.
            End::Refused if !is_planned => {
                let pause = endpoint.link(place.index).pause();
                tokio::time::sleep(pause).await;
            }
            End::Cut { end_ns } => {
                state.wait_until(place, end_ns).await;
                state.spin_until(Some(end_ns));
            }
            End::Refused | End::Over => {}
        }
        next = state.release(place);
    }
}

impl EngineState {
    /// Carries a slot to its end: one request, or the steps of an iteration.
    async fn carry(&self, place: Place, slot: &mut Slot, taken: Taken) -> End {
        let begin_ns = self.clock.now_ns();
        let mut next = self.lanes.borrow_mut()[place.lane].begin(&mut slot.state, taken, begin_ns);
        let mut end = End::Over;
        loop {
            match next {
                Next::Send => {}
                Next::Wait { due_ns } => self.wait_until(place, due_ns).await,
                Next::Over => return end,
                Next::Cut { end_ns } => return End::Cut { end_ns },
            }
            slot.give_up_ns = None;
            slot.repeats = 0;
            slot.repeat_until_ns = u64::MAX;
            slot.is_sent = false;
            slot.progress.start();
            let outcome = self.request(place, slot).await;
            let (outcome, done_ns) = self.conclude(place, slot, outcome.err());
            if outcome.is_err_and(FailureKind::is_without_connection) {
                end = End::Refused;
            }
            let lane = &mut self.lanes.borrow_mut()[place.lane];
            next = lane.next(&mut slot.state, outcome.is_ok(), done_ns);
        }
    }

    /// Carries the request of a slot to its response.
    async fn request(&self, place: Place, slot: &mut Slot) -> Result<(), (FailureKind, String)> {
        let endpoint = &self.endpoints[place.lane];
        let link = endpoint.link(place.index);
        let purpose = self.purpose(place, slot);
        let timeout = endpoint.timeout + self.hold(place, slot);
        loop {
            let Some(channel) = link.take(purpose) else {
                // A slot that needs a connection waits for it from here on, so its latency includes the
                // connect.
                let now_ns = self.spin_until(slot.state.due_ns);
                slot.state.due_ns.get_or_insert(now_ns);
                slot.give_up_ns = Some(now_ns.saturating_add(crate::clock::to_ns(timeout)));
                let opening = self.open(place.lane, endpoint.link_of(place.index), purpose);
                match tokio::time::timeout(self.left(slot, timeout), opening).await {
                    Ok(opened) => opened?,
                    Err(_) => return Err(no_answer(timeout)),
                }
                continue;
            };
            let session = match &channel {
                Channel::Shared(session) => Some(session.clone()),
                Channel::Http1 { .. } | Channel::WebSocket(_) => None,
            };
            // The time limit of a slot that needed a connection starts with the connect, and of any other
            // slot here.
            let left = self.left(slot, timeout);
            let left_ns = crate::clock::to_ns(left);
            slot.attempt_until_ns = self.clock.now_ns().saturating_add(left_ns);
            let tried = tokio::time::timeout(left, self.attempt(place, channel, slot)).await;
            let retire = || {
                if let Some(session) = &session {
                    link.retire(session);
                }
            };
            match tried {
                Err(_) => {
                    let refusal = session.as_ref().and_then(Session::grants_no_stream);
                    retire();
                    let Some(refusal) = refusal.filter(|_| !slot.is_sent) else {
                        return Err(no_answer(timeout));
                    };
                    let limit = endpoint.timeout;
                    let reason = format!("the request was not sent within {limit:?}: {refusal}");
                    return Err((FailureKind::Timeout, reason));
                }
                Ok(Err(ExchangeError::Unprocessed { is_leaving, reason })) => {
                    if is_leaving {
                        retire();
                    }
                    self.repeat(place, slot, is_leaving, &reason).await?;
                }
                // No byte of the request has left. That is no failure of the request, but it needs another
                // connection. A new connection that is stale at once is a refusal by the target.
                Ok(Err(ExchangeError::Stale(reason))) => {
                    retire();
                    // Over HTTP/2 and HTTP/3 other places may have used up the new connection meanwhile.
                    if slot.give_up_ns.is_some() && session.is_none() {
                        return Err((FailureKind::Reset, reason));
                    }
                    if slot.give_up_ns.is_some() {
                        self.repeat(place, slot, false, &reason).await?;
                    }
                }
                Ok(Err(ExchangeError::Failed(kind, reason))) => return Err((kind, reason)),
                Ok(Ok(())) => return Ok(()),
            }
        }
    }

    /// Returns the remaining time of a request.
    fn left(&self, slot: &Slot, timeout: Duration) -> Duration {
        let now_ns = self.clock.now_ns();
        let whole_ns = now_ns.saturating_add(crate::clock::to_ns(timeout));
        let give_up_ns = slot.give_up_ns.unwrap_or(whole_ns);
        Duration::from_nanos(give_up_ns.min(slot.repeat_until_ns).saturating_sub(now_ns))
    }

    /// Prepares to send a request again that the target has declared unprocessed.
    ///
    /// # Errors
    ///
    /// If the request was sent again too many times.
    async fn repeat(
        &self,
        place: Place,
        slot: &mut Slot,
        is_leaving: bool,
        reason: &str,
    ) -> Result<(), (FailureKind, String)> {
        // Latency and time limit count from the first send.
        slot.state.due_ns.get_or_insert(slot.state.sent_ns);
        slot.repeat_until_ns = slot.repeat_until_ns.min(slot.attempt_until_ns);
        if slot.repeats == REPEATS_MAX {
            let kind = match is_leaving {
                true => FailureKind::Closed,
                false => FailureKind::Reset,
            };
            let times = slot.repeats + 1;
            let reason = match slot.is_sent {
                true => format!(
                    "the request was sent {times} times, but the server did not process it: {reason}"
                ),
                false => {
                    format!("the request could not be sent on any of {times} connections: {reason}")
                }
            };
            return Err((kind, reason));
        }
        slot.repeats += 1;
        if slot.is_sent && !slot.state.is_discarded {
            self.lanes.borrow_mut()[place.lane].recorder.sent_again += 1;
        }
        // At once after the first refusal, the usual end of a connection with a fixed number of requests. A
        // server that refuses again gets time.
        if slot.repeats > 1 {
            let pause_ms = 1 << (slot.repeats - 2).min(PAUSE_DOUBLINGS_MAX);
            tokio::time::sleep(Duration::from_millis(pause_ms)).await;
        }
        Ok(())
    }

    async fn attempt(
        &self,
        place: Place,
        channel: Channel,
        slot: &mut Slot,
    ) -> Result<(), ExchangeError> {
        let endpoint = &self.endpoints[place.lane];
        slot.state.findings.start();
        slot.progress.start();
        match channel {
            channel if self.purpose(place, slot) == Purpose::Conversations => {
                self.over_websocket(place, channel, slot).await
            }
            Channel::WebSocket(_) => unreachable!("a request of HTTP has its own connection"),
            Channel::Http1 {
                stream,
                is_used,
                idle_until_ns,
                ..
            } => {
                // The target sets the time for an idle connection.
                if self.clock.now_ns() >= idle_until_ns {
                    return Err(ExchangeError::Stale("it was idle for too long".to_owned()));
                }
                let kept = self.over_http1(place, stream, is_used, slot).await?;
                if let Some(channel) = kept.filter(|_| endpoint.keep_alive) {
                    endpoint.link(place.index).keep(channel, Purpose::Requests);
                }
                Ok(())
            }
            Channel::Shared(session) => {
                match &session {
                    Session::Http2(session) => self.over_http2(place, session, slot).await?,
                    Session::Http3(session) => self.over_http3(place, session, slot).await?,
                }
                if !endpoint.keep_alive {
                    let link = endpoint.link(place.index);
                    link.retire(&session);
                    if let (true, Session::Http3(session)) = (link.route.resumes(), session) {
                        tokio::task::spawn_local(session.linger());
                    }
                }
                Ok(())
            }
        }
    }

    async fn over_http1(
        &self,
        place: Place,
        mut stream: Box<dyn super::stream::Stream>,
        is_used: bool,
        slot: &mut Slot,
    ) -> Result<Option<Channel>, ExchangeError> {
        if is_used {
            match http1::probe(&mut *stream).await {
                Idle::Ready => {}
                Idle::Ended => return Err(ExchangeError::Stale("it was closed".to_owned())),
                Idle::Spoke => {
                    self.lanes.borrow_mut()[place.lane].recorder.unsolicited += 1;
                    return Err(ExchangeError::Stale(
                        "it received unexpected data".to_owned(),
                    ));
                }
            }
        }
        let (request, bodiless, calling) = {
            let lanes = self.lanes.borrow();
            let request = &lanes[place.lane].work.rotation.requests[slot.state.request];
            // A copy, because the lanes must not stay borrowed while the exchange waits.
            let bytes = request.over_http1(&slot.state.filled);
            (bytes, request.bodiless, request.calling.clone())
        };
        let request = request
            .map_err(|error| ExchangeError::failed(FailureKind::Protocol, error.to_string()))?;
        slot.parser.start(bodiless);
        // Taken out because the account needs the rest of the slot while the exchange fills them.
        let mut findings = std::mem::take(&mut slot.state.findings);
        // Read before the write and stored after it. The write belongs to the request, but a request without
        // a sent byte was not sent.
        let now_ns = self.spin_until(slot.state.due_ns);
        let mut exchange = Exchange {
            clock: self.clock,
            stream: &mut *stream,
            request: &request,
            written: 0,
            is_sent: false,
            is_used,
            buffer: &self.buffer,
            parser: &mut slot.parser,
            progress: &mut slot.progress,
            sink: Judging {
                lanes: &self.lanes,
                lane: place.lane,
                request: slot.state.request,
                findings: &mut findings,
                clock: self.clock,
                due_ns: slot.state.due_ns.unwrap_or(now_ns),
                is_discarded: slot.state.is_discarded,
            },
        };
        exchange.begin().await?;
        slot.state.sent_ns = now_ns;
        self.lanes.borrow_mut()[place.lane].sent(&mut slot.state);
        let call = calling.as_ref().map(|calling| &calling.call);
        let deadline = call.and_then(|call| call.deadline);
        let finished = grpc::within(deadline, self.clock, now_ns, exchange.finish()).await;
        slot.state.findings = findings;
        let finished = grpc::ended(finished, call, &mut slot.state.findings.grpc)?;
        // A call that its deadline has cut leaves a connection with the rest of an answer.
        Ok(finished.unwrap_or(false).then_some(Channel::Http1 {
            stream,
            is_used: true,
            idle_until_ns: slot.parser.idle_until_ns(self.clock.now_ns()),
            connect_ns: 0,
        }))
    }

    async fn over_http2(
        &self,
        place: Place,
        session: &Rc<http2::Session>,
        slot: &mut Slot,
    ) -> Result<(), ExchangeError> {
        let calling = self.calling(place, slot);
        let message = self.message(place, slot, calling.as_deref())?;
        let _room = session.enter().await;
        let was_idle = session.is_used.get() && session.is_alone();
        // As over HTTP/1.1: read before the send, stored after it.
        let now_ns = self.spin_until(slot.state.due_ns);
        let alarms = PlaceAlarms { state: self, place };
        let call = calling.as_ref().map(|calling| &calling.call);
        let feed = call
            .filter(|call| call.is_spaced())
            .map(|call| Feed::new(call, message.frames.clone(), self.clock, &alarms));
        let ledger = feed.as_ref().map(Feed::ledger);
        let sending = session.send(message, feed).await?;
        let limits = self.departed(place, slot, now_ns, was_idle);
        let mut judging = self.judging(place, &mut slot.state);
        let progress = &mut slot.progress;
        let received = match call {
            None => sending.receive(limits, progress, &mut judging).await,
            Some(call) => {
                grpc::receive(sending, call, ledger, limits, progress, &mut judging).await
            }
        };
        session
            .is_used
            .set(session.is_used.get() || received.is_ok());
        received
    }

    async fn over_http3(
        &self,
        place: Place,
        session: &Rc<http3::Session>,
        slot: &mut Slot,
    ) -> Result<(), ExchangeError> {
        let calling = self.calling(place, slot);
        let message = self.message(place, slot, calling.as_deref())?;
        let room = session.enter(message.head.method()).await?;
        let was_idle = session.is_used.get() && session.is_alone();
        // As over HTTP/1.1: read before the send, stored after it.
        let now_ns = self.spin_until(slot.state.due_ns);
        let sending = session.send(message, room).await?;
        let limits = self.departed(place, slot, now_ns, was_idle);
        let mut judging = self.judging(place, &mut slot.state);
        let call = calling.as_ref().map(|calling| &calling.call);
        let deadline = call.and_then(|call| call.deadline);
        let received = sending.receive(limits, &mut slot.progress, &mut judging);
        let received = grpc::within(deadline, self.clock, now_ns, received).await;
        let received = grpc::ended(received, call, &mut judging.findings.grpc).map(|_| ());
        session
            .is_used
            .set(session.is_used.get() || received.is_ok());
        received
    }

    /// The use of the connection of the request of a slot.
    fn purpose(&self, place: Place, slot: &Slot) -> Purpose {
        let lanes = self.lanes.borrow();
        Purpose::of(&lanes[place.lane].work.rotation.requests[slot.state.request])
    }

    /// The gRPC call of a slot. A handle, because the lanes must not stay borrowed while the exchange waits.
    fn calling(&self, place: Place, slot: &Slot) -> Option<Arc<Calling>> {
        let lanes = self.lanes.borrow();
        let request = &lanes[place.lane].work.rotation.requests[slot.state.request];
        request.calling.clone()
    }

    /// Returns the request of a slot.
    fn message(
        &self,
        place: Place,
        slot: &Slot,
        calling: Option<&Calling>,
    ) -> Result<Message, ExchangeError> {
        let endpoint = &self.endpoints[place.lane];
        match &endpoint.messages[slot.state.request] {
            Some(message) => Ok(message.clone()),
            None => endpoint
                .route
                .message(&slot.state.filled, calling)
                .map_err(|error| ExchangeError::failed(FailureKind::Protocol, error.to_string())),
        }
    }

    /// Records that the request left at this time. Returns the limits of its response.
    fn departed(&self, place: Place, slot: &mut Slot, sent_ns: u64, was_idle: bool) -> Limits {
        slot.state.sent_ns = sent_ns;
        // A repeated request counts as sent once.
        if !replace(&mut slot.is_sent, true) {
            self.lanes.borrow_mut()[place.lane].sent(&mut slot.state);
        }
        Limits {
            clock: self.clock,
            bounds: self.endpoints[place.lane].bounds,
            was_idle,
        }
    }

    /// Returns the judge of the response to a request that was sent.
    pub(super) fn judging<'a>(&'a self, place: Place, state: &'a mut SlotState) -> Judging<'a> {
        Judging {
            lanes: &self.lanes,
            lane: place.lane,
            request: state.request,
            due_ns: state.start_ns(),
            is_discarded: state.is_discarded,
            clock: self.clock,
            findings: &mut state.findings,
        }
    }

    /// Records the end of the request, and returns its time.
    fn conclude(
        &self,
        place: Place,
        slot: &mut Slot,
        failure: Option<(FailureKind, String)>,
    ) -> (Result<(), FailureKind>, u64) {
        let ended_ns = slot.state.findings.stream.ended_ns();
        let done_ns = ended_ns.filter(|_| failure.is_none());
        // A slot without a request may end before it is due.
        let done_ns = done_ns.unwrap_or_else(|| self.spin_until(slot.state.due_ns));
        let lane = &mut self.lanes.borrow_mut()[place.lane];
        let failure = failure.or_else(|| {
            slot.state.first_byte_ns = slot.progress.first_byte_ns;
            let mismatch = lane.answered(&mut slot.state, done_ns)?;
            Some((mismatch.kind(), mismatch.to_string()))
        });
        let Some((kind, reason)) = failure else {
            return (Ok(()), done_ns);
        };
        let [head, body] = slot.progress.excerpt();
        let fault = Fault {
            kind,
            at_ns: done_ns,
            answer: [&head, &body],
        };
        lane.failed(&slot.state, fault, || reason);
        (Err(kind), done_ns)
    }
}

fn no_answer(timeout: Duration) -> (FailureKind, String) {
    let reason = format!("no complete answer within {timeout:?}");
    (FailureKind::Timeout, reason)
}
