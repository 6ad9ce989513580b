//! Verdicts and their meaning, in words.

use analysis::sample::{
    ROW, beside, chain, cube, factors, few, later, many, planted_in, stalls, two,
};

use super::*;
use crate::words::{in_words, verdict_text};

fn verdicts(recording: &Recording) -> String {
    let summary = Summary::of(recording);
    let line = |row: &VariantSummary| format!("{}: {}\n", row.name, verdict_text(row));
    summary.variants.iter().map(line).collect()
}

#[test]
fn a_closed_loop_is_judged_by_requests_per_second() {
    let recording = SampleRun::closed()
        .variant("plain", 723.0)
        .variant("same", 723.0)
        .variant("quick", 600.0)
        .variant("slow", 800.0)
        .build();
    insta::assert_snapshot!(verdicts(&recording), @"
    plain: baseline
    same: no difference shown
    quick: 18.9 % to 22.3 % more requests/s
    slow: 8.7 % to 10.6 % fewer requests/s
    ");
}

#[test]
fn an_open_loop_is_judged_by_mean_latency() {
    let recording = SampleRun::open()
        .variant("plain", 723.0)
        .variant("same", 723.0)
        .variant("quick", 600.0)
        .variant("slow", 800.0)
        .build();
    insta::assert_snapshot!(verdicts(&recording), @"
    plain: baseline
    same: no difference shown
    quick: faster by 112 to 131 us
    slow: slower by 60 to 89 us
    ");
}

#[test]
fn a_variant_that_was_not_measured_is_a_row_with_its_reason() {
    let mut recording = SampleRun::closed()
        .variant("a", 700.0)
        .variant("b", 800.0)
        .build();
    recording.rounds.retain(|round| round.variant == "a");
    recording.variants[1].status = VariantStatus::Invalid {
        kind: InvalidKind::ProgramMissing,
        reason: "`dotnet` is not installed".to_owned(),
    };
    let summary = Summary::of(&recording);
    assert_eq!(summary.comparisons, 0);
    assert_eq!(
        crate::words::short(&summary.variants[1].verdict),
        "invalid: program missing"
    );
    insta::assert_snapshot!(verdicts(&recording), @"
    a: baseline
    b: NOT RUN: `dotnet` is not installed
    ");
}

#[test]
fn without_a_valid_baseline_nothing_is_compared() {
    let mut recording = SampleRun::closed()
        .variant("a", 700.0)
        .variant("b", 800.0)
        .build();
    recording.variants[0].proof = None;
    let summary = Summary::of(&recording);
    assert!(summary.variants[1].has_number());
    assert!(
        summary.variants[1]
            .metric(Metric::P50)
            .unwrap()
            .overhead
            .is_none()
    );
    insta::assert_snapshot!(verdicts(&recording), @"
    a: invalid: no proof before the load shows that it does its work
    b: not compared: the baseline has no number
    ");
}

#[test]
fn an_open_loop_side_by_side_is_judged_by_typical_latency() {
    let recording = beside(&[
        ("plain", 723.0),
        ("same", 723.0),
        ("quick", 600.0),
        ("slow", 760.0),
    ]);
    assert_eq!(Summary::of(&recording).headline, Metric::Typical);
    insta::assert_snapshot!(verdicts(&recording), @"
    plain: baseline
    same: no difference shown
    quick: faster by 94 to 114 us
    slow: slower by 16 to 44 us
    ");
}

#[test]
fn fewer_than_six_rounds_never_claim() {
    let recording = SampleRun::closed()
        .rounds(5)
        .variant("plain", 700.0)
        .variant("slow", 7000.0)
        .build();
    insta::assert_snapshot!(verdicts(&recording), @"
    plain: baseline
    slow: not enough rounds (6 needed, 5 measured)
    ");
}

#[test]
fn an_invalid_variant_and_its_check_are_named() {
    let mut recording = SampleRun::closed()
        .variant("a", 700.0)
        .variant("b", 800.0)
        .build();
    for round in recording.rounds.iter_mut().filter(|it| it.variant == "b") {
        round.elapsed_us *= 2;
    }
    let summary = Summary::of(&recording);
    insta::assert_snapshot!(verdict_text(&summary.variants[1]), @"no verdict: connections and throughput × mean latency differ by 50 %; ~-56.2 ±0.3 % requests/s, not trusted");
    recording.variants[1].proof = Some(Proof::default());
    let summary = Summary::of(&recording);
    insta::assert_snapshot!(verdict_text(&summary.variants[1]), @"invalid: no proof before the load shows that it does its work");
    recording.rounds[1].outcomes.mismatched.graphql = 1;
    let summary = Summary::of(&recording);
    insta::assert_snapshot!(verdict_text(&summary.variants[1]), @"invalid: 1 of 800,001 answers mismatched (graphql 1)");
}

#[test]
fn a_rate_that_was_not_reached_is_told() {
    let mut recording = SampleRun::open().variant("a", 700.0).build();
    for round in &mut recording.rounds {
        round.outcomes.passed -= round.planned / 5;
        round.outcomes.missed = round.planned / 5;
        round.waited = round.planned / 4;
    }
    let summary = Summary::of(&recording);
    insta::assert_snapshot!(verdict_text(&summary.variants[0]), @"no verdict: 20 % of the planned requests were never sent");
}

#[test]
fn a_difference_in_lateness_is_told_with_the_estimate() {
    let mut recording = two(SampleRun::side_by_side());
    recording.rounds.iter_mut().for_each(|it| later(it, 2_240));
    for round in recording.rounds.iter_mut().filter(|it| it.variant == "b") {
        later(round, 60);
    }
    let summary = Summary::of(&recording);
    insta::assert_snapshot!(verdict_text(&summary.variants[1]), @"no verdict: its sends and the baseline's differ in lateness by at least 61.2 us; ~+77 us (72 to 84), not trusted");
}

#[test]
fn savings_of_few_requests_are_in_the_verdict() {
    // The baseline has a cost for a tenth of its requests that the variant does not have.
    let recording = planted_in("one by one", 10, |value_ns| value_ns + 20_000_000);
    let (summary, _) = few(&recording);
    insta::assert_snapshot!(verdict_text(summary.variant(ROW).unwrap()), @"faster by 3.2 to 6.9 us; mean -2,000 us (about a tenth of the requests save more)");
}

#[test]
fn the_words_name_the_variant_that_another_is_compared_with() {
    let summary = Summary::of(&chain());
    let words = in_words(summary.variant("log").unwrap()).unwrap();
    assert!(words.contains("`proxy`'s"), "{words}");
}

#[test]
fn a_planted_difference_is_told() {
    let summary = Summary::of(&beside(&[("plain", 700.0), ("slow", 770.0)]));
    let words = in_words(summary.variant("slow").unwrap()).unwrap();
    insta::assert_snapshot!(words, @"`slow` costs a typical request 59 us (55 to 67), some 9.7 % of the baseline's typical 610 us");
}

#[test]
fn a_cost_of_the_slowest_tenth_is_told_by_the_mean() {
    let summary = Summary::of(&stalls());
    let row = summary.variant("stalls").unwrap();
    assert_eq!(
        verdict_text(row),
        "no difference shown; mean +160 us (about a tenth of the requests pay)"
    );
    let words = in_words(row).unwrap();
    let (_, mean) = words.split_once(". On average").unwrap();
    insta::assert_snapshot!(mean, @", slow requests included, it costs 157 us (154 to 164): about a tenth of the requests pay. The slowest quarter of the requests takes 635 us (626 to 643) longer");
}

#[test]
fn three_factors_without_an_interaction_are_told() {
    let words = crate::words::effects(
        &factors(&cube()),
        Metric::Typical,
        model::Unit::Microseconds,
    )
    .unwrap();
    assert!(
        words.contains("over all levels of the other factors"),
        "{words}"
    );
    assert!(
        words.contains("no interaction shown for 3 of 3 pairs"),
        "{words}"
    );
}

#[test]
fn many_factors_have_a_short_sentence() {
    let words = crate::words::effects(
        &factors(&many(5)),
        Metric::Typical,
        model::Unit::Microseconds,
    )
    .unwrap();
    let named = words.split(';').next().unwrap();
    assert!(named.contains("`f4` costs"), "{words}");
    assert!(!named.contains("`f0`"), "{words}");
    assert!(named.ends_with("and 1 more of the factors"), "{words}");
}
