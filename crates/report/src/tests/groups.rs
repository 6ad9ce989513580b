//! Variants that ran in groups.

use super::*;
use analysis::sample::in_groups;

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
