//! A lane carries one slot after the other: connection, request, answer, verdict.

use std::rc::Rc;
use std::time::Duration;

use super::Desk;
use super::answer::{Heard, Judging, Trouble};
use super::http1::{self, Exchange, Idle};
use super::http2::{Limits, Session};
use super::link::Link;
use super::message::{Message, shown};
use super::pass::End;
use super::route::Channel;
use crate::check::Findings;
use crate::job::Version;
use crate::measurement::FailureKind;
use crate::parser::Parser;
use crate::recorder::{Evidence, Times};
use crate::supply::Taken;

/// A slot under way, and the buffers that the lane uses for one after the other.
pub(super) struct Slot {
    pub(super) index: u64,
    /// Which request of the rotation, or which step of the pass.
    pub(super) request: usize,
    /// From a plan, or set when the slot had to wait for a connection.
    pub(super) due_ns: Option<u64>,
    pub(super) is_planned: bool,
    /// What the pass has captured so far.
    pub(super) captured: Vec<String>,
    /// The slot needed a new connection, which has until then to answer.
    give_up_ns: Option<u64>,
    sent_ns: u64,
    pub(super) done_ns: u64,
    filled: Vec<u8>,
    pub(super) findings: Findings,
    heard: Heard,
    parser: Parser,
}

/// Carries a slot, and then all that there are for this lane.
pub(super) async fn work(desk: Rc<Desk>, lane: usize, first: Taken) {
    let mut slot = Slot {
        index: 0,
        request: 0,
        due_ns: None,
        is_planned: false,
        captured: Vec::new(),
        give_up_ns: None,
        sent_ns: 0,
        done_ns: 0,
        filled: Vec::new(),
        findings: Findings::default(),
        heard: Heard::default(),
        parser: Parser::new(desk.bounds),
    };
    let mut next = Some(first);
    while let Some(taken) = next {
        let end = desk.pass(lane, &mut slot, taken).await;
        desk.ended();
        match end {
            End::Refused if desk.is_closed_loop.get() => {
                let link = &desk.links[desk.link_of(lane)];
                tokio::time::sleep(link.pause()).await;
            }
            // Until the end there is nothing for it to do: another pass would be cut as well.
            End::Cut { end_ns } => desk.rest(lane, end_ns).await,
            End::Refused | End::Over => {}
        }
        next = desk.release(lane);
    }
}

impl Desk {
    /// Sends one request of a slot and judges its answer.
    pub(super) async fn one(&self, lane: usize, slot: &mut Slot) -> Result<(), FailureKind> {
        slot.give_up_ns = None;
        slot.heard.start();
        self.rotation.borrow().requests[slot.request].fill(
            slot.index,
            &slot.captured,
            &mut slot.filled,
        );
        let outcome = self.carry(self.link_of(lane), slot).await;
        self.conclude(slot, outcome.err())
    }

    /// Brings a slot to its answer.
    async fn carry(&self, link: usize, slot: &mut Slot) -> Result<(), (FailureKind, String)> {
        let place = &self.links[link];
        loop {
            let Some(channel) = place.take() else {
                // Whoever needs a connection waits for it from here on.
                let now_ns = self.clock.now_ns();
                slot.due_ns.get_or_insert(now_ns);
                let timeout_ns = crate::clock::to_ns(self.timeout);
                slot.give_up_ns = Some(now_ns.saturating_add(timeout_ns));
                self.open(link).await?;
                continue;
            };
            let session = match &channel {
                Channel::Http2(session) => Some(Rc::clone(session)),
                Channel::Http1 { .. } => None,
            };
            let left = slot.give_up_ns.map_or(self.timeout, |give_up_ns| {
                Duration::from_nanos(give_up_ns.saturating_sub(self.clock.now_ns()))
            });
            let tried = tokio::time::timeout(left, self.attempt(place, channel, slot)).await;
            let retire = || {
                if let Some(session) = &session {
                    place.retire(session);
                }
            };
            match tried {
                Err(_) => {
                    retire();
                    let reason = format!("no complete answer within {:?}", self.timeout);
                    return Err((FailureKind::Timeout, reason));
                }
                Ok(Err(Trouble::Stale(reason))) => {
                    retire();
                    if slot.give_up_ns.is_some() {
                        return Err((FailureKind::Reset, reason));
                    }
                }
                Ok(Err(Trouble::Failed(kind, reason))) => return Err((kind, reason)),
                Ok(Ok(())) => return Ok(()),
            }
        }
    }

    async fn attempt(
        &self,
        place: &Link,
        channel: Channel,
        slot: &mut Slot,
    ) -> Result<(), Trouble> {
        slot.findings.start();
        slot.heard.start();
        match channel {
            Channel::Http1 { stream, is_used } => {
                let kept = self.over_http1(stream, is_used, slot).await?;
                if let Some(channel) = kept.filter(|_| self.keep_alive) {
                    place.keep(channel);
                }
                Ok(())
            }
            Channel::Http2(session) => {
                self.over_http2(&session, slot).await?;
                if !self.keep_alive {
                    place.retire(&session);
                }
                Ok(())
            }
        }
    }

    async fn over_http1(
        &self,
        mut stream: Box<dyn super::stream::Stream>,
        is_used: bool,
        slot: &mut Slot,
    ) -> Result<Option<Channel>, Trouble> {
        if is_used {
            match http1::probe(&mut *stream).await {
                Idle::Ready => {}
                Idle::Ended => return Err(Trouble::Stale("it was closed".to_owned())),
                Idle::Spoke => {
                    self.book.borrow_mut().recorder.unsolicited += 1;
                    return Err(Trouble::Stale("it was spoiled".to_owned()));
                }
            }
        }
        let (request, bodiless) = {
            let rotation = self.rotation.borrow();
            let request = &rotation.requests[slot.request];
            (request.bytes(&slot.filled).to_vec(), request.bodiless)
        };
        slot.parser.start(bodiless);
        let mut exchange = Exchange {
            clock: self.clock,
            stream: &mut *stream,
            request: &request,
            written: 0,
            is_sent: false,
            is_used,
            buffer: &self.buffer,
            parser: &mut slot.parser,
            heard: &mut slot.heard,
            sink: Judging {
                rotation: &self.rotation,
                request: slot.request,
                findings: &mut slot.findings,
            },
        };
        let now_ns = self.clock.now_ns();
        exchange.begin().await?;
        slot.sent_ns = now_ns;
        self.sent(now_ns, slot.due_ns.filter(|_| slot.is_planned));
        let is_reusable = exchange.finish().await?;
        Ok(is_reusable.then_some(Channel::Http1 {
            stream,
            is_used: true,
        }))
    }

    async fn over_http2(&self, session: &Rc<Session>, slot: &mut Slot) -> Result<(), Trouble> {
        let message = match &self.messages[slot.request] {
            Some(message) => message.clone(),
            None => Message::new(&slot.filled, self.route.is_encrypted())
                .map_err(|reason| Trouble::failed(FailureKind::Protocol, reason))?,
        };
        let _room = session.enter().await;
        let now_ns = self.clock.now_ns();
        let sending = session.send(message).await?;
        slot.sent_ns = now_ns;
        self.sent(now_ns, slot.due_ns.filter(|_| slot.is_planned));
        let limits = Limits {
            clock: self.clock,
            bounds: self.bounds,
        };
        let mut judging = Judging {
            rotation: &self.rotation,
            request: slot.request,
            findings: &mut slot.findings,
        };
        sending.receive(limits, &mut slot.heard, &mut judging).await
    }

    fn sent(&self, now_ns: u64, due_ns: Option<u64>) {
        self.book.borrow_mut().recorder.sent(now_ns, due_ns);
    }

    /// Writes down how the request ended.
    fn conclude(
        &self,
        slot: &mut Slot,
        failure: Option<(FailureKind, String)>,
    ) -> Result<(), FailureKind> {
        let done_ns = self.clock.now_ns();
        slot.done_ns = done_ns;
        let mut rotation = self.rotation.borrow_mut();
        let request = &mut rotation.requests[slot.request];
        let mismatch = match failure {
            Some(_) => None,
            None => slot.findings.conclude(&mut request.rules),
        };
        let mut book = self.book.borrow_mut();
        let recorder = &mut book.recorder;
        if failure.is_none() {
            recorder.bytes_in_bodies += slot.findings.body_bytes;
            let times = Times {
                due_ns: slot.due_ns.unwrap_or(slot.sent_ns),
                sent_ns: slot.sent_ns,
                // Times are taken one after the other; an answer in one piece has one time.
                first_byte_ns: slot.heard.first_byte_ns.min(done_ns),
                done_ns,
            };
            recorder.answered(times, slot.findings.status, mismatch.is_none());
            if !self.script.is_empty() {
                recorder.step_answered(slot.request, times, mismatch.is_none());
            }
        }
        let mismatch = mismatch.map(|mismatch| (mismatch.kind(), mismatch.to_string()));
        let Some((kind, reason)) = failure.or(mismatch) else {
            return Ok(());
        };
        let sent = request.bytes(&slot.filled);
        let sent = match self.route.version {
            Version::Http1 => sent.to_vec(),
            Version::Http2 { .. } => shown(sent),
        };
        // Nothing came of an answer where there was no connection.
        let [head, body] = match kind {
            FailureKind::Connect => [Vec::new(), Vec::new()],
            _ => slot.heard.excerpt(),
        };
        let evidence = Evidence {
            request: &sent,
            answer: [&head, &body],
        };
        recorder.failed(kind, done_ns, evidence, || reason);
        recorder.step_failed(slot.request, kind);
        Err(kind)
    }
}
