//! Requests that the figures leave out.

use analysis::summary::{CheckName, CheckState, Summary, Verdict};
use model::Order;
use recording::sample::SampleRun;
use recording::{Answers, LeftOut, LeftOutAnswers, Recording, float};

/// A recording with `lost` lost responses of the variant `b` in each round, each with this latency.
fn recording(lost: u64, latency_us: u64, is_generator: bool) -> Recording {
    let sample = SampleRun::side_by_side().variant("a", 700.0);
    let mut recording = sample.variant("b", 720.0).build();
    assert_eq!(recording.order_measured(), Order::SideBySide);
    for round in &mut recording.rounds {
        let latency = round.latency_ns_hdr.histogram();
        let counted_ns = latency.mean_ns().unwrap() * float(latency.len());
        let is_lost = round.variant == "b";
        let lost = if is_lost { lost } else { 0 };
        let answers = Answers {
            count: lost,
            latency_sum_ns: lost * latency_us * 1_000,
        };
        // One window is enough, because the test uses only the sums.
        round.windows.completed = vec![latency.len() + lost];
        round.windows.errors = vec![0];
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a sum of latencies"
        )]
        let sum_ns = counted_ns as u64 + answers.latency_sum_ns;
        round.windows.latency_sum_ns = vec![sum_ns];
        let (host, generator) = match is_generator {
            true => (0, lost),
            false => (0, 0),
        };
        round.left_out = Some(LeftOut {
            cycles: latency.len() + lost,
            host,
            generator,
            neighbor: lost - generator,
            overrun: None,
        });
        let mut of = LeftOutAnswers::default();
        match is_generator {
            true => of.generator = answers,
            false => of.neighbor = answers,
        }
        round.left_out_answers = Some(of);
    }
    recording
}

#[test]
fn the_mean_of_all_requests_is_in_every_report() {
    // 30 % of the counted number, 2 ms each: (720 + 0.3 * 2,000) / 1.3 = 1,015 us.
    let recording = recording(30_000, 2_000, false);
    let summary = Summary::of(&recording);
    let found = summary.variants[1].left_out.clone().unwrap();
    assert!((found.share - 0.3 / 1.3).abs() < 1e-6, "{found:?}");
    assert!((found.latency_us_mean - 2_000.0).abs() < 1.0, "{found:?}");
    let expected = (found.latency_us_mean_counted + 0.3 * 2_000.0) / 1.3;
    assert!(
        (found.latency_us_mean_all - expected).abs() < 1.0,
        "{found:?}"
    );
    assert_eq!(summary.variants[0].left_out, None);
    let words = "The mean of all requests is 1,020 us, and the mean of the counted requests";
    for shown in [
        crate::text(&recording, &summary, crate::Terminal::plain(300)),
        crate::full_text(&recording, &summary, crate::Terminal::plain(300)),
        crate::markdown(&recording, &summary),
        crate::html(&recording, &summary),
        crate::comment(&recording, &summary),
    ] {
        assert!(shown.contains(words), "{shown}");
    }
}

#[test]
fn hardly_any_are_not_worth_a_line() {
    let recording = recording(900, 2_000, false);
    let summary = Summary::of(&recording);
    assert!(summary.variants[1].left_out.is_some());
    let shown = crate::full_text(&recording, &summary, crate::Terminal::plain(300));
    assert!(!shown.contains("The mean of all requests"), "{shown}");
}

#[test]
fn slow_requests_that_were_left_out_withhold_the_verdict() {
    let check_of = |recording: &Recording| {
        let summary = Summary::of(recording);
        let row = summary.variants[1].clone();
        let check = row
            .checks
            .iter()
            .find(|it| it.name == CheckName::LeftOutSlower);
        (check.cloned().unwrap().state, row.verdict)
    };
    // Requests with an equal latency do not change the mean, whatever their number.
    assert_eq!(check_of(&recording(30_000, 720, true)).0, CheckState::Ok);
    // 4 % of the counted number, 3 ms each. The mean would be 12 % higher.
    assert_eq!(check_of(&recording(4_000, 3_000, true)).0, CheckState::Weak);
    let (state, verdict) = check_of(&recording(30_000, 3_000, true));
    assert_eq!(state, CheckState::Failed);
    assert!(matches!(
        verdict,
        Verdict::Withheld {
            check: CheckName::LeftOutSlower,
            ..
        }
    ));
    // A neighbor that kept the cores busy explains the rise.
    assert_eq!(check_of(&recording(30_000, 3_000, false)).0, CheckState::Ok);
}
