//! The consequence of a difference for a person who must decide: cores at a round load, the share of a usual
//! request, and the state of the gates.

use analysis::gate::Judgement;
use analysis::summary::{ClaimName, OverheadSummary, Summary, VariantSummary};
use model::Metric;
use recording::{Kind, describe, digits};

/// The load of the sentence, in requests per second.
const LOAD: &str = "1,000 requests/s";
/// Cores per microsecond of processor time per request, at that load.
const CORES: f64 = 1_000.0 / 1e6;
/// Latency of the request that the difference is compared with, in microseconds.
const REQUEST_US: f64 = 100_000.0;

/// The state of all gates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GateState {
    /// Every gate passes.
    Pass,
    /// At least one gate fails.
    Fail,
    /// The run has no gate.
    NoGate,
}

impl GateState {
    pub(crate) fn of(gates: &[Judgement]) -> Self {
        match gates {
            [] => Self::NoGate,
            gates if gates.iter().all(|gate| gate.is_passed) => Self::Pass,
            _ => Self::Fail,
        }
    }

    /// The state in a word.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Pass => "Pass",
            Self::Fail => "Fail",
            Self::NoGate => "No gate",
        }
    }
}

/// The consequence in words: ``at 1,000 requests/s 0.14 core more, a request of 100 ms takes 0.10 % longer, the
/// gate passes``. With several variants, it is of the most expensive one. `None` for a single load without gates.
pub(crate) fn sentence(summary: &Summary) -> Option<String> {
    if summary.kind == Kind::Load && summary.gates.is_empty() {
        return None;
    }
    let mut parts = Vec::new();
    if let Some(row) = most_expensive(summary) {
        let whom = match compared(summary).count() {
            1 => String::new(),
            _ => format!("with `{}` (the most expensive), ", row.title()),
        };
        let both = [cores(row), latency(row, summary.headline)];
        let both: Vec<String> = both.into_iter().flatten().collect();
        if !both.is_empty() {
            parts.push(format!("{whom}{}", both.join(", ")));
        }
    }
    // The word in front already contains the state of a run without gates.
    if !summary.gates.is_empty() || parts.is_empty() {
        parts.push(gates(summary));
    }
    Some(parts.join(", "))
}

/// The variants with a trusted difference.
fn compared(summary: &Summary) -> impl Iterator<Item = &VariantSummary> {
    let rows = summary.variants.iter();
    rows.filter(|row| overhead(row, summary.headline).is_some())
}

fn most_expensive(summary: &Summary) -> Option<&VariantSummary> {
    let cost = |row: &VariantSummary| {
        let found = overhead(row, summary.headline).map_or(0.0, |it| it.difference);
        match summary.headline {
            Metric::Requests => -found,
            // If only few requests pay, the mean shows more than the headline.
            _ => found.max(
                row.few_pay
                    .as_ref()
                    .map_or(found, |few| few.latency_us_mean),
            ),
        }
    };
    compared(summary).max_by(|one, other| cost(one).total_cmp(&cost(other)))
}

/// The trusted difference in a metric, with an interval.
fn overhead(row: &VariantSummary, metric: Metric) -> Option<&OverheadSummary> {
    let overhead = row.metric(metric)?.overhead.as_ref()?;
    overhead.difference_low.is_some().then_some(overhead)
}

/// The cores at the load: `at 1,000 requests/s 0.14 core more`.
fn cores(row: &VariantSummary) -> Option<String> {
    let found = overhead(row, Metric::Cpu)?;
    let shown = |us: f64| {
        let cores = us.abs() * CORES;
        let noun = if cores < 1.05 { "core" } else { "cores" };
        format!("{} {noun}", two_digits(cores))
    };
    Some(match found.claim {
        ClaimName::Higher => format!("at {LOAD} {} more", shown(found.difference)),
        ClaimName::Lower => format!("at {LOAD} {} less", shown(found.difference)),
        _ => format!(
            "at {LOAD} no difference in processor time shown, at most {}",
            shown(largest(found)?)
        ),
    })
}

/// The latency next to a usual request: `a request of 100 ms takes 0.1 % longer`. `None` in a closed loop,
/// because its latency depends on the number of connections.
fn latency(row: &VariantSummary, headline: Metric) -> Option<String> {
    if headline == Metric::Requests {
        return None;
    }
    let found = overhead(row, headline)?;
    let percent = |us: f64| format!("{} %", two_digits(us.abs() / REQUEST_US * 100.0));
    let way = |us: f64| if us < 0.0 { "shorter" } else { "longer" };
    let request = "a request of 100 ms";
    let typical = match found.claim {
        ClaimName::Higher | ClaimName::Lower => {
            let us = found.difference;
            format!("{request} takes {} {}", percent(us), way(us))
        }
        _ => format!("{request} changes by at most {}", percent(largest(found)?)),
    };
    let mean = row.few_pay.as_ref().map_or_else(String::new, |few| {
        let us = few.latency_us_mean;
        format!(" (on average {} {})", percent(us), way(us))
    });
    Some(typical + &mean)
}

/// The end of the interval that is farther from zero.
fn largest(found: &OverheadSummary) -> Option<f64> {
    let (low, high) = found.difference_low.zip(found.difference_high)?;
    Some(low.abs().max(high.abs()))
}

fn two_digits(value: f64) -> String {
    digits::value(value, Some(value * 0.2))
}

/// The state of the gates in words: `no gate set`, `both gates hold`.
fn gates(summary: &Summary) -> String {
    let all = summary.gates.len() as u64;
    let failed = summary.gates.iter().filter(|it| !it.is_passed).count();
    match (all, failed) {
        (0, _) => "no gate set".to_owned(),
        (1, 0) => "the gate passes".to_owned(),
        (_, 0) => format!("all {} pass", describe::plural(all, "gate")),
        (1, _) => "the gate fails".to_owned(),
        (_, failed) => format!("{failed} of {} fail", describe::plural(all, "gate")),
    }
}

#[cfg(test)]
mod tests {
    use analysis::gate::Undecided;
    use recording::sample::SampleRun;

    use super::*;

    fn set(summary: &mut Summary, row: usize, metric: Metric, ends: (f64, f64)) {
        let figure = summary.variants[row].metrics.get_mut(&metric).unwrap();
        let overhead = figure.overhead.as_mut().unwrap();
        overhead.difference = (ends.0 + ends.1) / 2.0;
        overhead.difference_low = Some(ends.0);
        overhead.difference_high = Some(ends.1);
        overhead.claim = ClaimName::of_ends(Some(ends));
    }

    fn summary() -> Summary {
        let recording = SampleRun::side_by_side()
            .variant("a", 700.0)
            .variant("b", 800.0)
            .build();
        let mut summary = Summary::of(&recording);
        summary.variants[1].few_pay = None;
        set(&mut summary, 1, Metric::Cpu, (130.0, 150.0));
        set(&mut summary, 1, Metric::Typical, (90.0, 110.0));
        summary
    }

    #[test]
    fn a_cost_is_cores_and_a_share_of_a_request() {
        insta::assert_snapshot!(sentence(&summary()).unwrap(), @"at 1,000 requests/s 0.14 core more, a request of 100 ms takes 0.10 % longer");
        let mut saved = summary();
        set(&mut saved, 1, Metric::Cpu, (-2_500.0, -2_300.0));
        set(&mut saved, 1, Metric::Typical, (-30.0, 40.0));
        insta::assert_snapshot!(sentence(&saved).unwrap(), @"at 1,000 requests/s 2.4 cores less, a request of 100 ms changes by at most 0.040 %");
    }

    #[test]
    fn a_cost_of_few_requests_is_named_too() {
        let mut few = summary();
        few.variants[1].few_pay = Some(analysis::summary::FewPay {
            latency_us_mean: 1_040.0,
            share_of_requests: Some(0.2),
            payment: analysis::summary::Payment::PayMore,
        });
        insta::assert_snapshot!(sentence(&few).unwrap(), @"at 1,000 requests/s 0.14 core more, a request of 100 ms takes 0.10 % longer (on average 1.0 % longer)");
    }

    #[test]
    fn of_several_variants_it_is_the_most_expensive() {
        let recording = SampleRun::side_by_side()
            .variant("a", 700.0)
            .variant("cheap", 710.0)
            .variant("dear", 900.0)
            .build();
        let sentence = sentence(&Summary::of(&recording)).unwrap();
        assert!(
            sentence.starts_with("with `dear` (the most expensive), at 1,000"),
            "{sentence}"
        );
    }

    #[test]
    fn the_word_is_that_of_the_worst_gate() {
        let judged = |gates: &[&str]| {
            let gates: Vec<_> = gates.iter().map(|gate| gate.parse().unwrap()).collect();
            summary().judged(&gates, Undecided::Fails)
        };
        for (gates, word, end) in [
            (&[][..], "No gate", "% longer"),
            (&["typical overhead < 1s"], "Pass", "the gate passes"),
            (&["typical overhead < 1us"], "Fail", "the gate fails"),
            (
                &["typical overhead < 1s", "typical overhead < 1us"],
                "Fail",
                "1 of 2 gates fail",
            ),
        ] {
            let summary = judged(gates);
            assert_eq!(GateState::of(&summary.gates).word(), word);
            let sentence = sentence(&summary).unwrap();
            assert!(sentence.ends_with(end), "{sentence}");
        }
        assert_eq!(sentence(&Summary::of(&SampleRun::load_alone(true))), None);
    }
}
