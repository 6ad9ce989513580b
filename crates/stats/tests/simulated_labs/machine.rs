//! A machine that drifts, with systems that have a slightly different speed after each start.

use std::f64::consts::PI;

use stats::Histogram;

use crate::random::Random;

/// Standard deviation of the machine's drift from one measurement to the next.
const DRIFT: f64 = 0.005;
/// Standard deviation of a system's speed from start to start.
const RESTART: f64 = 0.01;
/// Number of requests in one measurement.
const REQUESTS: f64 = 20_000.0;
/// Standard deviation of the logarithm of a single latency.
const SPREAD: f64 = 0.5;

/// The order of the measurements of baseline and variant.
#[derive(Clone, Copy)]
pub(crate) enum Order {
    /// Both in every round, in random order.
    Interleaved,
    /// First all measurements of the baseline, then all of the variant.
    Blocks,
}

/// A quantile of the latency.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Quantile {
    P50,
    P90,
    P99,
}

pub(crate) struct Machine {
    pub(crate) random: Random,
    slowness: f64,
}

impl Machine {
    pub(crate) fn new(seed: u64) -> Machine {
        Machine {
            random: Random(seed.wrapping_mul(0x2545_f491_4f6c_dd1d)),
            slowness: 1.0,
        }
    }

    /// Mean latency of each round as (baseline, variant). The variant is slower by the share `effect`.
    pub(crate) fn lab(&mut self, rounds: usize, order: Order, effect: f64) -> (Vec<f64>, Vec<f64>) {
        let truth = [1.0, 1.0 + effect];
        let mut found = [vec![0.0; rounds], vec![0.0; rounds]];
        let sequence: Vec<(usize, usize)> = match order {
            Order::Interleaved => (0..rounds)
                .flat_map(|round| {
                    let first = self.random.below(2);
                    [(first, round), (1 - first, round)]
                })
                .collect(),
            Order::Blocks => (0..2)
                .flat_map(|system| (0..rounds).map(move |round| (system, round)))
                .collect(),
        };
        for (system, round) in sequence {
            found[system][round] = truth[system] * self.measure_mean();
        }
        let [baseline, variant] = found;
        (baseline, variant)
    }

    /// Mean latencies of several equal systems, one row each, measured round by round. Each round begins with
    /// another system.
    pub(crate) fn equal_systems(&mut self, systems: usize, rounds: usize) -> Vec<Vec<f64>> {
        let mut rows = vec![Vec::new(); systems];
        for _ in 0..rounds {
            let first = self.random.below(systems);
            for position in 0..systems {
                let value = self.measure_mean();
                rows[(first + position) % systems].push(value);
            }
        }
        rows
    }

    /// One quantile of the latency of each round, in ms, as (baseline, variant). The variant adds `added` ms
    /// to every request.
    pub(crate) fn quantiles(
        &mut self,
        rounds: usize,
        quantile: Quantile,
        added: f64,
    ) -> (Vec<f64>, Vec<f64>) {
        (0..rounds)
            .map(|_| {
                let baseline = self.measure_quantile(quantile);
                (baseline, self.measure_quantile(quantile) + added)
            })
            .unzip()
    }

    /// Histograms of the latency of each round as (baseline, variant). The variant adds `added_ms` to every
    /// request.
    pub(crate) fn histograms(
        &mut self,
        rounds: usize,
        requests: f64,
        added_ms: f64,
    ) -> (Vec<Histogram>, Vec<Histogram>) {
        (0..rounds)
            .map(|_| {
                let baseline = self.measure_histogram(requests, 0.0);
                (baseline, self.measure_histogram(requests, added_ms))
            })
            .unzip()
    }

    /// Adds the number of requests of `round` to `pool`, drawn from it with replacement. It draws class by
    /// class, so the number changes a little by chance.
    pub(crate) fn redraw(&mut self, round: &Histogram, pool: &mut Histogram) {
        for (value_ns, count) in round.recorded() {
            let drawn = self.poisson(count as f64);
            if drawn > 0 {
                pool.record_n_ns(value_ns, drawn);
            }
        }
    }

    /// Differences between two equal systems, a row for each of seven quantiles. Quantiles of one measurement
    /// share its error and have a small error of their own.
    pub(crate) fn shifts(&mut self, rounds: usize) -> Vec<Vec<f64>> {
        let mut rows = vec![Vec::new(); 7];
        for _ in 0..rounds {
            let shared = self.start() - self.start();
            for (row, weight) in rows.iter_mut().zip([0.8, 0.9, 1.0, 1.2, 1.5, 1.8, 2.5]) {
                row.push(weight * (shared + 0.004 * weight * self.random.normal()));
            }
        }
        rows
    }

    /// Mean of log-normal latencies with mean 1: the sampling error of [`REQUESTS`] requests, times the state
    /// of the machine and of the system.
    fn measure_mean(&mut self) -> f64 {
        let relative = ((SPREAD * SPREAD).exp_m1() / REQUESTS).sqrt();
        (1.0 + relative * self.random.normal()) * self.start()
    }

    /// Quantile of log-normal latencies with median 1 ms, asymptotically normal around the true quantile. Its
    /// spread is the binomial spread of the share below it, divided by the density there.
    fn measure_quantile(&mut self, quantile: Quantile) -> f64 {
        let (share, z) = match quantile {
            Quantile::P50 => (0.5, 0.0),
            Quantile::P90 => (0.9, 1.281_551_565_544_6),
            Quantile::P99 => (0.99, 2.326_347_874_040_8),
        };
        let density = (-z * z / 2.0_f64).exp() / (2.0 * PI).sqrt();
        let deviation = (share * (1.0 - share) / REQUESTS).sqrt() / density;
        (SPREAD * (z + deviation * self.random.normal())).exp() * self.start()
    }

    /// Log-normal latencies with median 1 ms, in effect request by request. Their number in each of many
    /// narrow classes is drawn by Poisson's law.
    fn measure_histogram(&mut self, requests: f64, added_ms: f64) -> Histogram {
        let slowness = self.start();
        let mut histogram = Histogram::new();
        let width = 0.02;
        for class in -200_i32..200 {
            let z = f64::from(class) * width;
            let density = (-z * z / 2.0_f64).exp() / (2.0 * PI).sqrt();
            let expected = requests * density * width;
            let count = self.poisson(expected);
            if count > 0 {
                // Anywhere within its class, so that classes do not show in the result.
                let place = z + width * (self.random.uniform() - 0.5);
                let latency_ms = (SPREAD * place).exp() * slowness + added_ms;
                histogram.record_n_ns((latency_ms * 1e6) as u64, count);
            }
        }
        histogram
    }

    /// Knuth's multiplication for small means, the normal distribution for large ones.
    fn poisson(&mut self, mean: f64) -> u64 {
        if mean > 30.0 {
            return (mean + mean.sqrt() * self.random.normal()).round().max(0.0) as u64;
        }
        let limit = (-mean).exp();
        let mut product = self.random.uniform();
        let mut count = 0;
        while product > limit {
            product *= self.random.uniform();
            count += 1;
        }
        count
    }

    /// Starts a system, and advances the drift of the machine.
    fn start(&mut self) -> f64 {
        self.slowness *= 1.0 + DRIFT * self.random.normal();
        self.slowness * (1.0 + RESTART * self.random.normal())
    }
}
