//! The order of the variants of a lab within each round.
//!
//! Machines drift, because they warm up and neighbors come and go. Every round measures every variant once.
//! The order is random, so that periodic noise does not favor a variant. It is also counterbalanced, so that
//! chance does not put one variant first too often. Abedi and Brecht, "Conducting Repeatable Experiments in
//! Highly Variable Cloud Computing Environments", ICPE 2017, show the effects of a fixed order.

use crate::random::Random;

/// Purpose of the random numbers, see `Random::new`.
const ORDER: u64 = 2;

/// The order of variants `0..variants` for each round. The baseline is one of the variants.
///
/// Every variant is measured once per round. Over each block of `variants` rounds, every variant has every
/// position once (a Latin square with shuffled rows and names). In a last, incomplete block, no variant has a
/// position more than once. The squares are Williams squares ("Experimental designs balanced for the
/// estimation of residual effects of treatments", 1949). With an even number of variants, each variant also
/// directly follows each other variant once per block. With an odd number, it follows once or at most twice.
/// So the aftereffects of a variant (heat, page cache) affect all variants equally. Equal seeds give equal
/// orders.
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

/// The next `variants` orders, which form a Latin square with shuffled rows and names. Requires at least one
/// variant.
pub(crate) fn block(variants: usize, random: &mut Random) -> Vec<Vec<usize>> {
    let columns = zigzag(variants);
    let mut names: Vec<usize> = (0..variants).collect();
    random.shuffle(&mut names);
    let mut rows: Vec<usize> = (0..variants).collect();
    // Rows are shuffled as well as names. With shuffled names alone, the rounds of a block would have one
    // order.
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
