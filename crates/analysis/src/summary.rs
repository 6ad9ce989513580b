//! Summary of a recording: figures over rounds, overhead against the baseline, checks and verdicts.
//!
//! The round is the unit of statistics. Every figure is computed per round. A value is the Hodges-Lehmann
//! estimate over rounds with its Wilcoxon interval. An overhead is the same estimate over differences. It
//! uses only rounds with measurements of both sides. So the `max` of a variant is the maximum of a typical
//! round. The longest latency of the run is in its [`Distribution`].
//!
//! A variant that mismatched or gave no proof has no figures at all. A variant that failed a check has an
//! estimate, which is kept apart from the trusted figures.

mod blocks;
mod bodies;
mod breakdown;
mod by_round;
mod check;
mod distribution;
mod doubtful;
mod estimate;
mod events;
mod factors;
pub(crate) mod few;
mod figures;
mod ladder;
mod left_out;
mod levels;
pub(crate) mod meaning;
mod noise;
mod pooled;
pub mod quantity;
mod rate_windows;
mod row;
mod search;
mod sent;
mod split;
mod system;
pub mod tail;
pub(crate) mod times;
mod verdict;
mod why;

pub use bodies::{BodiesSummary, BodyNote, StatusSummary, notes as body_notes};
pub use breakdown::{Activity, BreakdownSummary, CostPart, CountChange, CountName};
pub use by_round::{RoundDifference, SystemDifference};
pub use check::{
    Check, CheckFacts, CheckName, CheckNote, CheckState, GeneratorName, LongestStall,
    PAUSED_SHARE_MAX, STARVED_SHARE_MAX, is_disturbed,
};
pub use distribution::Distribution;
pub use doubtful::Estimate;
pub(crate) use estimate::mean_by_round;
pub use estimate::{ClaimName, MetricSummary, OverheadSummary};
pub use events::{EventsSummary, PositionSummary, StallsSummary};
pub use factors::{EffectFigure, EffectSummary, FactorLevels, FactorsSummary, MissingVariant};
pub use few::{FewPay, Payment};
pub use ladder::{LadderStep, LadderSummary};
pub use left_out::LeftOutSummary;
pub use meaning::{Aside, Extent, Meaning, Reference, SizeShown};
pub use pooled::PooledDifference;
pub use rate_windows::{RateWindows, rates};
pub use row::complete_rounds;
pub use search::SearchSummary;
pub use sent::{SentSummary, requests as requests_of};
pub use split::SplitSummary;
pub use system::{InstanceSummary, SystemSummary};
pub use verdict::{Invalidity, Margin, Reason, Remark, Verdict};
pub use why::{
    CauseKind, FunctionDifference, RuntimeDifference, VariantWhy, WhyCost, WhyPart, WhySummary,
};

use std::collections::{BTreeMap, BTreeSet};

use model::{Handshakes, Metric, Order, Outcomes, Packets, Unit};
use recording::{
    Kind, METHOD_OF_FIGURES, NoiseFloor, Recording, Revisions, RoundRecord, describe, float,
};
use serde::Serialize;

use crate::confidence::{self, CONFIDENCE, Looks};
use crate::gate::Judgement;
use crate::until::{self, UntilSummary};
use figures::Figures;
use row::{Frame, Row};

/// The summary of one recording.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Version of the method that measured. See [`recording::METHOD`].
    pub method: u32,
    /// Version of the method that computed the figures. See [`recording::METHOD_OF_FIGURES`].
    pub method_of_figures: u32,
    /// The lab's name, or the URL of a single load.
    pub title: String,
    /// The question of the lab. Absent if there is no question.
    pub question: Option<String>,
    /// Kind of the run: a lab or a single load.
    pub kind: Kind,
    /// True if the run ended before its last round.
    pub interrupted: bool,
    /// The reason why a cluster ended the run before its last round.
    pub ended_because: Option<String>,
    /// The seed of the order of variants and of random arrivals.
    pub seed: u64,
    /// Mean length of a round in seconds, from its first measurement to the first measurement of the next
    /// round. Absent with fewer than two rounds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub round_s: Option<f64>,
    /// True if requests are sent by a plan (open loop), false if each is sent after a response (closed loop).
    pub is_open_loop: bool,
    /// Order of the variants within a round.
    pub order: Order,
    /// The length of a slice in microseconds. Absent unless a closed loop was measured side by side.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slice_us: Option<u64>,
    /// Reason for measuring in turn. Absent if the lab requested it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_turn_because: Option<String>,
    /// The groups of variants that ran together, each with its baselines. Empty if all variants ran together.
    /// A difference is from the baseline of the variant's own group.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<Vec<String>>,
    /// Reason for several groups. Absent without groups, and if the lab names the groups.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub groups_because: Option<String>,
    /// Systems that all variants of a group share in one process. Their cost is in no figure.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shared_systems: Vec<String>,
    /// Systems that ran on one core each, the same for all variants.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub placed_systems: Vec<String>,
    /// The systems that were started only once, as a sentence. Differences between starts of these systems
    /// are in no interval. Absent if every round started every system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub starts_omitted: Option<String>,
    /// The two compared revisions, as a sentence. Absent if the run compared no revisions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revisions: Option<String>,
    /// True if every round searched for the highest sustained rate. `requests_per_s` is then this rate.
    pub is_capacity: bool,
    /// Planned number of rounds.
    pub rounds_planned: usize,
    /// Rounds with at least one completely measured variant.
    pub rounds_measured: usize,
    /// Measurements that `weigh` repeated because the generator was kept from running.
    pub measurements_repeated: usize,
    /// The variant that other variants are compared with. The first one if there are several.
    pub baseline: String,
    /// The unit of all latencies in a report.
    #[serde(skip)]
    pub(crate) times: Unit,
    /// Number of baselines. Each is compared with the variants that have the same factors.
    pub baselines: usize,
    /// The metric that decides the verdict. A closed loop is bound by the target, so the metric is requests
    /// per second. The rate of an open loop is given, so the metric is typical latency side by side and mean
    /// latency in turn.
    pub headline: Metric,
    /// Confidence of every value's interval, and of all verdicts together.
    pub confidence: f64,
    /// Number of variants that are compared with a baseline.
    pub comparisons: usize,
    /// Confidence of each interval of an overhead in the headline metric. All these intervals hold together
    /// with `confidence`, also if rounds continued until the intervals were narrow. It lies between
    /// `confidence` and Bonferroni's correction ([`stats::simultaneous::confidence_each`]). It is that
    /// correction if the other variants adjust a difference. Each other metric has its own confidence,
    /// computed the same way, and is not corrected for the number of metrics.
    pub confidence_each: f64,
    /// The variants, baseline first.
    pub variants: Vec<VariantSummary>,
    /// Cost of each step between variants that build on each other. Absent without a ladder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ladder: Option<LadderSummary>,
    /// Effects of the factors of the lab. Absent without factors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub factors: Option<FactorsSummary>,
    /// Result of the rule that continues until intervals are narrow. Absent if the number of rounds was
    /// fixed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<UntilSummary>,
    /// Result of the rule that continues until the gates are decided, as a sentence. Absent if the run had no
    /// such rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decided: Option<String>,
    /// Round length that would have given much narrower intervals in the same time. Absent if no length
    /// would, and if the recording does not show it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub split: Option<SplitSummary>,
    /// Causes of the differences. Absent without `--why`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<WhySummary>,
    /// Result of each requested gate.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<Judgement>,
    /// True if a gate allows some requests of a single load to fail and the failures are within its limit.
    #[serde(skip)]
    pub(crate) allows_failures: bool,
}

/// Summary of one variant, which is a row of the report.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VariantSummary {
    /// Name of the variant in the lab.
    pub name: String,
    /// True if other variants are compared with this one.
    pub is_baseline: bool,
    /// Name of the variant's baseline. A baseline has its own name here.
    pub baseline: String,
    /// Name of the variant's baseline, if that baseline is itself compared with another variant. Tables then
    /// show it next to the name. Absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compared_with: Option<String>,
    /// Parts of the difference in mean latency. Absent without a comparison.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub breakdown: Option<BreakdownSummary>,
    /// Rounds with a complete measurement of the variant.
    pub rounds: usize,
    /// Result of the comparison with the baseline, or the cause of a withheld verdict.
    pub verdict: Verdict,
    /// Meaning of the verdict: the cost of a request, or the smallest difference that this run would have
    /// shown. Absent if the variant was not compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meaning: Option<Meaning>,
    /// Remark that a reader of the verdict must see.
    pub remark: Option<Remark>,
    /// Outcomes of all intended sends, over all measurements of the variant.
    pub outcomes: Outcomes,
    /// Complete responses by status code.
    pub statuses: BTreeMap<u16, u64>,
    /// Latency by status. Empty unless several statuses are right.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub by_status: BTreeMap<u16, StatusSummary>,
    /// The bodies of the variant's responses.
    pub bodies: BodiesSummary,
    /// Packets of the generator over all measurements. Absent over TCP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packets: Option<Packets>,
    /// Handshakes of TLS over all measurements. Absent without TLS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handshakes: Option<Handshakes>,
    /// Trusted figures of the variant. Empty if it has no trusted number.
    pub metrics: BTreeMap<Metric, MetricSummary>,
    /// The unit of all latencies in a report, the same for all rows.
    #[serde(skip)]
    pub(crate) times: Unit,
    /// The levels that pages show for a compared variant: the baseline's level plus the difference. `metrics` has
    /// the levels over the variant's own rounds. Empty without a comparison.
    #[serde(skip)]
    pub(crate) levels: BTreeMap<Metric, f64>,
    /// Estimate for a variant with a withheld verdict, or with a baseline that has one. Absent if the figures
    /// are trusted, or if the variant did not do its work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimate: Option<Estimate>,
    /// Cost that only few requests pay. Present if the typical latency and the mean disagree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub few_pay: Option<FewPay>,
    /// Requests of the variant that are in no latency. Absent if no request was left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_out: Option<LeftOutSummary>,
    /// Cost of each system of the variant. Empty if the variant has no number.
    pub systems: Vec<SystemSummary>,
    /// Latency over the requests of all rounds. Absent if the variant has no number.
    pub distribution: Option<Distribution>,
    /// Percentiles over the requests of all rounds, against the baseline's percentiles. Empty for the
    /// baseline, for a variant without a number, and with fewer than ten rounds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pooled_differences: Vec<PooledDifference>,
    /// The difference from the baseline in each round, for pictures. Empty without a comparison. The rounds of
    /// each metric contain the same information.
    #[serde(skip)]
    pub round_differences: Vec<RoundDifference>,
    /// The part of each system in the difference of processor time, for pictures. Empty without a comparison.
    #[serde(skip)]
    pub system_differences: Vec<SystemDifference>,
    /// Events of streamed responses. Absent if responses are not streams, or the variant has no number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events: Option<EventsSummary>,
    /// Result of the search for the highest rate in each round. Empty if there was no search.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub searches: Vec<SearchSummary>,
    /// Requests that the variant received. Absent if all variants received equal requests, and if the variant
    /// has no number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent: Option<SentSummary>,
    /// Requests per second within rounds. Absent if the variant has no number or no complete window.
    pub rate_windows: Option<RateWindows>,
    /// Results of the checks on the variant's measurements.
    pub checks: Vec<Check>,
}

impl Summary {
    /// Analyzes a recording.
    pub fn of(recording: &Recording) -> Self {
        let variants = recording.variants.iter();
        let headline = headline(recording);
        let rows: Vec<Row<'_>> = variants
            .map(|variant| Row::of(recording, variant, headline))
            .collect();
        let measured_baseline_of = |row: &Row<'_>| {
            let own = rows.iter().find(|other| other.variant.name == row.baseline);
            own.filter(|other| other.is_measured())
        };
        let baseline_of =
            |row: &Row<'_>| measured_baseline_of(row).filter(|baseline| baseline.invalid.is_none());
        let compared: Vec<(&Row<'_>, &Row<'_>)> = rows
            .iter()
            .filter(|row| row.invalid.is_none() && !row.is_baseline())
            .filter_map(|row| Some((row, baseline_of(row)?)))
            .collect();
        let names = compared.iter().map(|(row, _)| row.variant.name.as_str());
        let compared_names: Vec<&str> = names.collect();
        let is_open_loop = recording.load.model.is_open();
        let order = recording.order_measured();
        let rounds = rounds(&rows);
        let frame = frame(recording, &rows, &compared);
        let mut variants: Vec<VariantSummary> = rows
            .iter()
            .map(|row| row.summarize(measured_baseline_of(row), &frame))
            .collect();
        levels::add_up(&mut variants);
        let mut summary = Self {
            times: times::of(&variants),
            method: recording.method,
            method_of_figures: METHOD_OF_FIGURES,
            title: title(recording),
            question: recording.lab.as_ref().map(|lab| lab.question.clone()),
            kind: recording.kind,
            interrupted: recording.interrupted,
            ended_because: recording.ended_because.clone(),
            seed: recording.seed,
            round_s: frame.round_s,
            is_open_loop,
            order,
            slice_us: slice_us(recording),
            in_turn_because: recording.in_turn_because().map(str::to_owned),
            groups: recording.groups().to_vec(),
            groups_because: recording.groups_because().map(str::to_owned),
            shared_systems: recording.shared_systems(),
            placed_systems: recording.placed_systems(),
            starts_omitted: describe::starts_omitted(recording),
            revisions: recording.revisions.as_ref().map(Revisions::sentence),
            is_capacity: recording.load.capacity.is_some(),
            rounds_planned: recording.order.len().max(rounds.len()),
            rounds_measured: rounds.len(),
            measurements_repeated: measurements_repeated(recording),
            baseline: recording.baseline.clone(),
            baselines: rows.iter().filter(|row| row.is_baseline()).count(),
            headline: frame.headline,
            confidence: CONFIDENCE,
            comparisons: compared.len(),
            confidence_each: frame.confidence_each(frame.headline),
            ladder: ladder::of(recording, &rows, &frame),
            factors: factors::of(recording, &rows, &frame),
            why: why::of(recording, &variants),
            variants,
            until: UntilSummary::of(recording, &compared_names),
            decided: recording.decided.as_ref().map(until::decided),
            split: SplitSummary::of(recording, &compared, frame.round_s),
            // A recording contains no gates. `judged` adds them.
            gates: Vec::new(),
            allows_failures: false,
        };
        summary.show_times_in(summary.times);
        summary
    }

    /// True if only few requests of a variant pay a cost that its typical latency does not show.
    pub fn few_pay(&self) -> bool {
        self.variants.iter().any(|row| row.few_pay.is_some())
    }

    /// The baseline or baselines, in words.
    pub fn against(&self) -> String {
        let baseline = match self.baselines > 1 {
            true => "the baseline of its group".to_owned(),
            false => format!("`{}`", self.baseline),
        };
        match self.variants.iter().any(|row| row.compared_with.is_some()) {
            true => format!("{baseline} or the variant in brackets"),
            false => baseline,
        }
    }

    /// The row of a variant. `None` if no variant has this name.
    pub fn variant(&self, name: &str) -> Option<&VariantSummary> {
        self.variants.iter().find(|variant| variant.name == name)
    }
}

impl VariantSummary {
    /// The name, with the variant that it is compared with if the row needs that. An example is
    /// `log (against envoy)`.
    pub fn title(&self) -> String {
        match &self.compared_with {
            Some(other) => format!("{} (against {other})", self.name),
            None => self.name.clone(),
        }
    }

    /// True if the variant has trusted figures.
    pub fn has_number(&self) -> bool {
        !self.metrics.is_empty()
    }

    /// The failed check that the target stopped answering. `None` if the target did not stop.
    pub fn stopped_answering(&self) -> Option<&Check> {
        let mut checks = self.checks.iter();
        checks.find(|check| {
            check.name == CheckName::StoppedAnswering && check.state == CheckState::Failed
        })
    }

    /// One trusted figure of the variant.
    pub fn metric(&self, metric: Metric) -> Option<&MetricSummary> {
        self.metrics.get(&metric)
    }

    /// Complete responses by class: 1xx to 5xx, and all other statuses last.
    pub fn status_classes(&self) -> [(&'static str, u64); 6] {
        let count = |class: u16| -> u64 {
            let codes = self.statuses.range(class * 100..class * 100 + 100);
            codes.map(|(_, count)| count).sum()
        };
        let all: u64 = self.statuses.values().sum();
        let known: u64 = (1..=5).map(count).sum();
        [
            ("1xx", count(1)),
            ("2xx", count(2)),
            ("3xx", count(3)),
            ("4xx", count(4)),
            ("5xx", count(5)),
            ("others", all - known),
        ]
    }
}

/// Makes the part that all rows share. `compared` contains the variants with a verdict, each with its
/// baseline.
fn frame<'a>(
    recording: &'a Recording,
    rows: &'a [Row<'a>],
    compared: &[(&Row<'a>, &Row<'a>)],
) -> Frame<'a> {
    let looks = Looks::of(recording);
    let measured = rows.iter().filter(|row| row.is_measured());
    let estimated = measured.filter(|row| !row.is_baseline()).count();
    let frame = Frame {
        kind: recording.kind,
        headline: headline(recording),
        confidences: BTreeMap::new(),
        confidence_of_estimates: confidence::each(looks, estimated),
        round_s: round_seconds(recording),
        sent_otherwise: sent::differs(recording).then_some(recording),
        told_by: told_by(recording, rows),
        noise_floor: noise_floor(recording),
    };
    frame.with_confidences(looks, compared)
}

/// The rounds with a complete measurement of at least one variant.
fn rounds(rows: &[Row<'_>]) -> BTreeSet<u32> {
    let complete = rows.iter().flat_map(|row| &row.complete);
    complete.map(|round| round.round).collect()
}

/// The figures of all valid variants, by name. Empty if the recording does not show the speed of the machine
/// per round.
fn told_by<'a>(recording: &Recording, rows: &'a [Row<'a>]) -> Vec<(&'a str, &'a Figures)> {
    if !recording.tells_pace() {
        return Vec::new();
    }
    let believed = rows.iter().filter(|row| row.invalid.is_none());
    believed
        .map(|row| (row.variant.name.as_str(), &row.figures))
        .collect()
}

/// The metric that decides the verdict.
fn headline(recording: &Recording) -> Metric {
    if !recording.load.model.is_open() || recording.load.capacity.is_some() {
        return Metric::Requests;
    }
    match recording.order_measured() {
        // Side by side, the mean is about ten times less certain, because the host takes a core for
        // milliseconds in one slot of hundreds. The typical latency leaves out this slowest quarter. Unlike
        // the median, it stays certain if a load mixes quick and slow requests.
        Order::SideBySide => Metric::Typical,
        Order::InTurn => Metric::Mean,
    }
}

fn measurements_repeated(recording: &Recording) -> usize {
    let rounds = recording.rounds.iter();
    rounds.filter(|round| round.disturbed).count()
}

/// The noise floor of the machine. `None` side by side, because it was measured in turn.
fn noise_floor(recording: &Recording) -> Option<&NoiseFloor> {
    let floor = recording.environment.noise_floor.as_ref();
    floor.filter(|_| recording.order_measured() == Order::InTurn)
}

/// The length of a slice, in microseconds. It is the same for the whole run.
fn slice_us(recording: &Recording) -> Option<u64> {
    let slices = |round: &RoundRecord| Some(round.slices?.length_us);
    recording.rounds.iter().find_map(slices)
}

/// Mean length of a round, from the start of the first round to the start of the last.
fn round_seconds(recording: &Recording) -> Option<f64> {
    let began = |number: u32| {
        let own = recording
            .rounds
            .iter()
            .filter(|round| round.round == number);
        own.map(|round| round.started_offset_us).min()
    };
    // The starts delimit a round, so that it includes the restarts between rounds.
    let last = recording.rounds.iter().map(|round| round.round).max()?;
    let took_us = began(last)?.checked_sub(began(0)?)?;
    (last > 0).then(|| float(took_us) / 1e6 / f64::from(last))
}

fn title(recording: &Recording) -> String {
    match (&recording.lab, &recording.load.url) {
        (Some(lab), _) => lab.name.clone(),
        (None, Some(url)) => url.clone(),
        (None, None) => recording.baseline.clone(),
    }
}

#[cfg(test)]
mod tests;
