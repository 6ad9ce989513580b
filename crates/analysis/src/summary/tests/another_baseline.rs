//! A recording with another variant as its baseline.

use super::*;

fn difference(summary: &Summary, name: &str) -> f64 {
    let row = summary.variant(name).unwrap();
    let metric = row.metric(Metric::Mean).unwrap();
    metric.overhead.as_ref().unwrap().difference
}

#[test]
fn any_variant_can_be_the_baseline() {
    let mut recording = SampleRun::side_by_side()
        .variant("direct", 700.0)
        .variant("proxy", 840.0)
        .variant("log", 861.0)
        .build();
    let before = Summary::of(&recording);
    recording.compare_with("proxy").unwrap();
    let after = Summary::of(&recording);
    let names: Vec<&str> = after.variants.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["proxy", "direct", "log"]);
    assert!(after.variants[0].is_baseline && after.comparisons == 2);
    assert!((difference(&after, "direct") + difference(&before, "proxy")).abs() < 1e-6);
    assert!((difference(&after, "log") - 21.0).abs() < 5.0);
}
