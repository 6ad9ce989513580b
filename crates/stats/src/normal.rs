//! The standard normal distribution, limited to the functions that intervals need.

use std::f64::consts::SQRT_2;

/// Probability of a standard normal value at or below `z`.
pub(crate) fn cumulative(z: f64) -> f64 {
    // By `erfc`, which keeps its precision in the tail. `1 - erf` has lost all digits there.
    0.5 * libm::erfc(-z / SQRT_2)
}

/// The `z` with the given probability below it. `probability` lies strictly between 0 and 1.
///
/// By bisection, because it is called once per interval and has no coefficients to mistype.
pub(crate) fn quantile(probability: f64) -> f64 {
    // 40 deviations, because the tail beyond them is below the smallest number that a float can hold.
    let mut low = -40.0;
    let mut high = 40.0;
    // 100 halvings of the range reach the last bit of a float.
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if cumulative(middle) < probability {
            low = middle;
        } else {
            high = middle;
        }
    }
    f64::midpoint(low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (probability, z) in [
            (0.5, 0.0),
            (0.975, 1.959_963_984_540_054),
            (0.995, 2.575_829_303_548_901),
            (0.025, -1.959_963_984_540_054),
            (1e-9, -5.997_807_015_007_682),
        ] {
            assert!(
                (quantile(probability) - z).abs() < 1e-9,
                "{probability}: {} instead of {z}",
                quantile(probability)
            );
        }
    }
}
