//! Meaning of a verdict in words. It states the cost of a request and its share of the baseline. Without a
//! visible difference, it states the smallest difference that the run would have shown.

use std::collections::BTreeMap;

use model::Metric;
use recording::{digits, float};

use super::estimate::{ClaimName, MetricSummary, OverheadSummary};
use super::few::{self, FewPay};
use super::quantity::{amount, figure, minutes, with_ends};

/// A variant and its baseline.
pub(crate) struct Compared<'a> {
    /// Name of the variant: `` `rhai` ``.
    pub(crate) subject: &'a str,
    /// Possessive of the baseline: `the baseline's`.
    pub(crate) whose: &'a str,
    /// The metric that decides the verdict.
    pub(crate) headline: Metric,
    pub(crate) metrics: &'a BTreeMap<Metric, MetricSummary>,
    /// The baseline's value of the headline metric.
    pub(crate) of_baseline: f64,
    /// Cost that only few requests pay.
    pub(crate) few: Option<&'a FewPay>,
    /// Length of a round in seconds. `None` if it is unknown.
    pub(crate) round_s: Option<f64>,
}

/// The sentence, such as `` `rhai` costs a typical request 80 us (75 to 88), some 40 % of the baseline's
/// typical 200 us ``. `None` if there are too few rounds for an interval.
pub(crate) fn sentence(compared: &Compared<'_>) -> Option<String> {
    let overhead = overhead_of(compared, compared.headline)?;
    let of_headline = match overhead.claim {
        ClaimName::Higher | ClaimName::Lower => size(compared, overhead)?,
        ClaimName::NoDifferenceShown => would_have_shown(compared, overhead)?,
        ClaimName::TooFewRounds => return None,
    };
    let otherwise = mean_otherwise(compared).or_else(|| processor_time_otherwise(compared));
    Some(format!(
        "{}{of_headline}{}",
        compared.subject,
        otherwise.unwrap_or_default()
    ))
}

fn overhead_of<'a>(compared: &Compared<'a>, metric: Metric) -> Option<&'a OverheadSummary> {
    compared.metrics.get(&metric)?.overhead.as_ref()
}

impl OverheadSummary {
    /// The size of the overhead without its sign: `80 us (75 to 88)`. `None` with too few rounds.
    pub fn in_words(&self, metric: Metric) -> Option<String> {
        let (low, high) = self.difference_low.zip(self.difference_high)?;
        Some(with_ends(metric.unit(), self.difference, low, high))
    }

    /// The smallest difference that four of five runs like this one would show: `7.0 us`.
    pub fn detectable_in_words(&self, metric: Metric) -> Option<String> {
        Some(amount(metric.unit(), self.detectable?))
    }
}

/// The size in words: ` costs a typical request 80 us (75 to 88), some 40 % of the baseline's typical 200 us`
fn size(compared: &Compared<'_>, overhead: &OverheadSummary) -> Option<String> {
    let (metric, whose) = (compared.headline, compared.whose);
    let is_higher = overhead.claim == ClaimName::Higher;
    let share = share_of_baseline(overhead.difference, compared.of_baseline);
    let baseline = figure(metric.unit(), compared.of_baseline);
    let size = overhead.in_words(metric)?;
    Some(match metric {
        Metric::Requests => {
            let word = if is_higher { "more" } else { "fewer" };
            let size = size.replacen(" requests", &format!(" requests a second {word}"), 1);
            // The size already contains this word.
            let baseline = baseline.trim_end_matches(" requests");
            format!(" answers {size}, {share} {whose} {baseline}")
        }
        _ => {
            let word = if is_higher { "costs" } else { "saves" };
            let (whom, which) = match metric {
                Metric::Typical => ("a typical request", "typical"),
                _ => ("a request on average", "mean"),
            };
            format!(" {word} {whom} {size}, {share} {whose} {which} {baseline}")
        }
    })
}

/// The smallest visible difference in words:
/// `: no difference shown. Four of five runs like this one would show a difference of 7.0 us, some 3 % of the
/// baseline's 200 us. Half of that takes 31 rounds, some 3 minutes`
fn would_have_shown(compared: &Compared<'_>, overhead: &OverheadSummary) -> Option<String> {
    let shown = overhead.detectable?;
    let unit = compared.headline.unit();
    let of = share_of_baseline(shown, compared.of_baseline);
    let baseline = figure(unit, compared.of_baseline);
    let half = match overhead.rounds_for_half {
        Some(rounds) => {
            let seconds = compared.round_s.map(|one| one * float(rounds as u64));
            let time = seconds.map_or(String::new(), |it| format!(", some {}", minutes(it)));
            format!(". Half of that takes {rounds} rounds{time}")
        }
        None => String::new(),
    };
    Some(format!(
        ": no difference shown. Four of five runs like this one would show a difference of {}, {of} \
         {} {baseline}{half}",
        amount(unit, shown),
        compared.whose
    ))
}

/// The difference of the mean if it disagrees, and the share of the requests that pay it.
fn mean_otherwise(compared: &Compared<'_>) -> Option<String> {
    let (_, mean) = few::disagreeing(compared.headline, compared.metrics)?;
    let size = mean.in_words(Metric::Mean)?;
    let word = match mean.claim {
        ClaimName::Higher => "costs",
        _ => "saves",
    };
    let payers = compared.few.and_then(|few| few.payers.as_ref());
    let payers = payers.map_or_else(String::new, |payers| format!(": {payers}"));
    let slow = slow_quarter(compared).unwrap_or_default();
    Some(format!(
        ". On average, slow requests included, it {word} {size}{payers}{slow}"
    ))
}

/// The cost for the slowest quarter: `. The slowest quarter of the requests takes 3.9 ms (3.1 to 4.8) longer`.
/// `None` if it shows no difference.
fn slow_quarter(compared: &Compared<'_>) -> Option<String> {
    let overhead = overhead_of(compared, Metric::SlowQuarter)?;
    let word = match overhead.claim {
        ClaimName::Higher => "longer",
        ClaimName::Lower => "less",
        ClaimName::NoDifferenceShown | ClaimName::TooFewRounds => return None,
    };
    let size = overhead.in_words(Metric::SlowQuarter)?;
    Some(format!(
        ". The slowest quarter of the requests takes {size} {word}"
    ))
}

/// The difference in processor time if neither the typical latency nor the mean shows it. It is a mean over all
/// requests, and steadier than the mean latency.
fn processor_time_otherwise(compared: &Compared<'_>) -> Option<String> {
    let (typical, processor) = (
        overhead_of(compared, compared.headline)?,
        overhead_of(compared, Metric::Cpu)?,
    );
    // A request may take less time than processors work for it. The sentence mentions only a much higher
    // processor time.
    let is_more = processor.difference_low? > 1.5 * typical.difference_high?.max(0.0);
    let is_told = compared.headline == Metric::Typical
        && compared.few.is_none()
        && processor.claim == ClaimName::Higher
        && is_more;
    let size = processor.in_words(Metric::Cpu).filter(|_| is_told)?;
    Some(format!(
        ". Processor time rises by {size} a request, so some requests pay more, or work continues \
         after the response"
    ))
}

/// The size relative to the baseline: `some 40 % of`, `some 3 times`
fn share_of_baseline(value: f64, baseline: f64) -> String {
    let share = (value / baseline).abs();
    match share {
        // A share of a baseline of 0 does not exist.
        share if !share.is_finite() => "much more than".to_owned(),
        share if share >= 2.0 => format!("some {} times", digits::value(share, Some(share * 0.2))),
        share if share < 0.001 => "less than 0.1 % of".to_owned(),
        share => {
            let percent = share * 100.0;
            format!("some {} % of", digits::value(percent, Some(percent * 0.2)))
        }
    }
}

#[cfg(test)]
mod tests {
    use recording::sample::SampleRun;

    use super::*;
    use crate::summary::Summary;

    /// The words for a variant and a baseline of 200 us. `by_mean_us` is the difference of the mean.
    fn words(variant_us: f64, by_mean_us: f64) -> String {
        words_with(variant_us, by_mean_us, &[])
    }

    /// The words with differences of other metrics, each with half of the width of its interval.
    fn words_with(variant_us: f64, by_mean_us: f64, others: &[(Metric, f64, f64)]) -> String {
        let figure = |metric: Metric, difference: f64, half: f64| {
            let excludes = difference.abs() > half;
            let claim = match (excludes, difference > 0.0) {
                (false, _) => ClaimName::NoDifferenceShown,
                (true, true) => ClaimName::Higher,
                (true, false) => ClaimName::Lower,
            };
            let overhead = OverheadSummary {
                rounds: 12,
                difference,
                difference_low: Some(difference - half),
                difference_high: Some(difference + half),
                ratio: None,
                ratio_low: None,
                ratio_high: None,
                confidence: Some(0.95),
                claim,
                rounds_needed: 6,
                detectable: Some(half * 1.3),
                rounds_for_half: Some(41),
                adjusted_by: 0,
                usual_rounds: 0,
                median_of_rounds: Some(difference),
                is_sign_disputed: false,
            };
            let mut summary = MetricSummary::of(vec![200.0 + difference; 12]).unwrap();
            summary.overhead = Some(overhead);
            (metric, summary)
        };
        let latencies = [
            (Metric::Typical, variant_us, 6.0),
            (Metric::Mean, by_mean_us, 12.0),
        ];
        let all = latencies.iter().chain(others);
        let metrics: BTreeMap<Metric, MetricSummary> = all
            .map(|(metric, difference, half)| figure(*metric, *difference, *half))
            .collect();
        sentence(&Compared {
            subject: "`rhai`",
            whose: "the baseline's",
            headline: Metric::Typical,
            metrics: &metrics,
            of_baseline: 200.0,
            few: None,
            round_s: Some(9.0),
        })
        .unwrap()
    }

    #[test]
    fn a_verdict_names_its_size_as_a_person_would() {
        insta::assert_snapshot!(words(80.0, 84.0), @"`rhai` costs a typical request 80 us (74 to 86), some 40 % of the baseline's typical 200 us");
        insta::assert_snapshot!(words(-80.0, -84.0), @"`rhai` saves a typical request 80 us (74 to 86), some 40 % of the baseline's typical 200 us");
    }

    #[test]
    fn nothing_shown_says_what_would_have_been_and_what_half_of_it_takes() {
        insta::assert_snapshot!(words(2.0, 1.0), @"`rhai`: no difference shown. Four of five runs like this one would show a difference of 7.8 us, some 3.9 % of the baseline's 200 us. Half of that takes 41 rounds, some 6.2 minutes");
    }

    #[test]
    fn the_mean_is_named_where_it_says_something_else() {
        insta::assert_snapshot!(words(2.0, 400.0), @"`rhai`: no difference shown. Four of five runs like this one would show a difference of 7.8 us, some 3.9 % of the baseline's 200 us. Half of that takes 41 rounds, some 6.2 minutes. On average, slow requests included, it costs 400 us (388 to 412)");
        insta::assert_snapshot!(words(80.0, -40.0), @"`rhai` costs a typical request 80 us (74 to 86), some 40 % of the baseline's typical 200 us. On average, slow requests included, it saves 40 us (28 to 52)");
    }

    #[test]
    fn processor_time_is_named_where_latency_does_not_show_it() {
        let more = words_with(2.0, 1.0, &[(Metric::Cpu, 60.0, 4.0)]);
        assert!(
            more.ends_with(
                ". Processor time rises by 60 us (56 to 64) a request, so some requests pay more, or work \
                 continues after the response"
            ),
            "{more}"
        );
        let alike = words_with(80.0, 84.0, &[(Metric::Cpu, 90.0, 4.0)]);
        assert!(!alike.contains("Processor time"), "{alike}");
    }

    #[test]
    fn the_slow_quarter_is_named_with_the_mean() {
        let words = words_with(2.0, 400.0, &[(Metric::SlowQuarter, 1_600.0, 90.0)]);
        assert!(
            words.ends_with(
                ". The slowest quarter of the requests takes 1.60 ms (1.51 to 1.69) longer"
            ),
            "{words}"
        );
    }

    #[test]
    fn a_rate_is_in_requests_a_second() {
        let recording = SampleRun::closed()
            .variant("a", 700.0)
            .variant("b", 800.0)
            .build();
        let summary = Summary::of(&recording);
        assert_eq!(summary.variants[0].in_words, None);
        insta::assert_snapshot!(summary.variants[1].in_words.as_ref().unwrap(), @r##"
        `b` answers 17,800 requests a second fewer (17,100 to 18,500), some 12 % of the baseline's 144,000
        "##);
    }
}
