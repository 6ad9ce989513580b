//! What a recording says: figures over rounds, overhead against the baseline, checks, verdicts.
//!
//! The round is the unit of statistics. Every figure is computed per round; a value is the
//! Hodges-Lehmann estimate over rounds with its Wilcoxon interval, an overhead the same over the
//! differences of rounds in which both sides were measured. So the `max` of a variant is that of a
//! typical round; the longest latency of all is in its [`Distribution`].
//!
//! A variant that mismatched or gave no proof has no figures at all. One that failed a check has an
//! estimate that stands apart from the figures that are trusted.

mod blocks;
mod bodies;
mod check;
mod distribution;
mod doubtful;
mod estimate;
pub(crate) mod few;
mod figures;
pub(crate) mod in_words;
mod left_out;
mod noise;
mod pooled;
pub(crate) mod quantity;
mod rate_windows;
mod row;
mod search;
mod sent;
mod split;
mod system;
pub(crate) mod tail;
mod verdict;

pub use bodies::{BodiesSummary, StatusSummary, notes as body_notes};
pub use check::{Check, CheckName, CheckState, PAUSED_SHARE_MAX, is_disturbed};
pub(crate) use check::{STARVED_SHARE_MAX, named_outcomes};
pub use distribution::Distribution;
pub use doubtful::Estimate;
pub(crate) use estimate::mean_by_round;
pub use estimate::{ClaimName, MetricSummary, OverheadSummary};
pub use few::FewPay;
pub use left_out::LeftOutSummary;
pub use pooled::PooledDifference;
pub use rate_windows::RateWindows;
pub(crate) use rate_windows::rates;
pub(crate) use row::complete_rounds;
pub use search::SearchSummary;
pub use sent::SentSummary;
pub(crate) use sent::requests as requests_of;
pub use split::SplitSummary;
pub use system::{InstanceSummary, SystemSummary};
pub use verdict::{Invalidity, Verdict};

use std::collections::{BTreeMap, BTreeSet};

use model::{Order, Outcomes};
use serde::Serialize;

use crate::confidence::{self, CONFIDENCE, Looks};
use crate::describe;
use crate::float::float;
use crate::gate::judgement::Judgement;
use crate::metric::Metric;
use crate::recording::{Kind, NoiseFloor, Recording, Revisions, RoundRecord};
use crate::until::{self, UntilSummary};
use figures::Figures;
use row::{Frame, Row, remarked};

/// What a recording says.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// How numbers were computed; see [`crate::METHOD`].
    pub method: u32,
    /// The lab's name, or the URL of a single load.
    pub title: String,
    /// The lab's question.
    pub question: Option<String>,
    /// What was run.
    pub kind: Kind,
    /// Whether the user stopped the run.
    pub interrupted: bool,
    /// The seed of the order of variants and of random arrivals.
    pub seed: u64,
    /// How long a round took on average, in seconds, from its first measurement to the next round's;
    /// absent with fewer than two rounds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub round_s: Option<f64>,
    /// Whether requests left by plan (open loop) or after answers (closed loop).
    pub is_open_loop: bool,
    /// How rounds measured the variants.
    pub order: Order,
    /// The length of a slice in microseconds, where a closed loop was measured side by side.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slice_us: Option<u64>,
    /// Why in turn, where the lab did not ask for that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_turn_because: Option<String>,
    /// The variants that were up together, where not all were: each group with its baselines. A
    /// difference is from the baseline of the variant's own group.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<Vec<String>>,
    /// Why there are several groups; absent without groups, and where the lab names them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub groups_because: Option<String>,
    /// Systems of which one process served all variants that were up together, and whose cost is in no
    /// figure.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shared_systems: Vec<String>,
    /// Systems that ran on one core each, the same for all variants.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub placed_systems: Vec<String>,
    /// Which systems were started once, so that what differs from start to start of them is in no
    /// interval, as a sentence; absent where every system was started anew in every round.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub starts_omitted: Option<String>,
    /// That differences are adjusted by what the other variants tell of the machine's speed, as a
    /// sentence; absent where none is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adjusted: Option<String>,
    /// The two revisions that were compared, in a sentence; absent where no revisions were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revisions: Option<String>,
    /// Whether every round looked for the highest rate that is sustained, which `requests_per_s` then
    /// is.
    pub is_capacity: bool,
    /// Rounds that were to be measured.
    pub rounds_planned: usize,
    /// Rounds in which at least one variant was measured completely.
    pub rounds_measured: usize,
    /// Measurements that were made again because the generator was kept from running.
    pub measurements_repeated: usize,
    /// The variant the others are compared with; the first of them where there are several.
    pub baseline: String,
    /// Baselines, each for the variants with the same factors.
    pub baselines: usize,
    /// The metric that decides the verdict: requests per second in a closed loop, which is bound by
    /// the target; in an open loop, where the rate is given, typical latency side by side and mean
    /// latency in turn.
    pub headline: Metric,
    /// Confidence of every value's interval, and of all verdicts together.
    pub confidence: f64,
    /// Variants compared with the baseline.
    pub comparisons: usize,
    /// Confidence of each interval of an overhead in the headline metric, so that all of them hold together
    /// with `confidence`, also where rounds went on until they were narrow. It lies between `confidence` and
    /// that of Bonferroni's correction ([`stats::simultaneous::confidence_each`]). Each other metric has a
    /// confidence of its own, made the same way, and is not corrected for the number of metrics.
    pub confidence_each: f64,
    /// The variants, baseline first.
    pub variants: Vec<VariantSummary>,
    /// What became of the wish for a narrow interval; absent when the number of rounds was fixed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<UntilSummary>,
    /// The result of going on for the gates, as a sentence. Absent if the run did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decided: Option<String>,
    /// A length of rounds that would have given much narrower intervals in the same time; absent where there is
    /// none, and where the recording does not tell it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub split: Option<SplitSummary>,
    /// What became of the gates that were asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<Judgement>,
    /// Whether a gate said how many requests of a single load may fail, and no more did.
    #[serde(skip)]
    pub(crate) allows_failures: bool,
}

/// What a recording says about one variant: a row of the report.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VariantSummary {
    /// Its name.
    pub name: String,
    /// Whether it is what the others are compared with.
    pub is_baseline: bool,
    /// The variant that it is compared with; its own name for a baseline.
    pub baseline: String,
    /// Rounds in which it was measured completely.
    pub rounds: usize,
    /// The verdict.
    pub verdict: Verdict,
    /// The verdict in words, with a remark where the overhead is below the noise floor.
    pub verdict_text: String,
    /// What the verdict means for a person, in a sentence: what a request pays, or what this run would
    /// have shown. Absent where nothing was compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_words: Option<String>,
    /// What a reader of the verdict must not miss; a part of `verdict_text`.
    pub remark: Option<String>,
    /// What became of all intended sends, over all its measurements.
    pub outcomes: Outcomes,
    /// Complete answers by status code.
    pub statuses: BTreeMap<u16, u64>,
    /// Latency by status, where several statuses are right; empty elsewhere.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub by_status: BTreeMap<u16, StatusSummary>,
    /// The bodies of its responses.
    pub bodies: BodiesSummary,
    /// Its figures; empty when it has no number that is trusted.
    pub metrics: BTreeMap<Metric, MetricSummary>,
    /// Its estimate, if its verdict or the verdict on its baseline is withheld. Absent if its figures are
    /// trusted, or if it did not do its work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimate: Option<Estimate>,
    /// What few requests pay, where the typical latency and the mean disagree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub few_pay: Option<FewPay>,
    /// Its requests that are in no latency. Absent if no request was left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_out: Option<LeftOutSummary>,
    /// What each of its systems cost; empty when it has no number.
    pub systems: Vec<SystemSummary>,
    /// Latency over the requests of all rounds; absent when it has no number.
    pub distribution: Option<Distribution>,
    /// Percentiles over the requests of all rounds, against the baseline's; empty for the baseline,
    /// when it has no number, and with fewer than ten rounds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pooled_differences: Vec<PooledDifference>,
    /// What the search for the highest rate came to in each round; empty where none was made.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub searches: Vec<SearchSummary>,
    /// What it was sent; absent where all variants were sent the same, and when it has no number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent: Option<SentSummary>,
    /// Requests per second within rounds; absent when it has no number or no complete window.
    pub rate_windows: Option<RateWindows>,
    /// What was watched while it was measured, and whether that was in order.
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
        let comparisons = compared_names.len();
        let is_open_loop = recording.load.model.is_open();
        let order = recording.order_measured();
        let rounds = rounds(&rows);
        let frame = frame(recording, &rows, &compared);
        let variants: Vec<VariantSummary> = rows
            .iter()
            .map(|row| row.summarize(measured_baseline_of(row), &frame))
            .collect();
        Self {
            method: recording.method,
            title: title(recording),
            question: recording.lab.as_ref().map(|lab| lab.question.clone()),
            kind: recording.kind,
            interrupted: recording.interrupted,
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
            comparisons,
            confidence_each: frame.confidence_each(frame.headline),
            adjusted: adjusted(&variants, frame.headline),
            variants,
            until: UntilSummary::of(recording, &compared_names),
            decided: recording.decided.as_ref().map(until::decided),
            split: SplitSummary::of(recording, &compared, frame.round_s),
            // A recording holds no gates; `judged` fills them in.
            gates: Vec::new(),
            allows_failures: false,
        }
    }

    /// True if few requests pay what the typical latency of a variant does not show.
    pub(crate) fn few_pay(&self) -> bool {
        self.variants.iter().any(|row| row.few_pay.is_some())
    }

    /// Whom the others are compared with, in words.
    pub(crate) fn against(&self) -> String {
        if self.baselines > 1 {
            "the baseline of its group".to_owned()
        } else {
            format!("`{}`", self.baseline)
        }
    }

    /// The row of a variant.
    pub fn variant(&self, name: &str) -> Option<&VariantSummary> {
        self.variants.iter().find(|variant| variant.name == name)
    }
}

impl VariantSummary {
    /// Whether it has figures that are trusted.
    pub fn has_number(&self) -> bool {
        !self.metrics.is_empty()
    }

    /// The verdict in few words, for a narrow column.
    pub fn verdict_short(&self) -> String {
        remarked(self.verdict.short(), self.remark.as_deref())
    }

    /// The check that the target stopped answering, where it did.
    pub(crate) fn stopped_answering(&self) -> Option<&Check> {
        let mut checks = self.checks.iter();
        checks.find(|check| {
            check.name == CheckName::StoppedAnswering && check.state == CheckState::Failed
        })
    }

    /// One of its figures that are trusted.
    pub fn metric(&self, metric: Metric) -> Option<&MetricSummary> {
        self.metrics.get(&metric)
    }

    /// Complete answers by class: 1xx to 5xx, and others last.
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

/// Makes the part that all rows share. `compared` are the variants with a verdict, each with its baseline.
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

/// The rounds in which any variant was measured whole.
fn rounds(rows: &[Row<'_>]) -> BTreeSet<u32> {
    let complete = rows.iter().flat_map(|row| &row.complete);
    complete.map(|round| round.round).collect()
}

/// The figures of all variants that are believed, where they tell how slow the machine was in a round.
fn told_by<'a>(recording: &Recording, rows: &'a [Row<'a>]) -> Vec<(&'a str, &'a Figures)> {
    if !recording.tells_pace() {
        return Vec::new();
    }
    let believed = rows.iter().filter(|row| row.invalid.is_none());
    believed
        .map(|row| (row.variant.name.as_str(), &row.figures))
        .collect()
}

/// Explains adjusted differences. `None` if no difference was adjusted.
fn adjusted(variants: &[VariantSummary], headline: Metric) -> Option<String> {
    let overheads = variants
        .iter()
        .filter_map(|one| one.metric(headline)?.overhead.as_ref());
    let adjusted = overheads.filter(|overhead| overhead.adjusted_by > 0);
    let fewest = adjusted.min_by_key(|overhead| overhead.usual_rounds)?;
    let (usual, all) = (fewest.usual_rounds, fewest.rounds);
    let rounds = match all - usual {
        0 => format!("{all} rounds"),
        left_out => {
            format!(
                "{usual} usual rounds (without {left_out} rounds at a far lower or higher speed)"
            )
        }
    };
    let far: Vec<String> = variants
        .iter()
        .filter_map(|row| {
            let overhead = row.metric(headline)?.overhead.as_ref()?;
            let median = overhead
                .median_of_rounds
                .filter(|_| overhead.is_far_from_median())?;
            let sign = if median < 0.0 { '-' } else { '+' };
            let size = quantity::figure(headline.unit(), median.abs());
            Some(format!("{sign}{size} with `{}`", row.name))
        })
        .collect();
    let far = match far.is_empty() {
        true => String::new(),
        false => format!(
            " Without this adjustment, the median of the rounds is {}.",
            far.join(", ")
        ),
    };
    Some(format!(
        "Differences apply to the speed of the machine in these {rounds}, estimated from the other \
         variants. No interval contains the changes of that speed between rounds.{far}"
    ))
}

/// The metric that decides the verdict.
fn headline(recording: &Recording) -> Metric {
    if !recording.load.model.is_open() || recording.load.capacity.is_some() {
        return Metric::Requests;
    }
    match recording.order_measured() {
        // Side by side, the mean is some ten times less sure: the host moves it by taking a core for
        // milliseconds in one slot of hundreds. Without the slowest quarter that is cut off, and
        // unlike the median, what is left is sure as well where a load mixes quick and slow requests.
        Order::SideBySide => Metric::Typical,
        Order::InTurn => Metric::Mean,
    }
}

fn measurements_repeated(recording: &Recording) -> usize {
    let rounds = recording.rounds.iter();
    rounds.filter(|round| round.disturbed).count()
}

/// The noise floor of the machine; none side by side, since it was weighed in turn.
fn noise_floor(recording: &Recording) -> Option<&NoiseFloor> {
    let floor = recording.environment.noise_floor.as_ref();
    floor.filter(|_| recording.order_measured() == Order::InTurn)
}

/// The length of a slice, in microseconds; it is one for the whole run.
fn slice_us(recording: &Recording) -> Option<u64> {
    let slices = |round: &RoundRecord| Some(round.slices?.length_us);
    recording.rounds.iter().find_map(slices)
}

/// How long a round took on average: from the beginning of the first round to that of the last.
fn round_seconds(recording: &Recording) -> Option<f64> {
    let began = |number: u32| {
        let own = recording
            .rounds
            .iter()
            .filter(|round| round.round == number);
        own.map(|round| round.started_offset_us).min()
    };
    // From beginning to beginning, so that restarts between rounds are counted as well.
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
