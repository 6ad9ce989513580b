//! Descriptive statistics of a few plain values, such as one figure per round or per window.
//!
//! All functions return `None` for an empty slice or a value that is not a number.

/// Arithmetic mean. `None` for an empty series or a value that is not a number.
#[must_use]
pub fn mean(values: &[f64]) -> Option<f64> {
    if values.is_empty() || has_nan(values) {
        return None;
    }
    Some(values.iter().sum::<f64>() / values.len() as f64)
}

/// Sample standard deviation (the divisor is the number of values less one). `None` for fewer than two
/// values.
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

/// Smallest value. `None` for an empty series or a value that is not a number.
#[must_use]
pub fn min(values: &[f64]) -> Option<f64> {
    if has_nan(values) {
        return None;
    }
    values.iter().copied().reduce(f64::min)
}

/// Largest value. `None` for an empty series or a value that is not a number.
#[must_use]
pub fn max(values: &[f64]) -> Option<f64> {
    if has_nan(values) {
        return None;
    }
    values.iter().copied().reduce(f64::max)
}

/// Quantile by linear interpolation between the neighbors of position `(n - 1) * share`. It is type 7 of
/// Hyndman and Fan, "Sample Quantiles in Statistical Packages", 1996, and the default of R and NumPy. Shares
/// outside of 0 to 1 count as 0 and 1.
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
    // Not `below + weight * (above - below)` alone, because that is NaN between equal infinities.
    if weight == 0.0 || below == above {
        return Some(below);
    }
    Some(below + weight * (above - below))
}

fn has_nan(values: &[f64]) -> bool {
    values.iter().any(|value| value.is_nan())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_those_of_the_textbook() {
        let values = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0];
        assert_eq!(mean(&values), Some(5.0));
        assert_eq!(median(&values), Some(4.5));
        assert_eq!(min(&values), Some(2.0));
        assert_eq!(max(&values), Some(9.0));
        // Squares add up to 32. The divisor is 7, not 8.
        assert_eq!(stddev(&values), Some((32.0_f64 / 7.0).sqrt()));
    }

    #[test]
    fn quantiles_are_those_of_type_7() {
        // R: quantile(c(1, 2, 4, 8, 16), c(0.1, 0.25, 0.5, 0.9))
        let values = [16.0, 1.0, 4.0, 8.0, 2.0];
        for (share, expected) in [(0.0, 1.0), (0.1, 1.4), (0.25, 2.0), (0.5, 4.0), (0.9, 12.8)] {
            let found = quantile(&values, share).unwrap();
            assert!((found - expected).abs() < 1e-12, "{share}: {found}");
        }
        assert_eq!(quantile(&values, 1.0), Some(16.0));
        assert_eq!(quantile(&values, 7.0), Some(16.0));
    }

    #[test]
    fn nothing_and_not_a_number_have_no_figures() {
        for values in [&[][..], &[1.0, f64::NAN][..]] {
            assert_eq!(mean(values), None);
            assert_eq!(stddev(values), None);
            assert_eq!(median(values), None);
            assert_eq!(min(values), None);
            assert_eq!(max(values), None);
        }
        assert_eq!(stddev(&[1.0]), None);
        assert_eq!(quantile(&[1.0], f64::NAN), None);
    }
}
