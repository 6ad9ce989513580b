//! Rates in requests per second.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A rate in requests per second. It is finite and at least 0.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Rate(f64);

/// Error for a number that is not a rate.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("expected a rate of at least 0 requests per second, found {found}")]
pub struct RateError {
    /// The invalid number.
    pub found: f64,
}

impl Rate {
    /// A rate without any request.
    pub const ZERO: Rate = Rate(0.0);

    /// A rate of `per_second` requests per second.
    ///
    /// # Errors
    /// When the number is negative, infinite or not a number.
    pub fn new(per_second: f64) -> Result<Rate, RateError> {
        if per_second.is_finite() && per_second >= 0.0 {
            // Adding zero turns -0.0 into 0.0, which would print with its sign.
            Ok(Rate(per_second + 0.0))
        } else {
            Err(RateError { found: per_second })
        }
    }

    /// The rate in requests per second, finite and at least 0.
    #[must_use]
    pub fn per_second(self) -> f64 {
        self.0
    }
}

impl TryFrom<f64> for Rate {
    type Error = RateError;

    fn try_from(per_second: f64) -> Result<Rate, RateError> {
        Rate::new(per_second)
    }
}

impl From<Rate> for f64 {
    fn from(rate: Rate) -> f64 {
        rate.0
    }
}

/// The form of lab files: `100/s`, `0.5/s`.
impl fmt::Display for Rate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/s", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_finite_and_not_negative() {
        for found in [-1.0, -0.001, f64::INFINITY, f64::NEG_INFINITY, f64::NAN] {
            assert!(Rate::new(found).is_err(), "{found}");
        }
        assert_eq!(
            Rate::new(-5.0).unwrap_err().to_string(),
            "expected a rate of at least 0 requests per second, found -5"
        );
    }

    #[test]
    fn a_rate_prints_as_people_write_it() {
        let shown: Vec<String> = [100.0, 0.5, 0.0, -0.0, 20_000.0]
            .map(|per_second| Rate::new(per_second).unwrap().to_string())
            .into();
        assert_eq!(shown, ["100/s", "0.5/s", "0/s", "0/s", "20000/s"]);
    }
}
