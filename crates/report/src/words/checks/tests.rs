//! Tests of the sentences of checks.

use analysis::sample::late_on_a_busy_machine;
use analysis::summary::{CheckState, Summary};

use super::*;

/// The text of a check beyond its limit.
fn words(name: CheckName, figure: f64, facts: CheckFacts) -> String {
    with(name, figure, facts, Vec::new())
}

fn with(name: CheckName, figure: f64, facts: CheckFacts, notes: Vec<CheckNote>) -> String {
    text(&Check {
        name,
        state: CheckState::Weak,
        figure,
        weak_beyond: 0.05,
        failed_beyond: None,
        facts,
        notes,
    })
}

#[test]
fn a_limit_and_its_system_are_named() {
    let system = "server".to_owned();
    let facts = CheckFacts::LimitOfSystem { system };
    insta::assert_snapshot!(words(CheckName::Throttling, 0.8, facts), @"`server` was stopped by its processor limit in 80 % of the periods, so its latency depends on the limit");
}

#[test]
fn busy_cores_are_told_with_their_time() {
    let facts = |before, meanwhile| CheckFacts::BusyCores { before, meanwhile };
    let both = words(CheckName::MachineLoad, 0.5, facts(Some(0.5), Some(0.01)));
    insta::assert_snapshot!(both, @"50 % of all cores' time was used before the run, other programs used 1 % of it during the measurements");
    let meanwhile = words(CheckName::MachineLoad, 0.4, facts(None, Some(0.4)));
    insta::assert_snapshot!(meanwhile, @"other programs used 40 % of all cores' time during the measurements");
}

#[test]
fn cycles_that_were_left_out_are_told_with_their_causes() {
    let facts = CheckFacts::LeftOut {
        cycles: 32,
        host: 32,
        generator: 0,
        neighbor: 0,
        overrun: 0,
        is_sliced: true,
    };
    insta::assert_snapshot!(words(CheckName::LeftOut, 0.2, facts), @"20 % of the cycles are in no figure (the host took a core 32). Use a quieter machine or a shorter `slice`");
}

#[test]
fn a_silence_is_told_with_its_time() {
    let silence = |round| CheckFacts::Silence {
        round,
        from_us: 800_000,
        length_us: 2_200_000,
        failed: 88,
    };
    insta::assert_snapshot!(words(CheckName::StoppedAnswering, 0.7, silence(None)), @"no answer came after 800 ms, for the last 2.2 s of the load, and 88 requests failed");
    let third = words(CheckName::StoppedAnswering, 0.7, silence(Some(2)));
    assert!(third.contains("after 800 ms of round 3,"), "{third}");
}

#[test]
fn drift_within_a_round_is_told_with_its_meaning() {
    let facts = |is_rising| CheckFacts::LastThird {
        factor: 1.56,
        is_rising,
    };
    let slower = words(CheckName::DriftWithinRounds, 0.5, facts(true));
    assert!(slower.contains("is 1.560 times"), "{slower}");
    assert!(
        slower.contains("It slows down under load"),
        "the check is beyond its limit: {slower}"
    );
    let faster = words(CheckName::DriftWithinRounds, 0.3, facts(false));
    assert!(faster.contains("longer `warmup`"), "{faster}");
    let even = words(CheckName::DriftWithinRounds, 0.01, facts(true));
    assert!(even.ends_with("of the first third"), "{even}");
}

#[test]
fn a_generator_is_named_with_its_node() {
    let generator = GeneratorName {
        shard: "2/2".to_owned(),
        pod: "g-2".to_owned(),
        node: "node2".to_owned(),
    };
    let text = words(
        CheckName::GeneratorLateness,
        5_000.0,
        CheckFacts::Latest { generator },
    );
    assert!(
        text.ends_with("The latest was generator 2/2 (pod `g-2` on node `node2`)"),
        "{text}"
    );
}

#[test]
fn pauses_and_stalls_are_told_with_the_longest() {
    let pauses = CheckFacts::Pauses {
        count: 3,
        longest_us: 1_000_000,
    };
    insta::assert_snapshot!(words(CheckName::GeneratorPauses, 0.1, pauses), @"the generator did not run although work was due: 3 pauses, 10 % of the time, longest 1.00 s");
    let longest = LongestStall {
        length_us: 300_000,
        round: 0,
        at_us: 2_000_000,
    };
    let stalls = CheckFacts::Stalls {
        count: 1,
        longest: Some(longest),
    };
    let stalls = words(CheckName::TargetStalls, 0.1, stalls);
    assert!(
        stalls.ends_with("longest 300 ms or more (2 s into round 1)"),
        "{stalls}"
    );
}

#[test]
fn circumstances_follow_the_figure() {
    let notes = vec![CheckNote::NoRealtime, CheckNote::SameAsBaseline];
    let facts = CheckFacts::Lateness { waited: 1_200 };
    insta::assert_snapshot!(with(CheckName::Lateness, 2_240.0, facts, notes), @"99 % of the sends left within 2.24 ms of their due. 1,200 more waited for a free connection. The generator had no real-time priority. The baseline had the same, so only the intervals are wider");
}

#[test]
fn a_gate_on_a_withheld_verdict_says_why() {
    let gates = analysis::sample::gates_on_the_mean();
    let summary = Summary::of(&late_on_a_busy_machine());
    let summary = summary.judged(&gates, analysis::gate::Undecided::Fails);
    insta::assert_snapshot!(crate::words::gate_reason(&summary.gates[0]), @"undecided: the verdict on `b` is withheld: other programs used 75 % of the cores (failed check: lateness)");
}
