//! Possible outcomes of a request.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::as_micros;

/// Outcomes of the intended sends. Each send has exactly one outcome, so the sum is the planned number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Outcomes {
    /// Complete responses that met the expectation.
    pub passed: u64,
    /// Complete responses that did not meet the expectation.
    pub mismatched: Mismatched,
    /// Requests without a complete response.
    pub failed: Failed,
    /// Requests that were due and never sent, because every connection was busy until the end of the grace
    /// period after the plan.
    pub missed: u64,
}

/// Complete responses that did not meet the expectation, by the first rule that they broke.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Mismatched {
    /// The status code differs from the expected status codes.
    pub status: u64,
    /// The response is a GraphQL response with `errors`, or contains no JSON object.
    pub graphql: u64,
    /// The body differs from the expected body.
    pub body: u64,
    /// An expected header is absent or has another value.
    pub header: u64,
    /// An event of a stream is wrong, or the stream has a wrong number of events.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub event: u64,
}

/// True for a count of 0, which recordings of ordinary responses leave out.
#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde requires a reference"
)]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Requests without a complete response, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Failed {
    /// The connection could not be opened.
    pub connect: u64,
    /// The response was not complete within the timeout of the load.
    pub timeout: u64,
    /// The target reset the connection.
    pub reset: u64,
    /// The target closed the connection before the response was complete.
    pub closed: u64,
    /// The target closed a connection that had carried a response before, without a byte of the next
    /// response. The target may have closed an idle connection, or it may have crashed.
    #[serde(default)]
    pub closed_idle: u64,
    /// The generator had no free local port for another connection.
    #[serde(default)]
    pub local_port: u64,
    /// The response is not HTTP, or is longer than announced.
    pub protocol: u64,
    /// The response exceeds the size limits of head or body.
    pub too_large: u64,
}

/// Reasons why a request did not pass.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum FailureKind {
    /// Mismatched: the status code was not expected.
    Status,
    /// Mismatched: a GraphQL response with `errors`.
    Graphql,
    /// Mismatched: the body was not expected.
    Body,
    /// Mismatched: a header is absent or has another value.
    Header,
    /// Mismatched: an event of a stream is wrong, or their number is wrong.
    Event,
    /// Failed: the connection could not be opened.
    Connect,
    /// Failed: the response was not complete in time.
    Timeout,
    /// Failed: the target reset the connection.
    Reset,
    /// Failed: the target closed the connection before the response was complete.
    Closed,
    /// Failed: the target closed a kept connection before a byte of the response came.
    ClosedIdle,
    /// Failed: the generator had no free local port.
    LocalPort,
    /// Failed: the response is not HTTP.
    Protocol,
    /// Failed: the response exceeds the size limits of head or body.
    TooLarge,
    /// Missed: the request was never sent.
    Missed,
}

/// One request that did not pass, kept as an example.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FailureSample {
    /// The kind of the failure.
    pub kind: FailureKind,
    /// The failure in words.
    pub reason: String,
    /// Time of the failure, in microseconds since the first send.
    #[serde(rename = "at_us", with = "as_micros")]
    #[schemars(with = "u64")]
    pub at: Duration,
    /// The start of the request. Bytes that are not text are replaced.
    pub request: String,
    /// The start of the response. Absent without a response (in memory the empty text).
    #[serde(default, with = "empty_as_null")]
    #[schemars(with = "Option<String>")]
    pub answer: String,
}

/// Serializes an empty text as `null`.
mod empty_as_null {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
        (!text.is_empty()).then_some(text).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<String, D::Error> {
        // In memory, a missing and an empty response are equal, because both have no text to show.
        Ok(Option::deserialize(deserializer)?.unwrap_or_default())
    }
}

/// Results of the iterations of a scenario.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Iterations {
    /// Iterations with only passed steps.
    pub completed: u64,
    /// Iterations that ended because a step did not pass.
    pub broken: u64,
    /// Iterations that the end of the load cut off before their last step was due.
    pub cut: u64,
}

impl Outcomes {
    /// Sum of all outcomes, which is the number of intended sends.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.completed() + self.failed.total() + self.missed
    }

    /// The share of the intended sends that did not pass, 0 to 1. `None` if the plan has no sends.
    #[must_use]
    #[expect(
        clippy::cast_precision_loss,
        reason = "a share of more than 2^53 requests has no need of its last digit"
    )]
    pub fn failed_share(&self) -> Option<f64> {
        let total = self.total();
        (total > 0).then(|| (total - self.passed) as f64 / total as f64)
    }

    /// Complete responses, right or wrong.
    #[must_use]
    pub fn completed(&self) -> u64 {
        self.passed + self.mismatched.total()
    }

    /// True if every intended send received a complete response.
    #[must_use]
    pub fn is_all_completed(&self) -> bool {
        self.failed.total() == 0 && self.missed == 0
    }

    /// Counts one request that did not pass.
    pub fn count(&mut self, kind: FailureKind) {
        *match kind {
            FailureKind::Status => &mut self.mismatched.status,
            FailureKind::Graphql => &mut self.mismatched.graphql,
            FailureKind::Body => &mut self.mismatched.body,
            FailureKind::Header => &mut self.mismatched.header,
            FailureKind::Event => &mut self.mismatched.event,
            FailureKind::Connect => &mut self.failed.connect,
            FailureKind::Timeout => &mut self.failed.timeout,
            FailureKind::Reset => &mut self.failed.reset,
            FailureKind::Closed => &mut self.failed.closed,
            FailureKind::ClosedIdle => &mut self.failed.closed_idle,
            FailureKind::LocalPort => &mut self.failed.local_port,
            FailureKind::Protocol => &mut self.failed.protocol,
            FailureKind::TooLarge => &mut self.failed.too_large,
            // It is neither mismatched nor failed, because it was never sent.
            FailureKind::Missed => &mut self.missed,
        } += 1;
    }

    /// Adds the counts of another thread or of another measurement.
    pub fn add(&mut self, other: &Outcomes) {
        // Each field is added separately. A test adds one of each kind, so that a new kind cannot be
        // forgotten here.
        self.passed += other.passed;
        self.mismatched.status += other.mismatched.status;
        self.mismatched.graphql += other.mismatched.graphql;
        self.mismatched.body += other.mismatched.body;
        self.mismatched.header += other.mismatched.header;
        self.mismatched.event += other.mismatched.event;
        self.failed.connect += other.failed.connect;
        self.failed.timeout += other.failed.timeout;
        self.failed.reset += other.failed.reset;
        self.failed.closed += other.failed.closed;
        self.failed.closed_idle += other.failed.closed_idle;
        self.failed.local_port += other.failed.local_port;
        self.failed.protocol += other.failed.protocol;
        self.failed.too_large += other.failed.too_large;
        self.missed += other.missed;
    }
}

impl Mismatched {
    /// Sum of all mismatched responses.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.status + self.graphql + self.body + self.header + self.event
    }

    /// The counts with their names, in report order.
    #[must_use]
    pub fn by_name(&self) -> [(&'static str, u64); 5] {
        [
            ("status", self.status),
            ("graphql", self.graphql),
            ("body", self.body),
            ("header", self.header),
            ("event", self.event),
        ]
    }
}

impl Failed {
    /// Sum of all failed requests.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.by_name().iter().map(|(_, count)| count).sum()
    }

    /// The counts with their names, in report order.
    #[must_use]
    pub fn by_name(&self) -> [(&'static str, u64); 8] {
        [
            ("connect", self.connect),
            ("timeout", self.timeout),
            ("reset", self.reset),
            ("closed", self.closed),
            ("closed idle", self.closed_idle),
            ("no local port", self.local_port),
            ("protocol", self.protocol),
            ("too large", self.too_large),
        ]
    }
}

impl FailureKind {
    /// All kinds, in the order of the outcomes.
    pub const ALL: [FailureKind; 14] = [
        FailureKind::Status,
        FailureKind::Graphql,
        FailureKind::Body,
        FailureKind::Header,
        FailureKind::Event,
        FailureKind::Connect,
        FailureKind::Timeout,
        FailureKind::Reset,
        FailureKind::Closed,
        FailureKind::ClosedIdle,
        FailureKind::LocalPort,
        FailureKind::Protocol,
        FailureKind::TooLarge,
        FailureKind::Missed,
    ];

    /// The name in recordings and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            FailureKind::Status => "status",
            FailureKind::Graphql => "graphql",
            FailureKind::Body => "body",
            FailureKind::Header => "header",
            FailureKind::Event => "event",
            FailureKind::Connect => "connect",
            FailureKind::Timeout => "timeout",
            FailureKind::Reset => "reset",
            FailureKind::Closed => "closed",
            FailureKind::ClosedIdle => "closed-idle",
            FailureKind::LocalPort => "local-port",
            FailureKind::Protocol => "protocol",
            FailureKind::TooLarge => "too-large",
            FailureKind::Missed => "missed",
        }
    }

    /// True if the request failed because it had no connection.
    #[must_use]
    pub fn is_without_connection(self) -> bool {
        matches!(self, FailureKind::Connect | FailureKind::LocalPort)
    }

    /// True if the response was complete but wrong.
    #[must_use]
    pub fn is_mismatch(self) -> bool {
        matches!(
            self,
            FailureKind::Status
                | FailureKind::Graphql
                | FailureKind::Body
                | FailureKind::Header
                | FailureKind::Event
        )
    }
}

impl Iterations {
    /// Adds the counts of another thread or of another measurement.
    pub fn add(&mut self, other: Iterations) {
        self.completed += other.completed;
        self.broken += other.broken;
        self.cut += other.cut;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_counted_once_and_serialized_by_its_name() {
        for kind in FailureKind::ALL {
            let mut outcomes = Outcomes::default();
            outcomes.count(kind);
            assert_eq!(outcomes.total(), 1, "{kind:?}");
            assert_eq!(outcomes.mismatched.total() == 1, kind.is_mismatch());
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
            let mut sum = outcomes;
            sum.add(&outcomes);
            assert_eq!(sum.total(), 2, "{kind:?} is lost when counts are added");
        }
    }
}
