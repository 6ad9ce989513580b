//! Bodies of responses: encoding, length and kind of check.

use std::collections::BTreeMap;

use model::{CodedAnswers, IDENTITY};
use recording::{Proof, RoundRecord, VariantRecord, float, latency_by_status};
use serde::Serialize;

/// The bodies of a variant's responses.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct BodiesSummary {
    /// The content codings of the responses, the most frequent first. Empty if all bodies are plain, and if
    /// neither the load nor a proof recorded them.
    pub encodings: Vec<String>,
    /// Complete responses under load by content coding, `identity` for plain bodies. Empty for
    /// recordings of versions that did not count them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub responses_by_encoding: BTreeMap<String, u64>,
    /// Mean length of a body as received, in bytes. Absent if bodies were not counted.
    pub bytes_mean: Option<f64>,
    /// Mean decoded length of the encoded bodies of the proof, in bytes. Absent if no body was encoded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decoded_bytes: Option<f64>,
    /// True if the decoded bodies of the proof equal the baseline's. Absent if neither side was encoded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_equal_decoded: Option<bool>,
    /// Counts of the checks on encoded responses under load, by kind. Absent if no response was encoded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checked: Option<CodedAnswers>,
    /// Findings that a reader must see.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<BodyNote>,
}

/// A finding of the proof about the bodies of a variant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum BodyNote {
    /// The variant compresses its responses for a client that accepts this coding.
    CompressesIfAsked {
        /// The content coding.
        coding: String,
    },
    /// A body was not compared with the body of the baseline.
    NotCompared {
        /// Name of the request.
        request: String,
        /// The reason.
        reason: String,
    },
    /// The same content has different bytes each time.
    Varies {
        /// Name of the request.
        request: String,
        /// The content coding.
        coding: String,
    },
}

/// Latency of responses with one status.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct StatusSummary {
    /// Number of responses over all measurements.
    pub responses: u64,
    /// Mean latency in microseconds.
    pub latency_us_mean: f64,
    /// Median latency in microseconds.
    pub latency_us_p50: f64,
    /// The latency that 99 % do not exceed, in microseconds.
    pub latency_us_p99: f64,
    /// The longest latency in microseconds.
    pub latency_us_max: f64,
}

pub(super) fn of(
    variant: &VariantRecord,
    baseline: Option<&VariantRecord>,
    rounds: &[&RoundRecord],
) -> BodiesSummary {
    let mut checked = CodedAnswers::default();
    let mut by_encoding: BTreeMap<String, u64> = BTreeMap::new();
    let (mut bytes, mut responses) = (Some(0), 0);
    for round in rounds {
        bytes = bytes.zip(round.bytes_in_bodies).map(|(sum, own)| sum + own);
        responses += round.outcomes.completed();
        for (coding, responses) in round.encodings.iter().flatten() {
            *by_encoding.entry(coding.clone()).or_default() += responses;
        }
        if let Some(own) = &round.coded {
            checked.add(own);
        }
    }
    let bytes = bytes.filter(|_| responses > 0);
    let answers = variant.proof.iter().flat_map(|proof| &proof.answers);
    let mut encodings: Vec<String> = by_frequency(&by_encoding)
        .into_iter()
        .map(|(coding, _)| coding.to_owned())
        .filter(|coding| coding != IDENTITY)
        .collect();
    let mut decoded = Vec::new();
    for encoding in answers.filter_map(|answer| answer.encoding.as_ref()) {
        if by_encoding.is_empty() && !encodings.contains(&encoding.coding) {
            encodings.push(encoding.coding.clone());
        }
        decoded.push(float(encoding.decoded_bytes));
    }
    BodiesSummary {
        encodings,
        responses_by_encoding: by_encoding,
        bytes_mean: bytes.map(|bytes| float(bytes) / float(responses)),
        decoded_bytes: (!decoded.is_empty())
            .then(|| decoded.iter().sum::<f64>() / float(decoded.len() as u64)),
        is_equal_decoded: baseline
            .and_then(|baseline| equal_decoded(variant.proof.as_ref()?, baseline.proof.as_ref()?)),
        checked: (checked.total() > 0).then_some(checked),
        notes: variant.proof.as_ref().map_or_else(Vec::new, notes),
    }
}

/// Returns the counts that are not zero, the largest first.
fn by_frequency(counts: &BTreeMap<String, u64>) -> Vec<(&str, u64)> {
    let counted = counts.iter().filter(|(_, responses)| **responses > 0);
    let mut sorted: Vec<(&str, u64)> = counted
        .map(|(coding, responses)| (coding.as_str(), *responses))
        .collect();
    sorted.sort_by_key(|(_, responses)| std::cmp::Reverse(*responses));
    sorted
}

/// True if responses to requests of the same names have the same content. `None` if neither side was encoded.
fn equal_decoded(own: &Proof, baseline: &Proof) -> Option<bool> {
    let pairs = own.answers.iter().filter_map(|answer| {
        let mut theirs = baseline.answers.iter();
        let theirs = theirs.find(|it| it.request == answer.request)?;
        let is_encoded = answer.encoding.is_some() || theirs.encoding.is_some();
        is_encoded.then_some(answer.body_sha256 == theirs.body_sha256)
    });
    pairs.reduce(|all, one| all && one)
}

impl BodyNote {
    /// The sentence about these variants, such as `` `rhai` ``.
    #[must_use]
    pub fn sentence(&self, subject: &str) -> String {
        match self {
            Self::CompressesIfAsked { coding } => format!(
                "{subject} can compress its responses. To measure that, add `headers: {{Accept-Encoding: {coding}}}`"
            ),
            Self::NotCompared { request, reason } => format!(
                "{subject}: the body of request `{request}` was not compared with the body of the baseline: {reason}"
            ),
            Self::Varies { request, coding } => format!(
                "{subject} encodes the same content as different bytes each time (request `{request}`, {coding}), \
                 so the bytes cannot show whether contents are equal"
            ),
        }
    }
}

/// The findings of the proof about bodies that a reader must know.
#[must_use]
pub fn notes(proof: &Proof) -> Vec<BodyNote> {
    let mut notes = Vec::new();
    for answer in &proof.answers {
        let request = || answer.request.clone();
        if let Some(coding) = answer.coding_if_asked.clone() {
            notes.push(BodyNote::CompressesIfAsked { coding });
        }
        if let Some(reason) = answer.not_compared.clone() {
            let request = request();
            notes.push(BodyNote::NotCompared { request, reason });
        }
        if let Some(encoding) = answer.encoding.as_ref().filter(|it| it.varies) {
            let coding = encoding.coding.clone();
            let request = request();
            notes.push(BodyNote::Varies { request, coding });
        }
    }
    notes
}

/// Latency by status. Empty unless several statuses are right.
pub(super) fn by_status(rounds: &[&RoundRecord]) -> BTreeMap<u16, StatusSummary> {
    let all = latency_by_status(rounds.iter().copied());
    let summary = |(status, latency): (u16, stats::Histogram)| {
        let quantile = |share: f64| Some(float(latency.quantile_ns(share)?) / 1e3);
        let own = StatusSummary {
            responses: latency.len(),
            latency_us_mean: latency.mean_ns()? / 1e3,
            latency_us_p50: quantile(0.5)?,
            latency_us_p99: quantile(0.99)?,
            latency_us_max: float(latency.max_ns()?) / 1e3,
        };
        Some((status, own))
    };
    all.into_iter().filter_map(summary).collect()
}
