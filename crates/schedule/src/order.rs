//! The order in which the variants of a lab are measured.
//!
//! Machines drift: they warm up, neighbors come and go. Every round measures every variant once,
//! in an order that is random (so that nothing periodic favors one) and counterbalanced (so that
//! luck does not put one variant first too often). Abedi and Brecht, "Conducting Repeatable
//! Experiments in Highly Variable Cloud Computing Environments", ICPE 2017, show what happens
//! without.

use crate::random::Random;

/// Purpose of the random numbers, see `Random::new`.
const ORDER: u64 = 2;

/// For each round, the order in which to measure variants `0..variants` (the baseline is one of
/// them).
///
/// Every variant is measured once a round. Over each block of `variants` rounds every variant has
/// every position once (a Latin square with shuffled rows and names); in a last, incomplete block
/// no variant has a position more than once. The squares are those of Williams ("Experimental
/// designs balanced for the estimation of residual effects of treatments", 1949): with an even
/// number of variants each one also directly follows each other one once a block, so that what a
/// variant leaves behind (heat, page cache) hits all alike; with an odd number, once or not more
/// than twice. Same seed, same order.
#[must_use]
pub fn round_order(variants: usize, rounds: usize, seed: u64) -> Vec<Vec<usize>> {
    if variants == 0 {
        return vec![Vec::new(); rounds];
    }
    let mut random = Random::new(seed, ORDER);
    let mut order = Vec::with_capacity(rounds);
    while order.len() < rounds {
        let left = rounds - order.len();
        order.extend(block(variants, &mut random).into_iter().take(left));
    }
    order
}

/// The next `variants` orders: a Latin square with its rows and names shuffled. At least one
/// variant.
pub(crate) fn block(variants: usize, random: &mut Random) -> Vec<Vec<usize>> {
    let columns = zigzag(variants);
    let mut names: Vec<usize> = (0..variants).collect();
    random.shuffle(&mut names);
    let mut rows: Vec<usize> = (0..variants).collect();
    // Names and rows: shuffled names alone would leave the rounds of a block in one order.
    random.shuffle(&mut rows);
    let order = |row: usize| {
        let seats = columns.iter();
        seats
            // Rows of the square differ by a shift, so that each column has every variant once.
            .map(|column| names[(row + column) % variants])
            .collect()
    };
    rows.into_iter().map(order).collect()
}

/// 0, 1, n-1, 2, n-2 …: neighbors differ by a different amount each time.
fn zigzag(variants: usize) -> Vec<usize> {
    (0..variants)
        .map(|position| {
            if position % 2 == 1 {
                position.div_ceil(2)
            } else {
                (variants - position / 2) % variants
            }
        })
        .collect()
}

#[cfg(test)]
mod tests;
