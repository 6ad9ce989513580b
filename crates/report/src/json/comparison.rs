//! The layout of a comparison in JSON, and its schema.

use std::collections::BTreeMap;

use analysis::compare::{self, Compared, FailuresOf, Origin, Pairing};
use analysis::summary::Invalidity;
use model::Metric;
use schemars::JsonSchema;
use serde::Serialize;

use super::judgement::Judgement;
use super::verdict::Verdict;
use crate::words;

/// A comparison of two results.
#[derive(Serialize, JsonSchema)]
pub(super) struct Comparison {
    /// The name of the format, which identifies the JSON of a comparison.
    format: &'static str,
    /// The first result, which is the reference.
    a: Origin,
    /// The second result, which is compared with the first.
    b: Origin,
    /// The relation between the rounds of the two sides.
    pairing: Pairing,
    /// The metric that decides verdicts.
    headline: Metric,
    /// Confidence of all verdicts together.
    confidence: f64,
    /// Confidence of each interval of a difference (Bonferroni over the rows).
    confidence_each: f64,
    /// Reasons why the results are not comparable. Any reason withholds every verdict.
    obstacles: Vec<String>,
    /// Other differences between the results, and facts that a reader needs.
    notes: Vec<String>,
    /// The compared variants, one row each.
    rows: Vec<Row>,
    /// Results of the gates that the user requested. Absent without gates.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    gates: Vec<Judgement>,
}

/// One variant, command or target of the first result, compared with one of the second.
#[derive(Serialize, JsonSchema)]
struct Row {
    /// The name of the row, which gates use.
    name: String,
    /// The name in the first result.
    name_a: String,
    /// The name in the second result.
    name_b: String,
    /// True if it is the baseline of both results.
    is_baseline: bool,
    /// The verdict. Absent if the figures support no verdict.
    verdict: Option<Verdict>,
    /// The verdict in words, or the reason why there is no verdict.
    verdict_text: String,
    /// The meaning of the verdict for a user, in a sentence. Absent without a verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    in_words: Option<String>,
    /// Figures of both sides. Empty if a side has no number.
    metrics: BTreeMap<Metric, Compared>,
    /// The overhead in each result, against the baseline of that result. A disturbance of a whole run cancels
    /// out.
    overheads: BTreeMap<Metric, Compared>,
    /// The reason why a side has no number.
    #[serde(skip_serializing_if = "Option::is_none")]
    no_number: Option<NoNumber>,
    /// Failures of the requests of other tools. Absent if both sides are recordings.
    #[serde(skip_serializing_if = "Option::is_none")]
    failures: Option<FailuresOf>,
}

/// The reason why a side has no number.
#[derive(Serialize, JsonSchema)]
struct NoNumber {
    /// The kind of the problem.
    kind: Invalidity,
    /// The side and the problem, in words.
    reason: String,
}

impl NoNumber {
    fn of(none: &compare::NoNumber) -> Self {
        Self {
            kind: none.kind(),
            reason: words::no_number(none),
        }
    }
}

impl Comparison {
    pub(super) fn of(comparison: &compare::Comparison) -> Self {
        Self {
            format: comparison.format,
            a: comparison.a.clone(),
            b: comparison.b.clone(),
            pairing: comparison.pairing,
            headline: comparison.headline,
            confidence: comparison.confidence,
            confidence_each: comparison.confidence_each,
            obstacles: comparison.obstacles.clone(),
            notes: comparison.notes.clone(),
            rows: comparison.rows.iter().map(Row::of).collect(),
            gates: comparison.gates.iter().map(Judgement::of).collect(),
        }
    }
}

impl Row {
    fn of(row: &compare::Row) -> Self {
        Self {
            name: row.name.clone(),
            name_a: row.name_a.clone(),
            name_b: row.name_b.clone(),
            is_baseline: row.is_baseline,
            verdict: row.verdict.as_ref().map(Verdict::of),
            verdict_text: words::comparison_verdict(row),
            in_words: words::comparison_in_words(row),
            metrics: row.metrics.clone(),
            overheads: row.overheads.clone(),
            no_number: row.no_number.as_ref().map(NoNumber::of),
            failures: row.failures,
        }
    }
}
