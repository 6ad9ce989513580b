//! Analysis of covariance: removes the scatter of values that a covariate explains.
//!
//! Differences of rounds scatter for two reasons. Systems come up a little faster or slower at every start.
//! And the machine itself is slower in some rounds, and then everything costs more. The figures of third
//! systems in the same rounds separate the second reason from the first.
//!
//! **The meaning of the intervals.** Without a covariate: the difference, with its scatter from run to run.
//! With a covariate: the mean difference over the [`usual`] rounds of this run, at the machine's speeds in
//! these rounds. The mean over all rounds would belong to a speed that a machine with a few slow rounds never
//! had.
//!
//! **The method.** Rounds with an unusual speed of the machine are left out. The covariate alone decides
//! about that, so the difference of a round is no reason to leave it out. The values of the other rounds are
//! moved to their mean covariate along the line of least squares. Each residual is divided by its own
//! expected size, because the line follows a round of high leverage.
//!
//! **The slope is a second unknown.** The line takes its slope from the same few rounds, so the residuals
//! contain less information about their own size than as many values without a line. [`Adjustment::lost`]
//! counts the loss in degrees of freedom, and [`crate::paired::location_of`] widens the interval by it.
//!
//! Simulations confirm the intervals (`tests/simulated_labs/pace.rs`). They contain rounds that are slow and
//! noisy, machines with two speeds, and single rounds of high leverage. We tried three other methods there.
//! The line at the mean of all rounds covers 48 % of the differences at the usual speed of a machine with two
//! speeds, although 95 % are promised. The line at the median speed covers 84 to 95 %, because the median
//! contains the chance of a single round. The jackknife of the line at the mean of the usual rounds keeps its
//! promise too, with intervals that are 8 to 15 % wider on a steady machine.
//!
//! **The covariate must contain neither side of the difference.** A baseline that is slow by chance makes the
//! difference small. If it counted as the machine's speed, that chance would be explained away, and intervals
//! would be too narrow. A test shows it.
//!
//! Sources: Fisher, "Statistical Methods for Research Workers", 4th edition, 1932 (analysis of covariance).
//! Deng, Xu, Kohavi and Walker, "Improving the Sensitivity of Online Controlled Experiments by Utilizing
//! Pre-Experiment Data", 2013. MacKinnon and White, "Some heteroskedasticity-consistent covariance matrix
//! estimators with improved finite sample properties", 1985 (leverage).

use crate::sample;

/// With fewer values the slope is mostly noise.
const VALUES_MIN: usize = 6;

/// If the leverage of a round is closer to 1 than this, that round alone decides the slope.
const OWN_LEAST: f64 = 1e-9;

/// Rounds further from the median than this number of median absolute deviations are not usual.
const USUAL_WITHIN: f64 = 4.0;

/// A round within this distance of the median is always usual. It is a hundredth of the machine's speed,
/// because the covariate is a logarithm. Rates of open loops differ by less, and such differences do not show
/// the speed.
const USUAL_ANYWAY: f64 = 0.01;

/// Returns the positions of the usual rounds, in their order. A usual round is within four median absolute
/// deviations of the median of the covariate, or within 0.01 of it. The covariate is a logarithm. At least
/// half of the rounds are usual. Empty if a value is not a number.
#[must_use]
pub fn usual(covariate: &[f64]) -> Vec<usize> {
    let Some(median) = sample::median(covariate) else {
        return Vec::new();
    };
    let distances: Vec<f64> = covariate.iter().map(|x| (x - median).abs()).collect();
    let within = USUAL_WITHIN * sample::median(&distances).unwrap_or(0.0);
    let most = within.max(USUAL_ANYWAY);
    let all = 0..covariate.len();
    all.filter(|round| distances[*round] <= most).collect()
}

/// Values of rounds, and the degrees of freedom that their adjustment took.
#[derive(Clone, Debug, PartialEq)]
pub struct Adjustment {
    /// The values of the usual rounds, or all values unchanged.
    pub values: Vec<f64>,
    /// Degrees of freedom that the slope took: 1, or 0 for unchanged values. `n` values have `n - 1 - lost`
    /// degrees of freedom.
    pub lost: usize,
}

/// Returns the values of the `usual` rounds without the scatter that the covariate explains. Returns all
/// values unchanged if there are fewer than six usual rounds. It also does so if the covariate is the same in
/// all of them, has another length than the values, or is not finite.
///
/// The `n` usual rounds have the line `y = a + b x` of least squares, the residuals `e_i` and the leverages
/// `h_i = 1/n + (x_i - m)^2 / S`, with the mean `m` of `x` and the sum `S` of the squares of `x - m`. Their
/// mean stays, except for a small effect of unequal leverages. The result is
///
/// `mean of y + sqrt((n - 1) / n) e_i / sqrt(1 - h_i)`.
///
/// A residual scatters by the share `1 - h_i` of the variance, because the line follows it (MacKinnon and
/// White, 1985, call the estimate HC2). So a round that decides the slope is treated correctly, too.
#[must_use]
pub fn adjusted(values: &[f64], covariate: &[f64], usual: &[usize]) -> Adjustment {
    let unchanged = || Adjustment {
        values: values.to_vec(),
        lost: 0,
    };
    if usual.len() < VALUES_MIN || covariate.len() != values.len() {
        return unchanged();
    }
    let of = |all: &[f64]| -> Vec<f64> { usual.iter().map(|round| all[*round]).collect() };
    let (y, x) = (of(values), of(covariate));
    let (Some(center), Some(mean)) = (sample::mean(&y), sample::mean(&x)) else {
        return unchanged();
    };
    let from_mean: Vec<f64> = x.iter().map(|x| x - mean).collect();
    let squares: f64 = from_mean.iter().map(|x| x * x).sum();
    let pairs = || y.iter().zip(&from_mean);
    let common: f64 = pairs().map(|(y, x)| x * (y - center)).sum();
    let slope = common / squares;
    // Also if the covariate is not finite, or has no spread.
    if !slope.is_finite() {
        return unchanged();
    }
    let n = y.len() as f64;
    let scale = ((n - 1.0) / n).sqrt();
    let left = pairs().map(|(y, x)| {
        let residual = y - center - slope * x;
        let own = 1.0 - 1.0 / n - x * x / squares;
        // A round that alone has another speed lies on the line, so its residual contains no information.
        match own > OWN_LEAST {
            true => scale * residual / own.sqrt(),
            false => 0.0,
        }
    });
    Adjustment {
        values: left.map(|left| center + left).collect(),
        lost: 1,
    }
}

/// The mean of the logarithms of several series, position by position. It shows their common changes,
/// regardless of the size of each series. It has the length of the shortest series, and is empty without a
/// series. Values must be above 0.
#[must_use]
pub fn mean_logarithms(series: &[Vec<f64>]) -> Vec<f64> {
    let length = series.iter().map(Vec::len).min().unwrap_or(0);
    let mean = |place: usize| {
        // By `libm`, not by the platform, so that the same recording gives the same digits on every machine.
        let logs = series.iter().map(|values| libm::log(values[place]));
        logs.sum::<f64>() / series.len() as f64
    };
    (0..length).map(mean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL_OF_EIGHT: [usize; 8] = [0, 1, 2, 3, 4, 5, 6, 7];

    #[test]
    fn the_scatter_that_the_covariate_explains_is_gone() {
        let covariate = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0];
        let own = [0.1, -0.1, 0.0, 0.0, 0.1, -0.1];
        let values: Vec<f64> = covariate
            .iter()
            .zip(own)
            .map(|(x, own)| 10.0 + 3.0 * x + own)
            .collect();
        let found = adjusted(&values, &covariate, &usual(&covariate)).values;
        // The covariate made a scatter of 3 to 4, and it must be gone.
        assert!(
            found.iter().all(|value| (value - 17.5).abs() < 0.2),
            "{found:?}"
        );
    }

    #[test]
    fn slow_rounds_are_not_usual_and_at_least_half_are() {
        let mut covariate = [0.0, 0.01, -0.02, 0.01, 0.02, 0.0, -0.01, 0.01, 0.25, 0.22];
        assert_eq!(usual(&covariate), ALL_OF_EIGHT);
        // With two modes of equal size, neither is the usual one.
        covariate[..5].fill(1.0);
        assert_eq!(usual(&covariate).len(), 10);
        // More than half are equal, and one is faster by less than a hundredth.
        assert_eq!(usual(&[1.0, 1.0, 1.0, 0.995, 1.1]), [0, 1, 2, 3]);
        assert_eq!(usual(&[1.0, f64::NAN]), [0_usize; 0]);
        assert_eq!(usual(&[]), [0_usize; 0]);
    }

    #[test]
    fn the_rest_is_widened_for_the_line_that_was_found_by_it() {
        // The mean of the covariate is 0 and it does not correlate with the values, so the slope is 0.
        let covariate = [-1.0, 1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0];
        let values = [1.0, 1.0, -1.0, -1.0, 1.0, 1.0, -1.0, -1.0];
        let found = adjusted(&values, &covariate, &ALL_OF_EIGHT);
        // All leverages are 2/8: sqrt(7/8) / sqrt(6/8).
        let widened = (7.0_f64 / 6.0).sqrt();
        for (before, after) in values.iter().zip(&found.values) {
            assert!((after - before * widened).abs() < 1e-12, "{found:?}");
        }
        // The line has two unknowns, and the mean has one.
        assert_eq!(found.lost, 1);
    }

    #[test]
    fn a_round_that_alone_has_another_speed_says_nothing() {
        let mut covariate = [1.0; 8];
        covariate[3] = 2.0;
        let values = [5.0, 6.0, 4.0, 99.0, 5.5, 4.5, 5.2, 4.8];
        let found = adjusted(&values, &covariate, &ALL_OF_EIGHT).values;
        // The round lies on its own line, so it adds no scatter.
        let mean = sample::mean(&values).unwrap();
        assert_eq!(found[3], mean);
        assert!(
            found.iter().all(|value| (value - mean).abs() < 1.3),
            "{found:?}"
        );
    }

    #[test]
    fn what_series_have_in_common_does_not_depend_on_their_size() {
        let series = [vec![1.0, 2.0, 4.0], vec![100.0, 200.0, 400.0, 1.0]];
        let found = mean_logarithms(&series);
        assert_eq!(found.len(), 3);
        for step in found.windows(2) {
            assert!(
                (step[1] - step[0] - 2.0_f64.ln()).abs() < 1e-12,
                "{found:?}"
            );
        }
        assert!(mean_logarithms(&[]).is_empty());
    }

    #[test]
    fn values_stay_as_they_are_where_there_is_nothing_to_explain_them_by() {
        let values = [1.0, 5.0, 2.0, 8.0, 3.0, 4.0];
        let rounds = [0, 1, 2, 3, 4, 5];
        let unchanged = |values: &[f64]| Adjustment {
            values: values.to_vec(),
            lost: 0,
        };
        let same = unchanged(&values);
        assert_eq!(adjusted(&values, &[2.0; 6], &rounds), same);
        assert_eq!(adjusted(&values, &[1.0, 2.0], &rounds), same);
        let wrong = [f64::NAN, 1.0, 2.0, 3.0, 4.0, 5.0];
        assert_eq!(adjusted(&values, &wrong, &rounds), same);
        let five = [1.0, 2.0, 3.0, 4.0, 5.0];
        assert_eq!(
            adjusted(&values[..5], &five, &rounds[..5]),
            unchanged(&values[..5])
        );
        assert_eq!(adjusted(&[], &[], &[]), unchanged(&[]));
    }
}
