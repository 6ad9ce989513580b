use super::*;
use std::time::Duration;

use model::{FailureKind, FailureSample, InvalidKind, Pause};
use recording::sample::SampleRun;
use recording::{Proof, VariantStatus};

mod against;
mod another_baseline;
mod factors;
mod few;
mod one_start;
mod typical;
mod withheld;

/// The check that withholds the verdict on a variant.
fn withheld_by(summary: &Summary, variant: &str) -> CheckName {
    match &summary.variant(variant).unwrap().verdict {
        Verdict::Withheld { check, .. } => *check,
        other => panic!("{other:?}"),
    }
}

fn state(summary: &Summary, variant: &str, name: CheckName) -> CheckState {
    let row = summary.variant(variant).unwrap();
    let mut found = row.checks.iter().filter(|check| check.name == name);
    found
        .next()
        .unwrap_or_else(|| panic!("no check `{name}`"))
        .state
}

#[test]
fn the_planted_overhead_is_inside_its_interval() {
    for seed_rounds in [6, 8, 12] {
        let recording = SampleRun::open()
            .rounds(seed_rounds)
            .variant("plain", 700.0)
            .variant("slow", 770.0)
            .build();
        let summary = Summary::of(&recording);
        let mean = summary
            .variant("slow")
            .unwrap()
            .metric(Metric::Mean)
            .unwrap();
        let overhead = mean.overhead.as_ref().unwrap();
        let (low, high) = overhead
            .difference_low
            .zip(overhead.difference_high)
            .unwrap();
        assert!(low < 70.0 && 70.0 < high, "{low} to {high}");
        let (low, high) = overhead.ratio_low.zip(overhead.ratio_high).unwrap();
        assert!(low < 1.1 && 1.1 < high, "{low} to {high}");
    }
}

#[test]
fn several_variants_need_more_confidence_for_each() {
    let one = SampleRun::closed()
        .rounds(6)
        .variant("a", 700.0)
        .variant("b", 800.0)
        .build();
    let two = SampleRun::closed()
        .rounds(6)
        .variant("a", 700.0)
        .variant("b", 800.0)
        .variant("c", 900.0)
        .build();
    let (one, two) = (Summary::of(&one), Summary::of(&two));
    assert_eq!((one.comparisons, one.confidence_each), (1, 0.95));
    // Both differences have the same baseline, so they need less than Bonferroni's 0.975. The signed ranks of
    // six rounds reach at most 0.969.
    assert_eq!(two.comparisons, 2);
    let each = two.confidence_each;
    assert!((0.95..=0.975).contains(&each), "{each}");
    for row in one.variants[1..].iter().chain(&two.variants[1..]) {
        assert!(
            matches!(row.verdict, Verdict::Slower { .. }),
            "{:?}",
            row.verdict
        );
    }
}

#[test]
fn only_rounds_in_which_both_were_measured_are_paired() {
    let mut recording = SampleRun::closed()
        .variant("a", 700.0)
        .variant("b", 800.0)
        .build();
    recording
        .rounds
        .retain(|round| !(round.round == 3 && round.variant == "a"));
    let cut = recording
        .rounds
        .iter_mut()
        .find(|round| round.round == 5 && round.variant == "b");
    cut.unwrap().interrupted = true;
    let summary = Summary::of(&recording);
    let requests = summary.variants[1].metric(Metric::Requests).unwrap();
    assert_eq!(requests.rounds.len(), 7);
    assert_eq!(requests.overhead.as_ref().unwrap().rounds, 6);
}

#[test]
fn one_wrong_answer_takes_every_number_away() {
    let mut recording = SampleRun::closed()
        .variant("a", 700.0)
        .variant("b", 300.0)
        .build();
    let round = recording
        .rounds
        .iter_mut()
        .rfind(|round| round.variant == "b")
        .unwrap();
    round.outcomes.passed -= 1;
    round.outcomes.mismatched.graphql = 1;
    round.failures.push(FailureSample {
        kind: FailureKind::Graphql,
        reason: "the answer has `errors`: [{\"message\":\"no\"}]".to_owned(),
        at: Duration::from_micros(1200),
        request: "POST /graphql HTTP/1.1".to_owned(),
        answer: "{\"data\":null}".to_owned(),
    });
    let summary = Summary::of(&recording);
    let row = &summary.variants[1];
    assert!(!row.has_number() && row.distribution.is_none() && row.systems.is_empty());
    let Verdict::Invalid { kind, reason } = &row.verdict else {
        panic!("{:?}", row.verdict);
    };
    assert_eq!(*kind, Invalidity::from(InvalidKind::Mismatched));
    let Reason::Mismatched {
        mismatched,
        completed,
        first,
        ..
    } = reason
    else {
        panic!("{reason:?}");
    };
    assert_eq!((*mismatched, *completed), (1, 800_000));
    let first = first.as_deref().unwrap();
    assert_eq!(first, r#"the answer has `errors`: [{"message":"no"}]"#);
}

#[test]
fn a_variant_without_proof_has_no_number() {
    let mut recording = SampleRun::closed()
        .variant("a", 700.0)
        .variant("b", 800.0)
        .build();
    recording.variants[1].proof = Some(Proof::default());
    let summary = Summary::of(&recording);
    assert!(!summary.variants[1].has_number());
    let verdict = &summary.variants[1].verdict;
    let kind = Invalidity::from(InvalidKind::NotProven);
    assert!(
        matches!(verdict, Verdict::Invalid { kind: found, .. } if *found == kind),
        "{verdict:?}"
    );
}

#[test]
fn latency_deviation_counts_every_request_and_not_every_value() {
    // The distribution is log-normal with a deviation of 0.3 of its logarithm, so stdev = mean *
    // sqrt(exp(0.09) - 1).
    let recording = SampleRun::closed().rounds(20).variant("a", 700.0).build();
    let summary = Summary::of(&recording);
    let distribution = summary.variants[0].distribution.as_ref().unwrap();
    let expected = 700.0 * (0.09f64.exp() - 1.0).sqrt();
    assert_eq!(distribution.requests, 2_000_000);
    assert!((distribution.latency_us_stdev / expected - 1.0).abs() < 0.05);
}

#[test]
fn windows_cut_short_by_the_end_do_not_count_as_slow() {
    let mut recording = SampleRun::load_alone(false);
    let round = &mut recording.rounds[0];
    round.elapsed_us = 1_050_000;
    round.windows.width_us = 100_000;
    round.windows.completed = [vec![500; 10], vec![3]].concat();
    let windows = Summary::of(&recording).variants[0]
        .rate_windows
        .clone()
        .unwrap();
    assert_eq!(windows.windows, 10);
    assert_eq!(windows.requests_per_s_stdev, Some(0.0));
    assert_eq!(windows.requests_per_s_max, 5000.0);
}

#[test]
fn a_clean_recording_passes_every_check() {
    for sample in [SampleRun::closed(), SampleRun::open()] {
        let summary = Summary::of(&sample.variant("a", 700.0).build());
        for check in &summary.variants[0].checks {
            assert_eq!(
                check.state,
                CheckState::Ok,
                "{}: {:?}",
                check.name,
                check.facts
            );
        }
    }
}

#[test]
fn lost_time_breaks_littles_law_and_withholds_the_verdict() {
    let mut recording = SampleRun::closed()
        .variant("a", 700.0)
        .variant("b", 800.0)
        .build();
    for round in recording
        .rounds
        .iter_mut()
        .filter(|round| round.variant == "b")
    {
        round.elapsed_us *= 2;
    }
    let summary = Summary::of(&recording);
    assert_eq!(
        state(&summary, "b", CheckName::LittlesLaw),
        CheckState::Failed
    );
    assert_eq!(state(&summary, "a", CheckName::LittlesLaw), CheckState::Ok);
    assert!(!summary.variants[1].has_number());
    assert_eq!(withheld_by(&summary, "b"), CheckName::LittlesLaw);
    assert_eq!(summary.variants[1].remark, Some(Remark::Estimate));
}

#[test]
fn a_rate_that_was_not_reached_is_named() {
    let mut recording = SampleRun::open().variant("a", 700.0).build();
    for round in &mut recording.rounds {
        round.outcomes.passed -= round.planned / 5;
        round.outcomes.missed = round.planned / 5;
        round.waited = round.planned / 4;
    }
    let summary = Summary::of(&recording);
    assert_eq!(state(&summary, "a", CheckName::Rate), CheckState::Failed);
    assert_eq!(state(&summary, "a", CheckName::Missed), CheckState::Failed);
    assert_eq!(withheld_by(&summary, "a"), CheckName::Missed);
}

#[test]
fn late_sends_without_a_free_connection_are_not_blamed_on_the_generator() {
    let mut recording = SampleRun::open().rounds(1).variant("a", 700.0).build();
    let round = &mut recording.rounds[0];
    let mut lateness = stats::Histogram::new();
    lateness.record_n_ns(20_000, 1900);
    lateness.record_n_ns(80_000_000, 100);
    round.lateness_ns_hdr = recording::Hdr::of(&lateness);
    assert_eq!(
        state(&Summary::of(&recording), "a", CheckName::Lateness),
        CheckState::Failed
    );
    recording.rounds[0].waited = 100;
    assert_eq!(
        state(&Summary::of(&recording), "a", CheckName::Lateness),
        CheckState::Ok
    );
}

#[test]
fn failures_pauses_and_a_busy_generator_are_weak_until_they_are_many() {
    let mut recording = SampleRun::closed().rounds(1).variant("a", 700.0).build();
    let round = &mut recording.rounds[0];
    round.outcomes.passed -= 500;
    round.outcomes.failed.timeout = 500;
    round.generator.cpu = Duration::from_micros(round.elapsed_us * 95 / 100);
    round.generator.pauses = vec![Pause {
        at: Duration::from_millis(1),
        length: Duration::from_micros(round.elapsed_us / 100),
    }];
    let summary = Summary::of(&recording);
    for name in [
        CheckName::Failures,
        CheckName::GeneratorCpu,
        CheckName::GeneratorPauses,
    ] {
        assert_eq!(state(&summary, "a", name), CheckState::Weak, "{name}");
    }
    recording.rounds[0].outcomes.failed.timeout = 1500;
    recording.rounds[0].generator.pauses[0].length *= 10;
    let summary = Summary::of(&recording);
    for name in [CheckName::Failures, CheckName::GeneratorPauses] {
        assert_eq!(state(&summary, "a", name), CheckState::Failed, "{name}");
    }
}

#[test]
fn cpu_is_known_only_when_every_system_could_be_read() {
    let mut recording = SampleRun::closed().rounds(2).variant("a", 700.0).build();
    for round in &mut recording.rounds {
        let mut database = round.systems[0].clone();
        database.name = "database".to_owned();
        database.cpu_us = None;
        round.systems.push(database);
    }
    let summary = Summary::of(&recording);
    let row = &summary.variants[0];
    assert!(row.metric(Metric::Cpu).is_none());
    assert!(row.metric(Metric::Memory).is_some());
    assert!(row.systems[0].cpu_us_per_request.is_some());
    assert!(row.systems[1].cpu_us_per_request.is_none());
}

#[test]
fn a_single_load_keeps_its_figures_even_when_answers_were_wrong() {
    let mut recording = SampleRun::load_alone(false);
    recording.rounds[0].outcomes.passed -= 5;
    recording.rounds[0].outcomes.mismatched.status = 5;
    recording.rounds[0].interrupted = true;
    let summary = Summary::of(&recording);
    assert!(summary.variants[0].has_number());
    assert!(summary.variants[0].verdict.is_invalid());
}

#[test]
fn status_classes_add_up() {
    let mut recording = SampleRun::load_alone(false);
    recording.rounds[0].statuses =
        [(101, 1), (200, 5), (204, 2), (404, 3), (599, 1), (700, 9)].into();
    let classes = Summary::of(&recording).variants[0].status_classes();
    assert_eq!(classes.map(|(_, count)| count), [1, 7, 0, 3, 1, 9]);
}

#[test]
fn a_disturbed_measurement_is_kept_and_counts_for_nothing() {
    let calm = SampleRun::closed()
        .variant("plain", 723.0)
        .variant("slow", 800.0)
        .build();
    let mut recording = calm.clone();
    let mut disturbed = recording.rounds[0].clone();
    disturbed.disturbed = true;
    disturbed.elapsed_us *= 3;
    disturbed.generator.pauses.push(Pause {
        at: Duration::ZERO,
        length: Duration::from_micros(disturbed.elapsed_us / 2),
    });
    assert!((disturbed.paused_share() - 0.5).abs() < 1e-3);
    recording.rounds.insert(0, disturbed);
    let (summary, undisturbed) = (Summary::of(&recording), Summary::of(&calm));
    assert_eq!(summary.measurements_repeated, 1);
    for (row, expected) in summary.variants.iter().zip(&undisturbed.variants) {
        assert_eq!(row.metrics, expected.metrics);
        assert_eq!(row.checks, expected.checks);
        assert_eq!(row.verdict, expected.verdict);
    }
}

#[test]
fn in_slices_the_systems_of_a_variant_cost_together_what_it_costs() {
    let mut recording = SampleRun::closed().variant("a", 700.0).build();
    for round in &mut recording.rounds {
        round.slices = Some(recording::SlicesRecord {
            length_us: 300_000,
            uncounted_us: 150_000,
            gap_us: 10_000,
            took_us: round.elapsed_us * 4,
            discarded: Outcomes {
                passed: round.outcomes.passed,
                ..Outcomes::default()
            },
        });
    }
    let summary = Summary::of(&recording);
    let row = &summary.variants[0];
    let of_systems: f64 = row
        .systems
        .iter()
        .filter_map(|system| Some(system.cpu_us_per_request.as_ref()?.value))
        .sum();
    let whole = row.metric(Metric::Cpu).unwrap().value;
    assert!(
        (of_systems / whole - 1.0).abs() < 1e-9,
        "{of_systems} {whole}"
    );
}
