//! Tests that a reader can add the figures of a page.

use std::fs;
use std::path::{Path, PathBuf};

use super::*;
use crate::cell;

/// The metrics that a page shows next to their differences.
const ADDED: [Metric; 8] = [
    Metric::Typical,
    Metric::SlowQuarter,
    Metric::Mean,
    Metric::P50,
    Metric::P90,
    Metric::P95,
    Metric::P99,
    Metric::Cpu,
];

/// The recordings of the labs of this repository.
fn files() -> Vec<PathBuf> {
    let labs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../labs");
    let folders = fs::read_dir(labs).unwrap();
    let records = folders.map(|lab| lab.unwrap().path().join("records"));
    let files = records.filter_map(|folder| fs::read_dir(folder).ok());
    let files = files.flatten().map(|file| file.unwrap().path());
    files
        .filter(|file| file.extension().is_some_and(|it| it == "json"))
        .collect()
}

/// A printed number, and half of the size of its last digit. `None` for an interval without an estimate.
fn read(printed: &str) -> Option<(f64, f64)> {
    let printed = printed.trim_start_matches('~');
    if printed.contains(" to ") {
        return None;
    }
    let printed = printed.replace(',', "");
    let (number, error) = printed.split_once(" ±").unwrap_or((&printed, &printed));
    // The error has the place of the number, also if the number is 0.
    let last = match error.split_once('.') {
        Some((_, decimals)) => 10f64.powi(-i32::try_from(decimals.len()).ok()?),
        None => {
            let zeros = error.len() - error.trim_end_matches('0').len();
            10f64.powi(i32::try_from(zeros).ok()?)
        }
    };
    Some((number.parse().ok()?, last / 2.0))
}

/// The printed level, the baseline's level and the difference if they do not add up. `added` counts the sums.
fn wrong(
    summary: &Summary,
    row: &VariantSummary,
    metric: Metric,
    added: &mut usize,
) -> Option<String> {
    let base = cell::value(summary.variant(&row.baseline)?, metric);
    let (own, difference) = (cell::value(row, metric), cell::difference(row, metric)?);
    let numbers = read(&base).zip(read(&difference)).zip(read(&own));
    let (((base_is, base_off), (by, by_off)), (own_is, own_off)) = numbers?;
    *added += 1;
    let off = (base_is + by - own_is).abs();
    (off > (base_off + by_off + own_off) * 1.001)
        .then(|| format!("{}, {metric:?}: {base} {difference} is {own}", row.name))
}

#[test]
fn the_printed_level_is_the_sum_of_the_baselines_level_and_the_difference() {
    let mut added = 0;
    let mut all_wrong = Vec::new();
    for file in files() {
        let recording = Recording::from_json(&fs::read_to_string(&file).unwrap()).unwrap();
        let summary = Summary::of(&recording);
        for row in &summary.variants {
            let found = ADDED.map(|metric| wrong(&summary, row, metric, &mut added));
            let found = found.into_iter().flatten();
            all_wrong.extend(found.map(|it| format!("{}: {it}", file.display())));
        }
    }
    assert!(all_wrong.is_empty(), "{}", all_wrong.join("\n"));
    assert!(added > 1_000, "only {added} sums");
}
