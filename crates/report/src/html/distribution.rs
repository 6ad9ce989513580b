//! The latencies of a variant over all its rounds, for the pictures of distributions and percentiles.

use std::collections::{BTreeMap, BTreeSet};

use analysis::summary::{Summary, complete_rounds};
use model::Unit;
use recording::{Recording, float};
use stats::Histogram;

/// The pooled latencies of each variant by name. A variant without a complete round is absent.
pub(super) type PooledLatencies<'a> = BTreeMap<&'a str, Histogram>;

/// The latencies of all variants and of their baselines, each pooled once for all pictures.
pub(super) fn pooled_latencies<'a>(
    recording: &Recording,
    summary: &'a Summary,
) -> PooledLatencies<'a> {
    let names = summary
        .variants
        .iter()
        .flat_map(|row| [&row.name, &row.baseline]);
    let names: BTreeSet<&str> = names.map(String::as_str).collect();
    let pooled = names
        .into_iter()
        .map(|name| Some((name, pooled(recording, name)?)));
    pooled.flatten().collect()
}

fn pooled(recording: &Recording, name: &str) -> Option<Histogram> {
    let mut all = Histogram::new();
    for round in complete_rounds(recording, name) {
        all.add(&round.latency_ns_hdr.histogram());
    }
    (!all.is_empty()).then_some(all)
}

/// The latency at each share in this unit, in one pass. `shares` must rise.
pub(super) fn quantiles(histogram: &Histogram, shares: &[f64], unit: Unit) -> Vec<(f64, f64)> {
    let total = float(histogram.len());
    let mut buckets = histogram.recorded();
    // The caller ensures that the histogram is not empty, so these zeros are never drawn.
    let (mut edge_ns, mut seen) = buckets.next().unwrap_or((0, 0));
    let longest = histogram.max_ns().unwrap_or(0);
    let mut points = Vec::with_capacity(shares.len());
    for share in shares {
        // The tolerance for rounding is the same as in `Histogram::quantile_ns`, because a share times a
        // count is not exact.
        while float(seen) < share * total * (1.0 - 1e-12) {
            let Some((next, count)) = buckets.next() else {
                break;
            };
            edge_ns = next;
            seen += count;
        }
        // The bucket's upper edge may exceed the longest latency, but the curve must not.
        points.push((*share, unit.shown(float(edge_ns.min(longest)) / 1e3)));
    }
    points
}
