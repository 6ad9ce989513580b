//! The mean of the shortest samples, without the rounding of a histogram.

/// Kept share of the samples, see [`crate::Histogram::TYPICAL_SHARE`].
pub(crate) const TYPICAL_SHARE: f64 = 0.75;

/// Returns the mean over the share `kept` of all samples, the smallest first. A sample at the cut counts in
/// part, as in [`crate::Histogram::trimmed_mean_ns`]. `None` without samples.
///
/// # Panics
/// If `kept` is not above 0 and at most 1.
#[must_use]
pub fn trimmed_mean(mut samples: Vec<u64>, kept: f64) -> Option<f64> {
    samples.sort_unstable();
    let all = samples.len() as f64;
    mean_of_sorted(
        samples.iter().map(|sample| (*sample as f64, 1.0)),
        all,
        kept,
    )
}

/// Returns the typical value of a mixture of requests, each with its weight and samples, as
/// [`crate::Histogram::typical_of_mixture_ns`] does for histograms. `None` without samples.
#[must_use]
pub fn typical_of_mixture(requests: impl IntoIterator<Item = (f64, Vec<u64>)>) -> Option<f64> {
    let requests = requests.into_iter();
    weighted_mean(requests.map(|(weight, samples)| (weight, trimmed_mean(samples, TYPICAL_SHARE))))
}

/// Returns the mean over the share `kept` of `all` samples. They come as values with counts, the smallest
/// value first. `None` without samples.
///
/// # Panics
/// If `kept` is not above 0 and at most 1.
pub(crate) fn mean_of_sorted(
    samples: impl Iterator<Item = (f64, f64)>,
    all: f64,
    kept: f64,
) -> Option<f64> {
    assert!(kept > 0.0 && kept <= 1.0, "{kept} of the samples");
    let wanted = all * kept;
    let (mut left, mut sum) = (wanted, 0.0);
    for (value, count) in samples {
        let taken = left.min(count);
        sum += value * taken;
        left -= taken;
        if left <= 0.0 {
            break;
        }
    }
    (wanted > 0.0).then(|| sum / wanted)
}

/// Returns the mean of the values that exist, by their weights. `None` without weight.
pub(crate) fn weighted_mean(values: impl Iterator<Item = (f64, Option<f64>)>) -> Option<f64> {
    let (mut sum, mut weights) = (0.0, 0.0);
    for (weight, value) in values {
        if let Some(value) = value {
            sum += weight * value;
            weights += weight;
        }
    }
    (weights > 0.0).then(|| sum / weights)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Histogram;

    #[test]
    fn a_sample_at_the_cut_counts_in_part() {
        // 10.5 of 14: five of 1, five of 2, and half of one of 1,200.
        let mut samples = vec![1_200; 4];
        samples.extend([2; 5]);
        samples.extend([1; 5]);
        let expected = (5.0 + 10.0 + 0.5 * 1_200.0) / 10.5;
        let found = trimmed_mean(samples, 0.75).unwrap();
        assert!((found - expected).abs() < 1e-9, "{found}");
        assert_eq!(trimmed_mean(vec![7], 0.75), Some(7.0));
        assert_eq!(trimmed_mean(vec![1, 2, 6], 1.0), Some(3.0));
        assert_eq!(trimmed_mean(Vec::new(), 0.75), None);
    }

    #[test]
    fn it_tells_latencies_apart_that_share_a_bucket() {
        // 400.1 ms and 60 us more: a bucket is 262 us wide there.
        let both = [400_100_000_u64, 400_160_000].map(|ns| vec![ns; 20]);
        let rounded = both.clone().map(|samples| {
            let mut histogram = Histogram::new();
            samples.iter().for_each(|ns| histogram.record_ns(*ns));
            histogram.trimmed_mean_ns(0.75).unwrap()
        });
        assert!((rounded[1] - rounded[0]).abs() < 1e-9, "{rounded:?}");
        let [first, second] = both.map(|samples| trimmed_mean(samples, 0.75).unwrap());
        assert!((second - first - 60_000.0).abs() < 1e-6);
    }
}
