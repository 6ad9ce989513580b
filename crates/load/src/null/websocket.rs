//! A null server of WebSocket: an echo, or a publisher with one timetable for all clients.
//!
//! The planned time of an event is its time stamp, so a late wakeup of this server counts as delivery time.
//! Absent on purpose: TLS, compression, and fragmented messages of clients.

use std::collections::VecDeque;
use std::io;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::event::epoll::EventFlags;
use rustix::net::{SocketFlags, sockopt};

use super::frames::{Frame, OP_CLOSE, OP_PING, OP_PONG, OP_TEXT, first_frame, frame, upgrade};
use super::seen::Seen;
use super::{LISTENER, WAIT_MAX_NS, prepare};
use crate::clock::{Clock, to_ns};
use crate::job::Job;
use crate::poll::{Poll, Wait};
use crate::socket::{self, Moved};

/// Bytes that a client may send without an end of its message, or leave unread.
const BYTES_MAX: usize = 4 * 1024 * 1024;

/// The behavior of a null server of WebSocket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketBehavior {
    /// Sends each message back this time after its arrival.
    Echo {
        /// The time from the arrival to the reply.
        delay: Duration,
    },
    /// Sends events to all clients at the same times. It is a GraphQL server for clients that request
    /// `graphql-transport-ws` or `graphql-ws`.
    Publish {
        /// Number of events for each subscription.
        events: u64,
        /// The shortest time from the subscription to its first event.
        first: Duration,
        /// The time between two events. Above 0.
        gap: Duration,
        /// The time from the time stamp in an event to its send.
        deliver_after: Duration,
    },
}

/// Serves WebSocket until `stop` is set, and returns its counts. Messages count as requests. `GET /seen`
/// without an upgrade returns the counts until then.
///
/// # Errors
/// If the listener cannot be used with an event loop.
pub fn serve_websocket(
    listener: TcpListener,
    behavior: SocketBehavior,
    stop: &AtomicBool,
) -> io::Result<Seen> {
    prepare(&listener)?;
    let listener = OwnedFd::from(listener);
    let poll = Poll::new(Poll::create()?, Job::SPIN_SHARE);
    poll.add(&listener, LISTENER)?;
    let clock = Clock::start();
    let mut server = SocketServer {
        clock,
        epoch_ns: clock.epoch_ns(),
        poll,
        listener,
        behavior,
        clients: Vec::new(),
        replies: VecDeque::new(),
        tick_ns: 0,
        ticks: 0,
        buffer: vec![0; 64 * 1024],
        seen: Seen::default(),
    };
    server.run(stop);
    Ok(server.seen)
}

/// A subscription of a client.
struct Subscription {
    /// The id in messages of GraphQL. `None` for a client without GraphQL.
    id: Option<String>,
    /// The time before which it gets no event.
    from_ns: u64,
    left: u64,
}

struct SocketClient {
    socket: OwnedFd,
    inbox: Vec<u8>,
    outbox: Vec<u8>,
    is_upgraded: bool,
    /// The type of a result, for a client of GraphQL.
    result: Option<&'static str>,
    subscriptions: Vec<Subscription>,
}

struct SocketServer {
    clock: Clock,
    /// The time since 1970 at which the clock shows 0.
    epoch_ns: u64,
    poll: Poll,
    listener: OwnedFd,
    behavior: SocketBehavior,
    /// Clients by token. A token is never used again, so that a late reply reaches nobody else.
    clients: Vec<Option<SocketClient>>,
    /// Replies that wait, in the order of their times.
    replies: VecDeque<(u64, usize, Vec<u8>)>,
    /// The time stamp of the next event.
    tick_ns: u64,
    ticks: u64,
    buffer: Vec<u8>,
    seen: Seen,
}

impl SocketServer {
    fn run(&mut self, stop: &AtomicBool) {
        while !stop.load(Ordering::Relaxed) {
            let now_ns = self.send_due();
            let wait = match self.next_ns() {
                Some(next_ns) => Wait::Punctually(next_ns.saturating_sub(now_ns).min(WAIT_MAX_NS)),
                None => Wait::Roughly(WAIT_MAX_NS),
            };
            let meant_ns = self.poll.wait(wait);
            self.poll.learn(meant_ns, self.clock.now_ns() - now_ns);
            let events = std::mem::take(&mut self.poll.events);
            for event in &events {
                let (flags, token) = (event.flags, event.data.u64());
                match usize::try_from(token).ok().filter(|_| token != LISTENER) {
                    None => self.accept(),
                    Some(index) => self.on_event(index, flags),
                }
            }
            self.poll.events = events;
        }
    }

    /// Returns the time of the next send.
    fn next_ns(&self) -> Option<u64> {
        let reply_ns = self.replies.front().map(|(ready_ns, ..)| *ready_ns);
        let has_subscriber = |client: &SocketClient| !client.subscriptions.is_empty();
        let tick_ns = match self.behavior {
            SocketBehavior::Publish { deliver_after, .. }
                if self.clients.iter().flatten().any(has_subscriber) =>
            {
                Some(self.tick_ns.saturating_add(to_ns(deliver_after)))
            }
            _ => None,
        };
        reply_ns.into_iter().chain(tick_ns).min()
    }

    /// Sends replies and events that are due. Returns the time.
    fn send_due(&mut self) -> u64 {
        loop {
            let now_ns = self.clock.now_ns();
            if let Some((ready_ns, ..)) = self.replies.front()
                && *ready_ns <= now_ns
                && let Some((ready_ns, index, bytes)) = self.replies.pop_front()
            {
                self.late(now_ns - ready_ns);
                self.send(index, &bytes);
                continue;
            }
            let SocketBehavior::Publish {
                gap, deliver_after, ..
            } = self.behavior
            else {
                return now_ns;
            };
            let sent_ns = self.tick_ns.saturating_add(to_ns(deliver_after));
            if sent_ns > now_ns {
                return now_ns;
            }
            self.publish(now_ns - sent_ns);
            self.tick_ns = self.tick_ns.saturating_add(to_ns(gap).max(1));
            self.ticks += 1;
        }
    }

    fn late(&mut self, late_ns: u64) {
        self.seen.answered += 1;
        self.seen.late_ns_sum += late_ns;
        self.seen.late_ns_max = self.seen.late_ns_max.max(late_ns);
    }

    /// Sends the event of the current tick to every subscription.
    fn publish(&mut self, late_ns: u64) {
        let at = self.epoch_ns.saturating_add(self.tick_ns);
        let data = format!(r#"{{"price":{},"at":{at}}}"#, self.ticks);
        for index in 0..self.clients.len() {
            let tick_ns = self.tick_ns;
            let Some(client) = &mut self.clients[index] else {
                continue;
            };
            let mut bytes = Vec::new();
            let result = client.result;
            let mut sent = 0;
            client.subscriptions.retain_mut(|subscription| {
                if subscription.from_ns > tick_ns {
                    return true;
                }
                subscription.left -= 1;
                sent += 1;
                bytes.extend(event(result, subscription, &data));
                subscription.left > 0
            });
            for _ in 0..sent {
                self.late(late_ns);
            }
            if !bytes.is_empty() {
                self.send(index, &bytes);
            }
        }
    }

    fn accept(&mut self) {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        while let Ok(socket) = rustix::net::accept_with(&self.listener, flags) {
            let _ = sockopt::set_tcp_nodelay(&socket, true);
            if self.poll.add(&socket, self.clients.len() as u64).is_err() {
                continue;
            }
            self.seen.connections += 1;
            self.seen.open += 1;
            self.clients.push(Some(SocketClient {
                socket,
                inbox: Vec::new(),
                outbox: Vec::new(),
                is_upgraded: false,
                result: None,
                subscriptions: Vec::new(),
            }));
        }
    }

    fn on_event(&mut self, index: usize, flags: EventFlags) {
        if flags.contains(EventFlags::OUT) {
            self.send(index, b"");
        }
        loop {
            let Some(Some(client)) = self.clients.get_mut(index) else {
                return;
            };
            match socket::receive(&client.socket, &mut self.buffer) {
                Ok(Moved::Later) => return,
                Ok(Moved::Bytes(bytes @ 1..)) => {
                    client.inbox.extend_from_slice(&self.buffer[..bytes]);
                    self.listen(index);
                }
                Ok(Moved::Bytes(0)) | Err(_) => return self.close(index),
            }
        }
    }

    /// Handles whole messages.
    fn listen(&mut self, index: usize) {
        loop {
            let Some(Some(client)) = self.clients.get_mut(index) else {
                return;
            };
            if !client.is_upgraded {
                match upgrade(&client.inbox) {
                    Ok(None) if client.inbox.len() <= BYTES_MAX => return,
                    Ok(Some(accepted)) => {
                        client.inbox.drain(..accepted.bytes);
                        client.is_upgraded = true;
                        client.result = match accepted.protocol.as_deref() {
                            Some("graphql-transport-ws") => Some("next"),
                            Some("graphql-ws") => Some("data"),
                            _ => None,
                        };
                        self.send(index, &accepted.answer);
                        self.opened(index);
                    }
                    Err(()) if client.inbox.starts_with(b"GET /seen ") => {
                        return self.tell_seen(index);
                    }
                    Ok(None) | Err(()) => return self.malformed(index),
                }
                continue;
            }
            match first_frame(&client.inbox) {
                Ok(None) if client.inbox.len() <= BYTES_MAX => return,
                Ok(Some((bytes, frame))) => {
                    client.inbox.drain(..bytes);
                    self.on_frame(index, frame);
                }
                Ok(None) | Err(()) => return self.malformed(index),
            }
        }
    }

    fn malformed(&mut self, index: usize) {
        self.seen.malformed += 1;
        self.close(index);
    }

    /// Answers a request for the counts, which is no upgrade, and closes the connection.
    fn tell_seen(&mut self, index: usize) {
        let counts = self.seen.to_string();
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n";
        let answer = format!("{head}Content-Length: {}\r\n\r\n{counts}", counts.len());
        self.send(index, answer.as_bytes());
        self.close(index);
    }

    /// A client without GraphQL is a subscriber from its upgrade on.
    fn opened(&mut self, index: usize) {
        let is_raw = |client: &SocketClient| client.result.is_none();
        if self.clients[index].as_ref().is_some_and(is_raw) {
            self.subscribe(index, None);
        }
    }

    fn subscribe(&mut self, index: usize, id: Option<String>) {
        let SocketBehavior::Publish { events, first, .. } = self.behavior else {
            return;
        };
        let from_ns = self.clock.now_ns().saturating_add(to_ns(first));
        if let Some(client) = &mut self.clients[index]
            && events > 0
        {
            client.subscriptions.push(Subscription {
                id,
                from_ns,
                left: events,
            });
        }
    }

    fn on_frame(&mut self, index: usize, found: Frame) {
        match found.code {
            OP_PING => self.send(index, &frame(OP_PONG, &found.payload)),
            OP_PONG => {}
            OP_CLOSE => {
                self.send(index, &frame(OP_CLOSE, &found.payload));
                self.seen.closed += 1;
                self.close(index);
            }
            code => {
                self.seen.requests += 1;
                let is_graphql = |client: &SocketClient| client.result.is_some();
                if self.clients[index].as_ref().is_some_and(is_graphql) {
                    self.on_graphql(index, &found.payload);
                } else if let SocketBehavior::Echo { delay } = self.behavior {
                    let ready_ns = self.clock.now_ns().saturating_add(to_ns(delay));
                    self.replies
                        .push_back((ready_ns, index, frame(code, &found.payload)));
                    self.send_due();
                }
            }
        }
    }

    fn on_graphql(&mut self, index: usize, text: &[u8]) {
        let Ok(message) = serde_json::from_slice::<serde_json::Value>(text) else {
            return self.malformed(index);
        };
        let id = message["id"].as_str().map(str::to_owned);
        match message["type"].as_str() {
            Some("connection_init") => {
                self.send(index, &frame(OP_TEXT, br#"{"type":"connection_ack"}"#));
            }
            Some("ping") => self.send(index, &frame(OP_TEXT, br#"{"type":"pong"}"#)),
            Some("subscribe" | "start") if id.is_some() => self.subscribe(index, id),
            Some("complete" | "stop") => {
                if let Some(client) = &mut self.clients[index] {
                    client.subscriptions.retain(|it| it.id != id);
                }
            }
            Some("pong" | "connection_terminate") => {}
            _ => self.malformed(index),
        }
    }

    /// Sends these bytes after the bytes that wait. A client that does not read is closed.
    fn send(&mut self, index: usize, bytes: &[u8]) {
        let Some(Some(client)) = self.clients.get_mut(index) else {
            return;
        };
        client.outbox.extend_from_slice(bytes);
        let mut written = 0;
        while written < client.outbox.len() {
            match socket::send(&client.socket, &client.outbox[written..]) {
                Ok(Moved::Bytes(sent)) => written += sent,
                Ok(Moved::Later) => break,
                // The next read finds the end.
                Err(_) => written = client.outbox.len(),
            }
        }
        client.outbox.drain(..written);
        if client.outbox.len() > BYTES_MAX {
            self.seen.reset += 1;
            self.close(index);
        }
    }

    fn close(&mut self, index: usize) {
        if self.clients[index].take().is_some() {
            self.seen.open -= 1;
        }
    }
}

/// Returns the messages of one event: the result, and the end of the subscription after the last result.
fn event(result: Option<&str>, subscription: &Subscription, data: &str) -> Vec<u8> {
    let is_last = subscription.left == 0;
    let (Some(result), Some(id)) = (result, &subscription.id) else {
        let mut bytes = frame(OP_TEXT, data.as_bytes());
        if is_last {
            bytes.extend(frame(OP_CLOSE, &1000_u16.to_be_bytes()));
        }
        return bytes;
    };
    let id = serde_json::Value::from(id.as_str());
    let payload = format!(r#"{{"data":{data}}}"#);
    let text = format!(r#"{{"id":{id},"type":"{result}","payload":{payload}}}"#);
    let mut bytes = frame(OP_TEXT, text.as_bytes());
    if is_last {
        let text = format!(r#"{{"id":{id},"type":"complete"}}"#);
        bytes.extend(frame(OP_TEXT, text.as_bytes()));
    }
    bytes
}
