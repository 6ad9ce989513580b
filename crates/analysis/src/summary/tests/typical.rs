//! Tests of the typical latency, which decides side by side.

use model::Gate;

use super::*;
use crate::compare::{Comparison, Operand, OperandSource};
use crate::gate::Undecided;
use crate::sample::{beside, stalls};

/// Ratio of the typical latency to the mean, for a log-normal distribution with a deviation of 0.3. The
/// formula is `Φ(z - 0.3) / 0.75`. Here z is the 75 % quantile of the normal distribution.
const OF_MEAN: f64 = 0.8613;

#[test]
fn the_planted_difference_is_inside_the_interval_and_in_the_meaning() {
    let summary = Summary::of(&beside(&[("plain", 700.0), ("slow", 770.0)]));
    let row = summary.variant("slow").unwrap();
    let overhead = row.metric(Metric::Typical).unwrap().overhead.as_ref();
    let ends = overhead.and_then(|it| it.difference_low.zip(it.difference_high));
    let (low, high) = ends.unwrap();
    let truth = 70.0 * OF_MEAN;
    assert!(low < truth && truth < high, "{low} to {high}");
    let meaning = row.meaning.as_ref().unwrap();
    let extent = Extent::of(Metric::Typical, overhead.unwrap()).unwrap();
    assert_eq!(meaning.size, SizeShown::Shown(extent));
    assert!((meaning.of_baseline - 700.0 * OF_MEAN).abs() < 20.0);
    assert_eq!(meaning.aside, None);
}

#[test]
fn what_only_the_slowest_tenth_pays_is_told_by_the_mean() {
    let summary = Summary::of(&stalls());
    let row = summary.variant("stalls").unwrap();
    assert_eq!(row.verdict, Verdict::NoDifferenceShown);
    assert_eq!(row.remark, Some(Remark::FewPay));
    let few = row.few_pay.as_ref().unwrap();
    assert_eq!(few.payment, Payment::Pay);
    let Some(Aside::Mean {
        mean, slow_quarter, ..
    }) = row.meaning.as_ref().unwrap().aside.clone()
    else {
        panic!("{row:?}");
    };
    assert!((mean.low..=mean.high).contains(&160.0), "{mean:?}");
    assert!(slow_quarter.unwrap().is_higher);
}

#[test]
fn a_gate_and_a_comparison_know_it() {
    let recording = beside(&[("plain", 700.0), ("slow", 770.0)]);
    let gate = |text: &str| text.parse::<Gate>().unwrap();
    let gates = [
        gate("slow typical overhead < 100us"),
        gate("slow trimmed overhead < 30us"),
    ];
    let judged = Summary::of(&recording).judged(&gates, Undecided::Fails);
    let passed: Vec<bool> = judged.gates.iter().map(|it| it.is_passed).collect();
    assert_eq!(passed, [true, false]);

    let mut other = beside(&[("plain", 700.0), ("slow", 800.0)]);
    other.started_at = "2026-02-02T10:00:00Z".to_owned();
    let compared = |a: &Recording, b: &Recording| {
        let operand = |label: &str, recording: &Recording| Operand {
            label: label.to_owned(),
            source: OperandSource::Recording(Box::new(recording.clone())),
            variant: Some("slow".to_owned()),
        };
        Comparison::of(&operand("a", a), &operand("b", b), true).unwrap()
    };
    let found = compared(&recording, &other);
    assert_eq!(found.headline, Metric::Typical);
    assert!(found.rows[0].overheads.contains_key(&Metric::Typical));
    // In a run in turn, the mean decides.
    other.measured = None;
    assert_eq!(compared(&recording, &other).headline, Metric::Mean);
}
