//! The end of a run with a stopping rule.

use std::str::FromStr as _;

use model::{HalfWidth, Until};
use recording::{UntilEnd, UntilText};

use super::*;

#[test]
fn formats_for_people_say_that_the_width_was_not_reached() {
    let mut recording = SampleRun::closed()
        .variant("a", 700.0)
        .variant("b", 800.0)
        .build();
    let mut until = Until::from_str("mean ±2%").unwrap();
    until.half_width = HalfWidth::Share(0.000_01);
    recording.until = Some(UntilText {
        until,
        max_time_us: 60_000_000,
        ended: UntilEnd::MaxTime,
        pilot: None,
    });
    let summary = Summary::of(&recording);
    for (format, text) in renderings(&recording, &summary) {
        if ["text", "markdown", "html"].contains(&format) {
            assert!(text.contains("NOT REACHED"), "{format}: {text}");
        }
    }
}
