//! Repeatable randomness: SplitMix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number
//! Generators", OOPSLA 2014). Intervals that use it are the same on every machine.

/// A sequence of pseudo-random numbers that depends only on its seed.
#[derive(Clone, Debug)]
pub(crate) struct Random {
    state: u64,
}

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random { state: seed }
    }

    /// Returns 64 uniform bits.
    pub(crate) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let bits = self.state;
        let bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// A uniform index below `bound`, as even as 64 bits allow.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        // The high half of the product instead of a remainder: no division, and no bias towards
        // small indexes.
        let product = u128::from(self.next()) * bound as u128;
        usize::try_from(product >> 64).expect("the high half is below the bound")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_that_of_the_published_generator() {
        let mut random = Random::new(1_234_567);
        assert_eq!(random.next(), 6_457_827_717_110_365_317);
        assert_eq!(random.next(), 3_203_168_211_198_807_973);
    }
}
