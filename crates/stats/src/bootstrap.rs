//! Quantiles over the requests of *all* rounds together, compared by bootstrap.
//!
//! A round of 2,000 requests has two beyond its p99.9, and a figure of two requests cannot be paired. Forty
//! such rounds together have eighty. The requests of a round still depend on one another, so the bootstrap
//! redraws rounds. It redraws a round as a pair of baseline and variant, with all its requests. This is a
//! bootstrap of two levels that redraws the upper one (Davison and Hinkley, "Bootstrap Methods and their
//! Application", 1997, section 3.8). Redrawing the requests inside of each round as well would count their
//! chance twice, because the spread between rounds already contains it. `tests/simulated_labs` shows how much
//! too wide the intervals become then.
//!
//! Percentiles of the redrawn differences are too narrow with few rounds. The tails are therefore cut at the
//! shares that Student's t requires. This is the expanded percentile interval of Hesterberg ("What Teachers
//! Should Know about the Bootstrap", The American Statistician 69, 2015). Below [`ROUNDS_MIN`] rounds there
//! is no interval, because few draws differ and no draw contains a round that was not measured. Paired rounds
//! ([`crate::paired`]) need no such approximation and are the headline.

use crate::histogram::Histogram;
use crate::paired::{Estimate, Interval};
use crate::random::Random;
use crate::shift::{self, Shift, ShiftError};
use crate::{normal, student};

/// With fewer rounds there is no interval.
pub const ROUNDS_MIN: usize = 10;

/// With fewer requests beyond a quantile on either side there is no interval.
pub const BEYOND_MIN: f64 = 20.0;

/// Draws of all rounds for each interval.
const DRAWS: usize = 20_000;
/// Smallest share of the draws beyond an end that is read off directly. With a smaller share, few draws lie
/// further out, and the end would depend on the seed. Such an end is extrapolated, as if the tail were
/// normal.
const TAIL_MIN: f64 = 0.02;

/// Quantiles over all requests: the quantile of the variant minus the quantile of the baseline. Histograms
/// with the same index belong to the same round. Each interval has the given confidence by itself. The
/// interval is `None` with fewer than [`ROUNDS_MIN`] rounds, or with fewer than [`BEYOND_MIN`] requests
/// beyond the quantile.
///
/// # Errors
/// If the numbers of rounds differ or are 0, if a round is empty, or if `confidence` does not lie strictly
/// between 0 and 1.
pub fn pooled_shift(
    baseline: &[Histogram],
    variant: &[Histogram],
    quantiles: &[f64],
    confidence: f64,
) -> Result<Vec<Shift>, ShiftError> {
    // A fixed seed, so that the same recording always has the same intervals.
    pooled_shift_of(0, baseline, variant, quantiles, confidence)
}

fn pooled_shift_of(
    seed: u64,
    baseline: &[Histogram],
    variant: &[Histogram],
    quantiles: &[f64],
    confidence: f64,
) -> Result<Vec<Shift>, ShiftError> {
    shift::check(baseline, variant, confidence)?;
    let rounds = baseline.len();
    let (base, own) = (Pool::of(baseline), Pool::of(variant));
    let sought: Vec<[Sought; 2]> = quantiles
        .iter()
        .map(|quantile| [own.sought(*quantile), base.sought(*quantile)])
        .collect();
    let differences = |weights: &[u64]| -> Vec<f64> {
        let pairs = sought.iter().map(|[of_own, of_base]| {
            own.quantile_ns(weights, of_own) as f64 - base.quantile_ns(weights, of_base) as f64
        });
        pairs.collect()
    };
    // Each round counts once, because the estimate itself is not random.
    let found = differences(&vec![1; rounds]);
    let has_interval = |quantile: f64| {
        let fewest = base.requests().min(own.requests()) as f64;
        rounds >= ROUNDS_MIN && fewest * quantile.min(1.0 - quantile) >= BEYOND_MIN
    };
    // Drawing is the expensive part and is skipped when no quantile could have an interval.
    let drawn = if quantiles.iter().any(|quantile| has_interval(*quantile)) {
        draw(rounds, seed, differences)
    } else {
        Vec::new()
    };
    let shifts = quantiles.iter().enumerate().map(|(index, quantile)| {
        let interval = has_interval(*quantile).then(|| {
            let column = drawn.iter().map(|row| row[index]).collect();
            cut(column, tail(rounds, confidence), confidence)
        });
        Shift {
            quantile: *quantile,
            difference_ns: Estimate {
                value: found[index],
                interval,
            },
        }
    });
    Ok(shifts.collect())
}

/// Returns the figures of every draw of rounds.
fn draw(rounds: usize, seed: u64, figures: impl Fn(&[u64]) -> Vec<f64>) -> Vec<Vec<f64>> {
    let mut random = Random::new(seed);
    (0..DRAWS)
        .map(|_| {
            let mut weights = vec![0; rounds];
            for _ in 0..rounds {
                weights[random.below(rounds)] += 1;
            }
            figures(&weights)
        })
        .collect()
}

/// The share of draws that is cut off at either end.
fn tail(rounds: usize, confidence: f64) -> f64 {
    // At least one degree of freedom, although there is no interval with fewer than `ROUNDS_MIN` rounds.
    let n = rounds as f64;
    let freedom = rounds.saturating_sub(1).max(1);
    let t = student::quantile(confidence, freedom);
    normal::cumulative(-(n / (n - 1.0)).sqrt() * t)
}

/// The interval without this share of the draws at either end. If the share is less than [`TAIL_MIN`], the
/// end is extrapolated. Its distance from the middle draw grows by the quantiles of the normal distribution.
fn cut(mut drawn: Vec<f64>, tail: f64, confidence: f64) -> Interval {
    drawn.sort_unstable_by(f64::total_cmp);
    let last = drawn.len() - 1;
    let read = tail.max(TAIL_MIN);
    let middle = f64::midpoint(drawn[last / 2], drawn[last - last / 2]);
    let further = normal::quantile(tail) / normal::quantile(read);
    let end = |read: f64| middle + (read - middle) * further;
    let count = drawn.len() as f64;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of the number of draws"
    )]
    let rank = |share: f64| (share * count) as usize;
    // At most half, or the ends would cross. Draws of few rounds take few different values, so one rank may
    // fall on either side of a step. The mean of many ranks does not.
    let ranks = rank(0.5 * read).min(last / 2)..=rank(1.5 * read).min(last / 2);
    let mean = |place: fn(usize, usize) -> usize| {
        let sum: f64 = ranks.clone().map(|rank| drawn[place(rank, last)]).sum();
        sum / ranks.clone().count() as f64
    };
    Interval {
        low: end(mean(|rank, _| rank)),
        high: end(mean(|rank, last| last - rank)),
        confidence,
    }
}

/// The requests of several rounds, in a form that can be weighted by round quickly.
struct Pool {
    /// All values, without repetition, in rising order.
    values_ns: Vec<u64>,
    /// Number of requests at or below each value: the rounds of the first value, then the rounds of the
    /// second. A draw reads all rounds of one value, so they are neighbors in memory.
    cumulative: Vec<u64>,
    rounds: usize,
}

/// A quantile, with the part of the values that contains it in every draw.
struct Sought {
    quantile: f64,
    from: usize,
    to: usize,
}

impl Pool {
    fn of(rounds: &[Histogram]) -> Pool {
        let mut values_ns: Vec<u64> = rounds
            .iter()
            .flat_map(|round| round.recorded().map(|(value, _)| value))
            .collect();
        // All rounds use one scale of values, so that a weighted sum over rounds is a sum of one column.
        values_ns.sort_unstable();
        values_ns.dedup();
        let mut cumulative = vec![0; values_ns.len() * rounds.len()];
        for (index, round) in rounds.iter().enumerate() {
            let mut recorded = round.recorded().peekable();
            let mut sum = 0;
            let cells = cumulative.iter_mut().skip(index).step_by(rounds.len());
            for (value, cell) in values_ns.iter().zip(cells) {
                while let Some((_, count)) = recorded.next_if(|(next, _)| next <= value) {
                    sum += count;
                }
                *cell = sum;
            }
        }
        Pool {
            values_ns,
            cumulative,
            rounds: rounds.len(),
        }
    }

    /// The number of requests at or below a value, for each round.
    fn at_or_below(&self, index: usize) -> &[u64] {
        &self.cumulative[index * self.rounds..][..self.rounds]
    }

    fn requests(&self) -> u64 {
        self.at_or_below(self.values_ns.len() - 1).iter().sum()
    }

    /// Returns the part of the values that contains the quantile in every draw. A draw is a mean of rounds, so
    /// its quantile lies between the smallest and the largest quantile of a round.
    fn sought(&self, quantile: f64) -> Sought {
        let mut weights = vec![0; self.rounds];
        let mut part = Sought {
            quantile,
            from: 0,
            to: self.values_ns.len() - 1,
        };
        let of_rounds = (0..self.rounds).map(|round| {
            weights[round] = 1;
            let index = self.index_of(&weights, &part);
            weights[round] = 0;
            index
        });
        let of_rounds: Vec<usize> = of_rounds.collect();
        // One value further on both sides, because the ranks of a round and of a draw are rounded up.
        part.from = of_rounds
            .iter()
            .min()
            .map_or(0, |least| least.saturating_sub(1));
        part.to = of_rounds
            .iter()
            .max()
            .map_or(part.to, |most| (most + 1).min(part.to));
        part
    }

    /// Like [`Histogram::quantile_ns`] of all rounds together, each counted by its weight.
    fn quantile_ns(&self, weights: &[u64], sought: &Sought) -> u64 {
        self.values_ns[self.index_of(weights, sought)]
    }

    fn index_of(&self, weights: &[u64], sought: &Sought) -> usize {
        let at_or_below = |index: usize| -> u64 {
            let rounds = self.at_or_below(index).iter().zip(weights);
            rounds.map(|(count, weight)| count * weight).sum()
        };
        // As in `Histogram::quantile_ns`: a product such as 7.000000000000001 means the 7th.
        let last = self.values_ns.len() - 1;
        let exact = sought.quantile.clamp(0.0, 1.0) * at_or_below(last) as f64;
        let rank = (exact - exact * 4.0 * f64::EPSILON).ceil().max(1.0);
        // By bisection, because cumulative counts rise and thousands of draws are evaluated.
        let (mut low, mut high) = (sought.from, sought.to);
        while low < high {
            let middle = usize::midpoint(low, high);
            if (at_or_below(middle) as f64) < rank {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounds of 1,000 requests from 1 to 2 ms, with a speed of their own and `added` ns on top.
    fn rounds(count: u64, added: u64) -> Vec<Histogram> {
        (0..count)
            .map(|round| {
                let mut histogram = Histogram::new();
                for request in 0..1_000 {
                    histogram.record_ns((1_000 + request) * (1_000 + round % 3) + added);
                }
                histogram
            })
            .collect()
    }

    #[test]
    fn pooled_quantiles_are_those_of_the_merged_histogram() {
        let parts = rounds(5, 0);
        let mut merged = Histogram::new();
        parts.iter().for_each(|part| merged.add(part));
        let pool = Pool::of(&parts);
        assert_eq!(pool.requests(), 5_000);
        for quantile in [0.0_f64, 0.001, 0.5, 0.9, 0.99, 0.999, 1.0] {
            let expected = merged.quantile_ns(quantile.max(1e-9)).unwrap();
            let sought = pool.sought(quantile);
            assert_eq!(pool.quantile_ns(&[1; 5], &sought), expected, "{quantile}");
        }
        let mut last_only = vec![0; 5];
        last_only[4] = 3;
        let expected = parts[4].quantile_ns(0.5).unwrap();
        assert_eq!(pool.quantile_ns(&last_only, &pool.sought(0.5)), expected);
    }

    /// Draws of unequal rounds have the same quantiles in the part that [`Pool::sought`] names as in all values.
    #[test]
    fn the_sought_part_contains_the_quantile_of_every_draw() {
        let mut random = Random::new(11);
        let rounds: Vec<Histogram> = (1..=7_u64)
            .map(|round| {
                let mut histogram = Histogram::new();
                for _ in 0..round * 3 {
                    histogram.record_ns(1_000 + 40 * random.below(100) as u64 * round);
                }
                histogram
            })
            .collect();
        let pool = Pool::of(&rounds);
        for quantile in [0.0, 0.001, 0.5, 0.75, 0.9, 0.99, 1.0] {
            let sought = pool.sought(quantile);
            let all = Sought {
                quantile,
                from: 0,
                to: pool.values_ns.len() - 1,
            };
            for _ in 0..500 {
                let mut weights = vec![0; 7];
                (0..7).for_each(|_| weights[random.below(7)] += 1);
                assert_eq!(
                    pool.quantile_ns(&weights, &sought),
                    pool.quantile_ns(&weights, &all),
                    "{quantile} {weights:?}"
                );
            }
        }
    }

    #[test]
    fn a_cost_that_every_request_pays_is_found_at_every_quantile() {
        let found = pooled_shift(
            &rounds(12, 0),
            &rounds(12, 500_000),
            &[0.5, 0.9, 0.99],
            0.95,
        )
        .unwrap();
        for shift in found {
            let interval = shift.difference_ns.interval.unwrap();
            assert!(
                (shift.difference_ns.value - 500_000.0).abs() < 3_000.0,
                "{shift:?}"
            );
            assert!(
                interval.low > 490_000.0 && interval.high < 510_000.0,
                "{shift:?}"
            );
        }
    }

    #[test]
    fn the_same_rounds_have_the_same_interval_every_time() {
        let (baseline, variant) = (rounds(10, 0), rounds(10, 70_000));
        let once = pooled_shift(&baseline, &variant, &[0.9], 0.95).unwrap();
        assert_eq!(
            pooled_shift(&baseline, &variant, &[0.9], 0.95).unwrap(),
            once
        );
    }

    #[test]
    fn ends_hardly_depend_on_the_seed() {
        // Rounds that scatter, so that the ends depend on the seed.
        let mut random = Random::new(5);
        let mut rounds = |count: usize| -> Vec<Histogram> {
            let mut round = || {
                let mut histogram = Histogram::new();
                let speed = 1_000 + random.below(400) as u64;
                (0..500).for_each(|request| histogram.record_ns((1_000 + request) * speed));
                histogram
            };
            (0..count).map(|_| round()).collect()
        };
        let (baseline, variant) = (rounds(12), rounds(12));
        for confidence in [0.95, 0.99, 0.997] {
            let intervals: Vec<Interval> = (0..8)
                .map(|seed| {
                    let found = pooled_shift_of(seed, &baseline, &variant, &[0.9], confidence);
                    let found = found.unwrap();
                    found[0].difference_ns.interval.unwrap()
                })
                .collect();
            let width = intervals[0].high - intervals[0].low;
            for ends in [|it: &Interval| it.low, |it: &Interval| it.high] {
                let least = intervals.iter().map(ends).fold(f64::INFINITY, f64::min);
                let most = intervals.iter().map(ends).fold(f64::NEG_INFINITY, f64::max);
                assert!(
                    most - least <= 0.02 * width,
                    "{confidence}: {least} to {most} of {width}"
                );
            }
        }
    }

    #[test]
    fn few_rounds_or_few_requests_beyond_have_a_value_without_an_interval() {
        let few = pooled_shift(&rounds(9, 0), &rounds(9, 0), &[0.5], 0.95).unwrap();
        assert_eq!(few[0].difference_ns.interval, None);
        let rare = pooled_shift(&rounds(10, 0), &rounds(10, 0), &[0.99, 0.999], 0.95).unwrap();
        assert!(rare[0].difference_ns.interval.is_some());
        assert_eq!(rare[1].difference_ns.interval, None);
    }

    #[test]
    fn rounds_that_make_no_pairs_are_refused() {
        let refused = pooled_shift(&rounds(10, 0), &rounds(9, 0), &[0.5], 0.95).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "expected 10 rounds of the variant, the number of the baseline, found 9"
        );
    }
}
