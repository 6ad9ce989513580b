//! Selection of a rate and a round length that fit the systems of a lab.
//!
//! A lab may leave its rate to the run. Then each variant receives two short loads before the first round,
//! and [`Fit::of`] decides from their results. It keeps the systems far from their limits, because a queue
//! costs more than any layer.

use std::time::Duration;

/// The highest rate that `weigh` chooses, in requests per second. It is high enough to show microseconds.
pub const RATE_MAX: f64 = 100.0;
/// The share of the cores, and of the capacity of a system, that the load may use.
pub const SHARE: f64 = 0.2;
/// Maximum number of requests in flight that `weigh` tries.
pub const IN_FLIGHT_MAX: u32 = 16;

/// Requests slow one another down if together they take longer than this, relative to one alone.
const WAITING: f64 = 1.5;
/// The shortest round. The result of a shorter one would mostly depend on chance.
const ROUND_MIN: Duration = Duration::from_secs(2);
/// Minimum number of requests in a round, so that its slowest quarter is meaningful.
const REQUESTS_MIN: f64 = 100.0;
/// Minimum length of a round in latencies.
const LATENCIES_MIN: f64 = 20.0;
/// Maximum length of all rounds together.
const ALL_ROUNDS_MAX: Duration = Duration::from_secs(5 * 60);
/// The rates that `weigh` chooses, before a power of ten.
const DIGITS: [f64; 8] = [8.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.5, 1.0];

/// The behavior of one variant under two short loads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observed {
    /// Seconds from send to response, with one request in flight. Above 0.
    pub alone_s: f64,
    /// Seconds from send to response, with `in_flight` requests in flight. Above 0.
    pub together_s: f64,
    /// Requests in flight for `together_s`. At least 1.
    pub in_flight: u32,
    /// Seconds of processor time per request, if it can be read.
    pub processor_s: Option<f64>,
}

/// The reason why a rate is not higher.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limit {
    /// The rate is [`RATE_MAX`], the highest that `weigh` chooses.
    Most,
    /// At a higher rate, the load would use more than [`SHARE`] of the cores.
    Cores,
    /// [`SHARE`] of the highest rate that this variant can serve.
    Capacity {
        /// Index of the variant, from 0.
        variant: usize,
        /// Highest rate of the variant, in requests per second.
        per_second: f64,
    },
    /// The tried number of requests in flight, at this variant's latency.
    InFlight {
        /// Index of the variant, from 0.
        variant: usize,
        /// Number of requests in flight.
        tried: u32,
    },
}

/// A rate and a length of rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fit {
    /// Requests per second to each variant.
    pub rate: f64,
    /// The length of a round.
    pub round: Duration,
    /// The reason why the rate is not higher.
    pub limit: Limit,
    /// The share of the cores that the systems will use. It includes only known processor times.
    pub cores_share: f64,
}

impl Observed {
    /// Requests per second, by Little's law.
    fn per_second(self) -> f64 {
        f64::from(self.in_flight) / self.together_s
    }

    /// True if requests in flight together took about as long as a single one.
    fn only_waits(self) -> bool {
        self.together_s <= WAITING * self.alone_s
    }

    /// Seconds from send to response in a closed loop with this number of connections. Requests that slow one
    /// another down share the capacity. Other requests wait at the same time.
    #[must_use]
    pub fn latency_at(self, connections: u32) -> f64 {
        match self.only_waits() {
            true => self.together_s,
            false => (f64::from(connections) / self.per_second()).max(self.alone_s),
        }
    }

    /// Seconds of a core per request. If the time cannot be read and requests slow the system down, it counts
    /// as a user of all cores.
    fn core_seconds(self, cores: f64) -> f64 {
        self.processor_s.unwrap_or_else(|| match self.only_waits() {
            true => 0.0,
            false => cores / self.per_second(),
        })
    }
}

/// Number of requests in flight to try, for a variant of this latency. It is twice the number of cores, or
/// the number in flight at the highest rate.
#[must_use]
pub fn in_flight(alone_s: f64, cores: usize) -> u32 {
    let planned = (RATE_MAX * alone_s).ceil();
    let busy = 2.0 * cores as f64;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "1 to 16"
    )]
    let tried = planned.max(busy).clamp(1.0, f64::from(IN_FLIGHT_MAX)) as u32;
    tried
}

impl Fit {
    /// Returns the highest rate that keeps all variants within [`SHARE`] of the cores and of their capacity.
    /// The rounds are long enough for the required requests and latencies at that rate. `None` without a
    /// variant.
    ///
    /// `at_once` is true if all variants have the load at the same time. `rounds` is the number of rounds of
    /// the run. A `given` length of a round is kept.
    #[must_use]
    pub fn of(
        variants: &[Observed],
        cores: usize,
        at_once: bool,
        rounds: u32,
        given: Option<Duration>,
    ) -> Option<Fit> {
        let cores = cores as f64;
        let slowest = variants.iter().map(|it| it.alone_s).reduce(f64::max)?;
        let costs = variants.iter().map(|it| it.core_seconds(cores));
        let cost = match at_once {
            true => costs.sum(),
            false => costs.fold(0.0, f64::max),
        };
        let each = variants.iter().enumerate().map(|(variant, observed)| {
            let per_second = observed.per_second();
            let tried = observed.in_flight;
            match observed.only_waits() {
                true => (per_second, Limit::InFlight { variant, tried }),
                false => {
                    let limit = Limit::Capacity {
                        variant,
                        per_second,
                    };
                    (SHARE * per_second, limit)
                }
            }
        });
        let alone = each.fold((RATE_MAX, Limit::Most), |lowest, own| {
            if own.0 < lowest.0 { own } else { lowest }
        });
        let (most, limit) = match SHARE * cores / cost {
            // If the rate is only slightly below the limit of one variant, this variant is the reason.
            all if all < 0.9 * alone.0 => (all, Limit::Cores),
            all => (all.min(alone.0), alone.1),
        };
        let rate = rounded_down(most);
        let round = given.unwrap_or_else(|| {
            let enough = (REQUESTS_MIN / rate).max(LATENCIES_MIN * slowest);
            let longest = ALL_ROUNDS_MAX / rounds.max(1);
            let enough = Duration::try_from_secs_f64(enough.ceil()).unwrap_or(longest);
            enough.clamp(ROUND_MIN, longest.max(ROUND_MIN))
        });
        Some(Fit {
            rate,
            round,
            limit,
            cores_share: cost * rate / cores,
        })
    }
}

/// The next lower round number, but at least 0.1 per second.
#[must_use]
pub fn rounded_down(rate: f64) -> f64 {
    let power = 10_f64.powf(rate.log10().floor());
    // Rounding may have turned a rate of exactly 8 into 7.999.
    let digit = DIGITS
        .into_iter()
        .find(|it| it * power <= rate * (1.0 + 1e-9));
    (digit.unwrap_or(1.0) * power).max(0.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(ms: f64, in_flight: u32) -> Observed {
        Observed {
            alone_s: ms / 1e3,
            together_s: ms / 1e3,
            in_flight,
            processor_s: Some(50e-6),
        }
    }

    fn fit(variants: &[Observed]) -> Fit {
        Fit::of(variants, 2, true, 8, None).expect("there are variants")
    }

    #[test]
    fn fast_systems_get_the_highest_rate_and_the_shortest_rounds() {
        let fit = fit(&[waits(1.0, 4), waits(12.0, 4)]);
        assert_eq!((fit.rate, fit.limit), (100.0, Limit::Most));
        assert_eq!(fit.round, Duration::from_secs(2));
        // Two variants of 50 us each, 100 times a second, on two cores.
        assert!((fit.cores_share - 0.005).abs() < 1e-12);
    }

    #[test]
    fn processor_time_of_all_stays_below_a_fifth_of_the_cores() {
        let busy = Observed {
            alone_s: 3e-3,
            together_s: 6e-3,
            in_flight: 4,
            processor_s: Some(3e-3),
        };
        // 0.4 cores / 6 ms = 66/s.
        let both = fit(&[busy, busy]);
        assert_eq!((both.rate, both.limit), (60.0, Limit::Cores));
        assert!(both.cores_share <= SHARE);
        // In turn, each variant has the cores alone: 133/s. Its capacity of 667/s allows that.
        let in_turn = Fit::of(&[busy, busy], 2, false, 8, None).expect("variants");
        assert_eq!(in_turn.rate, 100.0);
    }

    #[test]
    fn a_system_that_answers_one_at_a_time_gets_a_fifth_of_what_it_can() {
        // 12 ms alone. Four requests in flight wait for one another: 83/s.
        let serial = Observed {
            together_s: 48e-3,
            ..waits(12.0, 4)
        };
        let fit = fit(&[waits(1.0, 4), serial]);
        assert_eq!(fit.rate, 15.0);
        let Limit::Capacity {
            variant,
            per_second,
        } = fit.limit
        else {
            panic!("{:?}", fit.limit);
        };
        assert_eq!((variant, per_second.round()), (1, 83.0));
        // 100 requests take 6.7 s.
        assert_eq!(fit.round, Duration::from_secs(7));
    }

    #[test]
    fn slow_systems_are_not_given_more_in_flight_than_was_tried() {
        let fit = fit(&[waits(400.0, 16), waits(408.0, 16)]);
        // 16 in flight at 408 ms: 39/s.
        assert_eq!(fit.rate, 30.0);
        let limit = Limit::InFlight {
            variant: 1,
            tried: 16,
        };
        assert_eq!(fit.limit, limit);
        // 20 latencies. There are more than 100 requests in this time.
        assert_eq!(fit.round, Duration::from_secs(9));
    }

    #[test]
    fn a_system_whose_processor_time_is_unknown_is_taken_to_use_the_cores_it_slows_down_on() {
        let unseen = Observed {
            alone_s: 1e-3,
            together_s: 4e-3,
            in_flight: 4,
            processor_s: None,
        };
        // 1,000/s use the whole machine, so each of two variants gets a tenth.
        let pair = fit(&[unseen, unseen]);
        assert_eq!((pair.rate, pair.cores_share), (100.0, 0.2));
        assert_eq!(fit(&[unseen; 4]).rate, 50.0);
    }

    #[test]
    fn all_rounds_together_have_an_end_and_a_given_length_stays() {
        let slow = Observed {
            together_s: 80.0,
            ..waits(20_000.0, 4)
        };
        let chosen = fit(&[slow]);
        assert_eq!(chosen.rate, 0.1);
        assert_eq!(chosen.round * 8, Duration::from_secs(300));
        let given = Some(Duration::from_millis(700));
        let kept = Fit::of(&[slow], 2, true, 8, given).expect("variants");
        assert_eq!(kept.round, Duration::from_millis(700));
        assert_eq!(Fit::of(&[], 2, true, 8, None), None);
    }

    #[test]
    fn a_closed_loop_shares_the_capacity_of_requests_that_slow_one_another_down() {
        let serial = Observed {
            together_s: 48e-3,
            ..waits(12.0, 4)
        };
        assert_eq!(serial.latency_at(1), 12e-3);
        assert!((serial.latency_at(8) - 96e-3).abs() < 1e-12);
        assert_eq!(waits(12.0, 4).latency_at(64), 12e-3);
    }

    #[test]
    fn rates_are_rounded_down_to_a_digit() {
        let cases = [
            (100.0, 100.0),
            (99.9, 80.0),
            (78.0, 60.0),
            (7.9, 6.0),
            (1.0, 1.0),
            (0.34, 0.3),
            (0.01, 0.1),
        ];
        for (rate, rounded) in cases {
            assert!((rounded_down(rate) - rounded).abs() < 1e-9, "{rate}");
        }
    }

    #[test]
    fn as_many_are_tried_in_flight_as_the_highest_rate_has() {
        assert_eq!(in_flight(1e-4, 2), 4);
        assert_eq!(in_flight(0.1, 2), 10);
        assert_eq!(in_flight(0.4, 2), 16);
        assert_eq!(in_flight(f64::INFINITY, 2), 16);
    }
}
