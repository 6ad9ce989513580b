//! Figures of a variant by round, and their summary.

use std::collections::BTreeMap;

use model::Metric;
use recording::{RoundPart, RoundRecord, SystemUsage, VariantRecord};
use stats::{Histogram, paired, sample};

use super::estimate::{MetricSummary, OverheadSummary, mean_by_round};
use super::system::{SystemFigures, SystemSummary};
use super::tail;
use crate::confidence::CONFIDENCE;
use crate::metric::figure;
use crate::pace;

/// The figures of one variant, round by round.
pub(crate) struct Figures {
    /// The round and group of each entry below.
    parts: Vec<RoundPart>,
    by_metric: BTreeMap<Metric, Vec<Option<f64>>>,
    systems: Vec<SystemFigures>,
    /// Number of latencies in the round that has the fewest.
    requests_fewest: u64,
    /// Latency over all rounds, in nanoseconds.
    pub(crate) latency: Histogram,
    /// Lateness over all rounds, in nanoseconds.
    pub(crate) lateness: Histogram,
}

/// Half of the width of the interval that contains the difference of two starts of one fast server, in
/// microseconds. The source is METHODOLOGY.md, "Services of any latency".
const START_US: f64 = 0.5;

/// The baseline of a variant, with the other variants for the adjustment.
pub(crate) struct Against<'f> {
    pub(crate) baseline: &'f Figures,
    /// Variants on neither side of the difference. Empty unless they were measured at the same time.
    pub(crate) others: Vec<&'f Figures>,
    /// True if a system of the variant or of its baseline ran before the lab. It then has one start in all
    /// rounds, so the rounds do not show differences between starts.
    pub(crate) has_one_start: bool,
}

impl Figures {
    pub(crate) fn of(complete: &[&RoundRecord]) -> Self {
        let mut figures = Self {
            parts: complete.iter().map(|round| round.part()).collect(),
            by_metric: BTreeMap::new(),
            systems: Vec::new(),
            // This is neutral for the minimum below. Without a round there are no figures.
            requests_fewest: u64::MAX,
            latency: Histogram::new(),
            lateness: Histogram::new(),
        };
        for round in complete {
            let latency = round.latency_ns_hdr.histogram();
            for metric in Metric::ALL {
                let values = figures.by_metric.entry(metric).or_default();
                values.push(figure(metric, round, &latency));
            }
            for usage in &round.systems {
                figures.system(usage).add(usage, round);
            }
            figures.requests_fewest = figures.requests_fewest.min(latency.len());
            figures.latency.add(&latency);
            figures.lateness.add(&round.lateness_ns_hdr.histogram());
        }
        figures
    }

    /// The figures of the system that `usage` describes.
    fn system(&mut self, usage: &SystemUsage) -> &mut SystemFigures {
        let mut known = self.systems.iter();
        let index = known.position(|system| system.name == usage.name);
        let index = index.unwrap_or_else(|| {
            self.systems.push(SystemFigures::new(usage));
            self.systems.len() - 1
        });
        &mut self.systems[index]
    }

    pub(crate) fn metrics(
        &self,
        against: Option<&Against<'_>>,
        confidence: impl Fn(Metric) -> f64,
    ) -> BTreeMap<Metric, MetricSummary> {
        let summarize = |(metric, values): (&Metric, &Vec<Option<f64>>)| {
            let measured = self.parts.iter().zip(values);
            let by_round = measured.filter_map(|(part, value)| Some((part.round, (*value)?)));
            let mut summary = MetricSummary::of(mean_by_round(by_round))?;
            summary.is_sparse = tail::share_of(*metric)
                .is_some_and(|share| !tail::has_enough(self.requests_fewest, share));
            summary.overhead = against
                .and_then(|against| self.overhead(against, *metric, 1.0, 1.0, confidence(*metric)));
            Some((*metric, summary))
        };
        self.by_metric.iter().filter_map(summarize).collect()
    }

    /// Pairs the rounds, or groups of rounds, with measurements of both. The baseline appears once in each.
    /// The variant's figures are divided by the first number, and the baseline's figures by the second.
    fn overhead(
        &self,
        against: &Against<'_>,
        metric: Metric,
        by: f64,
        by_of_baseline: f64,
        confidence: f64,
    ) -> Option<OverheadSummary> {
        let divided = |figures: &Self, by: f64| -> BTreeMap<RoundPart, f64> {
            let values = figures.by_part(metric);
            values.map(|(part, value)| (part, value / by)).collect()
        };
        let others = against.others.iter();
        let found = pace::overhead(
            metric,
            &divided(against.baseline, by_of_baseline),
            &divided(self, by),
            others.map(|other| other.by_part(metric).collect::<BTreeMap<_, _>>()),
            confidence,
        )?;
        let needed = paired::rounds_needed(confidence);
        let summary = OverheadSummary::of_paired(&found, needed);
        let is_latency = metric.is_of_speed() && !matches!(metric, Metric::Requests | Metric::Cpu);
        Some(match against.has_one_start && is_latency {
            true => summary.with_one_start(START_US / by, sample::median(&found.base)),
            false => summary,
        })
    }

    /// The differences from the baseline in a metric, by round.
    pub(super) fn differences(
        &self,
        against: &Against<'_>,
        metric: Metric,
    ) -> pace::RoundDifferences {
        let others = against.others.iter();
        pace::differences(
            metric,
            &against.baseline.by_part(metric).collect(),
            &self.by_part(metric).collect(),
            others.map(|other| other.by_part(metric).collect::<BTreeMap<_, _>>()),
            CONFIDENCE,
        )
    }

    /// A figure divided by a number that is constant over rounds, such as operations per request. The
    /// baseline's figure is divided by its own number.
    pub(super) fn divided(
        &self,
        metric: Metric,
        by: f64,
        against: Option<(&Against<'_>, f64)>,
        confidence: f64,
    ) -> Option<MetricSummary> {
        let own = self.by_part(metric);
        let by_round = own.map(|(part, value)| (part.round, value / by));
        let mut summary = MetricSummary::of(mean_by_round(by_round))?;
        summary.overhead = against.and_then(|(against, by_of_baseline)| {
            self.overhead(against, metric, by, by_of_baseline, confidence)
        });
        Some(summary)
    }

    /// The figure of each round with a measurement of the metric.
    pub(super) fn values(&self, metric: Metric) -> Vec<f64> {
        self.by_part(metric).map(|(_, value)| value).collect()
    }

    pub(super) fn by_part(&self, metric: Metric) -> impl Iterator<Item = (RoundPart, f64)> {
        let values = self.by_metric.get(&metric).into_iter().flatten();
        let pairs = self.parts.iter().zip(values);
        pairs.filter_map(|(part, value)| Some((*part, (*value)?)))
    }

    /// The names of the systems, in the order of the recording.
    pub(super) fn system_names(&self) -> Vec<&str> {
        self.systems.iter().map(|system| &*system.name).collect()
    }

    /// The processor time of a system per complete response, in each round. Empty without such a system.
    pub(super) fn cpu_of(&self, name: &str) -> BTreeMap<RoundPart, f64> {
        let system = self.systems.iter().find(|system| system.name == name);
        let figures = system.into_iter().flat_map(|system| &system.cpu);
        figures.copied().collect()
    }

    pub(crate) fn systems(&self, variant: &VariantRecord) -> Vec<SystemSummary> {
        let record = |name: &str| variant.systems.iter().find(|system| system.name == name);
        let systems = self.systems.iter();
        systems
            .map(|system| system.summary(record(&system.name)))
            .collect()
    }
}
