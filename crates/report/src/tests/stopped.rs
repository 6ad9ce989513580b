//! A target that stops answering.

use recording::Windows;

use super::*;

#[test]
fn the_first_line_of_a_load_says_it() {
    let mut recording = SampleRun::load_alone(false);
    // Responses in the first 0.8 s of 3 s, and errors in each later tenth of a second.
    let tenths = |before: u64, after: u64| -> Vec<u64> {
        let each = (0..30).map(|at| if at < 8 { before } else { after });
        each.collect()
    };
    let model::Load::Closed { connections, stop } = &mut recording.load.model else {
        unreachable!("the sample is a closed loop")
    };
    (*connections, stop.duration, stop.requests) = (4, Some(Duration::from_secs(3)), None);
    let round = &mut recording.rounds[0];
    round.elapsed_us = 3_000_000;
    round.windows = Windows {
        width_us: 100_000,
        completed: tenths(9_000, 0),
        errors: tenths(0, 4),
        latency_sum_ns: tenths(900_000_000, 0),
    };
    round.statuses = [(200, 72_000)].into();
    round.outcomes.passed = 72_000;
    round.outcomes.failed.connect = 88;
    round.planned = round.outcomes.total();
    let summary = Summary::of(&recording);
    let text = crate::load_text(&recording, &summary, crate::Terminal::plain(100));
    let first = text.lines().next().unwrap();
    assert!(first.contains("stopped answering"), "{text}");
}
