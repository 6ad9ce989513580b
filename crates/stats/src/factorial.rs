//! Effects of factors: contrasts over all variants of a round.
//!
//! Each variant sets every factor to one of two levels. With `k` factors, the effect of `m` of them is
//!
//! `sum over all variants of s y / 2^(k - m)`
//!
//! for a full design, where `y` is the figure of a variant. The sign `s` is the product of the signs of the
//! `m` factors in this variant: -1 at the first level and +1 at the second. With `N` variants in general,
//! `2^(k - m)` is `N / 2^m`. So
//!
//! * the effect of one factor is the mean of (on - off) over all levels of the other factors. It contains half
//!   of each interaction with one other factor.
//! * the interaction of two factors is (both - only the one - only the other + neither), averaged over the
//!   others: the additional cost if both are on. It is twice the interaction of Box, Hunter and Hunter,
//!   "Statistics for Experimenters", 2nd edition, 2005, chapter 5, which is half of that difference.
//! * the interaction of three factors is the change of the interaction of two of them by the third.
//!
//! Each effect uses the requests of all variants (Box, Hunter and Hunter, chapter 5). A list of variants
//! that change one factor each would use only two of them.
//!
//! Main idea: the sum is a mean over pairs of variants with opposite signs. Each pair is a difference as in
//! [`crate::paired`], and the variants on neither side of it show the speed of the machine. So a difference
//! in a pair is adjusted exactly like a difference from a baseline. The unit stays the round: an effect has
//! one value in each round, and its estimate is [`paired::location_of`] these values.

use crate::covariate::Adjustment;
use crate::paired::{self, Differences};

/// The pairs of variants of an effect, and its scale.
#[derive(Clone, Debug, PartialEq)]
pub struct Contrast {
    /// Places of variants. The effect is the scaled mean of the first minus the second.
    pub pairs: Vec<[usize; 2]>,
    /// `2^(m - 1)` for an effect of `m` factors.
    pub scale: f64,
}

/// Logarithms of the figures of variants, which together show the speed of the machine in each round.
#[derive(Clone, Debug)]
pub struct Pace {
    /// The logarithms of each variant of the design. `None` if a figure is not above 0.
    own: Vec<Option<Vec<f64>>>,
    /// The sum over all variants with logarithms, by round.
    sums: Vec<f64>,
    /// The number of these variants.
    count: usize,
}

impl Pace {
    /// Reads the pace from the variants of the design, and from variants outside of it. A row contains the
    /// figures of one variant in the same rounds.
    #[must_use]
    pub fn of(variants: &[Vec<f64>], outside: &[Vec<f64>]) -> Self {
        let rounds = variants.first().map_or(0, Vec::len);
        let logs = |row: &Vec<f64>| -> Option<Vec<f64>> {
            let is_told = row.len() == rounds && row.iter().all(|value| *value > 0.0);
            // By `libm`, not by the platform, so that the same recording gives the same digits on every
            // machine.
            is_told.then(|| row.iter().map(|value| libm::log(*value)).collect())
        };
        let own: Vec<Option<Vec<f64>>> = variants.iter().map(logs).collect();
        let outside: Vec<Option<Vec<f64>>> = outside.iter().map(logs).collect();
        let told: Vec<&Vec<f64>> = own.iter().chain(&outside).flatten().collect();
        let sum = |round: usize| told.iter().map(|row| row[round]).sum();
        Self {
            sums: (0..rounds).map(sum).collect(),
            count: told.len(),
            own,
        }
    }

    /// The mean logarithm of the variants that are not in the pair. `None` without such variants.
    fn without(&self, pair: [usize; 2]) -> Option<Vec<f64>> {
        let in_pair: Vec<&Vec<f64>> = pair
            .iter()
            .filter_map(|place| self.own.get(*place)?.as_ref())
            .collect();
        let left = self.count.checked_sub(in_pair.len()).filter(|it| *it > 0)?;
        let mean = |(round, sum): (usize, &f64)| {
            let own: f64 = in_pair.iter().map(|row| row[round]).sum();
            (sum - own) / left as f64
        };
        Some(self.sums.iter().enumerate().map(mean).collect())
    }
}

/// The value of an effect in each round. `variants` contains the figures of each variant of the design, all
/// in the same rounds. With `pace`, each pair is adjusted by the variants that are not in it. A value is
/// `None` if the machine had an unusual speed in the round. If too few rounds are usual in all pairs for an
/// interval of this confidence, no value is adjusted.
///
/// The slopes of the pairs come from nearly the same speeds, so an effect with any slope loses one degree of
/// freedom.
///
/// Empty if there are no pairs, if a pair names a variant that does not exist, or if rows differ in length.
#[must_use]
pub fn by_round(
    contrast: &Contrast,
    variants: &[Vec<f64>],
    pace: Option<&Pace>,
    confidence: f64,
) -> Differences {
    let adjusted = differences(contrast, variants, |pair, base, own| {
        match pace.and_then(|pace| pace.without(pair)) {
            Some(slowness) => paired::differences_adjusted(base, own, &slowness, confidence),
            None => plain(base, own),
        }
    });
    let all = adjusted.by_round.len();
    let known = adjusted.by_round.iter().flatten().count();
    match known >= paired::rounds_needed(confidence).min(all) {
        true => adjusted,
        false => differences(contrast, variants, |_, base, own| plain(base, own)),
    }
}

fn plain(base: &[f64], own: &[f64]) -> Differences {
    let both = base.iter().zip(own);
    Differences {
        by_round: both.map(|(base, own)| Some(own - base)).collect(),
        lost: 0,
    }
}

/// The scaled mean of the differences of all pairs, by round.
fn differences(
    contrast: &Contrast,
    variants: &[Vec<f64>],
    of_pair: impl Fn([usize; 2], &[f64], &[f64]) -> Differences,
) -> Differences {
    let rounds = variants.first().map_or(0, Vec::len);
    let each = |pair: &[usize; 2]| -> Option<Differences> {
        let [own, base] = pair.map(|place| variants.get(place).filter(|row| row.len() == rounds));
        Some(of_pair(*pair, base?, own?))
    };
    let found: Option<Vec<Differences>> = contrast.pairs.iter().map(each).collect();
    let pairs = found.unwrap_or_default();
    if pairs.is_empty() {
        return Differences {
            by_round: Vec::new(),
            lost: 0,
        };
    }
    let scale = contrast.scale / pairs.len() as f64;
    let value = |round: usize| -> Option<f64> {
        let sum: Option<f64> = pairs.iter().map(|pair| pair.by_round[round]).sum();
        Some(scale * sum?)
    };
    Differences {
        by_round: (0..rounds).map(value).collect(),
        lost: pairs.iter().map(|pair| pair.lost).max().unwrap_or(0),
    }
}

impl Differences {
    /// The values of the used rounds.
    #[must_use]
    pub fn used(&self) -> Adjustment {
        Adjustment {
            values: self.by_round.iter().copied().flatten().collect(),
            lost: self.lost,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two rounds of neither, a, b, both.
    fn square() -> Vec<Vec<f64>> {
        vec![
            vec![100.0, 200.0],
            vec![107.0, 209.0],
            vec![114.0, 210.0],
            vec![124.0, 222.0],
        ]
    }

    fn contrast(pairs: &[[usize; 2]], scale: f64) -> Contrast {
        Contrast {
            pairs: pairs.to_vec(),
            scale,
        }
    }

    #[test]
    fn effects_of_two_factors_are_those_computed_by_hand() {
        let of = |pairs: &[[usize; 2]], scale| {
            by_round(&contrast(pairs, scale), &square(), None, 0.95).by_round
        };
        // Round 1: a costs 7 alone and 10 with b. Round 2: 9 and 12.
        assert_eq!(of(&[[1, 0], [3, 2]], 1.0), [Some(8.5), Some(10.5)]);
        // b costs 14 and 17, then 10 and 13.
        assert_eq!(of(&[[2, 0], [3, 1]], 1.0), [Some(15.5), Some(11.5)]);
        // Both - only a - only b + neither.
        assert_eq!(of(&[[3, 2], [0, 1]], 2.0), [Some(3.0), Some(3.0)]);
        // a alone.
        assert_eq!(of(&[[1, 0]], 1.0), [Some(7.0), Some(9.0)]);
    }

    #[test]
    fn effects_of_three_factors_are_those_computed_by_hand() {
        // 100, and 10 for a, 20 for b, 40 for c, 4 for a with b, and 8 for all three.
        let figure = |run: usize| {
            let [a, b, c] = [0, 1, 2].map(|bit| (run >> bit & 1) as f64);
            vec![100.0 + 10.0 * a + 20.0 * b + 40.0 * c + 4.0 * a * b + 8.0 * a * b * c]
        };
        let figures: Vec<Vec<f64>> = (0..8).map(figure).collect();
        let of = |factors: u32, scale| {
            let is_plus =
                |run: &usize| (run & factors as usize).count_ones() % 2 == factors.count_ones() % 2;
            let lowest = factors & factors.wrapping_neg();
            let pair = |run: usize| [run, run ^ lowest as usize];
            let pairs: Vec<[usize; 2]> = (0..8).filter(is_plus).map(pair).collect();
            by_round(&contrast(&pairs, scale), &figures, None, 0.95).by_round[0].unwrap()
        };
        // a: 10, half of 4, and a quarter of 8.
        assert_eq!(of(0b001, 1.0), 14.0);
        assert_eq!(of(0b010, 1.0), 24.0);
        assert_eq!(of(0b100, 1.0), 42.0);
        // a with b: 4, and half of 8.
        assert_eq!(of(0b011, 2.0), 8.0);
        assert_eq!(of(0b101, 2.0), 4.0);
        assert_eq!(of(0b111, 4.0), 8.0);
    }

    /// 12 rounds of neither, a, b, both. The machine is slower in some rounds, and `luck` is small.
    fn on_a_changing_machine() -> (Vec<Vec<f64>>, Vec<f64>) {
        let slow = [
            1.0, 1.1, 0.9, 1.05, 0.95, 1.15, 0.85, 1.02, 0.98, 1.08, 0.92, 1.0,
        ];
        let luck = |run: usize, round: usize| ((run * 7 + round * 5) % 11) as f64 / 50.0;
        let row = |(run, usual): (usize, f64)| {
            let rounds = slow.iter().enumerate();
            rounds
                .map(|(round, slow)| usual * slow + luck(run, round))
                .collect()
        };
        let usual = [200.0, 300.0, 250.0, 370.0].into_iter().enumerate();
        (usual.map(row).collect(), slow.to_vec())
    }

    #[test]
    fn the_pace_of_the_machine_is_taken_from_the_variants_outside_of_each_pair() {
        let (figures, _) = on_a_changing_machine();
        let pace = Pace::of(&figures, &[]);
        let main = contrast(&[[1, 0], [3, 2]], 1.0);
        let width = |pace: Option<&Pace>| {
            let used = by_round(&main, &figures, pace, 0.95).used();
            // Both pairs have a slope, and an effect without pace has none.
            assert_eq!(used.lost == 1, pace.is_some(), "{used:?}");
            let found = paired::location_of(&used, 0.95).unwrap();
            assert!((found.value - 110.0).abs() < 3.0, "{found:?}");
            found.interval.unwrap().half_width()
        };
        assert!(width(Some(&pace)) < 0.1 * width(None));
        // All variants are on a side of the interaction, so each pair sees only the other pair.
        let both = contrast(&[[3, 2], [0, 1]], 2.0);
        assert_eq!(
            by_round(&both, &figures, Some(&pace), 0.95).by_round.len(),
            12
        );
    }

    #[test]
    fn the_pace_without_other_variants_adjusts_nothing() {
        let (figures, _) = on_a_changing_machine();
        let two = &figures[..2];
        let alone = contrast(&[[1, 0]], 1.0);
        let none = Pace::of(two, &[]);
        let plain = by_round(&alone, two, None, 0.95);
        assert_eq!(by_round(&alone, two, Some(&none), 0.95), plain);
        // A variant with a figure of 0 shows no speed.
        let zero = Pace::of(two, &[vec![0.0; 12]]);
        assert_eq!(by_round(&alone, two, Some(&zero), 0.95), plain);
        let outside = Pace::of(two, &[figures[3].clone()]);
        assert_ne!(by_round(&alone, two, Some(&outside), 0.95), plain);
    }

    #[test]
    fn without_enough_usual_rounds_no_value_is_adjusted() {
        let (figures, slow) = on_a_changing_machine();
        // Of seven rounds, the others show two as unusual.
        let short = |row: &Vec<f64>| row[..7].to_vec();
        let figures: Vec<Vec<f64>> = figures.iter().map(short).collect();
        let mut odd = slow[..7].to_vec();
        (odd[0], odd[1]) = (90.0, 80.0);
        let two = &figures[..2];
        let pace = Pace::of(two, &[odd]);
        let alone = contrast(&[[1, 0]], 1.0);
        let plain = by_round(&alone, two, None, 0.95);
        assert_eq!(by_round(&alone, two, Some(&pace), 0.95), plain);
    }

    #[test]
    fn pairs_that_do_not_fit_have_no_values() {
        assert!(
            by_round(&contrast(&[], 1.0), &square(), None, 0.95)
                .by_round
                .is_empty()
        );
        assert!(
            by_round(&contrast(&[[4, 0]], 1.0), &square(), None, 0.95)
                .by_round
                .is_empty()
        );
        let mut uneven = square();
        uneven[1].pop();
        assert!(
            by_round(&contrast(&[[1, 0]], 1.0), &uneven, None, 0.95)
                .by_round
                .is_empty()
        );
        assert!(
            by_round(&contrast(&[[1, 0]], 1.0), &[], None, 0.95)
                .by_round
                .is_empty()
        );
    }
}
