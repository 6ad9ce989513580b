//! One conversation: the planned messages, the events, and the end.

use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use futures_util::Sink as _;
use model::{GraphqlProtocol, MessageContent, ReplyRule, WebSocketCall, WebSocketDialect};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;

use super::graphql::{self, Heard};
use super::{Happening, Upgraded, closed, failure};
use crate::answer::CLOSED_IDLE;
use crate::clock::{Clock, to_ns};
use crate::general::planned::{Alarm, Alarms, Planned};
use crate::general::progress::{ExchangeError, ResponseProgress};
use crate::measurement::FailureKind;
use crate::websocket::{Listener, Received, binary};

/// One conversation on an open connection.
pub(in crate::general) struct Conversation<'a, L> {
    pub(in crate::general) upgraded: &'a mut Upgraded,
    pub(in crate::general) call: &'a WebSocketCall,
    /// The texts of the messages, filled in.
    pub(in crate::general) parts: &'a [&'a [u8]],
    pub(in crate::general) clock: Clock,
    pub(in crate::general) progress: &'a mut ResponseProgress,
    pub(in crate::general) listener: &'a mut L,
    /// True if the first event ends a conversation that is held, because it is a proof.
    pub(in crate::general) is_proof: bool,
}

/// The course of a conversation.
struct Course {
    planned: Vec<Planned>,
    /// The messages without a reply: number and planned time.
    awaited: VecDeque<(u64, u64)>,
    /// Number of messages that were sent with a reply.
    numbers: u64,
    /// The end of the hold. `None` without a hold, and after it.
    hold_ns: Option<u64>,
    is_held: bool,
    is_complete: bool,
    /// True while a message has not left.
    is_flushing: bool,
    has_heard: bool,
}

impl<L: Listener> Conversation<'_, L> {
    /// Carries the conversation to its end. The connection can carry another one, or is closed.
    pub(in crate::general) async fn run(
        mut self,
        alarms: &impl Alarms,
    ) -> Result<(), ExchangeError> {
        let was_kept = std::mem::replace(&mut self.upgraded.is_used, true);
        let mut course = self.begin()?;
        let mut alarm: Option<(u64, Alarm<'_>)> = None;
        while !self.is_over(&course) {
            let due_ns = course.next_ns();
            if due_ns != alarm.as_ref().map(|(at_ns, _)| *at_ns) {
                // Dropped first, because a place waits for one time at once.
                drop(alarm.take());
                alarm = due_ns.map(|due_ns| (due_ns, alarms.at(due_ns)));
            }
            let happened = self.next(&mut course, &mut alarm).await;
            match happened {
                None => {
                    alarm = None;
                    self.send_due(&mut course)?;
                }
                Some(Happening::Message(message)) => {
                    course.has_heard = true;
                    self.on_message(&mut course, message)?;
                }
                Some(Happening::Failed(_) | Happening::Ended) if was_kept && !course.has_heard => {
                    return Err(ExchangeError::failed(FailureKind::ClosedIdle, CLOSED_IDLE));
                }
                Some(Happening::Failed(error)) => return Err(failure(&error)),
                Some(Happening::Ended) => return Err(closed(None)),
            }
        }
        self.listener.finish(self.clock.now_ns());
        self.stop(&course).await;
        Ok(())
    }

    /// Returns the next message, or `None` when the alarm rings. A message that waits for the socket delays
    /// later messages, but not their planned times.
    async fn next(
        &mut self,
        course: &mut Course,
        alarm: &mut Option<(u64, Alarm<'_>)>,
    ) -> Option<Happening> {
        poll_fn(|context| {
            if course.is_flushing {
                // An error of the write has a reason that the read finds, such as a close message.
                let flushed = Pin::new(&mut self.upgraded.socket).poll_flush(context);
                course.is_flushing = flushed.is_pending();
            }
            if let Poll::Ready(happened) = self.upgraded.poll_happening(context) {
                return Poll::Ready(Some(happened));
            }
            match alarm {
                Some((_, alarm)) if !course.is_flushing => {
                    alarm.as_mut().poll(context).map(|()| None)
                }
                _ => Poll::Pending,
            }
        })
        .await
    }

    /// Begins: a subscription, the request for a GraphQL connection, or the plan of the messages.
    fn begin(&mut self) -> Result<Course, ExchangeError> {
        let mut course = Course {
            planned: Vec::new(),
            awaited: VecDeque::new(),
            numbers: 0,
            hold_ns: None,
            is_held: self.call.hold.is_some(),
            is_complete: false,
            is_flushing: false,
            has_heard: false,
        };
        match &self.call.dialect {
            WebSocketDialect::Raw { messages, .. } => {
                let start_ns = self.clock.now_ns();
                let messages = messages.iter().enumerate();
                course.planned = messages
                    .map(|(part, message)| Planned::new(part, message, start_ns))
                    .filter(|planned| planned.left != Some(0))
                    .collect();
                self.hold(&mut course);
                self.send_due(&mut course)?;
            }
            WebSocketDialect::Graphql { protocol, .. } if self.upgraded.is_acknowledged => {
                self.subscribe(&mut course, *protocol)?;
            }
            WebSocketDialect::Graphql { .. } => {
                let init = self.text(0)?;
                self.send(&mut course, Message::text(init))?;
            }
        }
        Ok(course)
    }

    fn hold(&self, course: &mut Course) {
        let now_ns = self.clock.now_ns();
        course.hold_ns = self
            .call
            .hold
            .map(|hold| now_ns.saturating_add(to_ns(hold)));
    }

    fn subscribe(
        &mut self,
        course: &mut Course,
        protocol: GraphqlProtocol,
    ) -> Result<(), ExchangeError> {
        self.upgraded.subscriptions += 1;
        let id = self.upgraded.subscriptions;
        let message = graphql::subscribe(protocol, id, &self.text(1)?);
        self.hold(course);
        self.send(course, Message::text(message))
    }

    fn text(&self, part: usize) -> Result<String, ExchangeError> {
        let text = String::from_utf8(self.parts[part].to_vec());
        text.map_err(|_| wrong("a text message contains bytes that are not UTF-8".to_owned()))
    }

    fn send(&mut self, course: &mut Course, message: Message) -> Result<(), ExchangeError> {
        course.is_flushing = true;
        self.upgraded
            .start_send(message)
            .map_err(|error| failure(&error))
    }

    /// Sends one message that is due. The next one leaves when the socket has taken it.
    fn send_due(&mut self, course: &mut Course) -> Result<(), ExchangeError> {
        let now_ns = self.clock.now_ns();
        if course.hold_ns.is_some_and(|hold_ns| hold_ns <= now_ns) {
            course.end_hold();
            return Ok(());
        }
        let due = course.planned.iter_mut().min_by_key(|it| it.due_ns);
        let Some(planned) = due.filter(|planned| planned.due_ns <= now_ns) else {
            return Ok(());
        };
        let (part, due_ns) = (planned.part, planned.due_ns);
        planned.left = planned.left.map(|left| left - 1);
        planned.due_ns = due_ns.saturating_add(planned.gap_ns.unwrap_or(0));
        course.planned.retain(|planned| planned.left != Some(0));
        let WebSocketDialect::Raw {
            messages, replies, ..
        } = &self.call.dialect
        else {
            return Ok(());
        };
        let mut text = match &messages[part].content {
            MessageContent::Text(_) => self.text(part)?,
            MessageContent::Binary(_) => {
                let bytes = binary(self.parts[part]);
                let bytes = bytes.ok_or_else(|| wrong("a binary message has places".to_owned()))?;
                course.awaits(replies, due_ns);
                return self.send(course, Message::binary(bytes));
            }
        };
        if let ReplyRule::Id(pointer) = replies {
            text = numbered(&text, pointer, course.numbers).map_err(wrong)?;
        }
        course.awaits(replies, due_ns);
        self.send(course, Message::text(text))
    }

    fn on_message(&mut self, course: &mut Course, message: Message) -> Result<(), ExchangeError> {
        let (name, data): (&[u8], _) = match &message {
            Message::Text(text) => (b"text", text.as_bytes()),
            Message::Binary(bytes) => (b"binary", &bytes[..]),
            Message::Close(frame) => return self.on_close(course, frame.as_ref()),
            Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {
                // The library has queued the answer to a ping.
                course.is_flushing = true;
                return Ok(());
            }
        };
        let now_ns = self.clock.now_ns();
        self.progress.keep(data, now_ns);
        match &self.call.dialect {
            WebSocketDialect::Raw { replies, .. } => {
                if let Some(due_ns) = course.replied(replies, data) {
                    self.listener.replied(now_ns.saturating_sub(due_ns));
                }
                self.event(course, name, data);
                Ok(())
            }
            WebSocketDialect::Graphql { protocol, .. } if name == b"text" => {
                self.on_graphql(course, *protocol, data)
            }
            WebSocketDialect::Graphql { .. } => Err(wrong(
                "expected text messages of GraphQL, found a binary message".to_owned(),
            )),
        }
    }

    fn event(&mut self, course: &mut Course, name: &[u8], data: &[u8]) {
        self.listener.message(&Received::Event { name, data });
        if self.is_proof && course.is_held {
            course.end_hold();
        }
    }

    fn on_graphql(
        &mut self,
        course: &mut Course,
        protocol: GraphqlProtocol,
        data: &[u8],
    ) -> Result<(), ExchangeError> {
        let id = self.upgraded.subscriptions;
        let was_acknowledged = self.upgraded.is_acknowledged;
        match graphql::heard(protocol, data, id).map_err(wrong)? {
            Heard::Acknowledged if was_acknowledged => {
                return Err(wrong("expected one `connection_ack`, found two".to_owned()));
            }
            Heard::Acknowledged => {
                self.upgraded.is_acknowledged = true;
                self.subscribe(course, protocol)?;
            }
            Heard::Ping => self.send(course, Message::text(graphql::PONG))?,
            Heard::Nothing => {}
            Heard::Next(_) | Heard::Error(_) | Heard::Complete if !was_acknowledged => {
                return Err(wrong(
                    "expected `connection_ack` first, found a result".to_owned(),
                ));
            }
            Heard::Next(payload) => {
                self.event(course, graphql::result_type(protocol).as_bytes(), payload);
            }
            Heard::Error(data) => {
                self.listener.message(&Received::Error { data });
                course.is_complete = true;
            }
            Heard::Complete => {
                // A rule may name the type of this message as the end. Otherwise it is no event.
                course.is_complete = true;
                self.listener.message(&Received::Complete);
            }
            Heard::Refused(payload) => {
                return Err(wrong(format!(
                    "expected `connection_ack`, found `connection_error`: {}",
                    String::from_utf8_lossy(payload)
                )));
            }
        }
        Ok(())
    }

    fn on_close(
        &mut self,
        course: &mut Course,
        frame: Option<&CloseFrame>,
    ) -> Result<(), ExchangeError> {
        let code = frame.map(|frame| u16::from(frame.code));
        let is_raw = matches!(self.call.dialect, WebSocketDialect::Raw { .. });
        let is_idle = course.planned.is_empty() && course.awaited.is_empty();
        self.upgraded.is_gone = true;
        // The server may end a conversation that has no other end.
        if code == Some(1000) && is_raw && is_idle && !course.is_held {
            course.is_complete = true;
            return Ok(());
        }
        Err(closed(frame))
    }

    fn is_over(&self, course: &Course) -> bool {
        let WebSocketDialect::Raw { replies, .. } = &self.call.dialect else {
            let is_hold_over = course.is_held && course.hold_ns.is_none() && self.has_begun();
            return course.is_complete || self.listener.is_ended() || is_hold_over;
        };
        let is_idle = course.planned.is_empty() && course.awaited.is_empty();
        let ends_itself = match course.is_held {
            true => course.hold_ns.is_none(),
            false => *replies != ReplyRule::None,
        };
        course.is_complete || self.listener.is_ended() || (ends_itself && is_idle)
    }

    /// True if the subscription has begun.
    fn has_begun(&self) -> bool {
        self.upgraded.is_acknowledged
    }

    /// Announces the end of the conversation to the server.
    async fn stop(&mut self, course: &Course) {
        if let WebSocketDialect::Graphql { protocol, .. } = &self.call.dialect
            && !course.is_complete
        {
            let message = graphql::stop(*protocol, self.upgraded.subscriptions);
            // A connection that fails here has carried the whole conversation.
            if self.upgraded.start_send(Message::text(message)).is_err() {
                self.upgraded.is_gone = true;
                return;
            }
        }
        self.upgraded.flush().await;
    }
}

impl Course {
    /// Returns the next planned time.
    fn next_ns(&self) -> Option<u64> {
        let due = self.planned.iter().map(|planned| planned.due_ns);
        due.chain(self.hold_ns).min()
    }

    fn end_hold(&mut self) {
        self.hold_ns = None;
        self.planned.clear();
    }

    /// Records a message that a reply must follow.
    fn awaits(&mut self, replies: &ReplyRule, due_ns: u64) {
        if *replies != ReplyRule::None {
            self.awaited.push_back((self.numbers, due_ns));
            self.numbers += 1;
        }
    }

    /// Returns the planned time of the message that this is the reply to.
    fn replied(&mut self, replies: &ReplyRule, data: &[u8]) -> Option<u64> {
        match replies {
            ReplyRule::None => None,
            ReplyRule::Order => self.awaited.pop_front().map(|(_, due_ns)| due_ns),
            ReplyRule::Id(pointer) => {
                let reply: Value = serde_json::from_slice(data).ok()?;
                let id = reply.pointer(pointer)?;
                let number = id
                    .as_u64()
                    .or_else(|| id.as_str().and_then(|text| text.parse().ok()))?;
                let at = self.awaited.iter().position(|(it, _)| *it == number)?;
                self.awaited.remove(at).map(|(_, due_ns)| due_ns)
            }
        }
    }
}

fn wrong(reason: String) -> ExchangeError {
    ExchangeError::failed(FailureKind::Protocol, reason)
}

/// Writes the number of a message to its place. A text stays a text, and all other bytes stay the same.
fn numbered(text: &str, pointer: &str, number: u64) -> Result<String, String> {
    let Some(found) = located(text, pointer) else {
        return Err(format!(
            "expected a message in JSON with an id at `{pointer}`, found another message"
        ));
    };
    let at = found.as_ptr() as usize - text.as_ptr() as usize;
    let (before, after) = (&text[..at], &text[at + found.len()..]);
    Ok(match found.starts_with('"') {
        true => format!("{before}\"{number}\"{after}"),
        false => format!("{before}{number}{after}"),
    })
}

/// Returns the text of the value at a JSON pointer, as a part of `text`.
fn located<'a>(text: &'a str, pointer: &str) -> Option<&'a str> {
    let mut found: &RawValue = serde_json::from_str(text).ok()?;
    for token in pointer.split('/').skip(1) {
        let token = token.replace("~1", "/").replace("~0", "~");
        let inner = found.get();
        found = match inner.starts_with('[') {
            true => serde_json::from_str::<Vec<&RawValue>>(inner)
                .ok()?
                .get(token.parse::<usize>().ok()?)
                .copied()?,
            false => serde_json::from_str::<BTreeMap<String, &RawValue>>(inner)
                .ok()?
                .get(&token)
                .copied()?,
        };
    }
    Some(found.get())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_replace_ids_and_keep_their_kind() {
        let found = numbered(r#"{"id" : 0,"a":[1]}"#, "/id", 7).unwrap();
        assert_eq!(found, r#"{"id" : 7,"a":[1]}"#);
        let found = numbered(r#"{"a":[1,{"b":null}]}"#, "/a/1/b", 12).unwrap();
        assert_eq!(found, r#"{"a":[1,{"b":12}]}"#);
        let found = numbered(r#"{"id":"x"}"#, "/id", 7).unwrap();
        assert_eq!(found, r#"{"id":"7"}"#);
        assert!(numbered("{}", "/id", 7).unwrap_err().contains("`/id`"));
        assert!(numbered("a", "/id", 7).unwrap_err().contains("JSON"));
    }

    fn course() -> Course {
        Course {
            planned: Vec::new(),
            awaited: VecDeque::new(),
            numbers: 0,
            hold_ns: None,
            is_held: false,
            is_complete: false,
            is_flushing: false,
            has_heard: false,
        }
    }

    #[test]
    fn replies_belong_to_messages_by_order_or_by_id() {
        let mut one = course();
        one.awaits(&ReplyRule::Order, 10);
        one.awaits(&ReplyRule::Order, 20);
        assert_eq!(one.replied(&ReplyRule::Order, b"any"), Some(10));
        assert_eq!(one.replied(&ReplyRule::Order, b"any"), Some(20));
        assert_eq!(one.replied(&ReplyRule::Order, b"any"), None);
        let by_id = ReplyRule::Id("/id".to_owned());
        let mut one = course();
        one.awaits(&by_id, 10);
        one.awaits(&by_id, 20);
        assert_eq!(one.replied(&by_id, br#"{"id":1}"#), Some(20));
        assert_eq!(one.replied(&by_id, br#"{"id":1}"#), None, "a second reply");
        assert_eq!(one.replied(&by_id, br#"{"id":9}"#), None);
        assert_eq!(one.replied(&by_id, b"no JSON"), None);
        assert_eq!(one.replied(&by_id, br#"{"id":"0"}"#), Some(10));
        let mut one = course();
        one.awaits(&ReplyRule::None, 10);
        assert!(one.awaited.is_empty());
    }
}
