//! Search for the highest sustained rate, which chooses the next rate to try.
//!
//! Rates form a ladder, on which each rung exceeds the previous one by a constant factor. A [`Search`] goes
//! up in strides that double, but never to more than twice the rate. When a rung is not sustained, it halves
//! the gap between the highest sustained rung and the lowest rung that was not. A rung counts as not
//! sustained after three failures. A stall of the machine of a hundredth of the time is enough to fail any
//! rung once. A machine that stalls in every third try would fail one of 27 rungs by chance.

use model::{Capacity, Rate};

/// Number of failures after which a rung counts as not sustained.
const TRIES: u32 = 3;

/// A search for the highest sustained rung, between two tries.
#[derive(Clone, Debug)]
pub struct Search {
    capacity: Capacity,
    /// The highest rung that was sustained.
    low: Option<u32>,
    /// The lowest rung that was not sustained.
    high: Option<u32>,
    rung: u32,
    stride: u32,
    fails: u32,
    is_over: bool,
}

impl Search {
    /// Starts a search at the lowest rate.
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

    /// The rate to try, or `None` if the search is over.
    #[must_use]
    pub fn rate(&self) -> Option<Rate> {
        (!self.is_over).then(|| self.capacity.rate(self.rung))
    }

    /// True if the highest rate of the ladder was sustained, so that there may be a higher one.
    #[must_use]
    pub fn is_at_top(&self) -> bool {
        self.low == Some(self.capacity.steps())
    }

    /// Records if the rate of [`Search::rate`] was sustained, and chooses the next rate.
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
        // Failures count for one rung. The next rung starts at zero.
        self.fails = 0;
        let (next, is_over) = match (self.low, self.high) {
            // If the lowest rung is not sustained, the search has no result.
            (None, _) => (self.rung, true),
            (Some(low), Some(high)) => (low.midpoint(high), high - low <= 1),
            (Some(low), None) => {
                let next = low.saturating_add(self.stride).min(self.capacity.steps());
                // The next rate is at most twice the current one, however fine the ladder is.
                self.stride = (self.stride * 2).min(self.capacity.steps_to_double());
                (next, low == self.capacity.steps())
            }
        };
        self.rung = next;
        self.is_over = is_over;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use model::CapacityError;

    use super::*;

    fn capacity(from: f64, to: f64, percent: f64) -> Result<Capacity, CapacityError> {
        let rate = |per_second| Rate::new(per_second).unwrap();
        Capacity::new(rate(from), rate(to), percent, Duration::from_millis(10))
    }

    fn capacity_of_steps(percent: f64) -> Capacity {
        capacity(100.0, 6400.0, percent).unwrap()
    }

    /// Searches a system that sustains up to `limit` but fails the tries in `fails`. Returns the found rate
    /// and all tried rates.
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
}
