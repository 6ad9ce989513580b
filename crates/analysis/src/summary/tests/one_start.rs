//! Tests that a difference of systems with one start contains the difference between starts.

use super::*;

fn overheads(is_running: bool) -> BTreeMap<Metric, OverheadSummary> {
    let mut recording = SampleRun::side_by_side()
        .variant("a", 700.0)
        .variant("b", 700.0)
        .build();
    for variant in recording.variants.iter_mut().filter(|_| is_running) {
        variant.systems[0].url = Some("http://127.0.0.1:8080".to_owned());
    }
    let summary = Summary::of(&recording);
    let metrics = &summary.variants[1].metrics;
    let overheads = metrics.iter().filter_map(|(metric, found)| {
        let overhead = found.overhead.clone()?;
        Some((*metric, overhead))
    });
    overheads.collect()
}

#[test]
fn latencies_of_running_systems_have_wider_intervals() {
    let (started, running) = (overheads(false), overheads(true));
    for metric in [Metric::Mean, Metric::Typical, Metric::P99] {
        let (before, after) = (&started[&metric], &running[&metric]);
        assert!((before.difference - after.difference).abs() < 1e-9);
        let distance = |overhead: &OverheadSummary| {
            let low = overhead.difference - overhead.difference_low.unwrap();
            let high = overhead.difference_high.unwrap() - overhead.difference;
            (low, high)
        };
        let ((low, high), (low_after, high_after)) = (distance(before), distance(after));
        assert!(
            (low_after - (low * low + 0.25).sqrt()).abs() < 1e-9,
            "{metric:?}"
        );
        assert!(
            (high_after - (high * high + 0.25).sqrt()).abs() < 1e-9,
            "{metric:?}"
        );
        assert!(after.ratio_low < before.ratio_low && after.ratio_high > before.ratio_high);
    }
    for metric in [Metric::Requests, Metric::Cpu, Metric::Memory] {
        assert_eq!(started.get(&metric), running.get(&metric), "{metric:?}");
    }
}

#[test]
fn two_starts_of_one_server_are_not_claimed_to_differ() {
    let mut overhead = overheads(false)[&Metric::Typical].clone();
    overhead.difference = 0.3;
    (overhead.difference_low, overhead.difference_high) = (Some(0.1), Some(0.5));
    overhead.claim = ClaimName::Higher;
    (overhead.ratio, overhead.ratio_low, overhead.ratio_high) =
        (Some(1.003), Some(1.001), Some(1.005));
    let wide = overhead.with_one_start(0.5, Some(100.0));
    assert_eq!(wide.claim, ClaimName::NoDifferenceShown);
    // The square root of 0.2 squared and 0.5 squared is 0.5385.
    assert!((wide.difference_low.unwrap() + 0.2385).abs() < 1e-4);
    assert!((wide.difference_high.unwrap() - 0.8385).abs() < 1e-4);
    assert!((wide.ratio_low.unwrap() - 0.997_615).abs() < 1e-6);
    assert!((wide.ratio_high.unwrap() - 1.008_385).abs() < 1e-6);
}
