//! The event loop of a null server.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustix::net::{SocketFlags, sockopt};
use stats::Histogram;

use super::behavior::{Behavior, NullEncoding};
use super::client::{
    Activity, Client, Outgoing, ParsedRequest, PlannedAnswer, Text, first_request,
};
use super::pace::Timetable;
use super::planted::Planted;
use super::seen::Seen;
use super::{LISTENER, WAIT_MAX_NS};
use crate::clock::{self, Clock, to_ns};
use crate::coding::encoded;
use crate::job::Job;
use crate::poll::{Poll, Wait};
use crate::socket::{self, Moved};

mod streaming;

/// The cache line of all machines that `weigh` supports, or a multiple of it.
const CACHE_LINE_BYTES: usize = 64;

/// Indices of responses rendered beforehand.
const WRONG: usize = 1;
const LAST: usize = 2;

/// A place for one client after another.
struct Place {
    /// Number of clients until now, so that a late response does not go to the next client.
    generation: u32,
    client: Option<Client>,
}

/// A rendered response.
struct Rendered {
    bytes: Vec<u8>,
    head_bytes: usize,
}

/// A server with one event loop.
pub(super) struct Server {
    clock: Clock,
    /// The time since 1970 at which the clock shows 0.
    epoch_ns: u64,
    poll: Poll,
    listener: OwnedFd,
    /// True if the last accept failed because a resource was missing, and may succeed later.
    is_accept_open: bool,
    places: Vec<Place>,
    vacant: Vec<usize>,
    /// Pending responses, by time and client.
    due: BinaryHeap<Reverse<(u64, u64)>>,
    timetable: Timetable,
    behavior: Behavior,
    rendered: [Rendered; 4],
    buffer: Vec<u8>,
    /// The file that the kernel reads zeros from, to keep it busy.
    zeros: Option<File>,
    planted: Planted,
    /// Memory to write to.
    thrashed: Vec<u8>,
    /// Processor time of this thread that belongs to the responses so far.
    spent_ns: u64,
    seen: Seen,
    /// Time from the set moment of each delayed response until the kernel had it.
    late: Histogram,
}

impl Server {
    pub(super) fn new(listener: OwnedFd, behavior: &Behavior) -> io::Result<Server> {
        let poll = Poll::new(Poll::create()?, Job::SPIN_SHARE);
        poll.add(&listener, LISTENER)?;
        let clock = Clock::start();
        Ok(Server {
            clock,
            epoch_ns: clock.epoch_ns(),
            poll,
            listener,
            is_accept_open: true,
            places: Vec::new(),
            vacant: Vec::new(),
            due: BinaryHeap::new(),
            timetable: Timetable::new(behavior),
            behavior: behavior.clone(),
            rendered: [0, WRONG, LAST, WRONG | LAST].map(|kind| render(behavior, kind)),
            buffer: vec![0; 64 * 1024],
            zeros: match behavior.burn_in_kernel {
                true => Some(File::open("/dev/zero")?),
                false => None,
            },
            planted: Planted::new(behavior)?,
            thrashed: vec![0; behavior.thrash_bytes],
            spent_ns: clock::thread_cpu_ns(),
            seen: Seen::default(),
            late: Histogram::new(),
        })
    }

    pub(super) fn run(&mut self, stop: &AtomicBool) {
        while !stop.load(Ordering::Relaxed) {
            let now_ns = self.answer_due();
            let wait = match self.due.peek() {
                Some(Reverse((ready_ns, _))) => {
                    Wait::Punctually(ready_ns.saturating_sub(now_ns).min(WAIT_MAX_NS))
                }
                None => Wait::Roughly(WAIT_MAX_NS),
            };
            let meant_ns = self.poll.wait(wait);
            let after_ns = self.clock.now_ns();
            self.poll.learn(meant_ns, after_ns - now_ns);
            let events = std::mem::take(&mut self.poll.events);
            for event in &events {
                let (flags, token) = (event.flags, event.data.u64());
                if token == LISTENER {
                    self.is_accept_open = true;
                } else {
                    self.on_event(token, flags);
                }
                // A list of events takes a while. Responses that become due meanwhile must not be late.
                if !self.due.is_empty() {
                    self.answer_due();
                }
            }
            self.poll.events = events;
            while self.is_accept_open {
                self.accept();
            }
        }
    }

    /// The counts until now.
    pub(super) fn seen(&self) -> Seen {
        let typical_ns = self.late.trimmed_mean_ns(Histogram::TYPICAL_SHARE);
        Seen {
            sent_ns_typical: typical_ns.unwrap_or_default(),
            ..self.seen
        }
    }

    fn accept(&mut self) {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let accepted = rustix::net::accept_with(&self.listener, flags);
        // The listener has edges, too. Accept until it refuses, then wait for the next edge. A client that
        // left the queue does not affect the clients behind it.
        let is_gone = matches!(accepted, Err(Errno::CONNABORTED | Errno::INTR));
        self.is_accept_open = accepted.is_ok() || is_gone;
        let Ok(socket) = accepted else {
            return;
        };
        // A Unix socket has no such option. Without the option, a response is only later.
        let _ = sockopt::set_tcp_nodelay(&socket, true);
        // The place of a client that left is used first, so there are only as many places as clients at once.
        let index = self.vacant.pop().unwrap_or_else(|| {
            self.places.push(Place {
                generation: 0,
                client: None,
            });
            self.places.len() - 1
        });
        if self.poll.add(&socket, self.token(index)).is_err() {
            self.vacant.push(index);
            return;
        }
        self.seen.connections += 1;
        self.seen.open += 1;
        self.places[index].client = Some(Client {
            socket,
            inbox: Vec::new(),
            activity: Activity::Listening,
            answered: 0,
        });
    }

    fn token(&self, index: usize) -> u64 {
        u64::from(self.places[index].generation) << 32 | index as u64
    }

    /// Returns the place of a client that is still connected.
    fn place(&self, token: u64) -> Option<usize> {
        let index = usize::try_from(token & u64::from(u32::MAX)).ok()?;
        let place = self.places.get(index)?;
        let is_same = u64::from(place.generation) == token >> 32 && place.client.is_some();
        is_same.then_some(index)
    }

    fn on_event(&mut self, token: u64, flags: EventFlags) {
        let Some(index) = self.place(token) else {
            return;
        };
        let is_hangup = flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR);
        if is_hangup || flags.contains(EventFlags::IN) {
            self.read(index, is_hangup);
        }
        // Looked up again, because `read` may have closed the client.
        if self.place(token).is_some() && flags.contains(EventFlags::OUT) {
            self.write(index);
            self.flush_stream(index);
            // Requests may have arrived while the previous response was delayed.
            self.listen(index);
        }
    }

    fn read(&mut self, index: usize, is_hangup: bool) {
        loop {
            let Some(client) = &mut self.places[index].client else {
                return;
            };
            let bytes = match socket::receive(&client.socket, &mut self.buffer) {
                Ok(Moved::Later) => return,
                Ok(Moved::Bytes(0)) | Err(_) => return self.close(index),
                Ok(Moved::Bytes(bytes)) => bytes,
            };
            if !matches!(client.activity, Activity::Ignored) {
                client.inbox.extend_from_slice(&self.buffer[..bytes]);
                self.listen(index);
            }
            if bytes < self.buffer.len() && !is_hangup {
                return;
            }
        }
    }

    /// Handles whole requests while there are any and no response must be awaited.
    fn listen(&mut self, index: usize) {
        while let Some(client) = &mut self.places[index].client
            && matches!(client.activity, Activity::Listening)
        {
            match first_request(&client.inbox) {
                Ok(None) => return,
                Ok(Some(asked)) => {
                    client.inbox.drain(..asked.bytes);
                    self.receive(index, asked);
                }
                Err(_) => {
                    self.seen.malformed += 1;
                    self.close(index);
                }
            }
        }
    }

    fn receive(&mut self, index: usize, asked: ParsedRequest) {
        // This comes before the counts, because a request for the counts is not counted.
        if asked.is_about_seen {
            let body = self.seen().to_string();
            let bytes = [head(body.len(), None, asked.is_last), body]
                .concat()
                .into_bytes();
            let outgoing = Outgoing {
                end: bytes.len(),
                text: Text::Own(bytes),
                written: 0,
                is_last: asked.is_last,
            };
            return self.begin(index, outgoing);
        }
        self.seen.requests += 1;
        let count = self.seen.requests;
        let is_turn = |every: Option<u64>| every.is_some_and(|every| count.is_multiple_of(every));
        let arrived_ns = self.clock.now_ns();
        let ready_ns = self.timetable.answer_ns(arrived_ns);
        let token = self.token(index);
        let Some(client) = &mut self.places[index].client else {
            return;
        };
        if is_turn(self.behavior.reset_every) {
            self.seen.reset += 1;
            // Closing resets the connection if unsent bytes are not awaited.
            let _ = sockopt::set_socket_linger(&client.socket, Some(Duration::ZERO));
            return self.close(index);
        }
        if is_turn(self.behavior.never_every) {
            self.seen.never += 1;
            client.activity = Activity::Ignored;
            return;
        }
        let is_full = self
            .behavior
            .close_after
            .is_some_and(|after| client.answered + 1 >= after);
        let planned = PlannedAnswer {
            is_wrong: is_turn(self.behavior.wrong_every),
            is_last: asked.is_last || is_full,
            is_bodiless: asked.is_head,
            ready_ns,
        };
        // The response leaves at once, without a detour over the list of due responses.
        if ready_ns <= arrived_ns {
            self.send_planned(index, planned);
        } else {
            client.activity = Activity::Waiting(planned);
            self.due.push(Reverse((ready_ns, token)));
        }
    }

    /// Sends the due responses. Returns the time.
    fn answer_due(&mut self) -> u64 {
        loop {
            // The time is read again for each response, because the previous response may have burned
            // processor time.
            let now_ns = self.clock.now_ns();
            let Some(Reverse((ready_ns, token))) = self.due.peek().copied() else {
                return now_ns;
            };
            if ready_ns > now_ns {
                return now_ns;
            }
            self.due.pop();
            let Some(index) = self.place(token) else {
                continue;
            };
            let client = self.places[index].client.as_ref();
            if matches!(
                client.map(|client| &client.activity),
                Some(Activity::Streaming(_))
            ) {
                self.continue_stream(index);
                continue;
            }
            if let Some(client) = client
                && let Activity::Waiting(planned) = client.activity
            {
                let late_ns = now_ns - planned.ready_ns;
                self.seen.late_ns_sum += late_ns;
                self.seen.late_ns_max = self.seen.late_ns_max.max(late_ns);
                self.send_planned(index, planned);
                // After the send, because a server that slept for longer sends more slowly.
                let sent_ns = self.clock.now_ns();
                self.late.record_ns(sent_ns - planned.ready_ns);
                self.listen(index);
            }
        }
    }

    /// Spends the rest of a request's processor time. Earlier work counts from the last response on, so a
    /// busy server spends exactly the set time on each request.
    fn burn(&mut self) {
        let is_turn = self.seen.answered.is_multiple_of(self.behavior.burn_every);
        if self.behavior.burn.is_zero() || !is_turn {
            return;
        }
        let enough_ns = self.spent_ns + to_ns(self.behavior.burn);
        let mut now_ns = clock::thread_cpu_ns();
        let was_enough = now_ns >= enough_ns;
        while now_ns < enough_ns {
            match &mut self.zeros {
                // A page takes the kernel less than a microsecond.
                Some(zeros) => {
                    let mut page = [0; 4096];
                    // The content does not matter. The time is spent in the kernel.
                    let _ = zeros.read(&mut page);
                }
                None => std::hint::spin_loop(),
            }
            now_ns = clock::thread_cpu_ns();
        }
        // A reading of this clock takes more than half a microsecond, so the loop ends late. The next request
        // is shorter by this excess, and the mean is exact. If the work itself took longer, all of it counts.
        self.spent_ns = match was_enough {
            true => now_ns,
            false => enough_ns,
        };
    }

    /// Evicts cache lines of other programs.
    fn thrash(&mut self) {
        for byte in self.thrashed.iter_mut().step_by(CACHE_LINE_BYTES) {
            *byte = byte.wrapping_add(1);
        }
    }

    /// Writes the number of the response into the time field of gzip, if the bytes of responses differ.
    fn stamp(&mut self, kind: usize) {
        let is_varying = |it: &NullEncoding| it.is_varying;
        if !self.behavior.encoding.as_ref().is_some_and(is_varying) {
            return;
        }
        let number = u32::try_from(self.seen.answered & u64::from(u32::MAX))
            .expect("the lower half of 64 bits is 32 bits");
        let Rendered { bytes, head_bytes } = &mut self.rendered[kind];
        // RFC 1952, section 2.3.
        bytes[*head_bytes + 4..*head_bytes + 8].copy_from_slice(&number.to_le_bytes());
    }

    /// Sends a planned response.
    fn send_planned(&mut self, index: usize, planned: PlannedAnswer) {
        let kind =
            if planned.is_wrong { WRONG } else { 0 } | if planned.is_last { LAST } else { 0 };
        // A client gets no response if it cannot be as planted.
        if self.planted.before_response().is_err() {
            return self.close(index);
        }
        // First, so that it counts as burned time.
        self.thrash();
        self.burn();
        self.seen.wrong += u64::from(planned.is_wrong);
        if self.behavior.stream.is_some() {
            return self.begin_stream(index, planned);
        }
        self.stamp(kind);
        let rendered = &self.rendered[kind];
        self.seen.answered += 1;
        let outgoing = Outgoing {
            text: Text::Rendered(kind),
            written: 0,
            end: if planned.is_bodiless {
                rendered.head_bytes
            } else {
                rendered.bytes.len()
            },
            is_last: planned.is_last,
        };
        if let Some(client) = &mut self.places[index].client {
            client.answered += 1;
        }
        self.begin(index, outgoing);
    }

    fn begin(&mut self, index: usize, outgoing: Outgoing) {
        if let Some(client) = &mut self.places[index].client {
            client.activity = Activity::Writing(outgoing);
            self.write(index);
        }
    }

    /// Writes as many bytes of the current response as the socket accepts.
    fn write(&mut self, index: usize) {
        let Some(client) = &mut self.places[index].client else {
            return;
        };
        let Activity::Writing(outgoing) = &mut client.activity else {
            return;
        };
        let bytes = match &outgoing.text {
            Text::Rendered(kind) => &self.rendered[*kind].bytes,
            Text::Own(bytes) => bytes,
        };
        while outgoing.written < outgoing.end {
            match socket::send(&client.socket, &bytes[outgoing.written..outgoing.end]) {
                Ok(Moved::Later) => return,
                Ok(Moved::Bytes(written)) => outgoing.written += written,
                Err(_) => return self.close(index),
            }
        }
        let is_last = outgoing.is_last;
        client.activity = Activity::Listening;
        if is_last {
            self.seen.closed += 1;
            self.close(index);
        }
    }

    /// Closes the connection of a client.
    fn close(&mut self, index: usize) {
        let place = &mut self.places[index];
        if place.client.take().is_some() {
            place.generation = place.generation.wrapping_add(1);
            self.vacant.push(index);
            self.seen.open -= 1;
        }
    }
}

fn head(body_bytes: usize, coding: Option<&str>, is_last: bool) -> String {
    let close = if is_last { "connection: close\r\n" } else { "" };
    let coding = coding.map_or_else(String::new, |it| format!("content-encoding: {it}\r\n"));
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\
         content-length: {body_bytes}\r\n{coding}{close}\r\n"
    )
}

/// Returns the body of a response, encoded if the behavior is to encode bodies.
pub(super) fn body(behavior: &Behavior, is_wrong: bool) -> Vec<u8> {
    let mut body = behavior.body().into_bytes();
    let middle = body.len() / 2;
    if is_wrong && let Some(byte) = body.get_mut(middle) {
        *byte ^= 1;
    }
    match &behavior.encoding {
        Some(it) => encoded(&it.coding, &body).expect("the behavior was checked"),
        None => body,
    }
}

fn render(behavior: &Behavior, kind: usize) -> Rendered {
    let body = body(behavior, kind & WRONG != 0);
    let coding = behavior.encoding.as_ref().map(|it| it.coding.as_str());
    let head = head(body.len(), coding, kind & LAST != 0);
    Rendered {
        head_bytes: head.len(),
        bytes: [head.into_bytes(), body].concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_body_differs_in_one_byte_and_nothing_else() {
        for body_bytes in [1, 19, 20, 8192] {
            let behavior = Behavior {
                body_bytes,
                ..Behavior::default()
            };
            let rendered = |kind| render(&behavior, kind);
            let (right, wrong) = (rendered(0), rendered(WRONG));
            assert_eq!(right.bytes.len(), right.head_bytes + body_bytes);
            let differing = right
                .bytes
                .iter()
                .zip(&wrong.bytes)
                .filter(|(one, other)| one != other);
            assert_eq!(differing.count(), 1, "{body_bytes}");
        }
    }
}
