//! Splits a streamed body into events while it arrives, and checks each event.

use std::time::Duration;

use model::{EventCheck, Framing, StreamEnd, StreamRule};

use super::graphql;
use crate::clock::Clock;
use crate::mismatch::Mismatch;
use crate::parser::Head;
use crate::recorder::events::Events;

mod split;
#[cfg(test)]
mod tests;

pub(crate) use split::{Part, Splitter};

/// Time after the end of a stream during which the end of the response is awaited, so that the connection can
/// carry another request.
pub(crate) const STREAM_END: Duration = Duration::from_millis(20);

/// Characters of an event that a message about it quotes.
const QUOTED_MAX: usize = 80;

/// The moment at which a piece of a body arrived, and the account of its events.
pub(crate) struct Arrival<'a> {
    pub(crate) now_ns: u64,
    /// The due time of the stream.
    pub(crate) due_ns: u64,
    /// `None` if events are not recorded: outside of a load, and for slots that do not count.
    pub(crate) events: Option<&'a mut Events>,
}

impl Arrival<'_> {
    /// Returns the arrival of a response outside of a load.
    pub(crate) fn untimed() -> Arrival<'static> {
        Arrival {
            now_ns: 0,
            due_ns: 0,
            events: None,
        }
    }

    /// Returns the arrival of a piece now. Reads the clock only if there is an account.
    pub(crate) fn now(clock: Clock, due_ns: u64, events: Option<&mut Events>) -> Arrival<'_> {
        Arrival {
            now_ns: if events.is_some() { clock.now_ns() } else { 0 },
            due_ns,
            events,
        }
    }
}

/// The state of a stream that is arriving.
#[derive(Clone, Debug, Default)]
pub(crate) struct StreamFindings {
    splitter: Splitter,
    /// Number of events. The event that ends the stream by its content is not counted.
    count: u64,
    /// Time of the first event. 0 without an event.
    first_ns: u64,
    /// Time of the latest event. 0 without an event.
    last_ns: u64,
    /// Time of the event that ended the stream. 0 before that.
    ended_ns: u64,
    is_ended: bool,
    /// True if bytes arrived after the event that ended the stream.
    is_over: bool,
    wrong: Option<Box<Mismatch>>,
}

impl StreamFindings {
    /// Resets the state for the next response.
    pub(crate) fn start(&mut self) {
        self.count = 0;
        self.first_ns = 0;
        self.last_ns = 0;
        self.ended_ns = 0;
        self.is_ended = false;
        self.is_over = false;
        self.wrong = None;
        self.splitter.reset();
    }

    /// Prepares for the body of a response with this head.
    pub(crate) fn head(&mut self, rule: &StreamRule, head: &Head<'_>) {
        self.splitter.start(rule.framing, head);
    }

    /// Number of events until now.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Time of the first event. 0 without an event.
    pub(crate) fn first_ns(&self) -> u64 {
        self.first_ns
    }

    /// Time of the event that ended the stream. `None` if the stream ends with the response.
    pub(crate) fn ended_ns(&self) -> Option<u64> {
        (self.ended_ns > 0).then_some(self.ended_ns)
    }

    /// True if an event has ended the stream. The response may continue.
    pub(crate) fn is_ended(&self) -> bool {
        self.is_ended
    }

    /// True if the response continues after the end of the stream.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }

    /// True if one event is longer than the limit for kept bodies.
    pub(crate) fn is_too_large(&self) -> bool {
        self.splitter.is_too_large()
    }

    /// Takes the next piece of the body.
    pub(crate) fn body(&mut self, rule: &StreamRule, bytes: &[u8], at: &mut Arrival<'_>) {
        if self.is_ended {
            self.is_over |= !bytes.iter().all(u8::is_ascii_whitespace);
            return;
        }
        // Moved out, because an event changes the rest of the state.
        let mut splitter = std::mem::take(&mut self.splitter);
        let mut rest = bytes;
        while splitter.next(&mut rest) {
            self.event(rule, &splitter.part(), at);
            if self.is_ended {
                // Blanks may follow the end of a stream.
                self.is_over = !rest.iter().all(u8::is_ascii_whitespace);
                break;
            }
        }
        self.splitter = splitter;
    }

    /// Takes one message of a gRPC call. Messages after the end of the stream are left out.
    pub(crate) fn event_of_call(&mut self, rule: &StreamRule, data: &[u8], at: &mut Arrival<'_>) {
        match self.is_ended {
            true => self.is_over = true,
            false => self.event(rule, &Part { name: b"", data }, at),
        }
    }

    /// Takes one event.
    pub(crate) fn event(&mut self, rule: &StreamRule, part: &Part<'_>, at: &mut Arrival<'_>) {
        let is_marker = match &rule.end {
            Some(StreamEnd::Data(data)) => part.data == data.as_slice(),
            Some(StreamEnd::Type(name)) => part.name == name.as_bytes(),
            Some(StreamEnd::Count(_)) | None => false,
        };
        if is_marker {
            self.is_ended = true;
            self.ended_ns = at.now_ns;
            return;
        }
        // An event without data only has a type.
        if part.data.is_empty() && rule.framing == Framing::ServerSent {
            return;
        }
        self.count += 1;
        if self.first_ns == 0 {
            self.first_ns = at.now_ns;
        }
        if let Some(events) = at.events.as_deref_mut() {
            let before_ns = (self.count > 1).then_some(self.last_ns);
            events.arrived(self.count, at.due_ns, at.now_ns, before_ns);
            if let Some(pointer) = &rule.sent_at {
                events.delivered(part.data, pointer, at.now_ns);
            }
        }
        self.last_ns = at.now_ns;
        if self.wrong.is_none() {
            self.wrong = self.verify(rule.each, part.data).map(Box::new);
        }
        if let Some(StreamEnd::Count(count)) = rule.end
            && self.count >= count
        {
            self.is_ended = true;
            self.ended_ns = at.now_ns;
        }
    }

    fn verify(&self, each: EventCheck, data: &[u8]) -> Option<Mismatch> {
        let wrong = |expected: &str, found: String| Mismatch::Event {
            position: self.count,
            expected: expected.to_owned(),
            found,
        };
        match each {
            EventCheck::Any => None,
            EventCheck::Json => serde_json::from_slice::<serde_json::Value>(data)
                .is_err()
                .then(|| wrong("a JSON value", quoted(data))),
            EventCheck::Graphql => graphql::scan(data)
                .err()
                .map(|fault| wrong("a GraphQL result without errors", fault.to_string())),
        }
    }

    /// Takes the end of a stream that its protocol announces, or that the generator ends.
    pub(crate) fn finish(&mut self, now_ns: u64) {
        if self.ended_ns == 0 {
            self.ended_ns = now_ns;
        }
    }

    /// Takes the message that ends a stream. A rule that expects it is met.
    pub(crate) fn complete(&mut self, rule: &StreamRule, now_ns: u64) {
        let is_expected = |end: &StreamEnd| *end == StreamEnd::Type("complete".to_owned());
        self.is_ended |= rule.end.as_ref().is_some_and(is_expected);
        self.finish(now_ns);
    }

    /// Takes an error that the protocol sends instead of an event.
    pub(crate) fn refused(&mut self, expected: &str, data: &[u8]) {
        let mismatch = Mismatch::Event {
            position: self.count + 1,
            expected: expected.to_owned(),
            found: quoted(data),
        };
        self.wrong.get_or_insert(Box::new(mismatch));
    }

    /// Returns the verdict on a complete response.
    pub(crate) fn conclude(&mut self, rule: &StreamRule) -> Option<Mismatch> {
        if let Some(wrong) = self.wrong.take() {
            return Some(*wrong);
        }
        let wrong = |expected: String| {
            let found = match self.count {
                1 => "1 event".to_owned(),
                count => format!("{count} events"),
            };
            Some(Mismatch::Events { expected, found })
        };
        if let Some(end) = rule.end.as_ref().filter(|_| !self.is_ended) {
            return wrong(match end {
                StreamEnd::Count(count) => format!("a stream of {count} events"),
                StreamEnd::Data(data) => {
                    format!("an event {} at the end of the stream", quoted(data))
                }
                StreamEnd::Type(name) => {
                    format!("an event of the type `{name}` at the end of the stream")
                }
            });
        }
        match rule.events {
            Some(expected) if expected != self.count => wrong(format!("{expected} events")),
            // A gRPC call may have no message.
            None if self.count == 0 && rule.framing != Framing::Grpc => {
                wrong(format!("at least one event ({})", rule.framing.word()))
            }
            Some(_) | None => None,
        }
    }

    /// Takes the end of the response, which ends the last line.
    pub(crate) fn end(&mut self, rule: &StreamRule, at: &mut Arrival<'_>) {
        if self.is_ended {
            return;
        }
        let mut splitter = std::mem::take(&mut self.splitter);
        if splitter.last() {
            self.event(rule, &splitter.part(), at);
        }
        self.splitter = splitter;
    }
}

fn quoted(data: &[u8]) -> String {
    let text = String::from_utf8_lossy(data);
    let mut shown: String = text.chars().take(QUOTED_MAX).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    format!("`{}`", shown.escape_debug())
}
