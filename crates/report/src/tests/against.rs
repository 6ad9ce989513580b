//! Variants that are compared with another variant instead of the baseline.

use super::*;

/// `log` is compared with `proxy`, and `proxy` with the baseline.
fn chain() -> Recording {
    let mut recording = SampleRun::side_by_side()
        .variant("direct", 700.0)
        .variant("proxy", 840.0)
        .variant("log", 861.0)
        .build();
    recording.variants[2].baseline = Some("proxy".to_owned());
    recording
}

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
