//! The cost of each step of a ladder.

use analysis::summary::LadderStep;

use super::*;

/// A ladder of three steps with planted costs. The third step costs nothing.
fn recording(names: &[&str]) -> Recording {
    let mut recording = SampleRun::side_by_side()
        .variant("direct", 700.0)
        .variant("proxy", 840.0)
        .variant("log", 861.0)
        .variant("same", 861.0)
        .build();
    let lab = recording.lab.as_mut().unwrap();
    lab.ladder = names.iter().map(|name| (*name).to_owned()).collect();
    recording
}

fn step(summary: &Summary, index: usize) -> &LadderStep {
    &summary.ladder.as_ref().unwrap().steps[index]
}

fn contains(step: &LadderStep, metric: Metric, planted: f64) -> bool {
    let overhead = step.metrics[&metric].overhead.as_ref().unwrap();
    let (low, high) = overhead
        .difference_low
        .zip(overhead.difference_high)
        .unwrap();
    low < planted && planted < high
}

#[test]
fn each_step_is_a_paired_difference_and_the_last_row_is_direct() {
    let recording = recording(&["direct", "proxy", "log", "same"]);
    let summary = Summary::of(&recording);
    let planted = [140.0, 21.0, 0.0];
    for (index, planted) in planted.into_iter().enumerate() {
        assert!(
            contains(step(&summary, index), Metric::Mean, planted),
            "{index}"
        );
    }
    let ladder = summary.ladder.as_ref().unwrap();
    let whole = ladder.whole.as_ref().unwrap();
    assert_eq!((whole.from.as_str(), whole.to.as_str()), ("direct", "same"));
    assert!(contains(whole, Metric::Mean, 161.0));
    // The direct comparison is the comparison of the main table.
    let row = summary
        .variant("same")
        .unwrap()
        .metric(Metric::Mean)
        .unwrap();
    let of_row = row.overhead.as_ref().unwrap().difference;
    let of_whole = whole.metrics[&Metric::Mean]
        .overhead
        .as_ref()
        .unwrap()
        .difference;
    assert_eq!(of_row, of_whole);
    for (format, text) in renderings(&recording, &summary) {
        let is_shown = ["text", "full", "markdown", "html"].contains(&format);
        assert_eq!(text.contains("proxy → log"), is_shown, "{format}");
    }
}

#[test]
fn a_step_without_a_trusted_end_has_no_figure() {
    let mut recording = recording(&["direct", "proxy", "log"]);
    recording.variants[1].status = VariantStatus::Invalid {
        kind: InvalidKind::NotReady,
        reason: "it did not start".to_owned(),
    };
    let summary = Summary::of(&recording);
    assert!(step(&summary, 0).metrics.is_empty());
    assert!(step(&summary, 1).metrics.is_empty());
    let whole = summary.ladder.as_ref().unwrap().whole.as_ref().unwrap();
    assert!(contains(whole, Metric::Mean, 161.0));
    let text = crate::text(&recording, &summary, crate::Terminal::plain(100));
    assert!(text.contains("direct → proxy"), "{text}");
}

#[test]
fn a_lab_without_a_ladder_has_no_table() {
    let summary = Summary::of(&recording(&[]));
    assert_eq!(summary.ladder, None);
    let single = Summary::of(&recording(&["direct", "proxy"]));
    assert_eq!(single.ladder.unwrap().whole, None);
}
