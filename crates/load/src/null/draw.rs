//! Random times that are equal in every run with the same seed.
//!
//! A factor and a surcharge depend only on the seed and the number of the request. They do not depend on the
//! order of events or the time of day, so a run can be repeated.

use std::f64::consts::TAU;
use std::time::Duration;

use super::error::BehaviorError;

/// Constants that separate the draws for one request, because they share its seed and its number.
const RADIUS: u64 = 0x6a09_e667_f3bc_c908;
const ANGLE: u64 = 0xbb67_ae85_84ca_a73b;
const SLOW: u64 = 0x3c6e_f372_fe94_f82b;

/// Random factors of a delay, by the log-normal distribution.
///
/// The factor is `exp(sigma * Z - sigma^2 / 2)` with a standard normal `Z` and
/// `sigma^2 = ln(1 + variation^2)`. Its mean is 1, so that the mean delay stays as given. Its standard
/// deviation is `variation`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Jitter {
    sigma: f64,
}

impl Jitter {
    /// The largest coefficient of variation.
    pub const VARIATION_MAX: f64 = 5.0;

    /// Returns factors with that coefficient of variation: 0.2 for a standard deviation of 20 % of the mean.
    ///
    /// # Errors
    /// [`BehaviorError::Variation`] if it is below 0, above [`Jitter::VARIATION_MAX`] or no number.
    pub fn of_variation(variation: f64) -> Result<Jitter, BehaviorError> {
        if !(0.0..=Jitter::VARIATION_MAX).contains(&variation) {
            return Err(BehaviorError::Variation);
        }
        let sigma = (variation * variation).ln_1p().sqrt();
        Ok(Jitter { sigma })
    }

    /// Returns a time multiplied by the factor of request `index`.
    pub(super) fn times(self, ns: u64, seed: u64, index: u64) -> u64 {
        if self.sigma <= 0.0 {
            return ns;
        }
        let factor = (self.sigma * normal(seed, index) - self.sigma * self.sigma / 2.0).exp();
        let scaled = Duration::from_nanos(ns).as_secs_f64() * factor;
        Duration::try_from_secs_f64(scaled).map_or(u64::MAX, crate::clock::to_ns)
    }
}

/// A share of the requests takes longer.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Slow {
    share: f64,
    by: Duration,
}

impl Slow {
    /// Makes that share of the requests, drawn at random, longer by that time.
    ///
    /// # Errors
    /// [`BehaviorError::Share`] if the share is below 0, above 1 or no number.
    pub fn new(share: f64, by: Duration) -> Result<Slow, BehaviorError> {
        if !(0.0..=1.0).contains(&share) {
            return Err(BehaviorError::Share);
        }
        Ok(Slow { share, by })
    }

    /// Returns the additional time of request `index`.
    pub(super) fn surcharge_ns(self, seed: u64, index: u64) -> u64 {
        if unit(seed ^ SLOW, index) <= self.share {
            crate::clock::to_ns(self.by)
        } else {
            0
        }
    }
}

/// Returns a whole number below `total`, which has at most 32 bits.
pub(super) fn below(total: u64, seed: u64, index: u64) -> u64 {
    // The upper half times the total, divided by its range, is a uniform draw except for 2^-32.
    ((mixed(seed, index) >> 32) * total) >> 32
}

/// Returns a standard normal number, by Box and Muller.
fn normal(seed: u64, index: u64) -> f64 {
    let radius = (-2.0 * unit(seed ^ RADIUS, index).ln()).sqrt();
    radius * (TAU * unit(seed ^ ANGLE, index)).cos()
}

/// Returns a uniform number above 0 and at most 1.
fn unit(seed: u64, index: u64) -> f64 {
    ((mixed(seed, index) >> 11) + 1) as f64 / (1_u64 << 53) as f64
}

/// Returns SplitMix64 (Steele, Lea and Flood, OOPSLA 2014) at position `index`.
fn mixed(seed: u64, index: u64) -> u64 {
    let mut bits = seed.wrapping_add((index + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: u64 = 100_000;

    /// Returns mean and coefficient of variation of delays of 12 ms, and the share of delays below the mean.
    fn figures(variation: f64, seed: u64) -> (f64, f64, f64) {
        let base_ns = 12_000_000.0;
        let jitter = Jitter::of_variation(variation).unwrap();
        let delays: Vec<f64> = (0..DRAWS)
            .map(|index| jitter.times(12_000_000, seed, index) as f64 / base_ns)
            .collect();
        let count = DRAWS as f64;
        let mean = delays.iter().sum::<f64>() / count;
        let squares: f64 = delays.iter().map(|it| (it - mean).powi(2)).sum();
        let below = delays.iter().filter(|it| **it < 1.0).count() as f64;
        (mean, (squares / count).sqrt() / mean, below / count)
    }

    #[test]
    fn jitter_keeps_the_mean_and_has_the_variation_that_was_asked_for() {
        for (variation, seed) in [(0.05, 1), (0.2, 1), (0.2, 2), (0.5, 3)] {
            let (mean, found, below) = figures(variation, seed);
            // Four standard errors of a mean, and of the deviation of a skewed distribution.
            let error = 4.0 * variation / (DRAWS as f64).sqrt();
            assert!((mean - 1.0).abs() < error, "{variation}: mean {mean}");
            assert!(
                (found / variation - 1.0).abs() < 0.03,
                "{variation}: found {found}"
            );
            // The median of a log-normal factor is exp(-sigma^2 / 2), so more than half lie below the mean.
            // P(factor < 1) = Phi(sigma / 2), which is 0.5 + sigma / 2 / sqrt(2 pi) to the first order.
            let sigma = (1.0 + variation * variation).ln().sqrt();
            let expected = 0.5 + sigma / 2.0 / TAU.sqrt();
            assert!(
                (below - expected).abs() < 0.01,
                "{variation}: below {below}"
            );
        }
    }

    #[test]
    fn without_jitter_a_delay_stays_to_the_nanosecond() {
        let none = Jitter::of_variation(0.0).unwrap();
        for ns in [0, 1, 100_001, 400_000_001, u64::MAX] {
            assert_eq!(none.times(ns, 7, 3), ns);
            assert_eq!(Jitter::default().times(ns, 7, 3), ns);
        }
    }

    #[test]
    fn jitter_depends_on_seed_and_request_alone() {
        let jitter = Jitter::of_variation(0.2).unwrap();
        let delays = |seed: u64| -> Vec<u64> {
            (0..50)
                .map(|index| jitter.times(1_000_000, seed, index))
                .collect()
        };
        assert_eq!(delays(1), delays(1));
        let same = delays(1)
            .iter()
            .zip(delays(2))
            .filter(|(a, b)| **a == *b)
            .count();
        assert_eq!(same, 0);
        // The longest time saturates and does not wrap around.
        assert!(jitter.times(u64::MAX, 1, 1) > u64::MAX / 4);
    }

    #[test]
    fn neighboring_requests_have_nothing_in_common() {
        let draws: Vec<f64> = (0..DRAWS).map(|index| normal(1, index)).collect();
        let pairs = draws.windows(2).map(|pair| pair[0] * pair[1]);
        let correlation = pairs.sum::<f64>() / DRAWS as f64;
        // Four standard errors.
        assert!(
            correlation.abs() < 4.0 / (DRAWS as f64).sqrt(),
            "{correlation}"
        );
    }

    #[test]
    fn the_share_that_was_asked_for_is_slow() {
        let slow = Slow::new(0.2, Duration::from_millis(5)).unwrap();
        let paying = (0..DRAWS)
            .filter(|index| match slow.surcharge_ns(1, *index) {
                0 => false,
                5_000_000 => true,
                other => panic!("{other} ns"),
            })
            .count();
        // 20,000 expected, with a standard deviation of 126.
        assert!((19_500..20_500).contains(&paying), "{paying}");
        let all = Slow::new(1.0, Duration::from_millis(5)).unwrap();
        let none = Slow::new(0.0, Duration::from_millis(5)).unwrap();
        for index in 0..1_000 {
            assert_eq!(all.surcharge_ns(1, index), 5_000_000);
            assert_eq!(none.surcharge_ns(1, index), 0);
        }
    }

    #[test]
    fn shares_and_variations_out_of_range_are_refused() {
        for wrong in [-0.1, 5.1, f64::NAN, f64::INFINITY] {
            let found = Jitter::of_variation(wrong);
            assert_eq!(found, Err(BehaviorError::Variation), "{wrong}");
        }
        for wrong in [-0.1, 1.1, f64::NAN] {
            let found = Slow::new(wrong, Duration::ZERO);
            assert_eq!(found, Err(BehaviorError::Share), "{wrong}");
        }
    }
}
