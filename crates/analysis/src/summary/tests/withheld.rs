//! Tests that a withheld verdict leaves an estimate with its cause.

use super::*;
use crate::gate::{Grounds, Undecided};
use crate::sample::{gates_on_the_mean, late_on_a_busy_machine, later, two};

#[test]
fn a_gate_on_it_is_undecided_and_says_why() {
    let recording = late_on_a_busy_machine();
    let summary = Summary::of(&recording).judged(&gates_on_the_mean(), Undecided::Fails);
    let gate = &summary.gates[0];
    assert!(!gate.is_passed);
    let grounds = Grounds::NoNumber {
        variant: "b".to_owned(),
        verdict: summary.variant("b").unwrap().verdict.clone(),
    };
    assert_eq!(gate.grounds, grounds);
    assert_eq!(withheld_by(&summary, "b"), CheckName::MachineLoad);
}

#[test]
fn side_by_side_equal_lateness_asks_for_care_and_a_difference_withholds() {
    let mut recording = two(SampleRun::side_by_side());
    recording.rounds.iter_mut().for_each(|it| later(it, 2_240));
    let summary = Summary::of(&recording);
    for name in ["a", "b"] {
        assert_eq!(state(&summary, name, CheckName::Lateness), CheckState::Weak);
    }
    assert_eq!(
        state(&summary, "b", CheckName::LatenessApart),
        CheckState::Ok
    );
    assert!(matches!(
        summary.variants[1].verdict,
        Verdict::Slower { .. }
    ));
    // 60 us exceed half of the interval's width of about 80 us.
    for round in recording.rounds.iter_mut().filter(|it| it.variant == "b") {
        later(round, 60);
    }
    let summary = Summary::of(&recording);
    let check = |summary: &Summary| {
        let checks = summary.variants[1].checks.iter();
        let apart = |it: &&Check| it.name == CheckName::LatenessApart;
        checks.clone().find(apart).cloned().unwrap()
    };
    let found = check(&summary);
    assert_eq!(found.state, CheckState::Failed, "{found:?}");
    assert!((60.0..63.0).contains(&found.figure), "{found:?}");
    assert_eq!(withheld_by(&summary, "b"), CheckName::LatenessApart);
    // A load that opens a connection for each request waits for it. This wait is a part of the measurement.
    for round in recording.rounds.iter_mut().filter(|it| it.variant == "b") {
        round.connect_ns_hdr = round.latency_ns_hdr.clone();
    }
    let summary = Summary::of(&recording);
    let mut checks = summary.variants[1].checks.iter();
    assert!(checks.all(|it| it.name != CheckName::LatenessApart));
}

#[test]
fn in_turn_the_same_lateness_withholds() {
    let mut recording = two(SampleRun::open());
    recording.rounds.iter_mut().for_each(|it| later(it, 2_240));
    let summary = Summary::of(&recording);
    assert_eq!(
        state(&summary, "b", CheckName::Lateness),
        CheckState::Failed
    );
}

#[test]
fn side_by_side_pauses_of_both_ask_for_care_and_those_of_one_withhold() {
    let disturb = |round: &mut RoundRecord| {
        let length = Duration::from_micros(round.elapsed_us / 20);
        round.generator.pauses = vec![Pause {
            at: Duration::from_secs(1),
            length,
        }];
        let waited = Duration::from_micros(round.elapsed_us * 7 / 10);
        round.generator.waited_for_cpu = Some(waited);
    };
    let names = [CheckName::GeneratorPauses, CheckName::GeneratorStarved];
    let mut recording = two(SampleRun::side_by_side());
    recording.rounds.iter_mut().for_each(disturb);
    let summary = Summary::of(&recording);
    for name in names {
        assert_eq!(state(&summary, "b", name), CheckState::Weak);
    }
    assert!(summary.variants[1].has_number());
    let mut recording = two(SampleRun::side_by_side());
    let own = recording.rounds.iter_mut().filter(|it| it.variant == "b");
    own.for_each(disturb);
    let summary = Summary::of(&recording);
    for name in names {
        assert_eq!(state(&summary, "b", name), CheckState::Failed);
    }
}
