//! Variants that are compared with another variant instead of the baseline.

use super::*;
use crate::sample::chain;

#[test]
fn the_difference_is_from_the_named_variant() {
    let recording = chain();
    let summary = Summary::of(&recording);
    assert_eq!((summary.comparisons, summary.baselines), (2, 1));
    let difference = |name: &str| {
        let row = summary.variant(name).unwrap();
        let metric = row.metric(Metric::Mean).unwrap();
        metric.overhead.as_ref().unwrap().difference
    };
    assert!((difference("proxy") - 140.0).abs() < 5.0);
    assert!((difference("log") - 21.0).abs() < 5.0);
    let row = summary.variant("log").unwrap();
    assert_eq!(row.compared_with.as_deref(), Some("proxy"));
    let meaning = row.meaning.as_ref().unwrap();
    assert_eq!(meaning.against, Reference::Variant("proxy".to_owned()));
    assert_eq!(summary.variant("proxy").unwrap().compared_with, None);
}

#[test]
fn without_its_reference_a_variant_has_no_verdict() {
    let mut recording = chain();
    recording.variants[1].status = VariantStatus::Invalid {
        kind: InvalidKind::NotProven,
        reason: "it did not answer".to_owned(),
    };
    recording.rounds.retain(|round| round.variant != "proxy");
    let summary = Summary::of(&recording);
    let row = summary.variant("log").unwrap();
    assert!(matches!(row.verdict, Verdict::NotCompared), "{row:?}");
}
