//! The counts of a null server.

use std::fmt::{self, Display};

/// Counts since the start. `GET /seen` returns them as JSON and is not counted itself.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Seen {
    /// Connections accepted.
    pub connections: u64,
    /// Connections that are open.
    pub open: u64,
    /// Complete requests.
    pub requests: u64,
    /// Requests that arrived before the handshake of their connection was complete (0-RTT of HTTP/3).
    pub early: u64,
    /// Complete responses, including wrong responses.
    pub answered: u64,
    /// Responses with a wrong body.
    pub wrong: u64,
    /// Connections that were reset instead of a response.
    pub reset: u64,
    /// Requests that received no response.
    pub never: u64,
    /// Connections that were closed after their last response.
    pub closed: u64,
    /// Malformed requests.
    pub malformed: u64,
    /// The largest lateness of a response, in nanoseconds: the precision of this server.
    pub late_ns_max: u64,
    /// Sum of the lateness of all responses, in nanoseconds.
    pub late_ns_sum: u64,
    /// Mean time from the set moment of a delayed response until the kernel had it, over the most punctual
    /// three quarters, in nanoseconds. It is the part of a typical latency that the server added to its delay.
    pub sent_ns_typical: f64,
}

impl Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let late_us_max = self.late_ns_max as f64 / 1e3;
        let sent_us_typical = self.sent_ns_typical / 1e3;
        let late_us_mean = self.late_ns_sum as f64 / self.answered.max(1) as f64 / 1e3;
        write!(
            f,
            "{{\"connections\":{},\"open\":{},\"requests\":{},\"early\":{},\"answered\":{},\
             \"wrong\":{},\"reset\":{},\"never\":{},\"closed\":{},\"malformed\":{},\
             \"sent_us_typical\":{sent_us_typical:.3},\"late_us_mean\":{late_us_mean:.3},\
             \"late_us_max\":{late_us_max:.3}}}",
            self.connections,
            self.open,
            self.requests,
            self.early,
            self.answered,
            self.wrong,
            self.reset,
            self.never,
            self.closed,
            self.malformed,
        )
    }
}
