//! Advice on the length of rounds.

use analysis::summary::SplitSummary;

use super::*;

#[test]
fn the_full_text_has_the_advice() {
    let recording = SampleRun::graphql_server();
    let mut summary = Summary::of(&recording);
    let split = SplitSummary {
        load_s: 10.0,
        load_s_best: 2.0,
        width: 0.6,
    };
    let sentence = split.sentence();
    summary.split = Some(split);
    let shown = crate::full_text(&recording, &summary, crate::Terminal::plain(300));
    assert!(shown.contains(&sentence), "{shown}");
}
