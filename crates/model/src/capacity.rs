//! Bounds of the search for the highest sustained rate.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Rate, as_micros};

/// The goal of a search: the highest rate at which 99 % of the latencies stay below a limit. Each rate of the
/// search exceeds the previous rate by an equal share.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Capacity {
    /// The lowest rate of the search.
    #[serde(rename = "rate_from_per_s")]
    #[schemars(with = "f64")]
    from: Rate,
    /// The highest rate of the search.
    #[serde(rename = "rate_to_per_s")]
    #[schemars(with = "f64")]
    to: Rate,
    /// Increase from one rate to the next, in percent.
    step_percent: f64,
    /// The limit that 99 % of the latencies stay below, in microseconds.
    #[serde(rename = "latency_us_p99_below", with = "as_micros")]
    #[schemars(with = "u64")]
    p99_below: Duration,
}

/// Reason why rates cannot be searched.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CapacityError {
    /// The highest rate is not above the lowest.
    #[error("expected rates from the lowest to a higher one, found {from} to {to}")]
    Order {
        /// The lowest rate, as the user gave it.
        from: Rate,
        /// The highest rate, as the user gave it.
        to: Rate,
    },
    /// There are too many rates, or they are too far apart.
    #[error("expected steps of 1 % to 100 %, found {percent} %")]
    Step {
        /// The step as the user gave it.
        percent: f64,
    },
}

impl Capacity {
    /// Rates from `from` to `to`, each `step_percent` above the previous one. The last is the highest that
    /// does not exceed `to`.
    ///
    /// # Errors
    ///
    /// When `to` is not above `from`, or the step is not from 1 to 100 percent.
    pub fn new(
        from: Rate,
        to: Rate,
        step_percent: f64,
        p99_below: Duration,
    ) -> Result<Capacity, CapacityError> {
        if from.per_second() <= 0.0 || to.per_second() <= from.per_second() {
            return Err(CapacityError::Order { from, to });
        }
        if !(1.0..=100.0).contains(&step_percent) {
            return Err(CapacityError::Step {
                percent: step_percent,
            });
        }
        let asked = Capacity {
            from,
            to,
            step_percent,
            p99_below,
        };
        // A count is exact if `to` is a rate of the ladder. Here it may lie between two rates.
        let top = whole(asked.steps_to(to) + 1e-9);
        Ok(Capacity {
            // This is the highest rate that the search can try, so that reports contain no other.
            to: asked.rate(top),
            ..asked
        })
    }

    /// The lowest rate. Above 0.
    #[must_use]
    pub fn from(&self) -> Rate {
        self.from
    }

    /// The highest rate. At least the lowest.
    #[must_use]
    pub fn to(&self) -> Rate {
        self.to
    }

    /// Distance from one rate to the next in percent. 1 to 100.
    #[must_use]
    pub fn step_percent(&self) -> f64 {
        self.step_percent
    }

    /// The limit that 99 % of the latencies stay below.
    #[must_use]
    pub fn p99_below(&self) -> Duration {
        self.p99_below
    }

    /// Number of steps from the lowest to the highest rate.
    #[must_use]
    pub fn steps(&self) -> u32 {
        // The highest rate may have been rounded to a whole number, by less than half a step.
        whole(self.steps_to(self.to) + 0.5)
    }

    /// Maximum number of steps that at most double a rate. 1 to 69.
    #[must_use]
    pub fn steps_to_double(&self) -> u32 {
        whole(libm::log(2.0) / libm::log(self.factor()) + 1e-9).max(1)
    }

    /// The rate `steps` steps above the lowest. It is rounded to whole requests per second if the steps are
    /// large enough to stay distinct.
    ///
    /// # Panics
    ///
    /// When the rate exceeds the range of floats. No rate up to [`Capacity::steps`] does.
    #[must_use]
    pub fn rate(&self, steps: u32) -> Rate {
        let factor = self.factor();
        let exact = self.from.per_second() * libm::pow(factor, f64::from(steps));
        // Rounding would spoil steps of less than two requests a second. The lowest rate stays as the user
        // wrote it.
        let is_fine = exact * (factor - 1.0) < 2.0 || steps == 0;
        let rounded = if is_fine { exact } else { exact.round() };
        Rate::new(rounded).expect("a rate up to the highest is finite and above 0")
    }

    fn factor(&self) -> f64 {
        1.0 + self.step_percent / 100.0
    }

    fn steps_to(&self, rate: Rate) -> f64 {
        // The last bit of `f64::ln` depends on the platform, and a search must try the same rates everywhere.
        libm::log(rate.per_second() / self.from.per_second()) / libm::log(self.factor())
    }
}

/// The whole part of a number of steps.
fn whole(steps: f64) -> u32 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "rates are finite and steps at least 1 %, so steps are 0 to a few ten thousand"
    )]
    let whole = steps.floor() as u32;
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capacity(from: f64, to: f64, percent: f64) -> Result<Capacity, CapacityError> {
        let rate = |per_second| Rate::new(per_second).unwrap();
        Capacity::new(rate(from), rate(to), percent, Duration::from_millis(10))
    }

    #[test]
    fn rates_out_of_order_and_steps_out_of_bounds_are_refused() {
        assert!(matches!(
            capacity(2.0, 2.0, 10.0),
            Err(CapacityError::Order { .. })
        ));
        for percent in [0.0, 0.99, 101.0, f64::NAN] {
            let refused = capacity(1.0, 2.0, percent);
            assert!(
                matches!(refused, Err(CapacityError::Step { .. })),
                "{percent}"
            );
        }
    }

    #[test]
    fn low_rates_are_told_apart() {
        let capacity = capacity(1.0, 10.0, 10.0).unwrap();
        let rates: Vec<f64> = (0..=capacity.steps())
            .map(|steps| capacity.rate(steps).per_second())
            .collect();
        assert!(rates.windows(2).all(|two| two[0] < two[1]), "{rates:?}");
    }

    #[test]
    fn the_highest_rate_is_a_whole_number_of_steps_above_the_lowest() {
        for from in [0.3, 1.0, 7.5, 100.0, 1000.0, 12_345.0] {
            for times in [1.01, 1.9, 2.0, 3.7, 64.0, 5000.0] {
                for percent in [1.0, 2.5, 10.0, 33.0, 50.0, 100.0] {
                    let to = from * times;
                    let capacity = capacity(from, to, percent).unwrap();
                    let steps = capacity.steps();
                    assert_eq!(capacity.rate(steps), capacity.to());
                    let next = from * libm::pow(1.0 + percent / 100.0, f64::from(steps + 1));
                    assert!(next > to * (1.0 - 1e-6), "{from} to {to} by {percent} %");
                    assert!(capacity.to().per_second() < to + 0.5 + 1e-6);
                }
            }
        }
    }
}
