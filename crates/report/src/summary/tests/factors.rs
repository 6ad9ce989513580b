//! Effects of factors.

use super::*;
use crate::recording::{FactorText, FactorsText, GeneratorText};
use crate::summary::{EffectSummary, FactorsSummary};

fn text(names: &[&str], variants: &[&str]) -> FactorsText {
    let owned = |word: &&str| (*word).to_owned();
    FactorsText {
        factors: names
            .iter()
            .map(|name| FactorText {
                name: owned(name),
                setting: format!("server.{name}"),
                levels: ["off", "on"].map(str::to_owned),
            })
            .collect(),
        generators: Vec::new(),
        variants: variants.iter().map(owned).collect(),
    }
}

const SQUARE: [&str; 4] = ["plain", "log on", "tls on", "log on, tls on"];

/// Two factors with 20 us and 100 us, and 40 us more for both.
fn square(sample: Sample) -> Recording {
    let costs = [700.0, 720.0, 800.0, 860.0];
    let named = SQUARE.into_iter().zip(costs);
    let sample = named.fold(sample, |sample, (name, us)| sample.variant(name, us));
    let mut recording = sample.build();
    let lab = recording.lab.as_mut().unwrap();
    lab.factors = Some(text(&["log", "tls"], &SQUARE));
    recording
}

fn factors(recording: &Recording) -> FactorsSummary {
    Summary::of(recording).factors.unwrap()
}

fn contains(effect: &EffectSummary, metric: Metric, planted: f64) -> bool {
    let figure = &effect.metrics[&metric];
    let (low, high) = figure.low.zip(figure.high).unwrap();
    low < planted && planted < high
}

#[test]
fn planted_effects_and_their_interaction_are_in_their_intervals() {
    let recording = square(Sample::side_by_side().rounds(12));
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
    let recording = square(Sample::open().rounds(8));
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
    let recording = square(Sample::side_by_side().rounds(12));
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
fn the_first_sentence_and_every_table_have_the_effects() {
    let recording = square(Sample::side_by_side().rounds(12));
    let summary = Summary::of(&recording);
    insta::assert_snapshot!(crate::answer::sentence(&recording, &summary), @"
    For a typical request, `log` alone costs 17 us (10 to 23), `tls` alone costs 86 us (78 to 94); both together cost 31 us (24 to 41) more, at 4,000 requests/s.
    ");
    for (format, text) in renderings(&recording, &summary) {
        let is_shown = ["text", "full", "markdown", "html", "csv"].contains(&format);
        assert_eq!(text.contains("log: off → on"), is_shown, "{format}");
        let has_both = text.contains("log × tls");
        assert_eq!(has_both, is_shown, "{format}");
    }
    let json: serde_json::Value = serde_json::from_str(&crate::json(&recording, &summary)).unwrap();
    let effect = &json["summary"]["factors"]["effects"][2];
    assert_eq!(effect["factors"], serde_json::json!(["log", "tls"]));
    assert_eq!(effect["metrics"]["latency_us_typical"]["claim"], "higher");
    let csv = crate::csv(&recording, &summary);
    let fields = csv.lines().find(|line| line.contains("effect: log × tls"));
    assert_eq!(fields.unwrap().split(',').count(), 15, "{csv}");
}

#[test]
fn the_page_has_a_bar_for_each_effect_and_metric() {
    let recording = square(Sample::side_by_side().rounds(12));
    let page = crate::html(&recording, &Summary::of(&recording));
    let section = page.split("<section id=\"factors\">").nth(1).unwrap();
    let section = section.split("</section>").next().unwrap();
    assert_eq!(section.matches("<figcaption>").count(), 3);
    assert_eq!(section.matches("<rect class=\"step\"").count(), 3 * 5);
    assert!(section.contains("<span class=\"name\">log × tls</span>"));
}

#[test]
fn the_table_reads_well() {
    let recording = square(Sample::side_by_side().rounds(12));
    let summary = Summary::of(&recording);
    let text = crate::text(&recording, &summary, crate::Terminal::plain(100));
    let table = text.split("Factors: ").nth(1).unwrap();
    insta::assert_snapshot!(table, @"
    the cost of each, and of combinations
    effect               typical           mean          CPU        memory
                              ms             ms       us/req           MiB
    ──────────────────────────────────────────────────────────────────────
    log: off → on  +0.033 ±0.005  +0.038 ±0.007  +0.39 ±0.03  0.000 ±0.005
    tls: off → on  +0.103 ±0.006  +0.120 ±0.006  +1.15 ±0.03  0.000 ±0.005
    log × tls      +0.031 ±0.008  +0.037 ±0.008  +0.39 ±0.05  0.000 ±0.005
    log alone      +0.017 ±0.006  +0.019 ±0.008  +0.19 ±0.03  0.000 ±0.005
    tls alone      +0.086 ±0.007  +0.100 ±0.007  +0.96 ±0.04  0.000 ±0.005
    - Each effect uses the requests of all 4 variants. The effect of a factor is the mean of its cost
      over all levels of the others. An interaction (×) is the additional cost if both are at their
      second level.
    - Alone means: with all other factors at their first level. Alone, a factor pays no interaction.
    - In each column, all intervals hold together with 95 %.
    ");
}

/// Three factors: 20 us, 0 us and 100 us, without interactions.
fn cube() -> Recording {
    let names: Vec<String> = (0..8)
        .map(|run| match run {
            0 => "plain".to_owned(),
            _ => format!("run {run}"),
        })
        .collect();
    let mut sample = Sample::side_by_side().rounds(10);
    for (run, name) in names.iter().enumerate() {
        let on = |bit: usize| if run >> bit & 1 == 1 { 1.0 } else { 0.0 };
        sample = sample.variant(name, 700.0 + 20.0 * on(0) + 100.0 * on(2));
    }
    let mut recording = sample.build();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let lab = recording.lab.as_mut().unwrap();
    lab.factors = Some(text(&["log", "same", "tls"], &names));
    recording
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
    let words = found.in_words.unwrap();
    assert!(
        words.contains("over all levels of the other factors"),
        "{words}"
    );
    assert!(
        words.contains("no interaction shown for 3 of 3 pairs"),
        "{words}"
    );
    // Four pairs of variants tell more than one.
    let width = |effect: &EffectSummary| {
        let figure = &effect.metrics[&Metric::Mean];
        figure.high.unwrap() - figure.low.unwrap()
    };
    assert!(width(&found.effects[0]) < width(&found.alone[0]));
}

/// A sample of the given number of factors. Factor `i` costs `10 (i + 1)` us.
fn many(factors: usize) -> Recording {
    let runs = 0..1_usize << factors;
    let names: Vec<String> = runs.map(|run| format!("run {run}")).collect();
    let mut sample = Sample::side_by_side().rounds(8);
    for (run, name) in names.iter().enumerate() {
        let on = (0..factors).filter(|factor| run >> factor & 1 == 1);
        let cost: f64 = on.map(|factor| 10.0 * (factor + 1) as f64).sum();
        sample = sample.variant(name, 700.0 + cost);
    }
    let mut recording = sample.build();
    let variants: Vec<&str> = names.iter().map(String::as_str).collect();
    let words: Vec<String> = (0..factors).map(|factor| format!("f{factor}")).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    recording.lab.as_mut().unwrap().factors = Some(text(&words, &variants));
    recording
}

#[test]
fn many_factors_have_interactions_of_two_and_a_short_sentence() {
    let found = factors(&many(5));
    assert_eq!((found.effects.len(), found.alone.len()), (15, 5));
    let words = found.in_words.unwrap();
    let named = words.split(';').next().unwrap();
    assert!(named.contains("`f4` costs"), "{words}");
    assert!(!named.contains("`f0`"), "{words}");
    assert!(named.ends_with("and 1 more of the factors"), "{words}");
}

#[test]
fn a_fraction_names_the_sums_that_it_measures() {
    let mut recording = square(Sample::side_by_side().rounds(12));
    let lab = recording.lab.as_mut().unwrap();
    let mut half = text(&["log", "tls", "auth"], &SQUARE);
    half.generators = vec![GeneratorText {
        factor: "auth".to_owned(),
        product_of: vec!["log".to_owned(), "tls".to_owned()],
    }];
    lab.factors = Some(half.clone());
    let found = factors(&recording);
    let sums: Vec<&str> = found
        .effects
        .iter()
        .filter_map(|it| it.confounded.as_deref())
        .collect();
    assert_eq!(
        sums,
        [
            "log - 1/2 (tls × auth)",
            "tls - 1/2 (log × auth)",
            "auth - 1/2 (log × tls)"
        ]
    );
    // The fourth variant has the product of both at the first level. An interaction of 40 us is half of it.
    assert!(contains(&found.effects[2], Metric::Mean, -20.0));
    assert!(found.alone.is_empty());
    let words = found.in_words.as_ref().unwrap();
    assert!(words.ends_with("This fraction confounds some of these effects with others"));
    let summary = Summary::of(&recording);
    let markdown = crate::markdown(&recording, &summary);
    assert!(markdown.contains("log - 1/2 (tls × auth)"), "{markdown}");
    assert!(markdown.contains("The lab measured a fraction of all combinations"));
    // Parts that do not fit together are no design.
    half.generators[0].factor = "log".to_owned();
    assert_eq!(half.design(), None);
    half.generators.clear();
    assert_eq!(half.design(), None, "eight runs are missing");
}

#[test]
fn without_one_variant_the_effects_show_which_one_is_missing() {
    let mut recording = square(Sample::side_by_side().rounds(12));
    recording.variants[2].status = VariantStatus::Invalid {
        kind: InvalidKind::NotReady,
        reason: "it did not start".to_owned(),
    };
    let summary = Summary::of(&recording);
    let found = summary.factors.as_ref().unwrap();
    assert!(found.effects.iter().all(|it| it.metrics.is_empty()));
    assert_eq!(found.missing.len(), 1);
    assert_eq!(found.missing[0].name, "tls on");
    assert!(found.missing[0].reason.contains("it did not start"));
    assert_eq!(found.in_words, None);
    // The cost of the log alone needs only two variants.
    assert!(contains(&found.alone[0], Metric::Mean, 20.0));
    assert!(found.alone[1].metrics.is_empty());
    let text = crate::text(&recording, &summary, crate::Terminal::plain(100));
    let squeezed = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let note = "An effect needs a trusted number of every variant. `tls on` has none";
    assert!(squeezed.contains(note), "{text}");
    // A variant that was not measured at all.
    recording.variants.remove(2);
    let found = factors(&recording);
    assert_eq!(found.missing[0].reason, "it was not measured");
}

#[test]
fn variants_in_groups_are_each_relative_to_the_baseline_of_their_group() {
    let mut recording = square(Sample::side_by_side().rounds(12));
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

#[test]
fn a_closed_loop_has_effects_on_its_rate_and_no_sentence() {
    let recording = square(Sample::closed());
    let summary = Summary::of(&recording);
    let found = summary.factors.as_ref().unwrap();
    let rate = &found.effects[1].metrics[&Metric::Requests];
    assert_eq!(rate.claim, ClaimName::Lower);
    assert_eq!(found.in_words, None);
    assert!(crate::answer::sentence(&recording, &summary).starts_with("Requests a second"));
}

#[test]
fn a_lab_without_factors_has_no_effects() {
    let mut recording = square(Sample::side_by_side());
    recording.lab.as_mut().unwrap().factors = None;
    let summary = Summary::of(&recording);
    assert_eq!(summary.factors, None);
    for (format, text) in renderings(&recording, &summary) {
        assert!(!text.contains("Factors: "), "{format}");
    }
}
