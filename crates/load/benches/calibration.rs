//! The engine against the null server, whose figures are known: the formula of a stall, how
//! punctual an open loop is, and Little's law in a closed one.
//!
//! `cargo bench -p load --bench calibration`; words after `--` choose parts: `stall`, `open`,
//! `closed`. Server and generator are pinned to core 0 and core 1 where there are two.

use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use load::null::{Behavior, Pace, Seen, Stall, serve};
use load::{Address, Bounds, Expectation, Job, Live, Measurement, Request, Target, run};
use rustix::thread::CpuSet;
use schedule::{Arrival, Load, Phase, Rate, Stop};

fn main() {
    // cargo adds `--bench`.
    let words: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with('-'))
        .collect();
    let is_wanted = |part: &str| words.is_empty() || words.iter().any(|word| word == part);
    if is_wanted("stall") {
        stalls();
    }
    if is_wanted("open") {
        rates();
    }
    if is_wanted("closed") {
        closed();
    }
}

/// Quantile q of the latency is s + max(0, S - (1 - q) T (1 - R s)).
fn stalls() {
    let (rate, service_s, run_s) = (1000.0, 0.0002, 30.0);
    say("stall of S seconds in 30 s at 1,000/s, service 0.2 ms: found ms (formula ms)");
    say("| S | p96 | p97 | p99 | p99.9 | max | passed | within 2 % or 1 ms |");
    say("|---:|---:|---:|---:|---:|---:|---:|---|");
    for stall_s in [0.1, 1.0, 3.0] {
        let behavior = Behavior {
            pace: Pace::Service(Duration::from_secs_f64(service_s)),
            stall: Some(Stall {
                length: Duration::from_secs_f64(stall_s),
                after: Duration::from_secs(10),
            }),
            ..Behavior::default()
        };
        let (measurement, _) = measure(&behavior, &open(rate, run_s, Arrival::Uniform), 4000);
        let mut line = format!("| {stall_s} |");
        let mut is_within = true;
        for quantile in [0.96, 0.97, 0.99, 0.999, 1.0] {
            let excess_s: f64 = stall_s - (1.0 - quantile) * run_s * (1.0 - rate * service_s);
            let expected_ms = (service_s + excess_s.max(0.0)) * 1e3;
            let found_ms = quantile_us(&measurement.latency, quantile) / 1e3;
            is_within &= (found_ms - expected_ms).abs() <= (0.02 * expected_ms).max(1.0);
            line += &format!(" {found_ms:.1} ({expected_ms:.1}) |");
        }
        let passed = measurement.outcomes.passed;
        say(&format!("{line} {passed} | {is_within} |"));
    }
}

fn rates() {
    say("\nopen loop on a server that answers at once, 10 s each");
    say(
        "| rate | gaps | achieved | error % | lateness us p50 | p99 | p99.9 | max | service us p50 | CPU us/request | core % | pauses |",
    );
    say("|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|");
    for rate in [1000.0, 5000.0, 20_000.0] {
        for (name, arrival) in [
            ("uniform", Arrival::Uniform),
            ("poisson", Arrival::Poisson { seed: 7 }),
        ] {
            let (found, _) = measure(&Behavior::default(), &open(rate, 10.0, arrival), 100);
            // Between the first and the last send lie sent - 1 gaps.
            let achieved = (found.sent - 1) as f64 / found.sending.as_secs_f64();
            let late_us = |quantile| quantile_us(&found.lateness, quantile);
            let cpu_us = found.generator.cpu.as_secs_f64() * 1e6;
            say(&format!(
                "| {rate} | {name} | {achieved:.1} | {:.3} | {:.1} | {:.1} | {:.1} | {:.0} | {:.1} | {:.1} | {:.0} | {} |",
                (achieved / rate - 1.0) * 100.0,
                late_us(0.5),
                late_us(0.99),
                late_us(0.999),
                late_us(1.0),
                quantile_us(&found.service, 0.5),
                cpu_us / found.sent as f64,
                cpu_us / found.elapsed.as_secs_f64() / 1e4,
                found.generator.pauses.len(),
            ));
        }
    }
}

/// N connections on a single server of service time s: latency N s, throughput 1/s.
fn closed() {
    say("\nclosed loop on a single server of 1 ms");
    say("| connections | latency ms p50 (N s) | requests/s (1/s) | server late us, mean |");
    say("|---:|---:|---:|---:|");
    for connections in [1_u32, 4, 16] {
        let behavior = Behavior {
            pace: Pace::Service(Duration::from_millis(1)),
            ..Behavior::default()
        };
        let load = Load::Closed {
            connections,
            stop: Stop {
                requests: Some(3000),
                duration: None,
            },
        };
        let (found, seen) = measure(&behavior, &load, connections);
        say(&format!(
            "| {connections} | {:.2} ({connections}) | {:.0} (1000) | {:.1} |",
            quantile_us(&found.latency, 0.5) / 1e3,
            found.sent as f64 / found.elapsed.as_secs_f64(),
            seen.late_ns_sum as f64 / seen.answered as f64 / 1e3,
        ));
    }
}

fn open(rate: f64, seconds: f64, arrival: Arrival) -> Load {
    let rate = Rate::new(rate).expect("a rate above 0");
    Load::Open {
        phases: vec![Phase::constant(Duration::from_secs_f64(seconds), rate)],
        arrival,
        requests_max: None,
    }
}

/// One load on one null server.
fn measure(behavior: &Behavior, load: &Load, connections_max: u32) -> (Measurement, Seen) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener
        .local_addr()
        .expect("a bound socket has an address");
    let stop = AtomicBool::new(false);
    let has_two = std::thread::available_parallelism().is_ok_and(|cores| cores.get() > 1);
    let job = Job {
        target: Target {
            address: Address::Tcp(address),
            host: address.to_string(),
            protocol: load::Protocol::default(),
        },
        requests: vec![Request {
            method: "GET".to_owned(),
            path: "/".to_owned(),
            headers: Vec::new(),
            body: Vec::new(),
            expect: Expectation {
                graphql: true,
                ..Expectation::default()
            },
            weight: 1,
        }],
        steps: Vec::new(),
        data: None,
        load: load.clone(),
        connections_max,
        threads: 1,
        timeout: Duration::from_secs(10),
        keep_alive: true,
        failures_kept: 3,
        spin_share: Job::SPIN_SHARE,
        bound: Bounds::default(),
        cpus: has_two.then(|| vec![1]),
    };
    std::thread::scope(|scope| {
        let server = scope.spawn(|| {
            if has_two {
                let mut core = CpuSet::new();
                core.set(0);
                rustix::thread::sched_setaffinity(None, &core).expect("core 0 is there");
            }
            serve(listener, behavior, &stop).expect("a listener that can be polled")
        });
        let found =
            run(&job, &Live::new(), &AtomicBool::new(false)).expect("a job that is possible");
        stop.store(true, Ordering::Relaxed);
        (found, server.join().expect("the server does not panic"))
    })
}

fn quantile_us(histogram: &stats::Histogram, quantile: f64) -> f64 {
    histogram.quantile_ns(quantile).unwrap_or(0) as f64 / 1e3
}

#[expect(clippy::print_stdout, reason = "the answer of a bench")]
fn say(line: &str) {
    println!("{line}");
}
