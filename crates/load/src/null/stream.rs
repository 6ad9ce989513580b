//! Streamed responses of a null server: events at exact times.

use std::time::Duration;

use crate::clock::to_ns;

/// The events of each response of a null server.
///
/// The head leaves after the delay of [`Pace`](super::Pace). Event `k` leaves `first + k * gap` after the set
/// moment of the head, independent of earlier events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NullStream {
    /// True for server-sent events, false for lines.
    pub is_server_sent: bool,
    /// Number of events. At least 1.
    pub events: u64,
    /// Time from the head to the first event.
    pub first: Duration,
    /// Time between two events.
    pub gap: Duration,
    /// The data of one more event at the end, such as `[DONE]`. It leaves with the last event.
    pub marker: Option<String>,
    /// True if the response stays open after its last event, until the client leaves.
    pub stays_open: bool,
}

/// A streamed response that is under way.
#[derive(Debug)]
pub(super) struct Streaming {
    /// The set moment of the head.
    pub(super) head_ns: u64,
    /// Number of events that were written or wait for the client.
    pub(super) written: u64,
    /// Bytes that wait for the client.
    pub(super) pending: Vec<u8>,
    pub(super) is_last: bool,
    pub(super) is_wrong: bool,
    pub(super) is_complete: bool,
}

impl NullStream {
    /// Returns the set moment of the event with this index, from 0.
    pub(super) fn event_ns(&self, head_ns: u64, index: u64) -> u64 {
        let gaps_ns = to_ns(self.gap).saturating_mul(index);
        head_ns
            .saturating_add(to_ns(self.first))
            .saturating_add(gaps_ns)
    }

    pub(super) fn media_type(&self) -> &'static str {
        match self.is_server_sent {
            true => "text/event-stream",
            false => "application/x-ndjson",
        }
    }

    pub(super) fn head(&self, is_last: bool) -> String {
        let kind = self.media_type();
        let close = if is_last { "connection: close\r\n" } else { "" };
        format!(
            "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncache-control: no-store\r\n\
             transfer-encoding: chunked\r\n{close}\r\n"
        )
    }

    /// Returns one event.
    pub(super) fn event(&self, data: &str) -> String {
        match self.is_server_sent {
            true => format!("data: {data}\n\n"),
            false => format!("{data}\n"),
        }
    }

    /// Adds one event as a chunk.
    pub(super) fn add(&self, data: &str, bytes: &mut Vec<u8>) {
        let event = self.event(data);
        bytes.extend_from_slice(format!("{:x}\r\n{event}\r\n", event.len()).as_bytes());
    }
}
