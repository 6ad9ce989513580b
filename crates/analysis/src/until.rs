//! Checks if the interval of a difference is as narrow as requested, and estimates the rounds that this
//! takes.
//!
//! It uses only the widths of intervals, never their positions. See [`stats::width`].

use std::collections::BTreeMap;

use model::{HalfWidth, Metric, Until};
use recording::{DecidedText, Recording, RoundPart, RoundRecord, UntilEnd, digits};
use serde::Serialize;
use stats::{Interval, paired, width};

use crate::confidence::{self, CONFIDENCE, Looks};
use crate::metric::figure;
use crate::pace;

/// The metric of a stopping rule for every variant in every round.
#[derive(Clone, Debug)]
pub struct Watch {
    metric: Metric,
    half_width: HalfWidth,
    /// The baseline of each variant, by the variant's name.
    baselines: BTreeMap<String, String>,
    figures: BTreeMap<String, BTreeMap<RoundPart, f64>>,
    /// True if differences are adjusted by the figures of the other variants, as in the summary.
    is_adjusted: bool,
}

/// Width of the interval of one variant.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Seen {
    /// Name of the variant.
    pub variant: String,
    /// Rounds with measurements of both the variant and its baseline.
    pub rounds: usize,
    /// Half of the width of the interval of the difference, in the metric's unit. Absent with too few rounds.
    pub half_width: Option<f64>,
    /// Half of the requested width, in the metric's unit.
    pub wanted: f64,
    /// 1 % of the baseline's own value, in the metric's unit. The widths divided by it are percentages.
    pub percent: f64,
    /// The expected number of rounds until `wanted` is reached. Absent with too few rounds, and if it exceeds
    /// 100,000.
    pub rounds_expected: Option<usize>,
    #[serde(skip)]
    interval: Option<Interval>,
}

impl Watch {
    /// Watches the metric of a stopping rule. `baselines` pairs each variant with its baseline.
    pub fn new(until: &Until, baselines: impl IntoIterator<Item = (String, String)>) -> Self {
        Self {
            metric: until.metric,
            half_width: until.half_width,
            baselines: baselines.into_iter().collect(),
            figures: BTreeMap::new(),
            is_adjusted: false,
        }
    }

    /// Sets whether all variants are measured side by side. The figures of the other variants then show the speed
    /// of the machine in a round. A search for the highest rate has no such rounds.
    pub fn side_by_side(&mut self, is_side_by_side: bool) {
        self.is_adjusted = is_side_by_side;
    }

    /// A watch that contains all measurements of a recording.
    fn over(until: &Until, recording: &Recording) -> Self {
        let compared = recording.variants.iter().map(|variant| {
            let baseline = recording.baseline_of(variant);
            (variant.name.clone(), baseline.to_owned())
        });
        let mut watch = Self::new(until, compared);
        watch.side_by_side(recording.tells_pace());
        recording.rounds.iter().for_each(|round| watch.add(round));
        watch
    }

    /// Adds a measurement. Ignores an interrupted or disturbed one.
    pub fn add(&mut self, round: &RoundRecord) {
        // The summary has the same condition, and the rule must agree with it.
        if round.interrupted || round.disturbed {
            return;
        }
        let latency = round.latency_ns_hdr.histogram();
        if let Some(figure) = figure(self.metric, round, &latency) {
            let rounds = self.figures.entry(round.variant.clone()).or_default();
            rounds.insert(round.part(), figure);
        }
    }

    /// The widths of the intervals of these variants. The intervals hold together.
    #[must_use]
    pub fn look(&self, variants: &[&str]) -> Vec<Seen> {
        let differences: Vec<pace::RoundDifferences> =
            variants.iter().map(|name| self.differences(name)).collect();
        let confidence = confidence::each_of(Looks::AtWidths, &differences);
        let seen = variants
            .iter()
            .filter_map(|name| self.see(name, confidence));
        seen.collect()
    }

    /// The figures of a variant's baseline and of the variant, by round. Empty for a variant that has not
    /// been measured yet.
    fn pair(&self, variant: &str) -> [&BTreeMap<RoundPart, f64>; 2] {
        static NONE: BTreeMap<RoundPart, f64> = BTreeMap::new();
        let of_baseline = self
            .baselines
            .get(variant)
            .and_then(|it| self.figures.get(it));
        [of_baseline, self.figures.get(variant)].map(|figures| figures.unwrap_or(&NONE))
    }

    /// The figures of all variants that are on neither side of a difference. Empty if they do not show the
    /// speed of the machine.
    fn others(&self, variant: &str) -> impl Iterator<Item = &BTreeMap<RoundPart, f64>> {
        let baseline = self.baselines.get(variant);
        let others = self.figures.iter().filter(move |(name, _)| {
            self.is_adjusted && name.as_str() != variant && Some(*name) != baseline
        });
        others.map(|(_, figures)| figures)
    }

    fn differences(&self, variant: &str) -> pace::RoundDifferences {
        let [of_baseline, own] = self.pair(variant);
        pace::differences(
            self.metric,
            of_baseline,
            own,
            self.others(variant),
            CONFIDENCE,
        )
    }

    fn see(&self, variant: &str, confidence: f64) -> Option<Seen> {
        let [of_baseline, own] = self.pair(variant);
        let others = self.others(variant);
        // Only pairs count. A round without one of the two variants has no difference.
        let pace::Paired { overhead, base, .. } =
            pace::overhead(self.metric, of_baseline, own, others, confidence)?;
        let percent = paired::hodges_lehmann(&base)?.abs() / 100.0;
        let wanted = match self.half_width {
            HalfWidth::Share(share) => share * 100.0 * percent,
            HalfWidth::Amount(amount) => amount,
        };
        let interval = overhead.difference.interval;
        Some(Seen {
            variant: variant.to_owned(),
            rounds: base.len(),
            half_width: interval.map(|interval| interval.half_width()),
            wanted,
            percent,
            rounds_expected: interval
                .and_then(|interval| width::rounds_expected(&interval, base.len(), wanted)),
            interval,
        })
    }
}

impl Seen {
    /// True if the interval is as narrow as requested.
    #[must_use]
    pub fn is_reached(&self) -> bool {
        self.half_width.is_some_and(|found| found <= self.wanted)
    }

    /// Expected half of the width after `rounds` rounds, in the metric's unit. `None` with too few rounds.
    #[must_use]
    pub fn half_width_expected(&self, rounds: usize) -> Option<f64> {
        width::half_width_expected(&self.interval?, self.rounds, rounds)
    }
}

/// True if all these intervals are as narrow as requested. False for an empty list.
#[must_use]
pub fn is_reached(seen: &[Seen]) -> bool {
    !seen.is_empty() && seen.iter().all(Seen::is_reached)
}

/// Result of the stopping rule of a lab.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct UntilSummary {
    /// The rule as the user wrote it: `p99 ±2%`.
    pub text: String,
    /// Reason why the run stopped.
    pub ended: UntilEnd,
    /// The intervals at the end of the run, of all variants with a number.
    pub seen: Vec<Seen>,
    /// The result in one sentence. It contains `NOT REACHED` if an interval is too wide.
    pub sentence: String,
}

impl UntilSummary {
    pub(crate) fn of(recording: &Recording, variants: &[&str]) -> Option<Self> {
        let record = recording.until.as_ref()?;
        let until = &record.until;
        let seen = Watch::over(until, recording).look(variants);
        let (mut lacking, mut widths) = (Vec::new(), Vec::new());
        for one in &seen {
            let words = width_in_words(until, one, one.half_width);
            let words = words.unwrap_or_else(|| "no interval yet".to_owned());
            if one.is_reached() {
                widths.push(format!("{}: {words}", one.variant));
            } else {
                lacking.push(format!("{}: {words}", one.variant));
            }
        }
        let ended = record.ended;
        let widths = widths.join("; ");
        let sentence = if is_end_reached(ended, &seen) {
            format!("until {until}: reached ({widths})")
        } else {
            let why = if seen.is_empty() {
                "no comparison".to_owned()
            } else if !lacking.is_empty() {
                lacking.join("; ")
            } else if record.pilot.is_none() {
                // The rule checks widths only after its pilot, so a narrow interval may be chance.
                format!("the pilot was not complete, so far {widths}")
            } else {
                format!("only these are narrow enough: {widths}")
            };
            let reason = reason(ended, record.max_time_us);
            format!("until {until}: NOT REACHED {reason} ({why})")
        };
        Some(Self {
            text: until.to_string(),
            ended,
            seen,
            sentence,
        })
    }

    /// True if the run ended because all intervals were as narrow as requested, and the remaining ones still
    /// are. [`UntilSummary::sentence`] reports the same result.
    #[must_use]
    pub fn is_reached(&self) -> bool {
        is_end_reached(self.ended, &self.seen)
    }
}

/// The recorded end alone does not decide. The widths are computed again, and they may be wider or missing.
fn is_end_reached(ended: UntilEnd, seen: &[Seen]) -> bool {
    ended == UntilEnd::Reached && is_reached(seen)
}

/// The result of the rule that decides the gates: `until the gates are decided: decided`, or `NOT DECIDED`
/// with the reason.
pub(crate) fn decided(text: &DecidedText) -> String {
    let ended = match text.ended {
        UntilEnd::Reached => "decided".to_owned(),
        UntilEnd::MaxRounds => format!("NOT DECIDED within {} rounds", text.rounds_max),
        other => format!("NOT DECIDED {}", reason(other, text.max_time_us)),
    };
    format!("until the gates are decided: {ended}")
}

/// The reason why a run ended, in words.
fn reason(ended: UntilEnd, max_time_us: u64) -> String {
    match ended {
        UntilEnd::Reached => "with the remaining variants".to_owned(),
        UntilEnd::MaxTime => format!("within {}", digits::length_us(max_time_us)),
        UntilEnd::MaxRounds => "within the maximum of rounds".to_owned(),
        UntilEnd::Stopped => "before the run was stopped".to_owned(),
    }
}

/// The width as the rule was written: `±1.9 %` or `±0.12 ms`. `None` without a width.
#[must_use]
pub fn width_in_words(until: &Until, seen: &Seen, half_width: Option<f64>) -> Option<String> {
    let half_width = half_width?;
    let unit = until.metric.unit();
    Some(match until.half_width {
        HalfWidth::Share(_) => {
            let percent = half_width / seen.percent;
            format!("±{} %", digits::value(percent, Some(percent * 0.05)))
        }
        HalfWidth::Amount(_) => {
            let shown = unit.shown(half_width);
            format!(
                "±{} {}",
                digits::value(shown, Some(shown * 0.05)),
                unit.sign()
            )
        }
    })
}

#[cfg(test)]
mod tests {
    use std::str::FromStr as _;

    use recording::sample::SampleRun;
    use recording::{UntilText, VariantStatus};

    use super::*;
    use crate::summary::Summary;

    fn mean(half_width: HalfWidth) -> Until {
        let mut until = Until::from_str("mean ±2%").unwrap();
        until.half_width = half_width;
        until
    }

    #[test]
    fn a_width_is_reached_where_the_interval_is_as_narrow() {
        let mut recording = SampleRun::closed()
            .variant("a", 700.0)
            .variant("b", 800.0)
            .build();
        // A run with this rule has its confidence, both in the report and in the rule.
        recording.until = Some(UntilText {
            until: mean(HalfWidth::Amount(1.0)),
            max_time_us: 60_000_000,
            ended: UntilEnd::MaxRounds,
            pilot: None,
        });
        let half_width = Summary::of(&recording).variants[1]
            .metric(Metric::Mean)
            .and_then(|metric| metric.overhead.as_ref()?.half_width())
            .unwrap();
        for (factor, is_reached) in [(1.01, true), (0.99, false)] {
            let wanted = HalfWidth::Amount(half_width * factor);
            let until = mean(wanted);
            let seen = Watch::over(&until, &recording).look(&["b"]);
            assert_eq!(super::is_reached(&seen), is_reached, "{seen:?}");
            assert_eq!(seen[0].rounds, 8);
        }
    }

    #[test]
    fn a_variant_is_held_against_its_own_baseline() {
        let mut recording = SampleRun::closed()
            .variant("a", 700.0)
            .variant("b", 1_400.0)
            .variant("c", 800.0)
            .build();
        recording.variants[2].baseline = Some("b".to_owned());
        let seen = Watch::over(&mean(HalfWidth::Share(0.02)), &recording).look(&["c"]);
        let of = |index: usize| {
            let metric = Summary::of(&recording).variants[index]
                .metric(Metric::Mean)
                .cloned();
            metric.unwrap().value
        };
        assert!((seen[0].percent * 100.0 - of(1)).abs() < 1e-9, "{seen:?}");
        assert!((seen[0].percent * 100.0 - of(0)).abs() > 100.0, "{seen:?}");
    }

    #[test]
    fn a_share_is_one_of_the_baselines_own_value() {
        let recording = SampleRun::closed()
            .variant("a", 700.0)
            .variant("b", 800.0)
            .build();
        let until = mean(HalfWidth::Share(0.02));
        let seen = Watch::over(&until, &recording).look(&["b"]);
        let of_baseline = Summary::of(&recording).variants[0]
            .metric(Metric::Mean)
            .unwrap()
            .value;
        assert!(
            (seen[0].wanted - 0.02 * of_baseline).abs() < 1e-9,
            "{seen:?}"
        );
    }

    #[test]
    fn disturbed_measurements_do_not_count() {
        let mut recording = SampleRun::closed()
            .variant("a", 700.0)
            .variant("b", 800.0)
            .build();
        recording.rounds[0].disturbed = true;
        let until = mean(HalfWidth::Share(0.02));
        assert_eq!(Watch::over(&until, &recording).look(&["b"])[0].rounds, 7);
    }

    #[test]
    fn the_end_is_said_where_the_rounds_are() {
        let mut recording = SampleRun::closed()
            .variant("a", 700.0)
            .variant("b", 800.0)
            .build();
        recording.until = Some(UntilText {
            until: mean(HalfWidth::Share(0.000_01)),
            max_time_us: 60_000_000,
            ended: UntilEnd::MaxTime,
            pilot: None,
        });
        let summary = Summary::of(&recording);
        let until = summary.until.as_ref().unwrap();
        assert!(!until.is_reached());
        assert!(
            until
                .sentence
                .starts_with("until mean ±2%: NOT REACHED within 60 s (b: ±"),
            "{}",
            until.sentence
        );
    }

    #[test]
    fn what_is_said_and_how_the_program_ends_agree() {
        let mut recording = SampleRun::closed()
            .variant("a", 700.0)
            .variant("b", 800.0)
            .build();
        let mut said = |share: f64, ended: UntilEnd| {
            recording.until = Some(UntilText {
                until: mean(HalfWidth::Share(share)),
                max_time_us: 60_000_000,
                ended,
                pilot: None,
            });
            let until = Summary::of(&recording).until.unwrap();
            let is_said = !until.sentence.contains("NOT REACHED");
            assert_eq!(until.is_reached(), is_said, "{}", until.sentence);
            until.sentence
        };
        assert!(said(0.5, UntilEnd::Reached).contains("reached (b: ±"));
        // The recording claims that the rule was reached, but the widths are too large.
        assert!(said(0.000_01, UntilEnd::Reached).contains("with the remaining variants (b: ±"));
        // The maximum time ended before the rule checked a width.
        let early = said(0.5, UntilEnd::MaxTime);
        assert!(
            early.contains("NOT REACHED within 60 s (the pilot was not complete, so far b: ±"),
            "{early}"
        );
        recording.variants[1].status = VariantStatus::Invalid {
            kind: model::InvalidKind::Crashed,
            reason: "it ended".to_owned(),
        };
        recording.until.as_mut().unwrap().ended = UntilEnd::Reached;
        let until = Summary::of(&recording).until.unwrap();
        assert!(!until.is_reached());
        assert!(
            until
                .sentence
                .ends_with("NOT REACHED with the remaining variants (no comparison)")
        );
    }

    #[test]
    fn too_few_rounds_have_no_interval_and_reach_nothing() {
        let recording = SampleRun::closed()
            .rounds(5)
            .variant("a", 700.0)
            .variant("b", 800.0)
            .build();
        let until = mean(HalfWidth::Share(0.5));
        let seen = Watch::over(&until, &recording).look(&["b"]);
        assert_eq!((seen[0].half_width, seen[0].is_reached()), (None, false));
        assert!(!super::is_reached(&[]));
    }
}
