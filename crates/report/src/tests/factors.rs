//! Effects of factors.

use analysis::summary::ClaimName;
use recording::GeneratorText;

use super::*;
use analysis::sample::{SQUARE, contains, factors, factors_text, square};

#[test]
fn the_first_sentence_and_every_table_have_the_effects() {
    let recording = square(SampleRun::side_by_side().rounds(12));
    let summary = Summary::of(&recording);
    insta::assert_snapshot!(crate::answer::sentence(&recording, &summary), @"
    For a typical request, `log` alone costs 17 us (10 to 24), `tls` alone costs 86 us (78 to 94); both together cost 31 us (24 to 41) more, at 4,000 requests/s.
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
    let recording = square(SampleRun::side_by_side().rounds(12));
    let page = crate::html(&recording, &Summary::of(&recording));
    let section = page.split("<section id=\"factors\">").nth(1).unwrap();
    let section = section.split("</section>").next().unwrap();
    assert_eq!(section.matches("<figcaption>").count(), 3);
    assert_eq!(section.matches("<rect class=\"step\"").count(), 3 * 5);
    assert!(section.contains("<span class=\"name\">log × tls</span>"));
}

#[test]
fn the_table_reads_well() {
    let recording = square(SampleRun::side_by_side().rounds(12));
    let summary = Summary::of(&recording);
    let text = crate::text(&recording, &summary, crate::Terminal::plain(100));
    let table = text.split("Factors: ").nth(1).unwrap();
    insta::assert_snapshot!(table, @"
    the cost of each, and of combinations
    effect         typical     mean          CPU        memory
                        us       us       us/req           MiB
    ──────────────────────────────────────────────────────────
    log: off → on   +33 ±5   +38 ±7  +0.39 ±0.03  0.000 ±0.005
    tls: off → on  +103 ±6  +120 ±6  +1.15 ±0.03  0.000 ±0.005
    log × tls       +31 ±8   +37 ±8  +0.39 ±0.05  0.000 ±0.005
    log alone       +17 ±6   +19 ±8  +0.19 ±0.03  0.000 ±0.005
    tls alone       +86 ±7  +100 ±8  +0.96 ±0.04  0.000 ±0.005
    - Each effect uses the requests of all 4 variants. The effect of a factor is the mean of its cost
      over all levels of the others. An interaction (×) is the additional cost if both are at their
      second level.
    - Alone means: with all other factors at their first level. Alone, a factor pays no interaction.
    - In each column, all intervals hold together with 95 %.
    ");
}

#[test]
fn a_fraction_names_the_sums_that_it_measures() {
    let mut recording = square(SampleRun::side_by_side().rounds(12));
    let lab = recording.lab.as_mut().unwrap();
    let mut half = factors_text(&["log", "tls", "auth"], &SQUARE);
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
    let words = crate::words::effects(&found, Metric::Typical, model::Unit::Microseconds).unwrap();
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
    let mut recording = square(SampleRun::side_by_side().rounds(12));
    recording.variants[2].status = VariantStatus::Invalid {
        kind: InvalidKind::NotReady,
        reason: "it did not start".to_owned(),
    };
    let summary = Summary::of(&recording);
    let found = summary.factors.as_ref().unwrap();
    assert!(found.effects.iter().all(|it| it.metrics.is_empty()));
    assert_eq!(found.missing.len(), 1);
    assert_eq!(found.missing[0].name, "tls on");
    let reason = crate::words::missing(&found.missing[0]);
    assert!(reason.contains("it did not start"), "{reason}");
    assert_eq!(
        crate::words::effects(found, Metric::Typical, model::Unit::Microseconds),
        None
    );
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
    let reason = crate::words::missing(&found.missing[0]);
    assert_eq!(reason, "it was not measured");
}

#[test]
fn a_closed_loop_has_effects_on_its_rate_and_no_sentence() {
    let recording = square(SampleRun::closed());
    let summary = Summary::of(&recording);
    let found = summary.factors.as_ref().unwrap();
    let rate = &found.effects[1].metrics[&Metric::Requests];
    assert_eq!(rate.claim, ClaimName::Lower);
    assert_eq!(
        crate::words::effects(found, Metric::Requests, model::Unit::Microseconds),
        None
    );
    assert!(crate::answer::sentence(&recording, &summary).starts_with("Requests a second"));
}

#[test]
fn a_lab_without_factors_has_no_effects() {
    let mut recording = square(SampleRun::side_by_side());
    recording.lab.as_mut().unwrap().factors = None;
    let summary = Summary::of(&recording);
    assert_eq!(summary.factors, None);
    for (format, text) in renderings(&recording, &summary) {
        assert!(!text.contains("Factors: "), "{format}");
    }
}
