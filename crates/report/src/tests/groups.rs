//! Variants that ran in groups.

use model::Order;
use recording::Measured;

use super::*;

/// A light variant with a light baseline, and a heavy variant that slows the baseline down by 1 ms. Each
/// costs 100 us.
fn in_groups() -> Recording {
    let mut recording = SampleRun::open()
        .variant("plain", 700.0)
        .variant("light", 800.0)
        .variant("plain beside heavy", 1700.0)
        .variant("heavy", 1800.0)
        .build();
    recording.variants.remove(2);
    for round in &mut recording.rounds {
        let is_second = matches!(round.variant.as_str(), "plain beside heavy" | "heavy");
        round.group = Some(u32::from(is_second));
        if round.variant == "plain beside heavy" {
            "plain".clone_into(&mut round.variant);
        }
    }
    let group = |variant: &str| vec!["plain".to_owned(), variant.to_owned()];
    recording.measured = Some(Measured {
        order: Order::SideBySide,
        because: None,
        groups: vec![group("light"), group("heavy")],
        groups_because: Some("`heavy` uses 0.50 of 2 cores, the median of all is 0.01".to_owned()),
        leaves_at_any_time: false,
    });
    recording
}

#[test]
fn every_report_says_the_groups() {
    let recording = in_groups();
    let summary = Summary::of(&recording);
    let words =
        "measured in 2 groups, each with the baseline: light; heavy (since `heavy` uses 0.50";
    let text = crate::full_text(&recording, &summary, crate::Terminal::plain(100));
    let text: Vec<&str> = text.split_whitespace().collect();
    assert!(text.join(" ").contains(words), "{}", text.join(" "));
    assert!(crate::markdown(&recording, &summary).contains(words));
    assert!(crate::html(&recording, &summary).contains("measured in 2 groups"));
}
