//! Effects of factors.

use super::*;
use crate::sample::{SQUARE, contains, cube, factors, many, square};
use crate::summary::EffectSummary;

#[test]
fn planted_effects_and_their_interaction_are_in_their_intervals() {
    let recording = square(SampleRun::side_by_side().rounds(12));
    let found = factors(&recording);
    let names: Vec<String> = found
        .effects
        .iter()
        .map(|it| it.factors.join(" × "))
        .collect();
    assert_eq!(names, ["log", "tls", "log × tls"]);
    // A main effect has half of the interaction.
    for (effect, planted) in found.effects.iter().zip([40.0, 120.0, 40.0]) {
        assert!(contains(effect, Metric::Mean, planted), "{effect:?}");
    }
    for (effect, planted) in found.alone.iter().zip([20.0, 100.0]) {
        assert!(contains(effect, Metric::Mean, planted), "{effect:?}");
    }
    assert_eq!(found.variants, 4);
    assert!(found.missing.is_empty());
}

#[test]
fn an_effect_is_the_contrast_of_the_variants_in_each_round() {
    // In turn, no figure is adjusted, so the effects can be computed from the figures of the report.
    let recording = square(SampleRun::open().rounds(8));
    let summary = Summary::of(&recording);
    let rounds = |name: &str| {
        let figure = summary.variant(name).unwrap().metric(Metric::Mean);
        figure.unwrap().rounds.clone()
    };
    let [none, log, tls, both] = SQUARE.map(rounds);
    let by_hand = |of: fn([f64; 4]) -> f64| {
        let each = (0..8).map(|at| of([none[at], log[at], tls[at], both[at]]));
        stats::hodges_lehmann(&each.collect::<Vec<f64>>()).unwrap()
    };
    let expected = [
        by_hand(|[none, log, tls, both]| ((log - none) + (both - tls)) / 2.0),
        by_hand(|[none, log, tls, both]| ((tls - none) + (both - log)) / 2.0),
        by_hand(|[none, log, tls, both]| both - log - tls + none),
    ];
    let found = summary.factors.unwrap();
    for (effect, expected) in found.effects.iter().zip(expected) {
        let value = effect.metrics[&Metric::Mean].value;
        assert!((value - expected).abs() < 1e-9, "{value} {expected}");
    }
    let alone = found.alone[0].metrics[&Metric::Mean].value;
    let row = summary.variants[1].metric(Metric::Mean).unwrap();
    let difference = row.overhead.as_ref().unwrap().difference;
    assert!((alone - difference).abs() < 1e-9, "{alone} {difference}");
}

#[test]
fn side_by_side_the_cost_alone_is_the_difference_of_the_main_table() {
    let recording = square(SampleRun::side_by_side().rounds(12));
    let summary = Summary::of(&recording);
    let found = summary.factors.as_ref().unwrap();
    for (effect, row) in found.alone.iter().zip(&summary.variants[1..]) {
        for metric in [Metric::Typical, Metric::Cpu] {
            let overhead = row.metric(metric).unwrap().overhead.as_ref().unwrap();
            assert!(overhead.adjusted_by > 0);
            let alone = effect.metrics[&metric].value;
            assert!((alone - overhead.difference).abs() < 1e-9, "{metric:?}");
        }
    }
}

#[test]
fn three_factors_have_all_interactions() {
    let found = factors(&cube());
    assert_eq!((found.effects.len(), found.alone.len()), (7, 3));
    let planted = [20.0, 0.0, 100.0, 0.0, 0.0, 0.0, 0.0];
    for (effect, planted) in found.effects.iter().zip(planted) {
        assert!(contains(effect, Metric::Mean, planted), "{effect:?}");
        assert_eq!(effect.confounded, None);
    }
    // Four pairs of variants tell more than one.
    let width = |effect: &EffectSummary| {
        let figure = &effect.metrics[&Metric::Mean];
        figure.high.unwrap() - figure.low.unwrap()
    };
    assert!(width(&found.effects[0]) < width(&found.alone[0]));
}

#[test]
fn many_factors_have_interactions_of_two() {
    let found = factors(&many(5));
    assert_eq!((found.effects.len(), found.alone.len()), (15, 5));
}

#[test]
fn variants_in_groups_are_each_relative_to_the_baseline_of_their_group() {
    let mut recording = square(SampleRun::side_by_side().rounds(12));
    let group = |variants: &[&str]| variants.iter().map(|it| (*it).to_owned()).collect();
    recording.measured.as_mut().unwrap().groups = vec![
        group(&["plain", "log on"]),
        group(&["plain", "tls on", "log on, tls on"]),
    ];
    let mut again = Vec::new();
    for round in &mut recording.rounds {
        let in_second = round.variant.contains("tls");
        round.group = Some(u32::from(in_second));
        if round.variant == "plain" {
            // The second group ran while the machine was slower. Its baseline shows it.
            let mut second = round.clone();
            second.group = Some(1);
            again.push(second);
        }
    }
    recording.rounds.extend(again);
    let found = factors(&recording);
    for (effect, planted) in found.effects.iter().zip([40.0, 120.0, 40.0]) {
        assert!(contains(effect, Metric::Mean, planted), "{effect:?}");
    }
}
