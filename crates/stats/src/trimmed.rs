//! The mean of the shortest samples, without the rounding of a histogram.

/// Returns the mean over the share `kept` of all samples, the smallest first. A sample at the cut counts in
/// part, as in [`crate::Histogram::trimmed_mean_ns`]. `None` without samples.
///
/// # Panics
/// If `kept` is not above 0 and at most 1.
#[must_use]
pub fn trimmed_mean(mut samples: Vec<u64>, kept: f64) -> Option<f64> {
    assert!(kept > 0.0 && kept <= 1.0, "{kept} of the samples");
    if samples.is_empty() {
        return None;
    }
    samples.sort_unstable();
    let wanted = samples.len() as f64 * kept;
    let (mut left, mut sum) = (wanted, 0.0);
    for sample in samples {
        let taken = left.min(1.0);
        sum += sample as f64 * taken;
        left -= taken;
        if left <= 0.0 {
            break;
        }
    }
    Some(sum / wanted)
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
