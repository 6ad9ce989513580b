//! The variances of the values of a series: the scatter of runs around their level.
//!
//! A run has the error that its own interval gives. Runs differ by more than that, because conditions differ
//! from day to day. And days next to each other may be similar, so that runs of one week lie together on one
//! side of the level. Such a week looks like a change of the level, and the variances must allow for it.

use super::{ODD, Point, Segment};
use crate::sample;

/// Share of the differences of neighbors that determines the scale. The largest fifth may be changes of the
/// level and odd runs.
const SHARE: f64 = 0.8;

/// Half-width that contains [`SHARE`] of a standard normal distribution.
const SHARE_DEVIATIONS: f64 = 1.281_551_565_544_6;

/// Likely correlation without any data, and the number of runs that outweigh it. Both are chosen so that
/// correlated and independent histories have few false changes (`tests/simulated_labs/history.rs`).
const CORRELATION_BEFORE: f64 = 0.45;
const RUNS_BEFORE: f64 = 20.0;

/// Upper limit of the correlation of neighbors.
const CORRELATION_MAX: f64 = 0.8;

/// Variances of values that do not depend on their neighbors. Each variance is the value's own error plus the
/// additional difference between neighbors.
pub(super) fn of_independent(points: &[Point]) -> Vec<f64> {
    let own: Vec<f64> = points.iter().map(|it| it.error * it.error).collect();
    let beyond = between_neighbors(points) - sample::median(&own).unwrap_or(0.0);
    let beyond = beyond.max(0.0);
    let scale = points.iter().map(|it| it.value.abs()).fold(0.0, f64::max);
    // Equal values without errors have no variance, so any change of them would be a change of the level.
    let least = (scale * 1e-9).max(f64::MIN_POSITIVE.sqrt());
    let variance = |it: &Point| (it.error * it.error + beyond).max(least * least);
    points.iter().map(variance).collect()
}

/// The variance of a value, estimated from the differences of neighbors. The difference of two values has
/// twice the variance of one.
fn between_neighbors(points: &[Point]) -> f64 {
    let pairs = points.windows(2);
    let apart: Vec<f64> = pairs
        .map(|pair| (pair[1].value - pair[0].value).abs())
        .collect();
    let deviation = sample::quantile(&apart, SHARE).unwrap_or(0.0) / SHARE_DEVIATIONS;
    deviation * deviation / 2.0
}

/// The factor for the variances that accounts for the dependence of neighbors.
///
/// With the correlation `r` of neighbors, their differences show the share `1 - r` of the variance. If the
/// dependence fades from run to run (autoregression of order 1), the mean of a long stretch has a larger
/// variance. It is `(1 + r) / (1 - r)` times the variance without correlation. Both together are
/// `(1 + r) / (1 - r)^2`.
pub(super) fn factor(points: &[Point], independent: &[f64], found: &[Segment]) -> f64 {
    let correlation = correlation(points, independent, found);
    (1.0 + correlation) / (1.0 - correlation).powi(2)
}

/// The correlation of neighbors within segments, from 0 to [`CORRELATION_MAX`]. A short series hardly shows
/// its own, so the estimate starts from a likely value.
fn correlation(points: &[Point], independent: &[f64], found: &[Segment]) -> f64 {
    let (mut squares, mut products) = (0.0, 0.0);
    for segment in found {
        let own = segment.start..segment.end;
        let each = points[own.clone()].iter().zip(&independent[own]);
        let deviations: Vec<f64> = each
            .map(|(it, variance)| ((it.value - segment.level) / variance.sqrt()).clamp(-ODD, ODD))
            .collect();
        squares += deviations.iter().map(|it| it * it).sum::<f64>();
        products += deviations
            .windows(2)
            .map(|pair| pair[0] * pair[1])
            .sum::<f64>();
    }
    if squares <= 0.0 {
        return 0.0;
    }
    let seen = products / squares;
    let length = points.len() as f64;
    let of_segment = length / found.len() as f64;
    // Deviations from their own mean seem less correlated than they are (Kendall, "Note on bias in the
    // estimation of autocorrelation", Biometrika 41, 1954).
    let unbiased = seen + (1.0 + 3.0 * seen) / of_segment;
    let likely = (length * unbiased + RUNS_BEFORE * CORRELATION_BEFORE) / (length + RUNS_BEFORE);
    likely.clamp(0.0, CORRELATION_MAX)
}
