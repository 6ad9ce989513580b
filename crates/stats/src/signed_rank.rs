//! The distribution of Wilcoxon's signed-rank statistic, cut at a confidence.
//!
//! Under the null hypothesis each rank 1..n enters the sum with probability one half, so the
//! distribution is a convolution that a few lines compute exactly (Hollander, Wolfe and Chicken,
//! "Nonparametric Statistical Methods", 3rd edition, section 3.1).

use crate::normal;

/// Up to this many rounds the distribution is exact. Above, an exact one would cost `n^3` steps, and
/// the confidence of the normal approximation is right to a tenth of a percentage point.
const EXACT_ROUNDS_MAX: usize = 100;

/// Where to cut the sorted Walsh averages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cut {
    /// The interval reaches from the `rank`-th smallest Walsh average to the `rank`-th largest;
    /// at least 1.
    pub(crate) rank: usize,
    /// Confidence that this interval really has: at least the one asked for.
    pub(crate) achieved: f64,
}

/// The narrowest cut for `rounds` rounds with at least this confidence; `None` when even the whole
/// range of the values does not have it.
pub(crate) fn cut(rounds: usize, confidence: f64) -> Option<Cut> {
    if rounds == 0 || !(confidence > 0.0 && confidence < 1.0) {
        return None;
    }
    let tail = (1.0 - confidence) / 2.0;
    if rounds <= EXACT_ROUNDS_MAX {
        exact(rounds, tail)
    } else {
        approximate(rounds, tail)
    }
}

fn exact(rounds: usize, tail: f64) -> Option<Cut> {
    let mut below = 0.0;
    let mut found = None;
    for (sum, probability) in lower_half(rounds).into_iter().enumerate() {
        below += probability;
        if below > tail {
            break;
        }
        found = Some(Cut {
            rank: sum + 1,
            achieved: 1.0 - 2.0 * below,
        });
    }
    found
}

/// Probabilities of the rank sums 0, 1, 2 … up to the middle of the distribution.
fn lower_half(rounds: usize) -> Vec<f64> {
    // The distribution is symmetric, so half of it is enough.
    let middle = rounds * (rounds + 1) / 4;
    let mut probabilities = vec![0.0; middle + 1];
    probabilities[0] = 1.0;
    for rank in 1..=rounds {
        // Downwards, so that each rank is used once. Halving at every step keeps the numbers
        // probabilities, where counts would overflow.
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

#[expect(
    clippy::cast_possible_truncation,
    reason = "rank sums are whole, not negative here and far below 2^53"
)]
fn approximate(rounds: usize, tail: f64) -> Option<Cut> {
    let n = rounds as f64;
    let mean = n * (n + 1.0) / 4.0;
    let deviation = (n * (n + 1.0) * (2.0 * n + 1.0) / 24.0).sqrt();
    // Half a step: the statistic is whole, the normal distribution is not.
    let sum = (mean + normal::quantile(tail) * deviation - 0.5).floor();
    (sum >= 0.0).then(|| Cut {
        rank: sum as usize + 1,
        achieved: 1.0 - 2.0 * normal::cumulative((sum + 0.5 - mean) / deviation),
    })
}

#[cfg(test)]
mod tests;
