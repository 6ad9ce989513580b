use model::{InvalidKind, Metric};
use recording::VariantStatus;
use recording::sample::SampleRun;

use super::*;

/// 100,000 requests. One was refused, two timed out, and three had another body.
fn troubled() -> Recording {
    let mut recording = SampleRun::load_alone(false);
    let round = &mut recording.rounds[0];
    round.outcomes.passed -= 6;
    round.outcomes.failed.connect = 1;
    round.outcomes.failed.timeout = 2;
    round.outcomes.mismatched.body = 3;
    round.statuses = [(200, 99_990), (503, 7)].into();
    recording
}

fn show(layout: Layout, recording: &Recording) -> String {
    layout.render(recording, None).unwrap()
}

fn value(layout: Layout, recording: &Recording) -> serde_json::Value {
    serde_json::from_str(&show(layout, recording)).unwrap()
}

#[test]
fn hgrm() {
    insta::assert_snapshot!(show(Layout::Hgrm, &SampleRun::load_alone(false)));
}

#[test]
fn ab() {
    insta::assert_snapshot!(show(Layout::Ab, &troubled()));
}

#[test]
fn vegeta_text() {
    insta::assert_snapshot!(show(Layout::VegetaText, &troubled()));
}

#[test]
fn vegeta_json() {
    insta::assert_snapshot!(show(Layout::VegetaJson, &troubled()));
}

#[test]
fn k6_json() {
    insta::assert_snapshot!(show(Layout::K6Json, &troubled()));
}

#[test]
fn bombardier_text() {
    insta::assert_snapshot!(show(Layout::BombardierText, &troubled()));
}

#[test]
fn bombardier_json() {
    insta::assert_snapshot!(show(Layout::BombardierJson, &SampleRun::load_alone(true)));
}

#[test]
fn artillery_json() {
    insta::assert_snapshot!(show(Layout::ArtilleryJson, &SampleRun::load_alone(true)));
}

/// Each layout has its own unit, and all must show the same p50.
#[test]
fn every_layout_tells_the_same_median_in_its_own_unit() {
    let recording = SampleRun::load_alone(false);
    let p50_ns = recording.rounds[0]
        .latency_ns_hdr
        .histogram()
        .quantile_ns(0.5)
        .unwrap() as f64;
    let close = |shown: f64, unit_ns: f64, slack_ns: f64| {
        assert!(
            (shown * unit_ns - p50_ns).abs() <= slack_ns,
            "{shown} of {unit_ns} ns"
        );
    };
    let number = |value: &serde_json::Value| value.as_f64().unwrap();
    let vegeta = value(Layout::VegetaJson, &recording);
    close(number(&vegeta["latencies"]["50th"]), 1.0, 0.0);
    let k6 = value(Layout::K6Json, &recording);
    close(number(&k6["metrics"]["http_req_duration"]["med"]), 1e6, 1.0);
    let bombardier = value(Layout::BombardierJson, &recording);
    close(
        number(&bombardier["result"]["latency"]["percentiles"]["50"]),
        1e3,
        500.0,
    );
    let artillery = value(Layout::ArtilleryJson, &recording);
    close(
        number(&artillery["aggregate"]["summaries"]["http.response_time"]["median"]),
        1e6,
        50_000.0,
    );
}

#[test]
fn rates_and_counts_agree_with_the_recording() {
    let recording = troubled();
    let round = &recording.rounds[0];
    let rate = 100_000.0 / (round.elapsed_us as f64 / 1e6);
    let vegeta = value(Layout::VegetaJson, &recording);
    assert_eq!(vegeta["requests"], 100_000);
    assert!((vegeta["rate"].as_f64().unwrap() / rate - 1.0).abs() < 1e-9);
    assert_eq!(vegeta["success"], 0.99994);
    assert_eq!(vegeta["status_codes"]["0"], 3);
    let k6 = value(Layout::K6Json, &recording);
    assert_eq!(k6["metrics"]["http_req_failed"]["passes"], 6);
    assert_eq!(k6["metrics"]["checks"]["fails"], 6);
    let bombardier = value(Layout::BombardierJson, &recording);
    assert_eq!(bombardier["result"]["others"], 3);
    assert_eq!(bombardier["result"]["req5xx"], 7);
}

#[test]
fn a_bombardier_deviation_counts_every_sample() {
    let recording = SampleRun::load_alone(false);
    let stddev = value(Layout::BombardierJson, &recording)["result"]["latency"]["stddev"].clone();
    let expected = recording.rounds[0]
        .latency_ns_hdr
        .histogram()
        .stddev_ns()
        .unwrap()
        / 1e3;
    assert!((stddev.as_f64().unwrap() / expected - 1.0).abs() < 1e-9);
}

#[test]
fn a_lab_lays_out_one_variant_with_its_rounds_merged() {
    let recording = SampleRun::closed()
        .variant("a", 700.0)
        .variant("b", 800.0)
        .build();
    let text = Layout::VegetaJson.render(&recording, Some("b")).unwrap();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["requests"], 800_000);
    let error = Layout::Ab.render(&recording, Some("c")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "expected a variant of the recording, found `c`. The variants are `a`, `b`"
    );
}

#[test]
fn a_variant_without_a_number_gives_none_in_any_layout() {
    let mut recording = SampleRun::closed().variant("a", 700.0).build();
    recording.variants[0].status = VariantStatus::Invalid {
        kind: InvalidKind::Crashed,
        reason: "`server` was killed by signal 9".to_owned(),
    };
    for layout in Layout::ALL {
        let error = layout.render(&recording, None).unwrap_err().to_string();
        assert_eq!(
            error,
            "`a` has no figures to print: invalid: `server` was killed by signal 9"
        );
    }
}

#[test]
fn a_load_without_a_single_answer_still_has_a_layout() {
    let mut recording = SampleRun::load_alone(false);
    let round = &mut recording.rounds[0];
    let empty = recording::Hdr::of(&stats::Histogram::new());
    for histogram in [
        &mut round.latency_ns_hdr,
        &mut round.service_ns_hdr,
        &mut round.connect_ns_hdr,
        &mut round.first_byte_ns_hdr,
    ] {
        *histogram = empty.clone();
    }
    round.outcomes.passed = 0;
    round.outcomes.failed.connect = 100_000;
    round.statuses.clear();
    round.windows.completed.fill(0);
    for layout in Layout::ALL {
        let shown = show(layout, &recording);
        assert!(!shown.contains("NaN"), "{}: {shown}", layout.name());
    }
}

#[test]
fn what_our_own_layouts_write_is_read_back_with_the_same_meaning() {
    let recording = SampleRun::load_alone(false);
    let own = Summary::of(&recording);
    let own = |metric| own.variants[0].metric(metric).unwrap().value;
    for (layout, tolerance) in [
        (Layout::VegetaJson, 0.001),
        (Layout::VegetaText, 0.002),
        (Layout::K6Json, 0.001),
        (Layout::BombardierJson, 0.001),
        (Layout::BombardierText, 0.01),
        (Layout::ArtilleryJson, 0.1),
        (Layout::Hgrm, 0.002),
    ] {
        let run = &recording::import::read(&show(layout, &recording)).unwrap()[0];
        for metric in [Metric::P50, Metric::P90, Metric::Max] {
            let found = run.figures[&metric][0];
            let is_near = (found / own(metric) - 1.0).abs() <= tolerance;
            assert!(is_near, "{}: {metric:?} {found}", layout.name());
        }
        if layout != Layout::Hgrm {
            assert_eq!(run.succeeded, Some(100_000), "{}", layout.name());
        }
    }
}
