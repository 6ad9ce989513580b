//! What a covariate explains of the scatter of values, taken out of them: analysis of covariance, as
//! experiments on users know it by the name CUPED.
//!
//! Differences of rounds scatter for two reasons: systems come up a little faster or slower at every
//! start, and the machine itself is slower in some rounds, in which everything costs more. What third
//! systems did in the same rounds tells the second apart from the first. The values are taken to the
//! mean of the covariate along the line of least squares, so that what is left to scatter is what the
//! covariate does not explain.
//!
//! **What the intervals then mean.** Without a covariate: the difference, and how it differs from run to
//! run as machines have slow and quick hours. With one: the mean of the differences at the speeds that
//! the machine *had* in the rounds of this run. Simulations hold that to its promise, also where the
//! covariate says nothing, where it is noisy, and where some rounds are spoiled
//! (`tests/simulated_labs/pace.rs`).
//!
//! **The covariate must contain neither side of the difference.** A baseline that is slow by its own
//! luck makes the difference small; taken for the machine's speed, that luck would be explained away,
//! and intervals would be too narrow. A test shows it.
//!
//! Sources: Fisher, "Statistical Methods for Research Workers", 4th edition, 1932 (analysis of
//! covariance); Deng, Xu, Kohavi and Walker, "Improving the Sensitivity of Online Controlled
//! Experiments by Utilizing Pre-Experiment Data", 2013.

use crate::sample;

/// With fewer values the slope is mostly noise.
const VALUES_MIN: usize = 6;

/// The values with what `covariate` explains of their scatter taken out; as they are where there are
/// fewer than six, where the covariate is the same throughout, or where it has another length or is
/// not finite.
///
/// Their mean stays what it was. What is left of their scatter is widened by
/// `sqrt((n - 1) / (n - 2))`, because the slope was estimated from the same values.
#[must_use]
pub fn adjusted(values: &[f64], covariate: &[f64]) -> Vec<f64> {
    let unchanged = || values.to_vec();
    if values.len() < VALUES_MIN || covariate.len() != values.len() {
        return unchanged();
    }
    let (Some(center), Some(middle)) = (sample::mean(values), sample::mean(covariate)) else {
        return unchanged();
    };
    let pairs = || values.iter().zip(covariate);
    let spread: f64 = covariate.iter().map(|x| (x - middle) * (x - middle)).sum();
    let common: f64 = pairs().map(|(y, x)| (x - middle) * (y - center)).sum();
    let slope = common / spread;
    // Also where the covariate is not finite, or has no spread.
    if !slope.is_finite() {
        return unchanged();
    }
    let n = values.len() as f64;
    let widened = ((n - 1.0) / (n - 2.0)).sqrt();
    let left = pairs().map(|(y, x)| y - center - slope * (x - middle));
    left.map(|left| center + widened * left).collect()
}

/// The mean of the logarithms of several series, place by place: what they have in common, whatever the
/// size of each. As long as the shortest; empty without a series. Values must be above 0.
#[must_use]
pub fn mean_logarithms(series: &[Vec<f64>]) -> Vec<f64> {
    let length = series.iter().map(Vec::len).min().unwrap_or(0);
    let mean = |place: usize| {
        // By `libm`, not by the platform: the same recording gives the same digits on every machine.
        let logs = series.iter().map(|values| libm::log(values[place]));
        logs.sum::<f64>() / series.len() as f64
    };
    (0..length).map(mean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_covariate_explains_is_gone_and_the_mean_stays() {
        let covariate = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0];
        let own = [0.1, -0.1, 0.0, 0.0, 0.1, -0.1];
        let values: Vec<f64> = covariate
            .iter()
            .zip(own)
            .map(|(x, own)| 10.0 + 3.0 * x + own)
            .collect();
        let found = adjusted(&values, &covariate);
        let mean = sample::mean(&found).unwrap();
        assert!((mean - 17.5).abs() < 1e-9, "{mean}");
        // Of the scatter of 3 to 4 that the covariate made, nothing is left.
        assert!(
            found.iter().all(|value| (value - 17.5).abs() < 0.2),
            "{found:?}"
        );
    }

    #[test]
    fn what_series_have_in_common_does_not_depend_on_their_size() {
        let series = [vec![1.0, 2.0, 4.0], vec![100.0, 200.0, 400.0, 1.0]];
        let found = mean_logarithms(&series);
        assert_eq!(found.len(), 3);
        for step in found.windows(2) {
            assert!(
                (step[1] - step[0] - 2.0_f64.ln()).abs() < 1e-12,
                "{found:?}"
            );
        }
        assert!(mean_logarithms(&[]).is_empty());
    }

    #[test]
    fn the_rest_is_widened_for_the_slope_that_was_estimated() {
        // Its mean is 0 and it has nothing in common with the covariate, so the slope is 0.
        let covariate = [-1.0, 1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0];
        let values = [1.0, 1.0, -1.0, -1.0, 1.0, 1.0, -1.0, -1.0];
        let found = adjusted(&values, &covariate);
        let widened = (7.0_f64 / 6.0).sqrt();
        for (before, after) in values.iter().zip(&found) {
            assert!((after - before * widened).abs() < 1e-12, "{found:?}");
        }
    }

    #[test]
    fn values_stay_as_they_are_where_there_is_nothing_to_explain_them_by() {
        let values = [1.0, 5.0, 2.0, 8.0, 3.0, 4.0];
        assert_eq!(adjusted(&values, &[2.0; 6]), values);
        assert_eq!(adjusted(&values, &[1.0, 2.0]), values);
        assert_eq!(
            adjusted(&values, &[f64::NAN, 1.0, 2.0, 3.0, 4.0, 5.0]),
            values
        );
        assert_eq!(
            adjusted(&values[..5], &[1.0, 2.0, 3.0, 4.0, 5.0]),
            values[..5]
        );
        assert_eq!(adjusted(&[], &[]), Vec::<f64>::new());
    }
}
