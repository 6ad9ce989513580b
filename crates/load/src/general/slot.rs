//! A place carries one slot after the other: connection, request, answer, verdict.

use std::rc::Rc;
use std::time::Duration;

use super::http1::{self, Exchange, Idle};
use super::http2::{Limits, Session};
use super::message::Message;
use super::progress::{ExchangeError, Judging, ResponseProgress};
use super::route::Channel;
use super::{EngineState, Place};
use crate::lane::Fault;
use crate::measurement::FailureKind;
use crate::parser::Parser;
use crate::script::{Next, SlotState};
use crate::supply::Taken;

/// A slot under way, and the buffers that the place uses for one after the other.
pub(super) struct Slot {
    state: SlotState,
    /// The slot needed a new connection, which has until then to answer.
    give_up_ns: Option<u64>,
    progress: ResponseProgress,
    parser: Parser,
}

/// How a slot ended, as far as its place must know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// With an answer, or without.
    Over,
    /// The target gave no connection.
    Refused,
    /// The load is over at this time.
    Cut { end_ns: u64 },
}

/// Carries a slot, and then all that there are for this place.
pub(super) async fn work(state: Rc<EngineState>, place: Place, first: Taken) {
    let endpoint = &state.endpoints[place.lane];
    let mut slot = Slot {
        state: SlotState::default(),
        give_up_ns: None,
        progress: ResponseProgress::default(),
        parser: Parser::new(endpoint.bounds),
    };
    let mut next = Some(first);
    while let Some(taken) = next {
        let end = state.carry(place, &mut slot, taken).await;
        // Before any pause, as the load may be over with this slot.
        state.ended();
        let is_planned = state.lanes.borrow()[place.lane].queue.supply.is_planned();
        match end {
            // A plan has its own pace, and goes on at once.
            End::Refused if !is_planned => {
                let pause = endpoint.link(place.index).pause();
                tokio::time::sleep(pause).await;
            }
            End::Cut { end_ns } => state.wait_until(place, end_ns).await,
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
            slot.progress.start();
            let outcome = self.request(place, slot).await;
            let (outcome, done_ns) = self.conclude(place, slot, outcome.err());
            if outcome == Err(FailureKind::Connect) {
                end = End::Refused;
            }
            let lane = &mut self.lanes.borrow_mut()[place.lane];
            next = lane.next(&mut slot.state, outcome.is_ok(), done_ns);
        }
    }

    /// Brings the request of a slot to its answer.
    async fn request(&self, place: Place, slot: &mut Slot) -> Result<(), (FailureKind, String)> {
        let endpoint = &self.endpoints[place.lane];
        let link = endpoint.link(place.index);
        let timeout_ns = crate::clock::to_ns(endpoint.timeout);
        loop {
            let Some(channel) = link.take() else {
                // A slot that needs a connection waits for it from here on, so its latency has the
                // connect.
                let now_ns = self.clock.now_ns();
                slot.state.due_ns.get_or_insert(now_ns);
                slot.give_up_ns = Some(now_ns.saturating_add(timeout_ns));
                self.open(place.lane, endpoint.link_of(place.index)).await?;
                continue;
            };
            let session = match &channel {
                Channel::Http2(session) => Some(Rc::clone(session)),
                Channel::Http1 { .. } => None,
            };
            // A slot that needed a connection has its time from the connect on, any other from
            // here.
            let left = slot.give_up_ns.map_or(endpoint.timeout, |give_up_ns| {
                Duration::from_nanos(give_up_ns.saturating_sub(self.clock.now_ns()))
            });
            let tried = tokio::time::timeout(left, self.attempt(place, channel, slot)).await;
            let retire = || {
                if let Some(session) = &session {
                    link.retire(session);
                }
            };
            match tried {
                Err(_) => {
                    retire();
                    let reason = format!("no complete answer within {:?}", endpoint.timeout);
                    return Err((FailureKind::Timeout, reason));
                }
                // Nothing of the request has left: this is no failure of it, but it needs another
                // connection. A new one that is stale at once is the target's refusal to answer.
                Ok(Err(ExchangeError::Stale(reason))) => {
                    retire();
                    if slot.give_up_ns.is_some() {
                        return Err((FailureKind::Reset, reason));
                    }
                }
                Ok(Err(ExchangeError::Failed(kind, reason))) => return Err((kind, reason)),
                Ok(Ok(())) => return Ok(()),
            }
        }
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
            Channel::Http1 { stream, is_used } => {
                let kept = self.over_http1(place, stream, is_used, slot).await?;
                if let Some(channel) = kept.filter(|_| endpoint.keep_alive) {
                    endpoint.link(place.index).keep(channel);
                }
                Ok(())
            }
            Channel::Http2(session) => {
                self.over_http2(place, &session, slot).await?;
                if !endpoint.keep_alive {
                    endpoint.link(place.index).retire(&session);
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
                    return Err(ExchangeError::Stale("it was spoiled".to_owned()));
                }
            }
        }
        let (request, bodiless) = {
            let lanes = self.lanes.borrow();
            let request = &lanes[place.lane].work.rotation.requests[slot.state.request];
            // A copy: the lanes must not stay borrowed while the exchange waits.
            (request.bytes(&slot.state.filled).to_vec(), request.bodiless)
        };
        slot.parser.start(bodiless);
        // Taken out because the account needs the rest of the slot while the exchange fills them.
        let mut findings = std::mem::take(&mut slot.state.findings);
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
            },
        };
        // Read before the write and stored after it: the write belongs to the request, and a request
        // of which nothing left was not sent.
        let now_ns = self.clock.now_ns();
        exchange.begin().await?;
        slot.state.sent_ns = now_ns;
        self.lanes.borrow_mut()[place.lane].sent(&mut slot.state);
        let finished = exchange.finish().await;
        slot.state.findings = findings;
        Ok(finished?.then_some(Channel::Http1 {
            stream,
            is_used: true,
        }))
    }

    async fn over_http2(
        &self,
        place: Place,
        session: &Rc<Session>,
        slot: &mut Slot,
    ) -> Result<(), ExchangeError> {
        let endpoint = &self.endpoints[place.lane];
        let message = match &endpoint.messages[slot.state.request] {
            Some(message) => message.clone(),
            None => Message::new(&slot.state.filled, endpoint.route.is_encrypted())
                .map_err(|reason| ExchangeError::failed(FailureKind::Protocol, reason))?,
        };
        let _room = session.enter().await;
        // As over HTTP/1.1: read before, stored when it has left.
        let now_ns = self.clock.now_ns();
        let sending = session.send(message).await?;
        slot.state.sent_ns = now_ns;
        self.lanes.borrow_mut()[place.lane].sent(&mut slot.state);
        let limits = Limits {
            clock: self.clock,
            bounds: endpoint.bounds,
        };
        let mut judging = Judging {
            lanes: &self.lanes,
            lane: place.lane,
            request: slot.state.request,
            findings: &mut slot.state.findings,
        };
        sending
            .receive(limits, &mut slot.progress, &mut judging)
            .await
    }

    /// Writes down how the request ended, and says when.
    fn conclude(
        &self,
        place: Place,
        slot: &mut Slot,
        failure: Option<(FailureKind, String)>,
    ) -> (Result<(), FailureKind>, u64) {
        let done_ns = self.clock.now_ns();
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
