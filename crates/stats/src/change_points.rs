//! Where the level of a series changes, when each of its values has a known error.
//!
//! A run of a lab gives an overhead with an interval, and a history of runs is a series of them. The
//! method is optimal partitioning with pruning (PELT; Killick, Fearnhead and Eckley, "Optimal detection
//! of changepoints with a linear computational cost", Journal of the American Statistical Association
//! 107, 2012): of all ways to cut the series into segments of one level each, the one with the smallest
//! sum of squared deviations, each divided by its variance, plus a penalty for each segment. The penalty
//! is three times the logarithm of the length, as in the modified criterion of Zhang and Siegmund
//! (Biometrics 63, 2007): a level costs one parameter, and the place of a change more than one.
//!
//! Runs differ by more than their own intervals say, since another run has another day. That part is
//! found from neighbors in the series: half of the squared deviation of their differences, by its
//! median, which few changes do not touch.

/// One value of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The value. Finite.
    pub value: f64,
    /// Its standard error by the run itself; 0 where it is not known. Finite, not negative.
    pub error: f64,
}

/// A stretch of one level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Segment {
    /// Index of its first value.
    pub start: usize,
    /// Index behind its last value; above `start`.
    pub end: usize,
    /// The mean of its values, weighted by their variances.
    pub level: f64,
    /// The standard error of the level.
    pub error: f64,
}

/// The fewest values of a segment: one or two odd runs are no new level.
pub const LEAST: usize = 3;

/// Segments of one level each, in order and without gaps; none for an empty series. A series shorter than
/// twice [`LEAST`] is one segment.
///
/// # Panics
///
/// When a value or an error is not finite, or an error is negative.
#[must_use]
pub fn segments(points: &[Point]) -> Vec<Segment> {
    let is_sound = |it: &Point| it.value.is_finite() && it.error.is_finite() && it.error >= 0.0;
    assert!(
        points.iter().all(is_sound),
        "values are finite, errors are not negative"
    );
    if points.is_empty() {
        return Vec::new();
    }
    let sums = Sums::of(points);
    let mut ends = vec![points.len()];
    // From the last segment to the first.
    let starts = best_starts(&sums, points.len());
    while let Some(start) = ends
        .last()
        .map(|end| starts[*end])
        .filter(|start| *start > 0)
    {
        ends.push(start);
    }
    ends.reverse();
    let begins = std::iter::once(0).chain(ends.iter().copied());
    begins
        .zip(&ends)
        .map(|(start, end)| sums.segment(start, *end))
        .collect()
}

/// For each end, where the last segment of the best partition up to there begins.
#[expect(clippy::cast_precision_loss, reason = "series are shorter than 2^52")]
fn best_starts(sums: &Sums, length: usize) -> Vec<usize> {
    let penalty = 3.0 * (length as f64).ln();
    let mut best = vec![f64::INFINITY; length + 1];
    let mut starts = vec![0; length + 1];
    best[0] = -penalty;
    // Where the last segment may still begin.
    let mut candidates = vec![0];
    for end in LEAST.min(length)..=length {
        let costs = candidates
            .iter()
            .map(|start| (*start, best[*start] + sums.cost(*start, end)));
        let costs: Vec<(usize, f64)> = costs.collect();
        let least = costs.iter().copied().min_by(|a, b| a.1.total_cmp(&b.1));
        let (start, cost) = least.expect("the whole series is a candidate until a better one is");
        starts[end] = start;
        best[end] = cost + penalty;
        // Of a start that is worse by a penalty already, no later end makes anything better.
        let kept = costs.into_iter().filter(|(_, cost)| *cost <= best[end]);
        candidates = kept.map(|(start, _)| start).collect();
        let next = end + 1;
        if next >= 2 * LEAST && best[next - LEAST].is_finite() {
            candidates.push(next - LEAST);
        }
    }
    starts
}

/// Sums from the beginning up to each value, so that a segment costs two subtractions.
struct Sums {
    /// Of weights, weighted values and weighted squares.
    totals: Vec<[f64; 3]>,
    /// Taken off every value, so that squares keep their digits.
    origin: f64,
}

impl Sums {
    fn of(points: &[Point]) -> Sums {
        let origin = points[0].value;
        let weights = weights(points);
        let mut totals = vec![[0.0; 3]];
        let mut sum = [0.0; 3];
        for (point, weight) in points.iter().zip(weights) {
            let value = point.value - origin;
            for (total, part) in sum.iter_mut().zip([1.0, value, value * value]) {
                *total += weight * part;
            }
            totals.push(sum);
        }
        Sums { totals, origin }
    }

    fn between(&self, start: usize, end: usize) -> [f64; 3] {
        let (from, to) = (self.totals[start], self.totals[end]);
        [to[0] - from[0], to[1] - from[1], to[2] - from[2]]
    }

    /// Squared deviations from the segment's own level, divided by their variances.
    fn cost(&self, start: usize, end: usize) -> f64 {
        let [weight, values, squares] = self.between(start, end);
        (squares - values * values / weight).max(0.0)
    }

    fn segment(&self, start: usize, end: usize) -> Segment {
        let [weight, values, _] = self.between(start, end);
        Segment {
            start,
            end,
            level: self.origin + values / weight,
            error: weight.sqrt().recip(),
        }
    }
}

/// One by the variance of each value: its own error's, and what runs differ by besides.
fn weights(points: &[Point]) -> Vec<f64> {
    let mut own: Vec<f64> = points.iter().map(|it| it.error * it.error).collect();
    let beyond = (between_runs(points) - median(&mut own)).max(0.0);
    let scale = points.iter().map(|it| it.value.abs()).fold(0.0, f64::max);
    // Equal values without errors have no variance; any change of them is one.
    let least = (scale * 1e-9).max(f64::MIN_POSITIVE.sqrt());
    let weight = |it: &Point| (it.error * it.error + beyond).max(least * least).recip();
    points.iter().map(weight).collect()
}

/// The variance of a value by what neighbors differ by.
fn between_runs(points: &[Point]) -> f64 {
    let pairs = points.windows(2);
    let mut apart: Vec<f64> = pairs
        .map(|pair| (pair[1].value - pair[0].value).abs())
        .collect();
    // The median absolute deviation of a normal distribution is 0.6745 of its standard deviation; the
    // difference of two values has twice the variance of one.
    let deviation = median(&mut apart) / 0.674_489_75;
    deviation * deviation / 2.0
}

/// 0 without values.
fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => 0.0,
        even if even % 2 == 0 => f64::midpoint(values[middle - 1], values[middle]),
        _ => values[middle],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// A series around these levels, each for so many values, with a standard deviation of 1.
    fn series(seed: u64, levels: &[(usize, f64)]) -> Vec<Point> {
        let mut random = Random::new(seed);
        let mut draw = |level: f64| {
            // The sum of twelve uniform values has a variance of 1.
            let mut share =
                || f64::from(u32::try_from(random.below(1 << 20)).unwrap()) / 1_048_576.0;
            let sum: f64 = (0..12).map(|_| share()).sum();
            Point {
                value: level + sum - 6.0,
                error: 0.8,
            }
        };
        let values = levels
            .iter()
            .flat_map(|(count, level)| vec![*level; *count]);
        values.map(&mut draw).collect()
    }

    #[test]
    fn a_change_is_found_where_it_was_planted() {
        let mut more = 0;
        for seed in 0..40 {
            let found = segments(&series(seed, &[(30, 10.0), (20, 14.0), (30, 10.0)]));
            for planted in [30, 50] {
                let is_near = |it: &Segment| it.start.abs_diff(planted) <= 2;
                assert!(found.iter().any(is_near), "{seed}: {found:?}");
            }
            if found.len() > 3 {
                more += 1;
                continue;
            }
            let change = found[1].level - found[0].level;
            assert!((change - 4.0).abs() < 1.2, "{change}");
            assert!((0.1..0.4).contains(&found[1].error), "{}", found[1].error);
        }
        assert!(more <= 3, "{more} of 40 series have a change more");
    }

    #[test]
    fn a_series_of_one_level_hardly_ever_has_a_change() {
        let claimed = (0..300).filter(|seed| segments(&series(*seed, &[(100, 5.0)])).len() > 1);
        let claimed = claimed.count();
        assert!(claimed <= 15, "{claimed} of 300");
    }

    #[test]
    fn runs_may_differ_by_more_than_their_errors_say() {
        let claimed = (0..200).filter(|seed| {
            let mut points = series(*seed, &[(60, 5.0)]);
            points.iter_mut().for_each(|it| it.error = 0.05);
            segments(&points).len() > 1
        });
        let claimed = claimed.count();
        assert!(claimed <= 12, "{claimed} of 200");
    }

    #[test]
    fn short_and_even_series_are_no_trouble() {
        let even = |count: usize| {
            vec![
                Point {
                    value: 7.0,
                    error: 0.0
                };
                count
            ]
        };
        assert_eq!(segments(&[]), []);
        for count in 1..12 {
            let found = segments(&even(count));
            assert_eq!((found.len(), found[0].end), (1, count));
            assert!((found[0].level - 7.0).abs() < 1e-9);
        }
        let mut stepped = even(6);
        stepped.extend(vec![
            Point {
                value: 8.0,
                error: 0.0
            };
            6
        ]);
        let found = segments(&stepped);
        assert_eq!(found.iter().map(|it| it.start).collect::<Vec<_>>(), [0, 6]);
    }

    #[test]
    fn segments_follow_one_another_without_gaps() {
        for seed in 0..30 {
            let found = segments(&series(seed, &[(5, 0.0), (3, 9.0), (2, 0.0), (9, 30.0)]));
            let mut at = 0;
            for segment in &found {
                assert_eq!(segment.start, at);
                assert!(segment.end - segment.start >= LEAST);
                at = segment.end;
            }
            assert_eq!(at, 19);
        }
    }
}
