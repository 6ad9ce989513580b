//! Descriptive statistics of a few plain values, such as one figure per round or per window.
//!
//! All functions answer none for an empty slice, and none when a value is not a number.

/// Arithmetic mean.
#[must_use]
pub fn mean(values: &[f64]) -> Option<f64> {
    if values.is_empty() || has_nan(values) {
        return None;
    }
    Some(values.iter().sum::<f64>() / values.len() as f64)
}

/// Sample standard deviation (the divisor is the number of values less one); none for fewer than
/// two values.
#[must_use]
pub fn stddev(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let center = mean(values)?;
    let squares: f64 = values.iter().map(|value| (value - center).powi(2)).sum();
    Some((squares / (values.len() as f64 - 1.0)).sqrt())
}

/// Median: the middle value, or the mean of the two middle values.
#[must_use]
pub fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// Smallest value.
#[must_use]
pub fn min(values: &[f64]) -> Option<f64> {
    if has_nan(values) {
        return None;
    }
    values.iter().copied().reduce(f64::min)
}

/// Largest value.
#[must_use]
pub fn max(values: &[f64]) -> Option<f64> {
    if has_nan(values) {
        return None;
    }
    values.iter().copied().reduce(f64::max)
}

/// Quantile by linear interpolation between the neighbors of position `(n - 1) * share` (type 7
/// of Hyndman and Fan, "Sample Quantiles in Statistical Packages", 1996; the default of R and
/// NumPy). Shares outside of 0 to 1 count as 0 and 1.
#[must_use]
pub fn quantile(values: &[f64], share: f64) -> Option<f64> {
    if values.is_empty() || has_nan(values) || share.is_nan() {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let position = (values.len() as f64 - 1.0) * share.clamp(0.0, 1.0);
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a position lies between 0 and the number of values"
    )]
    let index = position.floor() as usize;
    let below = *sorted.get(index)?;
    let above = sorted.get(index + 1).copied().unwrap_or(below);
    let weight = position - position.floor();
    // Not `below + weight * (above - below)` alone: that is NaN between equal infinities.
    if weight == 0.0 || below == above {
        return Some(below);
    }
    Some(below + weight * (above - below))
}

fn has_nan(values: &[f64]) -> bool {
    values.iter().any(|value| value.is_nan())
}

