//! Conversion of one variant's measurements to a row of the summary, with its verdict and comparison.

use std::collections::{BTreeMap, BTreeSet};

use model::{InvalidKind, Metric, Outcomes, Unit};
use recording::{Kind, NoiseFloor, Recording, RoundRecord, VariantRecord};

use super::blocks;
use super::bodies;
use super::breakdown::{self, BreakdownSummary};
use super::by_round::{self, RoundDifference, SystemDifference};
use super::check::{self, Check};
use super::distribution::Distribution;
use super::estimate::MetricSummary;
use super::events::{self, EventsSummary};
use super::figures::{Against, Figures};
use super::meaning::{self, Meaning, Reference};
use super::pooled::{self, PooledDifference};
use super::rate_windows::RateWindows;
use super::verdict::{self, Judged, Reason, Remark, Verdict};
use super::{Estimate, VariantSummary, few, left_out, noise, search, sent};
use crate::confidence::{self, CONFIDENCE, Looks};
use crate::pace::RoundDifferences;

/// Properties that all rows share.
pub(super) struct Frame<'a> {
    pub(super) kind: Kind,
    pub(super) headline: Metric,
    /// The confidence of each interval in a metric. The intervals of all comparisons hold together.
    pub(super) confidences: BTreeMap<Metric, f64>,
    /// The confidence of each interval of an estimate. There are more estimates than comparisons.
    pub(super) confidence_of_estimates: f64,
    pub(super) round_s: Option<f64>,
    pub(super) noise_floor: Option<&'a NoiseFloor>,
    /// All valid variants, if all were measured side by side. Their figures show the speed of the machine in
    /// a round. Empty otherwise.
    pub(super) told_by: Vec<(&'a str, &'a Figures)>,
    /// The recording, if variants received different requests.
    pub(super) sent_otherwise: Option<&'a Recording>,
}

impl<'a> Frame<'a> {
    /// The confidence of each interval in a metric.
    pub(super) fn confidence_each(&self, metric: Metric) -> f64 {
        self.confidences.get(&metric).copied().unwrap_or(CONFIDENCE)
    }

    /// Returns the frame with the confidences for these rows, each compared with its baseline.
    pub(super) fn with_confidences(self, looks: Looks, compared: &[(&Row<'a>, &Row<'a>)]) -> Self {
        let against: Vec<(&Row<'_>, Against<'_>)> = compared
            .iter()
            .map(|(row, baseline)| (*row, row.against(baseline, &self)))
            .collect();
        let of = |metric: Metric| {
            let each = against.iter();
            let differences: Vec<RoundDifferences> = each
                .map(|(row, against)| row.figures.differences(against, metric))
                .collect();
            (metric, confidence::each_of(looks, &differences))
        };
        let confidences = Metric::ALL.into_iter().map(of).collect();
        Self {
            confidences,
            ..self
        }
    }
}

/// A variant with its figures and checks, before it becomes a summary.
pub(super) struct Row<'a> {
    pub(super) variant: &'a VariantRecord,
    pub(super) baseline: &'a str,
    /// Complete measurements of the variant.
    pub(super) complete: Vec<&'a RoundRecord>,
    outcomes: Outcomes,
    statuses: BTreeMap<u16, u64>,
    pub(super) figures: Figures,
    checks: Vec<Check>,
    pub(super) invalid: Option<Verdict>,
}

impl<'a> Row<'a> {
    pub(super) fn of(
        recording: &'a Recording,
        variant: &'a VariantRecord,
        headline: Metric,
    ) -> Self {
        let all: Vec<&RoundRecord> = recording.rounds_of(&variant.name).collect();
        let complete = complete_rounds(recording, &variant.name);
        // These sums include measurements that are not compared, because a wrong response counts in any
        // measurement.
        let mut outcomes = Outcomes::default();
        let mut statuses = BTreeMap::new();
        for round in &all {
            outcomes.add(&round.outcomes);
            for (code, count) in &round.statuses {
                *statuses.entry(*code).or_insert(0) += count;
            }
        }
        let figures = Figures::of(&complete);
        let checks = check::all(&check::Watched {
            recording,
            variant,
            complete: &complete,
            figures: &figures,
        });
        let invalid = verdict::invalid(&Judged {
            kind: recording.kind,
            headline,
            variant,
            outcomes: &outcomes,
            rounds: &all,
            checks: &checks,
        });
        let invalid = invalid.or_else(|| {
            complete
                .is_empty()
                .then(|| Verdict::invalid(InvalidKind::Interrupted, Reason::NotMeasured))
        });
        Self {
            variant,
            baseline: recording.baseline_of(variant),
            complete,
            outcomes,
            statuses,
            figures,
            checks,
            invalid,
        }
    }

    pub(super) fn is_baseline(&self) -> bool {
        self.variant.name == self.baseline
    }

    /// True if the variant did its work, so that there is at least an estimate.
    pub(super) fn is_measured(&self) -> bool {
        !matches!(self.invalid, Some(Verdict::Invalid { .. }))
    }

    /// True if the variant has a verdict that is withheld.
    fn is_withheld(&self) -> bool {
        matches!(self.invalid, Some(Verdict::Withheld { .. }))
    }

    /// Returns the variant's estimate if its figures or the baseline's figures are not trusted.
    fn estimate(&self, baseline: Option<&Self>, frame: &Frame<'_>) -> Option<Estimate> {
        let baseline = baseline.filter(|_| !self.is_baseline());
        let is_doubtful = self.is_withheld() || baseline.is_some_and(Self::is_withheld);
        if !is_doubtful || !self.is_measured() || frame.kind == Kind::Load {
            return None;
        }
        let against = baseline.map(|row| self.against(row, frame));
        let figures = &self.figures;
        let metrics = figures.metrics(against.as_ref(), |_| frame.confidence_of_estimates);
        Some(Estimate::of(frame.headline, metrics))
    }

    /// The meaning of the verdict. `baseline` is the row that the variant was compared with.
    fn meaning(
        &self,
        baseline: &Self,
        metrics: &BTreeMap<Metric, MetricSummary>,
        few: Option<&few::FewPay>,
        frame: &Frame<'_>,
    ) -> Option<Meaning> {
        let of_baseline = MetricSummary::of(baseline.figures.values(frame.headline))?;
        Meaning::of(meaning::Compared {
            against: match baseline.is_baseline() {
                true => Reference::Baseline,
                false => Reference::Variant(baseline.variant.name.clone()),
            },
            headline: frame.headline,
            metrics,
            of_baseline: of_baseline.value,
            few,
            round_s: frame.round_s,
        })
    }

    /// The baseline, and the variants that are on neither side of the comparison.
    pub(super) fn against<'r>(&self, baseline: &'r Self, frame: &'r Frame<'_>) -> Against<'r> {
        let pair = [&*self.variant.name, &*baseline.variant.name];
        let others = frame.told_by.iter();
        Against {
            baseline: &baseline.figures,
            others: others
                .filter(|(name, _)| !pair.contains(name))
                .map(|(_, figures)| *figures)
                .collect(),
            has_one_start: [self, baseline]
                .into_iter()
                .flat_map(|row| &row.variant.systems)
                .any(|system| system.url.is_some()),
        }
    }

    fn side(&self) -> sent::Side<'_> {
        sent::Side {
            variant: self.variant,
            figures: &self.figures,
        }
    }

    /// The requests that the variant received. `None` if all variants received equal requests.
    fn sent(
        &self,
        recording: &Recording,
        against: Option<(&Self, &Against<'_>)>,
        frame: &Frame<'_>,
    ) -> sent::SentSummary {
        sent::of(
            recording,
            self.side(),
            against.map(|(row, against)| (row.variant, against)),
            &self.complete,
            frame.confidence_each(frame.headline),
        )
    }

    /// The differences of tails over the requests of all rounds.
    fn pooled_differences(&self, baseline: &Self, frame: &Frame<'_>) -> Vec<PooledDifference> {
        let confidence = frame.confidence_each(frame.headline);
        pooled::differences(&baseline.complete, &self.complete, confidence)
    }

    /// The baseline of a difference or of an estimate. `None` if there is neither.
    fn shown_against<'r>(
        &self,
        measured: Option<&'r Self>,
        frame: &'r Frame<'_>,
    ) -> Option<Against<'r>> {
        let is_shown = self.is_measured() && !self.is_baseline() && frame.kind == Kind::Lab;
        let baseline = measured.filter(|_| is_shown)?;
        Some(self.against(baseline, frame))
    }

    /// The difference in each round, trusted or not.
    fn round_differences(
        &self,
        measured: Option<&Self>,
        frame: &Frame<'_>,
    ) -> Vec<RoundDifference> {
        let against = self.shown_against(measured, frame);
        against.map_or_else(Vec::new, |against| {
            by_round::rounds(&self.figures, &against, frame.headline)
        })
    }

    /// The difference of each system, trusted or not.
    fn system_differences(
        &self,
        measured: Option<&Self>,
        frame: &Frame<'_>,
    ) -> Vec<SystemDifference> {
        let against = self.shown_against(measured, frame);
        let confidence = frame.confidence_each(Metric::Cpu);
        against.map_or_else(Vec::new, |against| {
            by_round::systems(&self.figures, &against, confidence)
        })
    }

    /// The parts of the difference in mean latency.
    fn breakdown(
        &self,
        baseline: &Self,
        metrics: &BTreeMap<Metric, MetricSummary>,
    ) -> Option<BreakdownSummary> {
        let latency = metrics.get(&Metric::Mean)?.overhead.as_ref()?;
        breakdown::of(&baseline.complete, &self.complete, latency.difference)
    }

    /// Name of the variant that this one is compared with, if it is no baseline.
    fn compared_with(&self, baseline: Option<&Self>) -> Option<String> {
        let other = baseline.filter(|row| !row.is_baseline())?;
        Some(other.variant.name.clone())
    }

    /// Number of the variant's rounds. They are counted once, because a baseline has a measurement in each of
    /// its groups.
    fn rounds(&self) -> usize {
        let rounds = self.complete.iter().map(|round| round.round);
        rounds.collect::<BTreeSet<u32>>().len()
    }

    fn metrics(
        &self,
        against: Option<&Against<'_>>,
        frame: &Frame<'_>,
    ) -> BTreeMap<Metric, MetricSummary> {
        let mut metrics = self
            .figures
            .metrics(against, |metric| frame.confidence_each(metric));
        if let (Kind::Load, [round]) = (frame.kind, &self.complete[..]) {
            blocks::give_intervals(round, &mut metrics);
        }
        metrics
    }

    fn bodies(&self, baseline: Option<&Self>) -> bodies::BodiesSummary {
        let baseline = baseline.filter(|_| !self.is_baseline());
        let baseline = baseline.map(|row| row.variant);
        bodies::of(self.variant, baseline, &self.complete)
    }

    fn distribution(&self, is_shown: bool) -> Option<Distribution> {
        let found = Distribution::of(&self.figures.latency);
        found.filter(|_| is_shown)
    }

    fn searches(&self, is_shown: bool) -> Vec<search::SearchSummary> {
        match is_shown {
            true => search::of(&self.complete),
            false => Vec::new(),
        }
    }

    /// The events of streams against the gaps of the baseline, or against the row's own gaps.
    fn events(&self, baseline: &Self, is_shown: bool) -> Option<EventsSummary> {
        let found = events::of(&self.complete, &baseline.complete);
        found.filter(|_| is_shown)
    }

    /// The row of the report. `measured` is the row of the baseline, trusted or not.
    pub(super) fn summarize(&self, measured: Option<&Self>, frame: &Frame<'_>) -> VariantSummary {
        // An invalid baseline is not used. Its variants keep their own figures.
        let baseline = measured.filter(|row| row.invalid.is_none());
        let estimate = self.estimate(measured, frame);
        // A single load shows its figures below the words NOT VALID. An invalid row of a lab has no figures.
        let is_shown = self.invalid.is_none() || frame.kind == Kind::Load;
        let compared = baseline.filter(|_| is_shown && !self.is_baseline());
        let against = compared.map(|row| self.against(row, frame));
        let metrics = match is_shown {
            true => self.metrics(against.as_ref(), frame),
            false => BTreeMap::new(),
        };
        let verdict = match &self.invalid {
            Some(invalid) => invalid.clone(),
            // This arm is first, because the only variant of a single load is its own baseline.
            None if frame.kind == Kind::Load => Verdict::Measured,
            None if self.is_baseline() => Verdict::Baseline,
            None if baseline.is_none() => Verdict::NotCompared,
            None => Verdict::of(frame.headline, metrics.get(&frame.headline)),
        };
        let mut checks = self.checks.clone();
        checks.extend(noise::check(frame.noise_floor, metrics.get(&Metric::Mean)));
        let few_pay = compared.and_then(|row| {
            let (own, of_baseline) = (&self.figures.latency, &row.figures.latency);
            few::pay(frame.headline, &metrics, own, of_baseline)
        });
        // There is at most one remark. The noise floor is for rounds in turn, and the cost that few requests
        // pay is for rounds side by side.
        let remark = noise::remark(&checks, frame.headline)
            .or_else(|| few_pay.as_ref().map(|_| Remark::FewPay))
            .or_else(|| estimate.as_ref().map(|_| Remark::Estimate));
        VariantSummary {
            name: self.variant.name.clone(),
            is_baseline: self.is_baseline(),
            baseline: self.baseline.to_owned(),
            compared_with: self.compared_with(measured),
            breakdown: compared.and_then(|row| self.breakdown(row, &metrics)),
            rounds: self.rounds(),
            meaning: compared
                .filter(|_| !verdict.is_invalid())
                .and_then(|row| self.meaning(row, &metrics, few_pay.as_ref(), frame)),
            remark,
            estimate,
            few_pay,
            left_out: left_out::LeftOutSummary::of(&self.complete),
            verdict,
            outcomes: self.outcomes,
            statuses: self.statuses.clone(),
            by_status: bodies::by_status(&self.complete),
            bodies: self.bodies(baseline),
            packets: model::packets(self.complete.iter().map(|round| round.packets)),
            handshakes: model::handshakes(self.complete.iter().map(|round| round.handshakes)),
            metrics,
            levels: BTreeMap::new(),
            times: Unit::Microseconds,
            systems: if is_shown {
                self.figures.systems(self.variant)
            } else {
                Vec::new()
            },
            distribution: self.distribution(is_shown),
            pooled_differences: compared
                .map_or_else(Vec::new, |row| self.pooled_differences(row, frame)),
            round_differences: self.round_differences(measured, frame),
            system_differences: self.system_differences(measured, frame),
            events: self.events(baseline.unwrap_or(self), is_shown),
            searches: self.searches(is_shown),
            sent: frame
                .sent_otherwise
                .filter(|_| is_shown)
                .map(|recording| self.sent(recording, compared.zip(against.as_ref()), frame)),
            rate_windows: is_shown.then(|| RateWindows::of(&self.complete)).flatten(),
            checks,
        }
    }
}

/// The measurements of a variant that count, in the order of their start.
pub fn complete_rounds<'a>(recording: &'a Recording, variant: &'a str) -> Vec<&'a RoundRecord> {
    // A single load is not paired, so its measurements until Ctrl-C are still useful.
    let is_kept = |round: &&RoundRecord| {
        !(round.interrupted || round.disturbed) || recording.kind == Kind::Load
    };
    recording.rounds_of(variant).filter(is_kept).collect()
}
