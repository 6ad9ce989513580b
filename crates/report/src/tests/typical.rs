//! Tests of the typical latency, which decides side by side.

use super::*;
use analysis::sample::beside;

#[test]
fn every_rendering_shows_what_decides() {
    let name = "a-variant-of-some-length";
    let recording = beside(&[("baseline", 1200.0), (name, 1270.0)]);
    let summary = Summary::of(&recording);
    let text = crate::full_text(&recording, &summary, crate::Terminal::plain(100));
    for line in text.lines() {
        assert!(line.chars().count() <= 100, "{text}");
    }
    let headers = text.lines().filter(|line| line.starts_with("variant"));
    let with_it = headers.filter(|line| line.contains("typical") && line.contains("p50"));
    assert_eq!(with_it.count(), 2, "{text}");
    for (rendered, part) in [
        (text.as_str(), "Difference in typical latency"),
        (text.as_str(), "Typical latency, the mean of the fastest"),
        (&crate::markdown(&recording, &summary), " Typical (us) "),
        (
            &crate::html(&recording, &summary),
            "data-metric=\"latency_us_typical\"",
        ),
        (
            &crate::html(&recording, &summary),
            "Difference in typical latency (the mean of",
        ),
        (&crate::csv(&recording, &summary), ",latency_us_typical,"),
        (
            &crate::json(&recording, &summary),
            "\"headline\": \"latency_us_typical\"",
        ),
        (
            &crate::junit(&recording, &summary),
            "costs a typical request",
        ),
    ] {
        assert!(rendered.contains(part), "{part}\n{rendered}");
    }
}

#[test]
fn in_turn_the_tables_are_as_they_were() {
    let recording = SampleRun::open()
        .variant("plain", 700.0)
        .variant("slow", 770.0)
        .build();
    let summary = Summary::of(&recording);
    let text = crate::text(&recording, &summary, crate::Terminal::plain(100));
    assert!(!text.contains("ypical"), "{text}");
    assert!(!crate::markdown(&recording, &summary).contains("ypical"));
}
