//! Variants that are compared with another variant instead of the baseline.

use super::*;
use analysis::sample::chain;

#[test]
fn every_format_for_people_names_the_other_variant() {
    let recording = chain();
    let summary = Summary::of(&recording);
    // Programs read the other formats, which have a field for it.
    let read_by_people = ["text", "full", "markdown", "comment", "html"];
    let renderings = renderings(&recording, &summary);
    for (format, text) in renderings
        .iter()
        .filter(|(it, _)| read_by_people.contains(it))
    {
        assert!(text.contains("log (against proxy)"), "{format}: {text}");
    }
}
