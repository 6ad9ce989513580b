//! What variants were sent, where that is not the same: a difference then contains what differs.

use serde::Serialize;

use super::estimate::MetricSummary;
use super::figures::{Against, Figures};
use crate::float::float;
use crate::metric::Metric;
use crate::recording::{ProtocolText, Recording, RequestText, RoundRecord, VariantRecord};

/// What one variant was sent.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SentSummary {
    /// Whether its requests are others than those of its baseline.
    pub has_other_requests: bool,
    /// How its requests travel, where that is not how those of its baseline do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<ProtocolText>,
    /// Operations that a request carries, on average: more than 1 of batches.
    pub operations_per_request: f64,
    /// Bytes of a request on the wire, TLS and handshakes included; absent where none was sent.
    pub bytes_sent_per_request: Option<f64>,
    /// Bytes received for each complete answer, TLS and handshakes included; absent without one.
    pub bytes_received_per_request: Option<f64>,
    /// Processor time per operation; absent where it could not be read, and where every request of all
    /// variants carries one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_us_per_operation: Option<MetricSummary>,
}

/// One side of a comparison: who it is, and what was seen.
#[derive(Clone, Copy)]
pub(super) struct Side<'a> {
    pub(super) variant: &'a VariantRecord,
    pub(super) figures: &'a Figures,
}

/// Whether any variant is sent something else than its baseline.
pub(super) fn differs(recording: &Recording) -> bool {
    let mut variants = recording.variants.iter();
    variants.any(|variant| {
        let own = baseline(recording, variant);
        own.is_some_and(|own| {
            has_other_requests(recording, variant, own) || other_protocol(recording, variant, own)
        })
    })
}

/// What a variant was sent, for a recording in which that differs.
pub(super) fn of(
    recording: &Recording,
    own: Side<'_>,
    against: Option<(&VariantRecord, &Against<'_>)>,
    complete: &[&RoundRecord],
    confidence: f64,
) -> SentSummary {
    let variant = own.variant;
    let operations = |variant: &VariantRecord| operations(requests(recording, variant));
    // Also where its baseline has no number: what was sent is known all the same.
    let theirs = baseline(recording, variant);
    let has_batches = recording.variants.iter().any(|it| operations(it) != 1.0);
    let sum = |count: &dyn Fn(&RoundRecord) -> u64| -> u64 {
        complete.iter().map(|round| count(round)).sum()
    };
    let ratio = |part: u64, whole: u64| (whole > 0).then(|| float(part) / float(whole));
    SentSummary {
        has_other_requests: theirs.is_some_and(|it| has_other_requests(recording, variant, it)),
        protocol: theirs
            .filter(|it| other_protocol(recording, variant, it))
            .and_then(|_| protocol(recording, variant)),
        operations_per_request: operations(variant),
        bytes_sent_per_request: ratio(sum(&|it| it.bytes_out), sum(&RoundRecord::sent)),
        bytes_received_per_request: ratio(sum(&|it| it.bytes_in), sum(&RoundRecord::answered)),
        cpu_us_per_operation: has_batches
            .then(|| {
                let divided = against.map(|(variant, it)| (it, operations(variant)));
                own.figures
                    .divided(Metric::Cpu, operations(variant), divided, confidence)
            })
            .flatten(),
    }
}

fn baseline<'a>(recording: &'a Recording, variant: &VariantRecord) -> Option<&'a VariantRecord> {
    let name = recording.baseline_of(variant);
    recording.variants.iter().find(|other| other.name == name)
}

/// What a variant was sent: its own requests, or those of all.
pub(crate) fn requests<'a>(
    recording: &'a Recording,
    variant: &'a VariantRecord,
) -> &'a [RequestText] {
    match variant.requests.as_slice() {
        [] => &recording.load.requests,
        own => own,
    }
}

fn protocol(recording: &Recording, variant: &VariantRecord) -> Option<ProtocolText> {
    variant.protocol.or(recording.load.protocol)
}

fn other_protocol(recording: &Recording, one: &VariantRecord, other: &VariantRecord) -> bool {
    protocol(recording, one) != protocol(recording, other)
}

fn has_other_requests(recording: &Recording, one: &VariantRecord, other: &VariantRecord) -> bool {
    let (one, other) = (requests(recording, one), requests(recording, other));
    let mut pairs = one.iter().zip(other);
    one.len() != other.len() || pairs.any(|(one, other)| !one.is_sent_as(other))
}

/// Operations that a request carries, on average over the rotation.
fn operations(requests: &[RequestText]) -> f64 {
    let turns: f64 = requests.iter().map(|it| f64::from(it.weight)).sum();
    let each = |it: &RequestText| f64::from(it.weight) * f64::from(it.operations);
    let all: f64 = requests.iter().map(each).sum();
    // A recording by another hand may hold no request.
    if turns > 0.0 { all / turns } else { 1.0 }
}
