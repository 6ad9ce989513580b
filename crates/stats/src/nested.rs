//! Rounds and what is in them: where the scatter comes from, and how long a round should be.
//!
//! A round is a start of a system and a load after it. Its figure scatters because starts differ, and because
//! the load of one round is short. More seconds in a round help against the second reason only. So there is a
//! best length (Kalibera and Jones, "Rigorous Benchmarking in Reasonable Time", ISMM 2013, for two levels).

use crate::sample;

/// Where the scatter of rounds comes from, in the square of the unit of the values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Components {
    /// The variance between rounds: what starts differ by.
    pub between: f64,
    /// The variance of a block within a round.
    pub within: f64,
}

impl Components {
    /// The components of rounds that were cut into equally many blocks, by the analysis of variance: `within` is
    /// the mean variance of the blocks of a round, and `between` is the variance of the means of rounds less
    /// `within` divided by the number of blocks, at least 0.
    ///
    /// None with fewer than two rounds or blocks, with rounds of different numbers of blocks, and with values
    /// that are not finite.
    #[must_use]
    pub fn of(rounds: &[Vec<f64>]) -> Option<Components> {
        let blocks = rounds.first()?.len();
        let is_whole =
            |round: &Vec<f64>| round.len() == blocks && round.iter().all(|value| value.is_finite());
        if rounds.len() < 2 || blocks < 2 || !rounds.iter().all(is_whole) {
            return None;
        }
        let variance =
            |values: &[f64]| sample::stddev(values).map(|deviation| deviation * deviation);
        let within: Vec<f64> = rounds
            .iter()
            .map(|round| variance(round))
            .collect::<Option<_>>()?;
        let means: Vec<f64> = rounds
            .iter()
            .map(|round| sample::mean(round))
            .collect::<Option<_>>()?;
        let within = sample::mean(&within)?;
        Some(Components {
            between: (variance(&means)? - within / blocks as f64).max(0.0),
            within,
        })
    }

    /// The variance of the mean of a round of so many blocks: `between + within / blocks`.
    #[must_use]
    pub fn of_round(&self, blocks: f64) -> f64 {
        self.between + self.within / blocks
    }

    /// The number of blocks of a round that makes an interval narrowest in a given time, where a round costs
    /// `start` in addition to `block` for each block, both in the same unit:
    /// `sqrt(start / block * within / between)`. Infinite where starts do not differ.
    #[must_use]
    pub fn blocks_best(&self, start: f64, block: f64) -> f64 {
        (start / block * self.within / self.between).sqrt()
    }

    /// How wide an interval is with rounds of `other` blocks, as a share of its width with rounds of `blocks`
    /// blocks, in the same time.
    #[must_use]
    pub fn width(&self, blocks: f64, other: f64, start: f64, block: f64) -> f64 {
        let cost = |blocks: f64| self.of_round(blocks) * (start + block * blocks);
        (cost(other) / cost(blocks)).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::normal;
    use crate::random::Random;

    /// Rounds with these standard deviations between them and of their blocks.
    fn rounds(seed: u64, rounds: usize, blocks: usize, between: f64, within: f64) -> Vec<Vec<f64>> {
        let mut random = Random::new(seed);
        let mut draw = || {
            let uniform = (random.next() >> 11) as f64 / (1_u64 << 53) as f64;
            normal::quantile(uniform.clamp(1e-12, 1.0 - 1e-12))
        };
        (0..rounds)
            .map(|_| {
                let own = between * draw();
                (0..blocks).map(|_| own + within * draw()).collect()
            })
            .collect()
    }

    #[test]
    fn planted_variances_are_recovered_within_a_fifth() {
        for (seed, between, within) in [(1, 2.0, 1.0), (2, 1.0, 4.0), (3, 1.0, 1.0)] {
            let found = Components::of(&rounds(seed, 400, 8, between, within)).unwrap();
            let is_near =
                |found: f64, planted: f64| (found / (planted * planted) - 1.0).abs() < 0.2;
            assert!(is_near(found.between, between), "{found:?}");
            assert!(is_near(found.within, within), "{found:?}");
        }
    }

    #[test]
    fn the_best_length_is_that_of_the_narrowest_interval() {
        let components = Components {
            between: 1.0,
            within: 64.0,
        };
        // A start costs as much as four blocks: sqrt(4 * 64) = 16.
        let best = components.blocks_best(4.0, 1.0);
        assert!((best - 16.0).abs() < 1e-12, "{best}");
        let width = |blocks: f64| components.width(16.0, blocks, 4.0, 1.0);
        assert!((width(16.0) - 1.0).abs() < 1e-12);
        for other in [4.0, 8.0, 12.0, 20.0, 32.0, 64.0] {
            assert!(width(other) > 1.0, "{other}: {}", width(other));
        }
    }

    #[test]
    fn starts_that_do_not_differ_have_no_best_length() {
        let components = Components {
            between: 0.0,
            within: 1.0,
        };
        assert!(components.blocks_best(1.0, 1.0).is_infinite());
    }

    #[test]
    fn what_has_no_levels_has_no_components() {
        assert_eq!(Components::of(&[]), None);
        assert_eq!(Components::of(&[vec![1.0, 2.0]]), None);
        assert_eq!(Components::of(&[vec![1.0], vec![2.0]]), None);
        assert_eq!(Components::of(&[vec![1.0, 2.0], vec![1.0]]), None);
        assert_eq!(Components::of(&[vec![1.0, f64::NAN], vec![1.0, 2.0]]), None);
    }
}
