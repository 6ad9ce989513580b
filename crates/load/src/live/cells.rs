//! Durations counted in a small number of cells, which a display or a scrape may read while a load runs.
//!
//! A thread counts in its own cells, without atomics, and from time to time adds the growth to the shared
//! cells. The histograms of a measurement have 64 times as many cells. A walk through them would delay due
//! requests.

use std::sync::atomic::{AtomicU64, Ordering};

/// Number of cells in each doubling. The width of a cell is at most a sixteenth (6.25 %) of its lower edge.
const PARTS: u64 = 1 << PARTS_BITS;
const PARTS_BITS: u32 = 4;
/// The number of cells in each doubling, for places in a list.
const STEP: usize = 1 << PARTS_BITS;
/// The first cell contains all durations up to 2^10 ns, about a microsecond.
const FIRST_BITS: u32 = 10;
/// The last cell contains all durations above 2^37 ns, 137 s.
const LAST_BITS: u32 = 37;
/// Number of all cells, including the first and the last.
const CELLS: usize = ((LAST_BITS - FIRST_BITS) as usize) * STEP + 2;

/// Returns the cell of a duration.
#[inline]
fn cell_of(ns: u64) -> usize {
    // Upper edges belong to their cell, as in Prometheus buckets.
    let below = ns.saturating_sub(1);
    if below < 1 << FIRST_BITS {
        return 0;
    }
    let bits = below.ilog2();
    if bits >= LAST_BITS {
        return CELLS - 1;
    }
    let part = (below >> (bits - PARTS_BITS)) & (PARTS - 1);
    (bits - FIRST_BITS) as usize * STEP + part as usize + 1
}

/// Returns the upper edge of a cell in nanoseconds, which belongs to it. `None` for the last cell, which has
/// no upper edge.
fn edge_of(cell: usize) -> Option<u64> {
    if cell == CELLS - 1 {
        return None;
    }
    let Some(above) = cell.checked_sub(1) else {
        return Some(1 << FIRST_BITS);
    };
    let (doubling, part) = (above / STEP, above % STEP);
    Some((PARTS + part as u64 + 1) << (FIRST_BITS as usize + doubling - PARTS_BITS as usize))
}

/// The cells of one thread.
#[derive(Debug)]
pub(crate) struct OwnCells {
    counts: Box<[u64; CELLS]>,
    /// Counts that were already added to the shared cells.
    published: Box<[u64; CELLS]>,
    sum_ns: u64,
    sum_published_ns: u64,
}

impl OwnCells {
    pub(crate) fn new() -> OwnCells {
        OwnCells {
            counts: Box::new([0; CELLS]),
            published: Box::new([0; CELLS]),
            sum_ns: 0,
            sum_published_ns: 0,
        }
    }

    #[inline]
    pub(crate) fn record_ns(&mut self, ns: u64) {
        self.counts[cell_of(ns)] += 1;
        self.sum_ns = self.sum_ns.saturating_add(ns);
    }

    /// Adds the growth to the shared cells.
    pub(crate) fn publish(&mut self, shared: &Cells) {
        let each = self.counts.iter().zip(self.published.iter_mut());
        for ((now, before), total) in each.zip(shared.counts.iter()) {
            if *now != *before {
                // Relaxed: the counts are displayed, and no other memory is read on their strength.
                total.fetch_add(*now - *before, Ordering::Relaxed);
                *before = *now;
            }
        }
        let more_ns = self.sum_ns - self.sum_published_ns;
        shared.sum_ns.fetch_add(more_ns, Ordering::Relaxed);
        self.sum_published_ns = self.sum_ns;
    }
}

/// The cells of all threads.
#[derive(Debug)]
pub(crate) struct Cells {
    counts: [AtomicU64; CELLS],
    sum_ns: AtomicU64,
}

impl Cells {
    pub(crate) fn new() -> Cells {
        Cells {
            counts: [const { AtomicU64::new(0) }; CELLS],
            sum_ns: AtomicU64::new(0),
        }
    }

    pub(crate) fn read(&self) -> Durations {
        let counts = self.counts.iter().map(|it| it.load(Ordering::Relaxed));
        Durations {
            counts: counts.collect(),
            sum_ns: self.sum_ns.load(Ordering::Relaxed),
        }
    }
}

/// Durations at one moment of a load, each with a precision of 6.25 %. They are for displays. Verdicts use
/// the histograms of a [`Measurement`](crate::Measurement), which have three digits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Durations {
    /// Counts by cell. Empty if no duration was ever added.
    counts: Vec<u64>,
    sum_ns: u64,
}

impl Durations {
    /// Returns the number of durations.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// True if there is no duration.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the sum of all durations, in nanoseconds.
    #[must_use]
    pub fn sum_ns(&self) -> u64 {
        self.sum_ns
    }

    /// Adds other durations.
    pub fn add(&mut self, others: &Durations) {
        self.counts.resize(CELLS, 0);
        for (total, more) in self.counts.iter_mut().zip(&others.counts) {
            *total += more;
        }
        self.sum_ns = self.sum_ns.saturating_add(others.sum_ns);
    }

    /// Returns the duration that this share of the durations does not exceed: the upper edge of its cell, in
    /// nanoseconds. `None` without durations. The lower edge, 2^37, if it is in the last cell.
    #[must_use]
    pub fn quantile_ns(&self, share: f64) -> Option<u64> {
        let all = self.len();
        if all == 0 {
            return None;
        }
        let mut counted = 0;
        let reached = self.counts.iter().position(|count| {
            counted += count;
            counted as f64 >= share * all as f64 && counted > 0
        });
        Some(reached.and_then(edge_of).unwrap_or(1 << LAST_BITS))
    }

    /// Iterates over the cells with durations, in order: upper edge in nanoseconds (`None`: beyond 2^37) and
    /// count.
    pub fn cells(&self) -> impl Iterator<Item = (Option<u64>, u64)> + '_ {
        let all = self.counts.iter().enumerate();
        all.filter(|(_, count)| **count > 0)
            .map(|(cell, count)| (edge_of(cell), *count))
    }

    /// Returns the number of durations in each of the buckets with these upper edges in nanoseconds, and in
    /// one more bucket beyond them. The result is exact if every edge is the edge of a cell. Powers of two
    /// from 2^10 to 2^37 are edges of cells, and so are three halves of them.
    #[must_use]
    pub fn in_buckets(&self, edges_ns: &[u64]) -> Vec<u64> {
        let mut buckets = vec![0; edges_ns.len() + 1];
        for (edge_ns, count) in self.cells() {
            let bucket = edge_ns.map_or(edges_ns.len(), |edge_ns| {
                edges_ns.partition_point(|bound| *bound < edge_ns)
            });
            buckets[bucket] += count;
        }
        buckets
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn durations(all: &[u64]) -> Durations {
        let (mut own, shared) = (OwnCells::new(), Cells::new());
        for ns in all {
            own.record_ns(*ns);
        }
        own.publish(&shared);
        shared.read()
    }

    #[test]
    fn a_duration_lies_in_its_cell_and_cells_are_narrow() {
        for bits in 0..40 {
            for ns in [1_u64 << bits, (1 << bits) + 1, (1_u64 << bits) * 3 / 2] {
                let cell = cell_of(ns);
                let lower = cell.checked_sub(1).map_or(0, |it| edge_of(it).unwrap());
                assert!(lower < ns || ns == 0, "{ns} is above {lower}");
                match edge_of(cell) {
                    Some(upper) => {
                        assert!(ns <= upper, "{ns} is within {upper}");
                        let is_first = lower == 0;
                        assert!(
                            is_first || (upper - lower) * PARTS <= lower,
                            "{lower} {upper}"
                        );
                    }
                    None => assert!(ns > 1 << LAST_BITS, "{ns}"),
                }
            }
        }
    }

    #[test]
    fn what_was_published_is_not_published_again() {
        let (mut own, shared) = (OwnCells::new(), Cells::new());
        own.record_ns(5_000);
        own.publish(&shared);
        own.publish(&shared);
        own.record_ns(7_000);
        own.publish(&shared);
        assert_eq!((shared.read().len(), shared.read().sum_ns()), (2, 12_000));
    }

    #[test]
    fn quantiles_are_upper_edges() {
        let mut all: Vec<u64> = vec![1_000_000; 98];
        all.extend([50_000_000, u64::MAX / 4]);
        let all = durations(&all);
        let p50 = all.quantile_ns(0.5).unwrap();
        assert!((1_000_000..=1_062_500).contains(&p50), "{p50}");
        let p99 = all.quantile_ns(0.99).unwrap();
        assert!((50_000_000..=53_125_000).contains(&p99), "{p99}");
        assert_eq!(all.quantile_ns(1.0), Some(1 << LAST_BITS));
        assert_eq!(durations(&[]).quantile_ns(0.5), None);
    }

    #[test]
    fn buckets_include_their_upper_edge_and_sum_to_all() {
        let edges = [1 << 20, (1 << 20) * 3 / 2, 1 << 21];
        let all = durations(&[
            1 << 20,
            (1 << 20) + 1,
            (1 << 20) * 3 / 2,
            1 << 21,
            (1 << 21) + 1,
            1 << 39,
        ]);
        assert_eq!(all.in_buckets(&edges), [1, 2, 1, 2]);
    }

    #[test]
    fn durations_of_several_moments_add_up() {
        let mut total = Durations::default();
        total.add(&durations(&[2_000, 3_000]));
        total.add(&durations(&[3_000]));
        assert_eq!((total.len(), total.sum_ns()), (3, 8_000));
    }
}
