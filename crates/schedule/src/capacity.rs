//! Which rate to try next, when the highest one is looked for that is sustained.
//!
//! Rates form a ladder: each rung exceeds the one before by the same factor. A [`Search`] goes up in
//! strides that double, though never to more than twice the rate, until a rung is not sustained, then
//! halves the gap between the highest rung that was and the lowest that was not. A rung counts as not
//! sustained when it failed three times: a stall of the machine of a hundredth of the time is enough to
//! fail any rung once, and a machine that stalls in every third try fails one of 27 like that.

use std::time::Duration;

use crate::Rate;

/// What is looked for: the highest of some rates at which 99 % of the latencies stay below a limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Capacity {
    from: Rate,
    rungs: u32,
    factor: f64,
    p99_below: Duration,
}

/// Why rates cannot be searched.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CapacityError {
    /// The highest is not above the lowest.
    #[error("expected rates from the lowest to a higher one, found {from} to {to}")]
    Order {
        /// The lowest.
        from: Rate,
        /// The highest.
        to: Rate,
    },
    /// The rates are too many or lie too far apart.
    #[error("expected steps of 1 % to 100 %, found {percent} %")]
    Step {
        /// As given.
        percent: f64,
    },
}

/// How often a rung may fail before it counts as not sustained.
const TRIES: u32 = 3;

impl Capacity {
    /// Rates from `from` to `to`, each `step_percent` above the one before; the last is the highest
    /// that does not exceed `to`.
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
        let factor = 1.0 + step_percent / 100.0;
        let highest = libm::log(to.per_second() / from.per_second()) / libm::log(factor);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "rates are finite, so rungs are a few ten thousand at most"
        )]
        let rungs = (highest + 1e-9).floor() as u32;
        Ok(Capacity {
            from,
            rungs,
            factor,
            p99_below,
        })
    }

    /// The lowest rate.
    #[must_use]
    pub fn from(&self) -> Rate {
        self.from
    }

    /// The highest rate.
    #[must_use]
    pub fn to(&self) -> Rate {
        self.rate(self.rungs)
    }

    /// By how many percent a rate exceeds the one before.
    #[must_use]
    pub fn step_percent(&self) -> f64 {
        (self.factor - 1.0) * 100.0
    }

    /// The limit that 99 % of the latencies stay below.
    #[must_use]
    pub fn p99_below(&self) -> Duration {
        self.p99_below
    }

    /// Rungs up to twice the rate: an overload beyond that says nothing more and takes long to drain.
    fn stride_max(&self) -> u32 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "1 to 69: a step is 1 % to 100 %"
        )]
        let rungs = (libm::log(2.0) / libm::log(self.factor) + 1e-9).floor() as u32;
        rungs.max(1)
    }

    /// In whole requests per second where there are enough of them to tell rungs apart.
    fn rate(&self, rung: u32) -> Rate {
        let exact = self.from.per_second() * libm::pow(self.factor, f64::from(rung));
        let is_fine = exact * (self.factor - 1.0) < 2.0 || rung == 0;
        let rounded = if is_fine { exact } else { exact.round() };
        Rate::new(rounded).unwrap_or(self.from)
    }
}

/// A search under way.
#[derive(Clone, Debug)]
pub struct Search {
    capacity: Capacity,
    /// The highest rung that was sustained.
    low: Option<u32>,
    /// The lowest rung that was not.
    high: Option<u32>,
    rung: u32,
    stride: u32,
    fails: u32,
    is_over: bool,
}

impl Search {
    /// Begins at the lowest rate.
    #[must_use]
    pub fn new(capacity: Capacity) -> Search {
        Search {
            capacity,
            low: None,
            high: None,
            rung: 0,
            stride: 1,
            fails: 0,
            is_over: false,
        }
    }

    /// The rate to try; none when the search is over.
    #[must_use]
    pub fn rate(&self) -> Option<Rate> {
        (!self.is_over).then(|| self.capacity.rate(self.rung))
    }

    /// Whether what was sustained is the highest rate of all, so that there may be a higher one.
    #[must_use]
    pub fn is_at_top(&self) -> bool {
        self.low == Some(self.capacity.rungs)
    }

    /// Says what became of the rate tried.
    pub fn tell(&mut self, is_sustained: bool) {
        if is_sustained {
            self.low = Some(self.rung);
        } else {
            self.fails += 1;
            if self.fails < TRIES {
                return;
            }
            self.high = Some(self.rung);
        }
        self.fails = 0;
        let (next, is_over) = match (self.low, self.high) {
            (None, _) => (self.rung, true),
            (Some(low), Some(high)) => (low.midpoint(high), high - low <= 1),
            (Some(low), None) => {
                let next = low.saturating_add(self.stride).min(self.capacity.rungs);
                self.stride = (self.stride * 2).min(self.capacity.stride_max());
                (next, low == self.capacity.rungs)
            }
        };
        self.rung = next;
        self.is_over = is_over;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capacity(from: f64, to: f64, percent: f64) -> Result<Capacity, CapacityError> {
        let rate = |per_second| Rate::new(per_second).unwrap();
        Capacity::new(rate(from), rate(to), percent, Duration::from_millis(10))
    }

    fn capacity_of_steps(percent: f64) -> Capacity {
        capacity(100.0, 6400.0, percent).unwrap()
    }

    /// Searches a system that sustains up to `limit` but fails the tries that `fails` names; gives
    /// the rate found, and the rates tried.
    fn search(
        capacity: Capacity,
        limit: f64,
        fails: &dyn Fn(usize) -> bool,
    ) -> (Option<f64>, Vec<f64>) {
        let mut search = Search::new(capacity);
        let (mut tried, mut found) = (Vec::new(), None);
        while let Some(rate) = search.rate() {
            let is_sustained = rate.per_second() <= limit && !fails(tried.len());
            tried.push(rate.per_second());
            if is_sustained {
                found = Some(rate.per_second());
            }
            search.tell(is_sustained);
            assert!(tried.len() < 100, "{tried:?}");
        }
        (found, tried)
    }

    #[test]
    fn the_highest_rate_that_is_sustained_is_found() {
        let capacity = capacity(1000.0, 40_000.0, 10.0).unwrap();
        for limit in [1000.0, 1100.0, 1500.0, 9999.0, 20_000.0, 39_000.0] {
            let (found, tried) = search(capacity, limit, &|_| false);
            let found = found.unwrap();
            assert!(
                found <= limit && limit < found * 1.1 + 1.0,
                "{limit}: {tried:?}"
            );
            assert!(tried.len() <= 24, "{limit}: {tried:?}");
        }
    }

    #[test]
    fn it_goes_up_in_strides_that_double_and_then_halves_the_gap() {
        let capacity = capacity(100.0, 6400.0, 100.0).unwrap();
        let (found, tried) = search(capacity, 1000.0, &|_| false);
        assert_eq!(found, Some(800.0));
        assert_eq!(tried, [100.0, 200.0, 400.0, 800.0, 1600.0, 1600.0, 1600.0]);
        let capacity = capacity_of_steps(50.0);
        let (found, tried) = search(capacity, 600.0, &|_| false);
        assert_eq!(found, Some(506.0));
        assert_eq!(
            tried,
            [100.0, 150.0, 225.0, 338.0, 506.0, 759.0, 759.0, 759.0]
        );
        let capacity = capacity_of_steps(20.0);
        let (found, tried) = search(capacity, 300.0, &|_| false);
        assert_eq!(found, Some(299.0));
        assert_eq!(
            tried,
            [
                100.0, 120.0, 173.0, 299.0, 516.0, 516.0, 516.0, 358.0, 358.0, 358.0
            ]
        );
    }

    #[test]
    fn two_hiccups_do_not_end_it() {
        let capacity = capacity(1000.0, 40_000.0, 10.0).unwrap();
        let (undisturbed, _) = search(capacity, 9000.0, &|_| false);
        for hiccup in 0..10 {
            let (found, _) = search(capacity, 9000.0, &|index| {
                index == hiccup || index == hiccup + 1
            });
            assert_eq!(found, undisturbed, "{hiccup}");
        }
    }

    #[test]
    fn what_does_not_sustain_the_lowest_rate_has_none() {
        let capacity = capacity(1000.0, 40_000.0, 10.0).unwrap();
        let (found, tried) = search(capacity, 999.0, &|_| false);
        assert_eq!((found, tried.len()), (None, 3));
    }

    #[test]
    fn the_top_of_the_ladder_is_said_to_be_it() {
        let capacity = capacity(1000.0, 2000.0, 50.0).unwrap();
        assert_eq!(capacity.to().per_second(), 1500.0);
        let mut search = Search::new(capacity);
        while search.rate().is_some() {
            search.tell(true);
        }
        assert!(search.is_at_top());
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
        let rates: Vec<f64> = (0..=capacity.rungs)
            .map(|rung| capacity.rate(rung).per_second())
            .collect();
        assert!(rates.windows(2).all(|two| two[0] < two[1]), "{rates:?}");
    }
}
