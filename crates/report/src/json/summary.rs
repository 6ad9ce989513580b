//! The layout of a summary in JSON. It has the facts of [`analysis::Summary`], which documents the fields,
//! and the sentences that [`crate::words`] makes of them.

use std::collections::BTreeMap;

use analysis::summary::{
    self, BodiesSummary, BreakdownSummary, Check, CheckName, CheckState, Distribution,
    EffectSummary, EventsSummary, FactorLevels, LadderSummary, LeftOutSummary, MetricSummary,
    PooledDifference, RateWindows, SearchSummary, SentSummary, SplitSummary, StatusSummary,
    SystemSummary, VariantSummary, WhySummary,
};
use analysis::until::UntilSummary;
use model::{Handshakes, Metric, Order, Outcomes, Packets, Unit};
use recording::Kind;
use serde::Serialize;

use super::judgement::Judgement;
use super::verdict::Verdict;
use crate::words;

/// The summary of one recording.
#[derive(Serialize)]
pub(super) struct Summary<'a> {
    method: u32,
    method_of_figures: u32,
    title: &'a str,
    question: &'a Option<String>,
    kind: Kind,
    interrupted: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_because: &'a Option<String>,
    seed: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    round_s: Option<f64>,
    is_open_loop: bool,
    order: Order,
    #[serde(skip_serializing_if = "Option::is_none")]
    slice_us: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    in_turn_because: &'a Option<String>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    groups: &'a [Vec<String>],
    #[serde(skip_serializing_if = "Option::is_none")]
    groups_because: &'a Option<String>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    shared_systems: &'a [String],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    placed_systems: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    starts_omitted: &'a Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    revisions: &'a Option<String>,
    is_capacity: bool,
    rounds_planned: usize,
    rounds_measured: usize,
    measurements_repeated: usize,
    baseline: &'a str,
    baselines: usize,
    headline: Metric,
    confidence: f64,
    comparisons: usize,
    confidence_each: f64,
    variants: Vec<Variant<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ladder: &'a Option<LadderSummary>,
    #[serde(skip_serializing_if = "Option::is_none")]
    factors: Option<Factors<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    until: &'a Option<UntilSummary>,
    #[serde(skip_serializing_if = "Option::is_none")]
    decided: &'a Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    split: &'a Option<SplitSummary>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: &'a Option<WhySummary>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    gates: Vec<Judgement>,
}

/// One variant, which is a row of the report.
#[derive(Serialize)]
struct Variant<'a> {
    name: &'a str,
    is_baseline: bool,
    baseline: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    compared_with: &'a Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    breakdown: &'a Option<BreakdownSummary>,
    rounds: usize,
    verdict: Verdict,
    verdict_text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    in_words: Option<String>,
    remark: Option<String>,
    outcomes: &'a Outcomes,
    statuses: &'a BTreeMap<u16, u64>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    by_status: &'a BTreeMap<u16, StatusSummary>,
    bodies: &'a BodiesSummary,
    #[serde(skip_serializing_if = "Option::is_none")]
    packets: Option<Packets>,
    #[serde(skip_serializing_if = "Option::is_none")]
    handshakes: Option<Handshakes>,
    metrics: &'a BTreeMap<Metric, MetricSummary>,
    #[serde(skip_serializing_if = "Option::is_none")]
    estimate: Option<Estimate<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    few_pay: Option<FewPay>,
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out: &'a Option<LeftOutSummary>,
    systems: &'a [SystemSummary],
    distribution: &'a Option<Distribution>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pooled_differences: &'a [PooledDifference],
    #[serde(skip_serializing_if = "Option::is_none")]
    events: &'a Option<EventsSummary>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    searches: &'a [SearchSummary],
    #[serde(skip_serializing_if = "Option::is_none")]
    sent: &'a Option<SentSummary>,
    rate_windows: &'a Option<RateWindows>,
    checks: Vec<CheckLayout>,
}

/// Figures that are not trusted.
#[derive(Serialize)]
struct Estimate<'a> {
    trusted: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    words: Option<String>,
    metrics: &'a BTreeMap<Metric, MetricSummary>,
}

/// A difference of the mean that the typical latency does not show.
#[derive(Serialize)]
struct FewPay {
    latency_us_mean: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    share_of_requests: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payers: Option<String>,
    words: String,
}

/// One check on the measurements of a variant.
#[derive(Serialize)]
struct CheckLayout {
    name: CheckName,
    state: CheckState,
    figure: f64,
    weak_beyond: f64,
    failed_beyond: Option<f64>,
    text: String,
}

/// Effects of factors.
#[derive(Serialize)]
struct Factors<'a> {
    factors: &'a [FactorLevels],
    variants: usize,
    effects: &'a [EffectSummary],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    alone: &'a [EffectSummary],
    #[serde(skip_serializing_if = "Option::is_none")]
    in_words: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    missing: Vec<Missing<'a>>,
}

/// A variant without a trusted number.
#[derive(Serialize)]
struct Missing<'a> {
    name: &'a str,
    reason: String,
}

impl<'a> Summary<'a> {
    pub(super) fn of(summary: &'a analysis::Summary) -> Self {
        Self {
            method: summary.method,
            method_of_figures: summary.method_of_figures,
            title: &summary.title,
            question: &summary.question,
            kind: summary.kind,
            interrupted: summary.interrupted,
            ended_because: &summary.ended_because,
            seed: summary.seed,
            round_s: summary.round_s,
            is_open_loop: summary.is_open_loop,
            order: summary.order,
            slice_us: summary.slice_us,
            in_turn_because: &summary.in_turn_because,
            groups: &summary.groups,
            groups_because: &summary.groups_because,
            shared_systems: &summary.shared_systems,
            placed_systems: &summary.placed_systems,
            starts_omitted: &summary.starts_omitted,
            revisions: &summary.revisions,
            is_capacity: summary.is_capacity,
            rounds_planned: summary.rounds_planned,
            rounds_measured: summary.rounds_measured,
            measurements_repeated: summary.measurements_repeated,
            baseline: &summary.baseline,
            baselines: summary.baselines,
            headline: summary.headline,
            confidence: summary.confidence,
            comparisons: summary.comparisons,
            confidence_each: summary.confidence_each,
            variants: summary.variants.iter().map(Variant::of).collect(),
            ladder: &summary.ladder,
            factors: Factors::of(summary),
            until: &summary.until,
            decided: &summary.decided,
            split: &summary.split,
            why: &summary.why,
            gates: summary.gates.iter().map(Judgement::of).collect(),
        }
    }
}

impl<'a> Variant<'a> {
    fn of(row: &'a VariantSummary) -> Self {
        Self {
            name: &row.name,
            is_baseline: row.is_baseline,
            baseline: &row.baseline,
            compared_with: &row.compared_with,
            breakdown: &row.breakdown,
            rounds: row.rounds,
            verdict: Verdict::of(&row.verdict),
            verdict_text: words::verdict_text(row),
            in_words: words::in_words(row),
            remark: words::remark(row),
            outcomes: &row.outcomes,
            statuses: &row.statuses,
            by_status: &row.by_status,
            bodies: &row.bodies,
            packets: row.packets,
            handshakes: row.handshakes,
            metrics: &row.metrics,
            estimate: row.estimate.as_ref().map(|it| Estimate::of(row, it)),
            few_pay: row
                .few_pay
                .as_ref()
                .map(|it| FewPay::of(it, row.unit(Metric::Mean))),
            left_out: &row.left_out,
            systems: &row.systems,
            distribution: &row.distribution,
            pooled_differences: &row.pooled_differences,
            events: &row.events,
            searches: &row.searches,
            sent: &row.sent,
            rate_windows: &row.rate_windows,
            checks: row.checks.iter().map(CheckLayout::of).collect(),
        }
    }
}

impl CheckLayout {
    fn of(check: &Check) -> Self {
        Self {
            name: check.name,
            state: check.state,
            figure: check.figure,
            weak_beyond: check.weak_beyond,
            failed_beyond: check.failed_beyond,
            text: words::check_text(check),
        }
    }
}

impl<'a> Estimate<'a> {
    fn of(row: &VariantSummary, estimate: &'a summary::Estimate) -> Self {
        Self {
            trusted: estimate.trusted,
            words: words::estimate(row),
            metrics: &estimate.metrics,
        }
    }
}

impl FewPay {
    fn of(few: &summary::FewPay, times: Unit) -> Self {
        Self {
            latency_us_mean: few.latency_us_mean,
            share_of_requests: few.share_of_requests,
            payers: words::payers(few),
            words: words::few(few, times),
        }
    }
}

impl<'a> Factors<'a> {
    fn of(summary: &'a analysis::Summary) -> Option<Self> {
        let found = summary.factors.as_ref()?;
        let missing = found.missing.iter().map(|variant| Missing {
            name: &variant.name,
            reason: words::missing(variant),
        });
        Some(Self {
            factors: &found.factors,
            variants: found.variants,
            effects: &found.effects,
            alone: &found.alone,
            in_words: words::effects(found, summary.headline, summary.unit(Metric::Mean)),
            missing: missing.collect(),
        })
    }
}
