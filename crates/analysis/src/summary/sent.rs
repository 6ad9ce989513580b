//! Requests that variants received, if they differ. A difference in latency then includes the difference in
//! requests.

use model::Metric;
use recording::{ProtocolText, Recording, RequestText, RoundRecord, VariantRecord, float};
use serde::Serialize;

use super::estimate::MetricSummary;
use super::figures::{Against, Figures};

/// Requests to one variant.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SentSummary {
    /// True if the requests differ from the baseline's requests.
    pub has_other_requests: bool,
    /// Protocol of the requests. Absent if it is the baseline's protocol.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<ProtocolText>,
    /// Mean number of operations per request. More than 1 with batches.
    pub operations_per_request: f64,
    /// Bytes of a request on the wire, including TLS and handshakes. Absent if no request was sent.
    pub bytes_sent_per_request: Option<f64>,
    /// Bytes received per complete response, including TLS and handshakes. Absent without a response.
    pub bytes_received_per_request: Option<f64>,
    /// Processor time per operation. Absent if it could not be read, and if every request of all variants
    /// carries one operation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_us_per_operation: Option<MetricSummary>,
}

/// One side of a comparison: the variant and its figures.
#[derive(Clone, Copy)]
pub(super) struct Side<'a> {
    pub(super) variant: &'a VariantRecord,
    pub(super) figures: &'a Figures,
}

/// True if the requests or the protocol of any variant differ from its baseline's.
pub(super) fn differs(recording: &Recording) -> bool {
    let mut variants = recording.variants.iter();
    variants.any(|variant| {
        let own = baseline(recording, variant);
        own.is_some_and(|own| {
            has_other_requests(recording, variant, own) || other_protocol(recording, variant, own)
        })
    })
}

/// The requests to a variant. The caller uses it only if requests differ between variants.
pub(super) fn of(
    recording: &Recording,
    own: Side<'_>,
    against: Option<(&VariantRecord, &Against<'_>)>,
    complete: &[&RoundRecord],
    confidence: f64,
) -> SentSummary {
    let variant = own.variant;
    let operations = |variant: &VariantRecord| operations(requests(recording, variant));
    // The requests to the baseline are in the recording even if it has no number.
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

/// The requests of a variant: its own, or the common requests of the load.
pub fn requests<'a>(recording: &'a Recording, variant: &'a VariantRecord) -> &'a [RequestText] {
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

/// Mean number of operations per request over the rotation.
fn operations(requests: &[RequestText]) -> f64 {
    let turns: f64 = requests.iter().map(|it| f64::from(it.weight)).sum();
    let each = |it: &RequestText| f64::from(it.weight) * f64::from(it.operations);
    let all: f64 = requests.iter().map(each).sum();
    // A recording of another origin may contain no request.
    if turns > 0.0 { all / turns } else { 1.0 }
}
