//! Requests that overlap: a service takes much longer than the gap to the next request, and several requests
//! of each variant are in flight. Does the interval of the typical latency keep its promise?
//!
//! A request waits for a timer or a database for nearly all of its time. Only its arrival and its response
//! need a core. So a stretch without a core delays the arrivals and responses in it, and no request that
//! merely waits. Both variants are on one machine. Its speed and its stretches affect both. A request of one
//! variant is often in flight with several requests of the other.

use stats::cycles::{Cause, Disturbance, Validity};
use stats::sample;

use crate::random::Random;
use crate::{CONFIDENCE, compare};

/// Number of rounds in a run.
const ROUNDS: usize = 8;

/// Number of cycles in a round.
const CYCLES: usize = 200;

/// Time from one due time to the next, in microseconds: 100 requests/s.
const GAP_US: f64 = 10_000.0;

/// Processor time of the arrival and of the response together, in microseconds.
const WORK_US: f64 = 60.0;

/// Deviation of a server from start to start, in microseconds.
const START_US: f64 = 2.5;

/// Share of the requests that are slow for reasons of their own.
const SLOW_SHARE: f64 = 0.01;

/// Stretches without a core in a round.
const THEFTS: f64 = 4.0;

/// Share of these stretches that the kernel counts.
const COUNTED_SHARE: f64 = 0.7;

/// Time between two readings of the kernel's counter, in microseconds.
const LOOK_US: f64 = 20_000.0;

/// A service and its variant.
#[derive(Clone, Copy, Debug)]
struct Service {
    /// The time that a request waits, in microseconds.
    wait_us: f64,
    /// Standard deviation of that time, as a share of it. Each request draws its own.
    jitter: f64,
    /// Standard deviation of the machine's speed, as a share of the time. All requests in flight share it.
    mood: f64,
    /// The time that the variant adds to each request, in microseconds.
    added_us: f64,
}

/// The rate of correct runs.
#[derive(Clone, Copy, Debug)]
struct Score {
    /// Share of the runs with the truth in their interval.
    inside: f64,
    /// Like `inside`, for an interval that treats all requests of a run as independent.
    inside_by_request: f64,
    /// Share of the runs that claim a difference.
    claimed: f64,
    /// Median half-width of the interval, in microseconds.
    half_width_us: f64,
    /// Median of the estimates, in microseconds.
    value_us: f64,
}

/// A request: its due time and its latency, in microseconds.
type Request = (f64, f64);

/// A stretch without a core: begin and length in microseconds, and true if the kernel counts it.
type Theft = (f64, f64, bool);

struct Machine(Random);

impl Machine {
    fn new(seed: u64) -> Machine {
        Machine(Random(seed.wrapping_mul(0x2545_f491_4f6c_dd1d)))
    }

    /// The latencies that count in a round, of the baseline and of the variant.
    fn round(&mut self, service: Service) -> [Vec<f64>; 2] {
        let starts = [START_US * self.0.normal(), START_US * self.0.normal()];
        let end_us = GAP_US * CYCLES as f64 + 2.0 * service.wait_us;
        let thefts = self.thefts(end_us);
        let sigma = (service.jitter * service.jitter).ln_1p().sqrt();
        let mut mood = 0.0;
        let mut requests = [Vec::new(), Vec::new()];
        for cycle in 0..CYCLES {
            // It lasts for some cycles, so that requests in flight together share it.
            mood = 0.9 * mood + service.mood * self.0.normal();
            let first = usize::from(self.0.uniform() < 0.5);
            for (place, server) in [first, 1 - first].into_iter().enumerate() {
                let due_us = GAP_US * (cycle as f64 + place as f64 / 2.0);
                let factor = (sigma * self.0.normal() - sigma * sigma / 2.0).exp();
                let mut wait_us = service.wait_us * factor * mood.exp() + starts[server];
                if self.0.uniform() < SLOW_SHARE {
                    wait_us += 1_000.0 * self.0.normal().exp();
                }
                if server == 1 {
                    wait_us += service.added_us;
                }
                requests[server].push((due_us, latency_us(due_us, wait_us, &thefts)));
            }
        }
        counted(&requests, &thefts, end_us)
    }

    fn thefts(&mut self, end_us: f64) -> Vec<Theft> {
        let mut thefts = Vec::new();
        let mut at_us = 0.0;
        loop {
            at_us += -self.0.uniform().ln() / THEFTS * end_us;
            if at_us >= end_us {
                return thefts;
            }
            let length_us = 1_000.0 + 7_000.0 * self.0.uniform();
            thefts.push((at_us, length_us, self.0.uniform() < COUNTED_SHARE));
        }
    }
}

/// The end of the stretch without a core that contains this moment, or else the moment itself.
fn with_a_core(at_us: f64, thefts: &[Theft]) -> f64 {
    let around = thefts
        .iter()
        .find(|(from_us, length_us, _)| (*from_us..from_us + length_us).contains(&at_us));
    around.map_or(at_us, |(from_us, length_us, _)| from_us + length_us)
}

/// The latency of a request that waits for `wait_us` between its arrival and its response.
fn latency_us(due_us: f64, wait_us: f64, thefts: &[Theft]) -> f64 {
    let arrived_us = with_a_core(due_us, thefts);
    let answered_us = with_a_core(arrived_us + wait_us, thefts);
    answered_us + WORK_US - due_us
}

/// The latencies of the cycles that are not left out. A slot ends with its processor time, because a request
/// that waits disturbs no other request.
fn counted(requests: &[Vec<Request>; 2], thefts: &[Theft], end_us: f64) -> [Vec<f64>; 2] {
    let ns = |us: f64| (us * 1e3) as u64;
    let dues_ns: Vec<u64> = (0..=CYCLES).map(|it| ns(GAP_US * it as f64)).collect();
    let medians_ns: Vec<u64> = requests
        .iter()
        .map(|own| {
            let latencies_us: Vec<f64> = own.iter().map(|(_, us)| *us).collect();
            ns(sample::median(&latencies_us).expect("a round has requests"))
        })
        .collect();
    let seen = thefts.iter().filter(|(_, _, is_counted)| *is_counted);
    let disturbances: Vec<Disturbance> = seen
        // The kernel's counter shows a theft between two readings, but not its time.
        .map(|(from_us, length_us, _)| Disturbance {
            from_ns: ns((from_us / LOOK_US).floor() * LOOK_US),
            to_ns: ns((((from_us + length_us) / LOOK_US).floor() + 1.0) * LOOK_US).min(ns(end_us)),
            cause: Cause::Host,
            variant: None,
        })
        .collect();
    let validity = Validity::of(&medians_ns, &dues_ns, &disturbances);
    [0, 1].map(|server| {
        let own = requests[server].iter().enumerate();
        let counted = own.filter(|(cycle, _)| validity.counts(server, *cycle));
        counted.map(|(_, (_, us))| *us).collect()
    })
}

/// Mean of the fastest three quarters.
fn typical(latencies: &[f64]) -> f64 {
    let kept = fastest(latencies);
    kept.iter().sum::<f64>() / kept.len() as f64
}

fn fastest(latencies: &[f64]) -> Vec<f64> {
    let mut sorted = latencies.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let kept = (sorted.len() * 3).div_ceil(4);
    sorted.truncate(kept);
    sorted
}

/// Mean and variance of the mean of the fastest three quarters, as if requests were independent.
fn independent(latencies: &[f64]) -> (f64, f64) {
    let kept = fastest(latencies);
    let count = kept.len() as f64;
    let mean = kept.iter().sum::<f64>() / count;
    let squares: f64 = kept.iter().map(|us| (us - mean).powi(2)).sum();
    (mean, squares / (count - 1.0) / count)
}

fn score(runs: u64, service: Service) -> Score {
    let truth = service.added_us;
    let (mut inside, mut inside_by_request, mut claimed) = (0, 0, 0);
    let (mut half_widths, mut values) = (Vec::new(), Vec::new());
    for seed in 0..runs {
        let mut machine = Machine::new(seed);
        let rounds: Vec<[Vec<f64>; 2]> = (0..ROUNDS).map(|_| machine.round(service)).collect();
        let of = |server: usize| rounds.iter().map(move |round| &round[server]);
        let [baseline, variant] =
            [0, 1].map(|it| of(it).map(|own| typical(own)).collect::<Vec<_>>());
        let found = compare(&baseline, &variant, CONFIDENCE).difference;
        let interval = found.interval.expect("eight rounds have an interval");
        inside += u64::from(interval.contains(truth));
        claimed += u64::from(!interval.contains(0.0));
        half_widths.push(interval.half_width());
        values.push(found.value);
        let [base, own] =
            [0, 1].map(|it| independent(&of(it).flatten().copied().collect::<Vec<_>>()));
        let (difference, error) = (own.0 - base.0, (own.1 + base.1).sqrt());
        inside_by_request += u64::from((difference - truth).abs() <= 1.96 * error);
    }
    let share = |count: u64| count as f64 / runs as f64;
    let middle = |values: &[f64]| sample::median(values).expect("there are runs");
    Score {
        inside: share(inside),
        inside_by_request: share(inside_by_request),
        claimed: share(claimed),
        half_width_us: middle(&half_widths),
        value_us: middle(&values),
    }
}

/// Waits of the services, from shorter than the gap to forty times the gap.
const WAITS_US: [f64; 4] = [5_000.0, 25_000.0, 100_000.0, 400_000.0];

/// Runs of each service. The standard error of a coverage of 95 % is 0.7 %.
const RUNS: u64 = 1_000;

fn service(wait_us: f64, jitter: f64, added: f64) -> Service {
    Service {
        wait_us,
        jitter,
        mood: 0.001,
        added_us: wait_us * added,
    }
}

#[test]
fn overlapping_requests_keep_the_promise_of_the_interval() {
    for wait_us in WAITS_US {
        for jitter in [0.0, 0.2] {
            let found = score(RUNS, service(wait_us, jitter, 0.02));
            assert!(found.inside >= 0.935, "{wait_us} us, {jitter}: {found:?}");
            let off = (found.value_us - wait_us * 0.02).abs();
            assert!(
                off <= found.half_width_us / 2.0,
                "{wait_us} us, {jitter}: {found:?}"
            );
        }
    }
}

#[test]
fn equal_services_with_overlapping_requests_are_rarely_claimed_to_differ() {
    for wait_us in WAITS_US {
        for jitter in [0.0, 0.2] {
            let found = score(RUNS, service(wait_us, jitter, 0.0));
            assert!(found.claimed <= 0.065, "{wait_us} us, {jitter}: {found:?}");
        }
    }
}

#[test]
fn two_percent_of_a_slow_service_are_found_although_requests_overlap() {
    for wait_us in WAITS_US {
        let found = score(300, service(wait_us, 0.0, 0.02));
        assert!(found.claimed >= 0.99, "{wait_us} us: {found:?}");
    }
}

/// Starts differ, so requests of one start are not independent observations.
#[test]
fn requests_taken_for_independent_would_break_the_promise() {
    let quick = Service {
        mood: 0.0,
        ..service(5_000.0, 0.0, 0.02)
    };
    let found = score(500, quick);
    assert!(found.inside >= 0.92, "{found:?}");
    assert!(found.inside_by_request <= 0.85, "{found:?}");
}
