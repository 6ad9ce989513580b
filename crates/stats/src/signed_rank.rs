//! The distribution of Wilcoxon's signed-rank statistic, cut at a confidence.
//!
//! Under the null hypothesis each rank 1..n enters the sum with probability one half. The distribution is a
//! convolution that a few lines compute exactly (Hollander, Wolfe and Chicken, "Nonparametric Statistical
//! Methods", 3rd edition, section 3.1).

use crate::normal;

/// Up to this many rounds the distribution is exact. Above, an exact one would cost `n^3` steps, and
/// the confidence of the normal approximation is right to a tenth of a percentage point.
const EXACT_ROUNDS_MAX: usize = 100;

/// The positions that cut sorted values at both ends.
///
/// Rank sums are whole numbers, so an interval from one value to another one has one of few confidences. An
/// end between two values has a confidence between theirs. The ends are moved inward in proportion
/// (Hettmansperger and Sheather, "Confidence intervals based on interpolated order statistics", Statistics
/// and Probability Letters 4, 1986). Simulations confirm the intervals (`tests/simulated_labs`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cut {
    /// The interval reaches from the `rank`-th smallest value to the `rank`-th largest. At least 1. The
    /// interval has at least the requested confidence.
    pub(crate) rank: usize,
    /// The distance from these ends towards the next values inward, as a share from 0 to 1.
    pub(crate) inward: f64,
}

impl Cut {
    /// The cut at a rank, from the chances outside its interval. `outside` is the chance of a value beyond
    /// the interval of this rank, and `outside_next` beyond the interval of the next rank. `allowed` lies
    /// between them.
    pub(crate) fn between(rank: usize, [outside, outside_next]: [f64; 2], allowed: f64) -> Cut {
        let step = outside_next - outside;
        // Equal chances leave no room between them.
        let share = if step > 0.0 {
            (allowed - outside) / step
        } else {
            0.0
        };
        Cut {
            rank,
            inward: share.clamp(0.0, 1.0),
        }
    }
}

/// The cut of a discrete statistic with these probabilities of 0, 1, 2 …, for a chance of `tail` at either
/// end. `None` if the smallest value alone is more likely.
pub(crate) fn cut_of(probabilities: &[f64], tail: f64) -> Option<Cut> {
    let mut below = 0.0;
    for (value, probability) in probabilities.iter().enumerate() {
        let next = below + probability;
        if next > tail {
            return (value > 0).then(|| Cut::between(value, [below, next], tail));
        }
        below = next;
    }
    // The whole half of the distribution is below the tail.
    (!probabilities.is_empty()).then(|| Cut::between(probabilities.len(), [0.0; 2], tail))
}

/// The cut for `rounds` rounds with this confidence. `None` if even the whole range of the values does not
/// have it.
pub(crate) fn cut(rounds: usize, confidence: f64) -> Option<Cut> {
    if rounds == 0 || !(confidence > 0.0 && confidence < 1.0) {
        return None;
    }
    let tail = (1.0 - confidence) / 2.0;
    if rounds <= EXACT_ROUNDS_MAX {
        cut_of(&lower_half(rounds), tail)
    } else {
        approximate(rounds, tail)
    }
}

/// Probabilities of the rank sums 0, 1, 2 … up to the middle of the distribution.
fn lower_half(rounds: usize) -> Vec<f64> {
    // The distribution is symmetric, so half of it is enough.
    let middle = rounds * (rounds + 1) / 4;
    let mut probabilities = vec![0.0; middle + 1];
    probabilities[0] = 1.0;
    for rank in 1..=rounds {
        // Downwards, so that each rank is used once. Halving at every step keeps probabilities, because
        // counts would overflow.
        for sum in (0..=middle).rev() {
            let with_rank = if sum >= rank {
                probabilities[sum - rank]
            } else {
                0.0
            };
            probabilities[sum] = f64::midpoint(probabilities[sum], with_rank);
        }
    }
    probabilities
}

/// The chances that the smaller of both rank sums is 0, 1, 2 … or less, up to the middle of the distribution.
/// The chance is 1 there. The time that it takes grows with the cube of the rounds.
pub(crate) fn chances(rounds: usize) -> Vec<f64> {
    let mut below = 0.0;
    let sums = lower_half(rounds).into_iter().map(|probability| {
        below += 2.0 * probability;
        f64::min(below, 1.0)
    });
    sums.collect()
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "rank sums are whole, not negative here and far below 2^53"
)]
fn approximate(rounds: usize, tail: f64) -> Option<Cut> {
    let n = rounds as f64;
    let mean = n * (n + 1.0) / 4.0;
    let deviation = (n * (n + 1.0) * (2.0 * n + 1.0) / 24.0).sqrt();
    // Half a step, because the statistic is a whole number and the normal distribution is continuous.
    let sum = (mean + normal::quantile(tail) * deviation - 0.5).floor();
    let below = |sum: f64| normal::cumulative((sum + 0.5 - mean) / deviation);
    (sum >= 0.0).then(|| Cut::between(sum as usize + 1, [sum, sum + 1.0].map(below), tail))
}

#[cfg(test)]
mod tests;
