use model::Metric;
use recording::sample::SampleRun;

use super::*;
use crate::compare::{Comparison, Operand, OperandSource};
use crate::sample::in_groups;

fn compared(a: &Recording, of_a: Option<&str>, b: &Recording, of_b: Option<&str>) -> Comparison {
    let operand = |label: &str, recording: &Recording, variant: Option<&str>| Operand {
        label: label.to_owned(),
        source: OperandSource::Recording(Box::new(recording.clone())),
        variant: variant.map(str::to_owned),
    };
    Comparison::of(&operand("a", a, of_a), &operand("b", b, of_b), false).expect("comparable")
}

#[test]
fn a_difference_is_from_the_baseline_of_the_same_group() {
    let summary = Summary::of(&in_groups());
    for name in ["light", "heavy"] {
        let mean = summary.variant(name).unwrap().metric(Metric::Mean).unwrap();
        let overhead = mean.overhead.as_ref().unwrap();
        assert_eq!(overhead.rounds, 8);
        let difference = overhead.difference;
        assert!((difference - 100.0).abs() < 30.0, "{name}: {difference}");
    }
}

#[test]
fn a_baseline_of_several_groups_has_one_figure_a_round() {
    let summary = Summary::of(&in_groups());
    let plain = summary.variant("plain").unwrap();
    assert_eq!(plain.rounds, 8);
    let mean = plain.metric(Metric::Mean).unwrap();
    assert_eq!(mean.rounds.len(), 8);
    assert!((mean.value - 1200.0).abs() < 50.0, "{}", mean.value);
    let memory = plain.systems[0].memory_peak_bytes.as_ref().unwrap();
    assert_eq!(memory.rounds.len(), 8);
}

#[test]
fn variants_of_different_groups_are_not_comparable() {
    let recording = in_groups();
    let found = compared(&recording, Some("light"), &recording, Some("heavy"));
    assert_eq!(
        found.obstacles,
        ["light and heavy were measured in different groups"]
    );
    let found = compared(&recording, Some("plain"), &recording, Some("heavy"));
    assert!(found.obstacles.is_empty(), "{:?}", found.obstacles);
    let difference = found.rows[0].metrics[&Metric::Mean].b.overhead.as_ref();
    let difference = difference.unwrap().difference;
    assert!((difference - 100.0).abs() < 30.0, "{difference}");
}

#[test]
fn recordings_with_other_groups_are_not_comparable() {
    let grouped = in_groups();
    let mut together = grouped.clone();
    "2026-02-01T11:00:00Z".clone_into(&mut together.started_at);
    if let Some(measured) = &mut together.measured {
        measured.groups.clear();
    }
    let found = compared(&grouped, None, &together, None);
    assert_eq!(
        found.obstacles,
        ["variants up together: light; heavy in A, all in B"]
    );
}

#[test]
fn a_system_that_all_share_is_said_to_be_in_no_figure() {
    let mut recording = SampleRun::open()
        .variant("plain", 700.0)
        .variant("other", 700.0)
        .build();
    for variant in &mut recording.variants {
        variant.systems[0].shared = true;
    }
    let sentences = sentences(&Summary::of(&recording));
    insta::assert_snapshot!(sentences.join("\n"), @"All variants that ran together shared one `server`. No figure contains its processor time or memory.");
}

#[test]
fn systems_on_one_core_are_said_and_other_placements_are_not_comparable() {
    let free = SampleRun::open()
        .variant("plain", 700.0)
        .variant("other", 700.0)
        .build();
    let mut placed = free.clone();
    "2026-02-01T11:00:00Z".clone_into(&mut placed.started_at);
    for round in &mut placed.rounds {
        round.cores.insert("server".to_owned(), 1);
    }
    let said = sentences(&Summary::of(&placed)).join("\n");
    assert!(
        said.starts_with("Each process of `server` ran on one core"),
        "{said}"
    );
    assert_eq!(
        compared(&placed, None, &free, None).obstacles,
        ["systems on one core each: server in A, none in B"]
    );
    assert!(sentences(&Summary::of(&free)).is_empty());
}
