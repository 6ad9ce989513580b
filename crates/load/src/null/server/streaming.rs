//! The streamed responses of a null server that are under way.

use std::cmp::Reverse;

use super::super::client::{Activity, PlannedAnswer};
use super::super::stream::Streaming;
use super::Server;
use crate::socket::{self, Moved};

/// Bytes that may wait for a slow client. A client that reads more slowly is disconnected.
const PENDING_MAX: usize = 1 << 20;

impl Server {
    /// Sends the head of a streamed response, and the events that are due.
    pub(super) fn begin_stream(&mut self, index: usize, planned: PlannedAnswer) {
        let Some(stream) = &self.behavior.stream else {
            return;
        };
        let Some(client) = &mut self.places[index].client else {
            return;
        };
        client.activity = Activity::Streaming(Streaming {
            head_ns: planned.ready_ns,
            written: 0,
            pending: stream.head(planned.is_last).into_bytes(),
            is_last: planned.is_last,
            is_wrong: planned.is_wrong,
            is_complete: planned.is_bodiless,
        });
        self.continue_stream(index);
    }

    /// Sends the due events of a client, and plans its next event.
    pub(super) fn continue_stream(&mut self, index: usize) {
        let (clock, epoch_ns, token) = (self.clock, self.epoch_ns, self.token(index));
        let Some(stream) = &self.behavior.stream else {
            return;
        };
        let Some(client) = &mut self.places[index].client else {
            return;
        };
        let Activity::Streaming(streaming) = &mut client.activity else {
            return;
        };
        while !streaming.is_complete {
            let now_ns = clock.now_ns();
            let event_ns = stream.event_ns(streaming.head_ns, streaming.written);
            if event_ns > now_ns {
                self.due.push(Reverse((event_ns, token)));
                break;
            }
            let number = streaming.written + 1;
            // The first event is wrong, so that short streams are wrong, too.
            let data = match streaming.is_wrong && streaming.written == 0 {
                true => "{".to_owned(),
                false => format!("{{\"n\":{number},\"at\":{}}}", epoch_ns + clock.now_ns()),
            };
            stream.add(&data, &mut streaming.pending);
            streaming.written = number;
            if number >= stream.events {
                streaming.is_complete = true;
                if let Some(marker) = &stream.marker {
                    stream.add(marker, &mut streaming.pending);
                }
                if !stream.stays_open {
                    streaming.pending.extend_from_slice(b"0\r\n\r\n");
                }
            }
        }
        self.flush_stream(index);
    }

    /// Writes as many waiting bytes of a stream as the socket accepts.
    pub(super) fn flush_stream(&mut self, index: usize) {
        let stays_open = self
            .behavior
            .stream
            .as_ref()
            .is_some_and(|it| it.stays_open);
        let Some(client) = &mut self.places[index].client else {
            return;
        };
        let Activity::Streaming(streaming) = &mut client.activity else {
            return;
        };
        while !streaming.pending.is_empty() {
            match socket::send(&client.socket, &streaming.pending) {
                Ok(Moved::Later) if streaming.pending.len() > PENDING_MAX => {
                    return self.close(index);
                }
                Ok(Moved::Later) => return,
                Ok(Moved::Bytes(written)) => {
                    streaming.pending.drain(..written);
                }
                Err(_) => return self.close(index),
            }
        }
        if streaming.is_complete && !stays_open {
            let is_last = streaming.is_last;
            client.activity = Activity::Listening;
            client.answered += 1;
            self.seen.answered += 1;
            if is_last {
                self.seen.closed += 1;
                self.close(index);
            } else {
                self.listen(index);
            }
        }
    }
}
