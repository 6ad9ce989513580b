//! Rules for the recordings that are committed with the labs.

use std::fs;

use analysis::Summary;
use analysis::summary::VariantSummary;
use model::Metric;
use recording::Recording;

use crate::repository::{root, tracked};

/// The recordings of all labs, by their paths.
fn recordings() -> impl Iterator<Item = (String, Recording)> {
    let files = tracked("labs").expect("git lists them").into_iter();
    let records = files.filter(|file| file.contains("/records/") && file.ends_with(".json"));
    records.map(|file| {
        let text = fs::read_to_string(root().join(&file)).expect("a recording");
        let recording =
            Recording::from_json(&text).unwrap_or_else(|error| panic!("{file}: {error}"));
        (file, recording)
    })
}

/// A repetition of a lab in an ordinary hour should fall into its interval. If the round in the middle is far
/// from an estimate, the report mentions it.
#[test]
fn the_round_in_the_middle_is_near_every_estimate() {
    let mut far = Vec::new();
    for (file, recording) in recordings() {
        let summary = Summary::of(&recording);
        let overhead_of = |row: &VariantSummary, metric| row.metric(metric)?.overhead.clone();
        let of_headline = |row: &VariantSummary| overhead_of(row, summary.headline);
        // With an adjusted difference, the report names each row whose headline is far.
        let mut headlines = summary.variants.iter().filter_map(of_headline);
        let is_adjusted = headlines.any(|it| it.adjusted_by > 0);
        for row in summary.variants.iter().filter(|row| !row.is_baseline) {
            let overhead = overhead_of(row, Metric::Typical);
            let known = overhead
                .as_ref()
                .and_then(|it| Some((it, it.half_width()?, it.median_of_rounds?)));
            let Some((overhead, half, middle)) = known else {
                continue;
            };
            let is_far = of_headline(row).is_some_and(|it| it.is_far_from_median());
            let is_said = is_adjusted && is_far;
            if overhead.is_far_from_median() && !is_said {
                far.push(format!(
                    "{file}: {}: {:.1} us (±{half:.1}), and the round in the middle is {middle:.1}",
                    row.name, overhead.difference
                ));
            }
        }
    }
    assert!(far.is_empty(), "{}", far.join("\n"));
}
