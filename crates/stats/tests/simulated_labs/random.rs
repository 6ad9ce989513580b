//! Repeatable random numbers for simulated machines.

use std::f64::consts::PI;

/// A sequence that depends only on its seed, by SplitMix64 (Steele, Lea and Flood, "Fast Splittable
/// Pseudorandom Number Generators", OOPSLA 2014).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// Returns a standard normal number, by Box and Muller.
    pub(crate) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        radius * (2.0 * PI * self.uniform()).cos()
    }

    /// Returns a uniform number in (0, 1].
    pub(crate) fn uniform(&mut self) -> f64 {
        ((self.bits() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    /// Returns a uniform number below `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        let product = u128::from(self.bits()) * bound as u128;
        usize::try_from(product >> 64).expect("the high half is below the bound")
    }

    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }
}
