//! Conversations of a load, and the single conversation of a proof.

use std::future::poll_fn;
use std::mem::replace;
use std::task::Poll;
use std::time::Duration;

use model::WebSocketDialect;

use super::conversation::Conversation;
use super::{Upgrade, Upgraded};
use crate::answer::Gathering;
use crate::clock::Clock;
use crate::general::link::Purpose;
use crate::general::planned::{PlaceAlarms, PlainAlarms};
use crate::general::progress::{ExchangeError, ResponseProgress};
use crate::general::route::Channel;
use crate::general::slot::Slot;
use crate::general::{EngineState, Place};
use crate::job::{Bounds, WebSocketCall};
use crate::measurement::FailureKind;
use crate::websocket::{Listener, parts};

/// The rendered form of a conversation, filled in for a slot.
struct Filled<'a> {
    /// The head of the upgrade.
    head: &'a [u8],
    parts: Vec<&'a [u8]>,
    /// The bytes that a connection was opened with.
    opened_with: Vec<u8>,
}

impl<'a> Filled<'a> {
    fn new(call: &WebSocketCall, bytes: &'a [u8]) -> Result<Filled<'a>, ExchangeError> {
        let wrong = |reason: &str| ExchangeError::failed(FailureKind::Protocol, reason);
        let blank = b"\r\n\r\n";
        let end = bytes.windows(blank.len()).position(|part| part == blank);
        let Some(end) = end else {
            return Err(wrong("expected a whole head"));
        };
        let (head, body) = bytes.split_at(end + blank.len());
        let parts = parts(call, body)
            .ok_or_else(|| wrong("a value in a message contains the character U+001E"))?;
        let mut opened_with = head.to_vec();
        if is_graphql(call) {
            opened_with.extend_from_slice(parts[0]);
        }
        Ok(Filled {
            head,
            parts,
            opened_with,
        })
    }
}

fn is_graphql(call: &WebSocketCall) -> bool {
    matches!(call.dialect, WebSocketDialect::Graphql { .. })
}

impl EngineState {
    /// The time that the conversation of a slot takes by its plan.
    pub(in crate::general) fn hold(&self, place: Place, slot: &Slot) -> Duration {
        let lanes = self.lanes.borrow();
        let request = &lanes[place.lane].work.rotation.requests[slot.state.request];
        if let Some(calling) = &request.calling {
            return calling.call.length();
        }
        let call = request.conversation.as_ref();
        call.and_then(|call| call.hold).unwrap_or_default()
    }

    /// Carries a slot over a connection that is new, or that carried a conversation before.
    pub(in crate::general) async fn over_websocket(
        &self,
        place: Place,
        mut channel: Channel,
        slot: &mut Slot,
    ) -> Result<(), ExchangeError> {
        let (call, bytes) = {
            let lanes = self.lanes.borrow();
            let request = &lanes[place.lane].work.rotation.requests[slot.state.request];
            // Copies, because the lanes must not stay borrowed while the conversation waits.
            let bytes = request.bytes(&slot.state.filled).to_vec();
            (request.conversation.clone(), bytes)
        };
        let call = call.expect("only a conversation has a connection for conversations");
        let filled = Filled::new(&call, &bytes)?;
        if let Channel::WebSocket(upgraded) = channel {
            channel = self.resumed(place, upgraded, &filled, &call).await?;
        }
        let endpoint = &self.endpoints[place.lane];
        slot.state.sent_ns = self.spin_until(slot.state.due_ns);
        // A slot that needs another connection counts as sent once.
        if !replace(&mut slot.is_sent, true) {
            self.lanes.borrow_mut()[place.lane].sent(&mut slot.state);
        }
        let mut judging = self.judging(place, &mut slot.state);
        let upgrade = Upgrade {
            call: &call,
            request: filled.head,
            opened_with: &filled.opened_with,
            bounds: endpoint.bounds,
            clock: self.clock,
        };
        let ready = self
            .upgraded(place, channel, &upgrade, &mut slot.progress, &mut judging)
            .await?;
        let Some(mut upgraded) = ready else {
            return Ok(());
        };
        let conversation = Conversation {
            upgraded: &mut upgraded,
            call: &call,
            parts: &filled.parts,
            clock: self.clock,
            progress: &mut slot.progress,
            listener: &mut judging,
            is_proof: false,
        };
        conversation
            .run(&PlaceAlarms { state: self, place })
            .await?;
        if call.is_kept && endpoint.keep_alive && upgraded.is_open() {
            let kept = Channel::WebSocket(upgraded);
            endpoint
                .link(place.index)
                .keep(kept, Purpose::Conversations);
        } else {
            self.leave(place, upgraded).await;
        }
        Ok(())
    }

    /// Prepares a kept connection for a further conversation.
    ///
    /// # Errors
    ///
    /// If the connection cannot carry it.
    async fn resumed(
        &self,
        place: Place,
        mut upgraded: Box<Upgraded>,
        filled: &Filled<'_>,
        call: &WebSocketCall,
    ) -> Result<Channel, ExchangeError> {
        if !upgraded.was_opened_with(&filled.opened_with) {
            self.leave(place, upgraded).await;
            let reason = "it was opened with another request".to_owned();
            return Err(ExchangeError::Stale(reason));
        }
        upgraded.resume(is_graphql(call)).await?;
        Ok(Channel::WebSocket(upgraded))
    }

    /// Closes a connection. The next step of an iteration does not wait for the answer of the server.
    async fn leave(&self, place: Place, mut upgraded: Box<Upgraded>) {
        if self.lanes.borrow()[place.lane].work.script.is_empty() {
            return upgraded.close().await;
        }
        let mut closing = Box::pin(async move { upgraded.close().await });
        // The first poll sends the close message.
        let sent = poll_fn(|context| Poll::Ready(closing.as_mut().poll(context))).await;
        if sent.is_pending() {
            tokio::task::spawn_local(closing);
        }
    }

    /// Returns a connection after its upgrade. `None` if the server refused the upgrade.
    async fn upgraded(
        &self,
        place: Place,
        channel: Channel,
        upgrade: &Upgrade<'_>,
        progress: &mut ResponseProgress,
        listener: &mut impl Listener,
    ) -> Result<Option<Box<Upgraded>>, ExchangeError> {
        let (stream, connect_ns) = match channel {
            Channel::WebSocket(upgraded) => {
                upgraded.repeat_head(listener)?;
                return Ok(Some(upgraded));
            }
            Channel::Http1 {
                stream, connect_ns, ..
            } => (stream, connect_ns),
            Channel::Shared(_) => {
                let reason = "expected a connection of HTTP/1.1";
                return Err(ExchangeError::failed(FailureKind::Protocol, reason));
            }
        };
        let begin_ns = self.clock.now_ns();
        let upgraded = upgrade.on(stream, progress, listener).await?;
        if upgraded.is_some() {
            let took_ns = connect_ns + (self.clock.now_ns() - begin_ns);
            let recorder = &mut self.lanes.borrow_mut()[place.lane].recorder;
            recorder.connect.record_ns(took_ns);
        }
        Ok(upgraded.map(Box::new))
    }
}

/// Holds one conversation on a new connection. The first event ends a conversation that is held, unless its
/// rule counts events.
pub(in crate::general) async fn once(
    channel: Channel,
    call: &WebSocketCall,
    bytes: &[u8],
    progress: &mut ResponseProgress,
    listener: &mut Gathering,
) -> Result<(), ExchangeError> {
    let Channel::Http1 { stream, .. } = channel else {
        let reason = "expected a connection of HTTP/1.1";
        return Err(ExchangeError::failed(FailureKind::Protocol, reason));
    };
    let filled = Filled::new(call, bytes)?;
    let clock = Clock::start();
    let upgrade = Upgrade {
        call,
        request: filled.head,
        opened_with: &filled.opened_with,
        bounds: Bounds::default(),
        clock,
    };
    let Some(mut upgraded) = upgrade.on(stream, progress, listener).await? else {
        return Ok(());
    };
    let is_proof = !listener.counts_events();
    let conversation = Conversation {
        upgraded: &mut upgraded,
        call,
        parts: &filled.parts,
        clock,
        progress,
        listener,
        is_proof,
    };
    conversation.run(&PlainAlarms { clock }).await?;
    upgraded.close().await;
    Ok(())
}
