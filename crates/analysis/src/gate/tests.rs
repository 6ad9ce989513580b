//! Tests of gates and their judgements.

use model::{Gate, InvalidKind, Metric, Relation};
use recording::VariantStatus;
use recording::sample::SampleRun;

use super::*;
use crate::Summary;

fn gate(text: &str) -> Gate {
    text.parse().unwrap()
}

/// Mean latencies of 680, 680 and about 750 us at 8 rounds.
fn lab() -> recording::Recording {
    SampleRun::open()
        .variant("baseline", 680.0)
        .variant("same", 680.0)
        .variant("rhai", 750.0)
        .build()
}

fn ruled(recording: &recording::Recording, text: &str) -> (Ruling, String) {
    let summary = Summary::of(recording).judged(&[gate(text)], Undecided::Fails);
    assert_eq!(summary.gates.len(), 1, "{text}");
    let reason = match &summary.gates[0].grounds {
        Grounds::Figure(text) => text.clone(),
        other => format!("{other:?}"),
    };
    (summary.gates[0].ruling, reason)
}

#[test]
fn a_gate_is_judged_on_the_whole_interval() {
    let recording = lab();
    let summary = Summary::of(&recording);
    let overhead = summary
        .variant("rhai")
        .unwrap()
        .metric(Metric::Mean)
        .unwrap();
    let overhead = overhead.overhead.as_ref().unwrap();
    let (low, high) = (
        overhead.difference_low.unwrap(),
        overhead.difference_high.unwrap(),
    );
    let middle = f64::midpoint(low, high);
    for (limit, ruling) in [
        (high + 1.0, Ruling::Holds),
        (middle, Ruling::Undecided),
        (low - 1.0, Ruling::Broken),
    ] {
        let (found, reason) = ruled(&recording, &format!("rhai mean overhead < {limit:.3}us"));
        assert_eq!(found, ruling, "{limit}: {reason}");
        assert_eq!(
            reason.starts_with("the limit lies within"),
            ruling == Ruling::Undecided
        );
        assert!(reason.contains(" us"), "{reason}");
    }
    let (found, _) = ruled(
        &recording,
        &format!("rhai mean overhead > {:.3}us", low - 1.0),
    );
    assert_eq!(found, Ruling::Holds);
    // An end equal to the limit is within `<=`, and not within `<`.
    let mut exact = gate("rhai mean overhead <= 1ms");
    exact.limit = high;
    assert_eq!(
        Summary::of(&recording)
            .judged(&[exact.clone()], Undecided::Fails)
            .gates[0]
            .ruling,
        Ruling::Holds
    );
    exact.relation = Relation::Below;
    assert_eq!(
        Summary::of(&recording)
            .judged(&[exact], Undecided::Fails)
            .gates[0]
            .ruling,
        Ruling::Undecided
    );
}

#[test]
fn ratios_values_and_shares_are_judged_too() {
    let recording = lab();
    for (text, ruling) in [
        ("rhai mean ratio < 1.5", Ruling::Holds),
        ("rhai mean overhead < 5%", Ruling::Broken),
        ("same mean overhead < 5%", Ruling::Holds),
        ("rhai p99 value < 1s", Ruling::Holds),
        ("baseline p99 value < 1s", Ruling::Holds),
        ("baseline p99 overhead < 1s", Ruling::Undecided),
        ("rhai throughput value > 100MB/s", Ruling::Broken),
    ] {
        let (found, reason) = ruled(&recording, text);
        assert_eq!(found, ruling, "{text}: {reason}");
    }
    let summary = Summary::of(&recording).judged(&[gate("mean overhead < 5%")], Undecided::Fails);
    let names: Vec<&str> = summary.gates.iter().map(|gate| &*gate.variant).collect();
    assert_eq!(names, ["same", "rhai"], "every variant but the baseline");
}

#[test]
fn without_an_interval_or_a_number_nothing_is_decided() {
    let few = SampleRun::open()
        .rounds(4)
        .variant("a", 680.0)
        .variant("b", 800.0)
        .build();
    let (ruling, reason) = ruled(&few, "b mean overhead < 10ms");
    assert_eq!(ruling, Ruling::Undecided);
    assert!(
        reason.contains("needs 6 rounds, and 4 were measured"),
        "{reason}"
    );
    let mut broken = lab();
    broken.variants[2].status = VariantStatus::Invalid {
        kind: InvalidKind::ProgramMissing,
        reason: "`dotnet` is not installed".to_owned(),
    };
    let gates = [gate("rhai mean overhead < 10ms")];
    let summary = Summary::of(&broken).judged(&gates, Undecided::Fails);
    assert_eq!(summary.gates[0].ruling, Ruling::Undecided);
    let grounds = Grounds::NoNumber {
        variant: "rhai".to_owned(),
        verdict: summary.variants[2].verdict.clone(),
    };
    assert_eq!(summary.gates[0].grounds, grounds);
}

#[test]
fn failures_are_counted_and_compared_as_they_are() {
    let mut recording = lab();
    for round in recording
        .rounds
        .iter_mut()
        .filter(|round| round.variant == "rhai")
    {
        let failed = round.outcomes.passed / 200;
        round.outcomes.passed -= failed;
        round.outcomes.failed.timeout += failed;
    }
    for (text, ruling) in [
        ("rhai failures value < 1%", Ruling::Holds),
        ("rhai failures value < 0.4%", Ruling::Broken),
        ("rhai failures overhead < 1%", Ruling::Holds),
        ("rhai failures overhead < 0.4%", Ruling::Broken),
        ("same failures value <= 0%", Ruling::Holds),
    ] {
        let (found, reason) = ruled(&recording, text);
        assert_eq!(found, ruling, "{text}: {reason}");
        assert!(reason.contains(" of "), "{reason}");
    }
    // A variant with wrong responses has no number, but its failures are counted.
    for round in recording
        .rounds
        .iter_mut()
        .filter(|round| round.variant == "same")
    {
        round.outcomes.mismatched.body = round.outcomes.passed;
        round.outcomes.passed = 0;
    }
    let (found, reason) = ruled(&recording, "same failures value < 1%");
    assert_eq!(found, Ruling::Broken, "{reason}");
    assert!(reason.starts_with("100 %"), "{reason}");
}

#[test]
fn a_gate_on_nobody_is_no_gate_that_holds() {
    let (ruling, reason) = ruled(&lab(), "nobody mean overhead < 10ms");
    assert_eq!(ruling, Ruling::Undecided);
    assert!(reason.contains("no variant `nobody`"), "{reason}");
}

#[test]
fn an_undecided_gate_fails_unless_it_was_to_pass() {
    let gates = [
        gate("rhai mean overhead < 1ms"),
        gate("nobody mean overhead < 1ms"),
    ];
    for (undecided, passed) in [
        (Undecided::Fails, [true, false]),
        (Undecided::Passes, [true, true]),
    ] {
        let summary = Summary::of(&lab()).judged(&gates, undecided);
        let found: Vec<bool> = summary.gates.iter().map(|gate| gate.is_passed).collect();
        assert_eq!(found, passed, "{undecided:?}");
    }
    let broken = [gate("rhai mean overhead < 1us")];
    let summary = Summary::of(&lab()).judged(&broken, Undecided::Passes);
    assert!(!summary.gates[0].is_passed, "broken is broken");
}

#[test]
fn a_ratio_is_shown_as_a_ratio_and_a_share_as_a_share() {
    for (text, words) in [
        ("rhai mean ratio < 2", " times the baseline"),
        ("rhai mean overhead < 50%", " % of the baseline"),
        ("rhai mean overhead < 50ms", " ms"),
        // The figure has the unit of the limit.
        ("rhai mean overhead < 50000us", " us"),
    ] {
        let (ruling, reason) = ruled(&lab(), text);
        assert_eq!(ruling, Ruling::Holds, "{text}: {reason}");
        assert!(reason.ends_with(words), "{text}: {reason}");
    }
}

#[test]
fn no_page_recommends_a_gate_on_the_typical_latency_alone() {
    for (name, page) in [
        ("README.md", include_str!("../../../../README.md")),
        ("pr.md", include_str!("../../../../docs/pr.md")),
        ("sweep.md", include_str!("../../../../docs/sweep.md")),
        ("ci.md", include_str!("../../../../docs/ci.md")),
    ] {
        // Readers copy the text in fences. A printed result begins with the judged gate.
        for (index, fence) in page.split("```").enumerate() {
            let is_meant =
                |line: &&str| line.contains("typical overhead <") && !line.starts_with("- ");
            let has_typical = index % 2 == 1 && fence.lines().any(|line| is_meant(&line));
            let has_other = ["mean overhead <", "p95 overhead <"];
            let has_other = has_other.iter().any(|other| fence.contains(other));
            assert!(!has_typical || has_other, "{name}: {fence}");
        }
    }
}
