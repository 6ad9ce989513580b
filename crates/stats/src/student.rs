//! Student's t distribution, limited to the functions that intervals from few rounds need.

use std::cell::RefCell;
use std::collections::HashMap;
use std::f64::consts::{FRAC_2_PI, FRAC_PI_2};

use crate::sample;

/// Probability that a t value with `freedom` degrees of freedom (at least 1) lies within `-t` and `t`. Uses
/// the closed form for whole degrees (Abramowitz and Stegun, "Handbook of Mathematical Functions", 26.7.3 and
/// 26.7.4).
pub(crate) fn within(t: f64, freedom: usize) -> f64 {
    let angle = libm::atan(t / (freedom as f64).sqrt());
    let (sine, cosine) = (libm::sin(angle), libm::cos(angle));
    let is_odd = freedom % 2 == 1;
    let (terms, mut term) = if is_odd {
        ((freedom - 1) / 2, cosine)
    } else {
        (freedom / 2, 1.0)
    };
    // The closed forms for odd and even degrees differ in their first term and in the factors
    // between terms.
    let mut sum = 0.0;
    for index in 1..=terms {
        sum += term;
        let even = 2.0 * index as f64;
        let factor = if is_odd {
            even / (even + 1.0)
        } else {
            (even - 1.0) / even
        };
        term *= factor * cosine * cosine;
    }
    if is_odd {
        FRAC_2_PI * (angle + sine * sum)
    } else {
        sine * sum
    }
}

thread_local! {
    /// The quantiles of this thread, by the bits of the confidence and by the degrees of freedom.
    static KNOWN: RefCell<HashMap<(u64, usize), f64>> = RefCell::default();
}

/// The `t` with this probability within `-t` and `t`. `confidence` lies strictly between 0 and 1.
///
/// Each is computed once. A report predicts the rounds of each variant and metric, and the predictions need
/// the same quantiles of up to 100,000 degrees of freedom. They were two thirds of the time of a report.
pub(crate) fn quantile(confidence: f64, freedom: usize) -> f64 {
    let asked = (confidence.to_bits(), freedom);
    let compute = || bisected(confidence, freedom);
    KNOWN.with_borrow_mut(|known| *known.entry(asked).or_insert_with(compute))
}

fn bisected(confidence: f64, freedom: usize) -> f64 {
    // Bisection over the angle, because it is bounded and t is not.
    let (mut low, mut high) = (0.0, FRAC_PI_2);
    let scale = (freedom as f64).sqrt();
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        let before = (low, high);
        if within(libm::tan(middle) * scale, freedom) < confidence {
            low = middle;
        } else {
            high = middle;
        }
        // The ends are neighbors now, and further steps would repeat this one.
        if before == (low, high) {
            break;
        }
    }
    libm::tan(f64::midpoint(low, high)) * scale
}

/// Half of the width of the interval around the mean: `t s / sqrt(n)`. `t` is the quantile of `n - 1` degrees
/// of freedom, and `s` is the standard deviation of `n` values. `None` with fewer than two values.
///
/// `confidence` lies strictly between 0 and 1.
pub(crate) fn half_width(values: &[f64], confidence: f64) -> Option<f64> {
    let error = sample::stddev(values)? / (values.len() as f64).sqrt();
    Some(quantile(confidence, values.len() - 1) * error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_the_same_each_time() {
        for (confidence, freedom) in [(0.95, 5), (0.95, 99_999), (0.966, 5)] {
            let first = quantile(confidence, freedom);
            assert_eq!(first, quantile(confidence, freedom));
            assert_eq!(first, bisected(confidence, freedom));
        }
    }

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (confidence, freedom, t) in [
            (0.95, 1, 12.706_204_736),
            (0.95, 2, 4.302_652_730),
            (0.95, 5, 2.570_581_836),
            (0.95, 9, 2.262_157_163),
            (0.95, 19, 2.093_024_054),
            (0.99, 10, 3.169_272_673),
            (0.95, 1_000, 1.962_339_081),
        ] {
            let found = quantile(confidence, freedom);
            assert!(
                (found - t).abs() < 1e-7,
                "{confidence}, {freedom}: {found} instead of {t}"
            );
        }
    }
}
