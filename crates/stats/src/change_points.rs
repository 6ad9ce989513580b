//! Finds where the level of a series changes. Each value of the series has a known error.
//!
//! A run of a lab gives an overhead with an interval, and a history of runs is a series of them.
//! [`segments`] cuts the series into segments of one level each, at the least cost.
//!
//! A value costs the square of its deviation from the level, divided by its variance, and at most the square
//! of 2.5. This is the biweight loss of Fearnhead and Rigaill, "Changepoint detection in the presence of
//! outliers", Journal of the American Statistical Association 114, 2019. One or two odd runs cost so little
//! that they have no level of their own.
//!
//! A segment costs a penalty. Somebody looks at a history after every run, so the penalty is for all looks
//! together: few series of one level have a change at any of them
//! (`tests/simulated_labs/history.rs`).

mod variance;

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
    /// The mean of its values, weighted by their variances. Odd runs do not count.
    pub level: f64,
    /// The standard error of the level.
    pub error: f64,
}

/// The fewest values of a segment. Two values cost at most twice the square of [`ODD`], which is less than
/// the [`penalty`] of a segment.
pub const LEAST: usize = 3;

/// Standard deviations beyond which a value costs no more.
const ODD: f64 = 2.5;

/// Most steps of the search for the variances, which depend on the segments.
const STEPS_MAX: usize = 5;

/// Returns segments of one level each, in order and without gaps; none for an empty series. A segment has at
/// least [`LEAST`] values, or it is the whole series.
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
    let independent = variance::of_independent(points);
    let mut found = cut(points, &independent);
    // Runs that depend on one another look like changes of the level, and changes of the level look like
    // dependence. The search begins with the most changes.
    for _ in 0..STEPS_MAX {
        let factor = variance::factor(points, &independent, &found);
        let variances: Vec<f64> = independent.iter().map(|it| it * factor).collect();
        let next = cut(points, &variances);
        let is_found = next.len() == found.len();
        found = next;
        if is_found {
            break;
        }
    }
    found
}

/// The cost of a segment in a series of this length, as twice the logarithm of a likelihood. A level costs
/// one parameter, and the place of a change more than one (Zhang and Siegmund, Biometrics 63, 2007).
fn penalty(length: usize) -> f64 {
    const LEAST_PENALTY: f64 = 13.0;
    (2.8 * libm::log(length as f64)).max(LEAST_PENALTY)
}

/// The cost of a value that lies so far from a level.
fn cost(deviation: f64, variance: f64) -> f64 {
    (deviation * deviation / variance).min(ODD * ODD)
}

/// Cuts a series at the least cost.
fn cut(points: &[Point], variances: &[f64]) -> Vec<Segment> {
    let starts = best_starts(points, variances);
    let mut end = points.len();
    let mut segments = Vec::new();
    while end > 0 {
        let start = starts[end - 1];
        segments.push(segment(points, variances, start, end));
        end = start;
    }
    segments.reverse();
    segments
}

/// For each value, where the last segment begins in the best partition of the series up to it.
///
/// The level of a segment is one of [`levels`]. For each of them, the best partition whose last segment has
/// this level either goes on with that segment, or begins it anew behind the best partition of all
/// (functional pruning; Maidstone and others, Statistics and Computing 27, 2017).
fn best_starts(points: &[Point], variances: &[f64]) -> Vec<usize> {
    let penalty = penalty(points.len());
    let levels = levels(points);
    let mut partitions = vec![(f64::INFINITY, 0); levels.len()];
    // The first segment is free.
    let mut least = -penalty;
    let mut starts = Vec::with_capacity(points.len());
    for (index, (point, variance)) in points.iter().zip(variances).enumerate() {
        for (level, partition) in levels.iter().zip(&mut partitions) {
            if least + penalty < partition.0 {
                *partition = (least + penalty, index);
            }
            partition.0 += cost(point.value - level, *variance);
        }
        let best = partitions
            .iter()
            .min_by(|one, other| one.0.total_cmp(&other.0));
        let (cost, start) = *best.expect("a value is a level");
        least = cost;
        starts.push(start);
    }
    starts
}

/// The levels that a segment may have: each value, and each mean of [`LEAST`] neighbors. The level of a
/// longer segment lies between many of them.
fn levels(points: &[Point]) -> Vec<f64> {
    let values: Vec<f64> = points.iter().map(|it| it.value).collect();
    let mean = |window: &[f64]| window.iter().sum::<f64>() / LEAST as f64;
    let means: Vec<f64> = values.windows(LEAST).map(mean).collect();
    [values, means].concat()
}

/// The segment from one index to another one.
fn segment(points: &[Point], variances: &[f64], start: usize, end: usize) -> Segment {
    let own = &points[start..end];
    let total = |level: &f64| -> f64 {
        let each = own.iter().zip(&variances[start..end]);
        each.map(|(it, variance)| cost(it.value - level, *variance))
            .sum()
    };
    let levels = levels(own).into_iter().map(|level| (level, total(&level)));
    let best = levels.min_by(|one, other| one.1.total_cmp(&other.1));
    let (near, _) = best.expect("a segment has a value");
    let (mut weights, mut deviations) = (0.0, 0.0);
    for (point, variance) in own.iter().zip(&variances[start..end]) {
        let deviation = point.value - near;
        if cost(deviation, *variance) < ODD * ODD {
            weights += variance.recip();
            deviations += deviation / variance;
        }
    }
    Segment {
        start,
        end,
        level: near + deviations / weights,
        error: weights.sqrt().recip(),
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
