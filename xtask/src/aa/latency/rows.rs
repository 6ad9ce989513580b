//! Rows of the table of latencies: a service, a load, and the truth about them.

use std::f64::consts::TAU;
use std::fmt::{self, Display};

/// Latencies of the services, in the notation of a user and in microseconds.
const SERVICES: [(&str, f64); 7] = [
    ("0.1ms", 100.0),
    ("1ms", 1_000.0),
    ("5ms", 5_000.0),
    ("12ms", 12_000.0),
    ("25ms", 25_000.0),
    ("100ms", 100_000.0),
    ("400ms", 400_000.0),
];

/// Requests per second of the open loops.
const RATES: [u32; 3] = [20, 100, 400];

/// Connections of the closed loops.
const CONNECTIONS: [u32; 3] = [1, 4, 64];

/// Additional delay of the planted variant, as a share of its delay.
const PLANTED: f64 = 0.02;

/// Coefficient of variation of the services with jitter.
const VARIATION: f64 = 0.2;

/// Highest rate of a closed loop that fits, in requests per second. A response costs [`ANSWER_US`]. Beyond
/// this rate the queue for the cores decides about latencies, and a planted delay is no longer the truth.
const CLOSED_MAX_PER_S: f64 = 6_000.0;

/// Processor time of a response, at the generator and at the server together, in microseconds.
const ANSWER_US: f64 = 50.0;

/// Number of cores that simultaneous runs may keep busy together.
const SHARED_CORES: f64 = 0.7;

/// Number of simultaneous runs for a service of 1 ms. For other services it grows with the square root of the
/// delay.
const AT_ONCE_FOR_1MS: f64 = 2.0;

/// Time of a response over loopback in addition to the delay, in microseconds.
const LOOPBACK_US: f64 = 100.0;

/// Standard normal quantile of three quarters.
const UPPER_QUARTILE: f64 = 0.674_489_750_196_082;

/// The arrival of requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Load {
    /// An open loop, in requests per second.
    Open(u32),
    /// An open loop with random gaps, in requests per second.
    Random(u32),
    /// A closed loop, in connections.
    Closed(u32),
}

/// A row of the table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Row {
    service: &'static str,
    delay_us: f64,
    pub(super) load: Load,
    pub(super) is_jittery: bool,
}

impl Row {
    /// All rows that fit, in the order of the table.
    ///
    /// A service that waits keeps no core busy, so it fits any rate of an open loop. A closed loop fits if
    /// the cores do not decide about its rate.
    pub(super) fn all() -> Vec<Row> {
        let open = RATES.map(Load::Open);
        let closed = CONNECTIONS.map(Load::Closed);
        let loads = open.into_iter().chain(closed);
        let rows = loads.flat_map(|load| {
            SERVICES.into_iter().flat_map(move |(service, delay_us)| {
                [false, true].map(|is_jittery| Row {
                    service,
                    delay_us,
                    load,
                    is_jittery,
                })
            })
        });
        rows.filter(|row| row.fits()).chain(Row::random()).collect()
    }

    /// Even services whose responses arrive after a multiple of a uniform gap, with random gaps.
    fn random() -> impl Iterator<Item = Row> {
        let is_met = |(name, _): &(&str, f64)| ["25ms", "100ms"].contains(name);
        let met = SERVICES.into_iter().filter(is_met);
        met.map(|(service, delay_us)| Row {
            service,
            delay_us,
            load: Load::Random(400),
            is_jittery: false,
        })
    }

    fn fits(self) -> bool {
        match self.load {
            Load::Open(_) | Load::Random(_) => true,
            Load::Closed(_) => self.closed_per_s() <= CLOSED_MAX_PER_S,
        }
    }

    /// Requests per second of a closed loop.
    fn closed_per_s(self) -> f64 {
        match self.load {
            Load::Open(_) | Load::Random(_) => 0.0,
            Load::Closed(connections) => {
                f64::from(connections) * 1e6 / (self.delay_us + LOOPBACK_US)
            }
        }
    }

    /// The delay of a server, in whole nanoseconds as `weigh null-server` reads it.
    pub(super) fn delay(self, is_planted: bool) -> String {
        let factor = if is_planted { 1.0 + PLANTED } else { 1.0 };
        format!("{:.0}ns", self.delay_us * factor * 1e3)
    }

    /// The jitter of a server, as `weigh null-server` reads it.
    pub(super) fn jitter(self) -> String {
        let variation = if self.is_jittery { VARIATION } else { 0.0 };
        format!("{:.0}%", variation * 100.0)
    }

    /// Length of a round's load to one variant, in seconds: some requests of each connection, and 20 latencies
    /// of a closed loop.
    pub(super) fn round_s(self) -> f64 {
        let latency_s = self.delay_us / 1e6;
        match self.load {
            Load::Open(rate) | Load::Random(rate) => {
                (20.0 / f64::from(rate)).max(3.0 * latency_s).max(0.5)
            }
            Load::Closed(_) => (20.0 * latency_s).max(0.5),
        }
    }

    /// Length of a run with that number of rounds, in seconds.
    pub(super) fn run_s(self, rounds: u32) -> f64 {
        // A closed loop loads one variant after the other, and a part of each slice does not count.
        let factor = match self.load {
            Load::Open(_) | Load::Random(_) => 1.0,
            Load::Closed(_) => 2.8,
        };
        f64::from(rounds) * self.round_s() * factor + 1.5 + 2.0 * self.delay_us / 1e6
    }

    /// The share of the machine that a run of this row keeps from other runs, above 0. A run with a share of
    /// 1 is alone.
    ///
    /// In an open loop both servers have the load at the same time. In a closed loop one of them has it. A
    /// fast service is measured to the microsecond, so only few runs may disturb it. A slow service allows
    /// many runs at once.
    pub(super) fn share(self) -> f64 {
        let per_s = match self.load {
            Load::Open(rate) | Load::Random(rate) => 2.0 * f64::from(rate),
            Load::Closed(_) => self.closed_per_s(),
        };
        let busy = per_s * ANSWER_US / 1e6 / SHARED_CORES;
        let at_once = AT_ONCE_FOR_1MS * (self.delay_us / 1e3).sqrt();
        busy.max(1.0 / at_once.max(1.0))
    }

    /// The headline of the load, as a key of a summary.
    pub(super) fn headline(self) -> &'static str {
        match self.load {
            Load::Open(_) | Load::Random(_) => "latency_us_typical",
            Load::Closed(_) => "requests_per_s",
        }
    }

    /// The true difference of the headline, if the baseline has this figure.
    ///
    /// In an open loop it is the planted delay, for the fastest three quarters of the requests. In a closed
    /// loop a connection needs `connections / rate` from response to response, plus the planted delay.
    pub(super) fn truth(self, is_planted: bool, baseline: f64) -> f64 {
        if !is_planted {
            return 0.0;
        }
        let later_us = self.delay_us * PLANTED;
        match self.load {
            Load::Open(_) if self.is_jittery => later_us * typical_of_jitter(VARIATION),
            Load::Open(_) | Load::Random(_) => later_us,
            Load::Closed(connections) => {
                let connections = f64::from(connections);
                connections / (connections / baseline + later_us / 1e6) - baseline
            }
        }
    }

    /// A difference of the headline, as text.
    pub(super) fn in_words(self, value: f64) -> String {
        let digits = match value.abs() {
            small if small < 10.0 => 2,
            middle if middle < 100.0 => 1,
            _ => 0,
        };
        match self.load {
            Load::Open(_) | Load::Random(_) => format!("{value:+.digits$} us"),
            Load::Closed(_) => format!("{value:+.digits$}/s"),
        }
    }
}

impl Display for Row {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.is_jittery { "jitter" } else { "even" };
        match self.load {
            Load::Open(rate) => write!(formatter, "open {} {rate}/s {kind}", self.service),
            Load::Random(rate) => write!(formatter, "random {} {rate}/s {kind}", self.service),
            Load::Closed(connections) => {
                write!(formatter, "closed {} c={connections} {kind}", self.service)
            }
        }
    }
}

/// Mean of the lower three quarters of a log-normal factor of mean 1: `Phi(z - sigma) / 0.75` with the quantile
/// `z` of three quarters.
fn typical_of_jitter(variation: f64) -> f64 {
    let sigma = (variation * variation).ln_1p().sqrt();
    normal_below(UPPER_QUARTILE - sigma) / 0.75
}

/// Share of a standard normal distribution below a bound, by Simpson's rule.
fn normal_below(bound: f64) -> f64 {
    const STEPS: u32 = 1_000;
    let density = |z: f64| (-z * z / 2.0).exp() / TAU.sqrt();
    let from = -9.0;
    let step = (bound - from) / f64::from(STEPS);
    let weighted = (0..=STEPS).map(|index| {
        let weight = match index {
            0 | STEPS => 1.0,
            odd if odd % 2 == 1 => 4.0,
            _ => 2.0,
        };
        weight * density(from + step * f64::from(index))
    });
    weighted.sum::<f64>() * step / 3.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str) -> Row {
        let named = Row::all().into_iter().find(|row| row.to_string() == name);
        named.unwrap_or_else(|| panic!("no row `{name}`"))
    }

    #[test]
    fn every_open_loop_fits_and_closed_loops_as_long_as_cores_do_not_decide() {
        let rows = Row::all();
        let open = rows.iter().filter(|row| matches!(row.load, Load::Open(_)));
        assert_eq!(open.count(), 7 * 3 * 2);
        let closed = |connections: u32| {
            let own = rows
                .iter()
                .filter(|row| row.load == Load::Closed(connections) && !row.is_jittery);
            own.map(|row| row.service).collect::<Vec<_>>()
        };
        assert_eq!(closed(1).len(), 7);
        assert_eq!(closed(4), ["1ms", "5ms", "12ms", "25ms", "100ms", "400ms"]);
        assert_eq!(closed(64), ["12ms", "25ms", "100ms", "400ms"]);
    }

    #[test]
    fn a_filter_is_made_of_whole_words() {
        let count = |filter: &str| {
            let filters = [filter.to_owned()];
            let rows = Row::all().into_iter();
            rows.filter(|row| crate::aa::is_wanted(&row.to_string(), &filters))
                .count()
        };
        assert_eq!(count(""), Row::all().len());
        assert_eq!(count("open 12ms"), 6);
        assert_eq!(count("1ms open"), 6, "neither 0.1ms nor 12ms");
        assert_eq!(count("closed 400ms c=64 jitter"), 1);
        assert_eq!(count("open c=4"), 0);
    }

    #[test]
    fn the_planted_share_reaches_the_server_to_the_nanosecond() {
        assert_eq!(row("open 0.1ms 20/s even").delay(true), "102000ns");
        assert_eq!(row("open 0.1ms 20/s even").delay(false), "100000ns");
        assert_eq!(row("closed 400ms c=1 jitter").delay(true), "408000000ns");
        assert_eq!(row("closed 400ms c=1 jitter").jitter(), "20%");
        assert_eq!(row("closed 400ms c=1 even").jitter(), "0%");
    }

    #[test]
    fn the_truth_of_an_open_loop_is_the_planted_delay() {
        let even = row("open 12ms 100/s even");
        assert!((even.truth(true, 12_100.0) - 240.0).abs() < 1e-9);
        assert!(even.truth(false, 12_100.0).abs() < 1e-9);
        // Phi(0.67449 - 0.19804) = 0.68312, of 0.75.
        let jittery = row("open 12ms 100/s jitter").truth(true, 11_000.0);
        assert!((jittery - 240.0 * 0.91083).abs() < 0.01, "{jittery}");
    }

    #[test]
    fn the_truth_of_a_closed_loop_is_that_of_its_time_from_answer_to_answer() {
        // 4 connections with 10 ms from response to response have 400/s, with 10.1 ms they have 396.04/s.
        let found = row("closed 5ms c=4 even").truth(true, 400.0);
        assert!((found - (4.0 / 0.0101 - 400.0)).abs() < 1e-9, "{found}");
        let none = row("closed 5ms c=4 even").truth(false, 400.0);
        assert!(none.abs() < 1e-9);
    }

    #[test]
    fn jitter_drawn_by_its_formula_has_that_typical_share() {
        let sigma = (1.0_f64 + 0.04).ln().sqrt();
        let places = 20_000;
        let step = (UPPER_QUARTILE + 9.0) / f64::from(places);
        let below: f64 = (0..places)
            .map(|index| {
                let z = -9.0 + step * (f64::from(index) + 0.5);
                let factor = (sigma * z - sigma * sigma / 2.0).exp();
                factor * (-z * z / 2.0).exp() / TAU.sqrt() * step
            })
            .sum();
        let expected = below / 0.75;
        assert!((typical_of_jitter(0.2) - expected).abs() < 1e-6);
    }

    #[test]
    fn rounds_are_long_enough_for_their_latency() {
        for row in Row::all() {
            let latencies = row.round_s() * 1e6 / row.delay_us;
            match row.load {
                Load::Open(rate) | Load::Random(rate) => {
                    assert!(latencies >= 3.0, "{row}");
                    assert!(row.round_s() * f64::from(rate) >= 20.0 - 1e-9, "{row}");
                }
                Load::Closed(_) => assert!(latencies >= 20.0 - 1e-9, "{row}"),
            }
        }
    }
}
