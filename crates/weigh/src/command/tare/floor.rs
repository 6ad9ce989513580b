//! The null server compared with itself. Any difference is this machine's noise.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use analysis::CONFIDENCE;
use experiment::exit::Failure;
use experiment::progress::Progress;
use experiment::stop::StopSignal;
use load::null::{Behavior, serve};
use load::{Address, Bounds, Expectation, Job, Live, Measurement, Request, Target};
use model::{Arrival, Load, Phase, Rate};
use rustix::thread::CpuSet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::Histogram;

/// The settings of the comparison.
#[derive(Clone, Copy, Debug)]
pub(super) struct Weighing {
    pub(super) rate: Rate,
    pub(super) rounds: usize,
    /// Length of one measurement. A round has two.
    pub(super) length: Duration,
    pub(super) connections: u32,
    pub(super) seed: u64,
}

/// One figure of the null server and its noise, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Floor {
    /// Hodges-Lehmann estimate over all measurements.
    pub(crate) value_us: f64,
    /// Lower end of the interval of the difference between the two equal halves of a pair.
    pub(crate) difference_us_low: f64,
    /// Upper end of this interval.
    pub(crate) difference_us_high: f64,
    /// The larger absolute value of the two ends. A smaller overhead is no finding on this machine.
    pub(crate) floor_us: f64,
}

/// The result of all pairs.
#[derive(Debug)]
pub(super) struct Weighed {
    /// Noise floors by the name of the figure.
    pub(super) floors: BTreeMap<String, Floor>,
    /// `None` if no request was sent.
    pub(super) lateness_us_p99: Option<f64>,
    pub(super) cpu_us_per_request: f64,
    /// Requests that did not pass.
    pub(super) not_passed: u64,
    pub(super) is_interrupted: bool,
}

/// A figure of one measurement in microseconds.
type Figure = (&'static str, fn(&Measurement) -> Option<f64>);

const FIGURES: [Figure; 10] = [
    ("latency mean", |found| us(found.latency.mean_ns())),
    ("latency p50", |found| quantile(&found.latency, 0.5)),
    ("latency p90", |found| quantile(&found.latency, 0.9)),
    ("latency p95", |found| quantile(&found.latency, 0.95)),
    ("latency p99", |found| quantile(&found.latency, 0.99)),
    ("latency max", |found| quantile(&found.latency, 1.0)),
    ("service time p50", |found| quantile(&found.service, 0.5)),
    ("service time p99", |found| quantile(&found.service, 0.99)),
    ("lateness p50", |found| quantile(&found.lateness, 0.5)),
    ("lateness p99", |found| quantile(&found.lateness, 0.99)),
];

/// The names of the figures in display order.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    FIGURES.iter().map(|(name, _)| *name)
}

fn us(ns: Option<f64>) -> Option<f64> {
    ns.map(|ns| ns / 1000.0)
}

fn quantile(histogram: &Histogram, quantile: f64) -> Option<f64> {
    us(histogram.quantile_ns(quantile).map(|ns| ns as f64))
}

/// Compares the null server with itself, in interleaved rounds.
pub(super) fn weigh(
    weighing: Weighing,
    progress: &Progress,
    stop: &StopSignal,
) -> Result<Weighed, Failure> {
    let bound = TcpListener::bind("127.0.0.1:0").and_then(|listener| {
        let address = listener.local_addr()?;
        Ok((listener, address))
    });
    let (listener, address) =
        bound.map_err(|error| Failure::not_ready(format!("cannot listen on loopback: {error}")))?;
    let (server_cpu, generator_cpu) = places();
    let job = job(weighing, Address::Tcp(address), generator_cpu);
    let server_stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let server = scope.spawn(|| {
            pin(server_cpu);
            serve(listener, &Behavior::default(), &server_stop)
        });
        let pairs = pairs(weighing, &job, progress, stop);
        // Stopped even after a failed measurement, because the scope waits for the server's thread.
        server_stop.store(true, Ordering::Relaxed);
        server
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            .map_err(|error| Failure::bug(format!("the null server cannot serve: {error}")))?;
        Ok(weighed(&pairs?, stop.is_asked()))
    })
}

/// Both measurements of every complete round, as first and second of a pair.
fn pairs(
    weighing: Weighing,
    job: &Job,
    progress: &Progress,
    stop: &StopSignal,
) -> Result<Vec<[Measurement; 2]>, Failure> {
    let mut pairs = Vec::new();
    let measure = |label: &str, job: &Job| {
        progress
            .during(label, |live: &Live| load::run(job, live, stop.flag()))
            .map_err(|error| Failure::not_ready(error.to_string()))
    };
    // The first requests open connections and fault pages in, so they are not measured.
    let warmup = Job {
        load: open(Weighing {
            length: weighing.length.min(Duration::from_millis(500)),
            ..weighing
        }),
        ..job.clone()
    };
    measure("warming up", &warmup)?;
    for (round, order) in schedule::round_order(2, weighing.rounds, weighing.seed)
        .iter()
        .enumerate()
    {
        let label = format!("round {} of {}", round + 1, weighing.rounds);
        let first = measure(&label, job)?;
        let second = measure(&label, job)?;
        // An interrupted measurement does not make a pair.
        if stop.is_asked() {
            break;
        }
        // The roles are drawn at random, so that the later measurement is not always the variant.
        pairs.push(if order[0] == 0 {
            [first, second]
        } else {
            [second, first]
        });
    }
    Ok(pairs)
}

fn weighed(pairs: &[[Measurement; 2]], is_interrupted: bool) -> Weighed {
    let all = || pairs.iter().flatten();
    let floors = FIGURES
        .iter()
        .filter_map(|(name, figure)| {
            // A figure must exist in every measurement, because each round needs both halves.
            let of = |half: usize| -> Option<Vec<f64>> {
                pairs.iter().map(|pair| figure(&pair[half])).collect()
            };
            Some(((*name).to_owned(), floor(&of(0)?, &of(1)?)?))
        })
        .collect();
    let mut lateness = Histogram::new();
    for measurement in all() {
        lateness.add(&measurement.lateness);
    }
    let cpu_us: f64 = all()
        .map(|found| found.generator.cpu.as_secs_f64() * 1e6)
        .sum();
    let sent: u64 = all().map(|found| found.sent).sum();
    Weighed {
        floors,
        lateness_us_p99: quantile(&lateness, 0.99),
        cpu_us_per_request: cpu_us / sent.max(1) as f64,
        not_passed: all()
            .map(|found| found.planned - found.outcomes.passed)
            .sum(),
        is_interrupted,
    }
}

/// The floor of one figure. `None` with too few rounds for an interval.
fn floor(first: &[f64], second: &[f64]) -> Option<Floor> {
    let overhead = stats::overhead(first, second, CONFIDENCE).ok()?;
    let interval = overhead.difference.interval?;
    let all: Vec<f64> = first.iter().chain(second).copied().collect();
    Some(Floor {
        value_us: stats::hodges_lehmann(&all)?,
        difference_us_low: interval.low,
        difference_us_high: interval.high,
        floor_us: interval.low.abs().max(interval.high.abs()),
    })
}

fn open(weighing: Weighing) -> Load {
    Load::Open {
        phases: vec![Phase::constant(weighing.length, weighing.rate)],
        arrival: Arrival::Uniform,
        connections_max: weighing.connections,
        requests_max: None,
    }
}

fn job(weighing: Weighing, address: Address, cpu: Option<usize>) -> Job {
    Job {
        target: Target {
            address,
            host: "localhost".to_owned(),
            protocol: load::Protocol::default(),
        },
        requests: vec![Request {
            expect: Expectation {
                graphql: true,
                ..Expectation::default()
            },
            ..Request::get("/")
        }],
        steps: Vec::new(),
        data: None,
        load: open(weighing),
        threads: 1,
        timeout: Duration::from_secs(10),
        keep_alive: true,
        // No report shows failures. A single failure decides the exit code.
        failures_kept: 0,
        spin_share: Job::SPIN_SHARE,
        realtime: true,
        bound: Bounds::default(),
        cpus: cpu.map(|cpu| vec![cpu]),
        seat: None,
        keep_slots: None,
        keep_blocks: false,
        slices: Vec::new(),
        shard: model::Shard::WHOLE,
        start_at: None,
        yields: false,
    }
}

/// A core for the server and a core for the generator: the first and the last allowed core.
fn places() -> (Option<usize>, Option<usize>) {
    let allowed = rig::machine::cores_allowed();
    match (allowed.first().copied(), allowed.last().copied()) {
        // With one core for both, the measurement would show their switching. Neither is pinned then.
        (Some(first), Some(last)) if first != last => (Some(first), Some(last)),
        _ => (None, None),
    }
}

/// Pins this thread. If the kernel refuses, the floor includes moves between cores.
fn pin(cpu: Option<usize>) {
    if let Some(cpu) = cpu {
        let mut set = CpuSet::new();
        set.set(cpu);
        let _ = rustix::thread::sched_setaffinity(None, &set);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_floor_is_the_larger_end_of_the_interval_of_equal_halves() {
        let first = [10.0, 11.0, 10.0, 12.0, 10.0, 11.0];
        let second = first.map(|value| value - 1.0);
        let floor = floor(&first, &second).unwrap();
        assert_eq!(floor.floor_us, 1.0);
        assert!(floor.difference_us_high <= 0.0, "{floor:?}");
    }

    #[test]
    fn five_rounds_have_no_floor() {
        assert_eq!(floor(&[1.0; 5], &[1.0; 5]), None);
    }
}
