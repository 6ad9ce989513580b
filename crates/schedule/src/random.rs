//! Repeatable random numbers with SplitMix64.
//!
//! Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014. The implementation
//! is here because its sequence must never change. Old recordings contain only their seed.

/// A sequence of pseudo-random numbers that depends only on its seed.
#[derive(Clone, Debug)]
pub(crate) struct Random {
    state: u64,
}

impl Random {
    const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

    /// The sequence of `seed` for one purpose. Different purposes get different sequences, even if a user
    /// gives them the same seed.
    pub(crate) fn new(seed: u64, purpose: u64) -> Random {
        // The state is mixed, because sequences overlap if their states differ by a multiple of `STEP`.
        Random {
            state: mix(seed ^ mix(purpose)),
        }
    }

    /// 64 uniform bits.
    #[inline]
    pub(crate) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(Self::STEP);
        mix(self.state)
    }

    /// Uniform over 0..bound, with a bias below `bound / 2^64`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        let product = u128::from(self.next()) * bound as u128;
        usize::try_from(product >> 64).expect("the high half is less than the bound")
    }

    /// A random order (Fisher and Yates).
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }

    /// An exponential number with mean 1, in units of 2^-58. It is always below 37.
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "cuts off what is below 2^-58"
    )]
    pub(crate) fn exponential_q58(&mut self) -> u64 {
        // The top 53 bits, shifted by one so that the logarithm of zero is never taken.
        let uniform = ((self.next() >> 11) + 1) as f64 * (1.0 / (1_u64 << 53) as f64);
        // The `f64::ln` of the platform's C library may differ in the last bit.
        (-libm::log(uniform) * (1_u64 << 58) as f64) as u64
    }
}

fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_that_of_the_published_generator() {
        let mut random = Random { state: 1_234_567 };
        let found: Vec<u64> = (0..3).map(|_| random.next()).collect();
        assert_eq!(
            found,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423
            ]
        );
    }

    #[test]
    fn purposes_and_seeds_give_different_sequences() {
        let first = |seed, purpose| Random::new(seed, purpose).next();
        assert_ne!(first(1, 1), first(1, 2));
        assert_ne!(first(1, 1), first(2, 1));
        assert_eq!(first(1, 1), first(1, 1));
    }
}
