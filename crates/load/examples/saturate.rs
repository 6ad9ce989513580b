//! Loads one address and prints the results and the cost. It shows the engine alone, to compare it with other
//! generators.
//!
//! ```console
//! cargo run --release -p load --example saturate -- 127.0.0.1:8080 connections=100 seconds=5 cpu=1
//! ```
//!
//! `rate=5000` makes it an open loop. `path=/x` requests another path. `check=body` compares every body with
//! the first body. `check=graphql` looks for GraphQL errors.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use load::{
    Address, BodyRule, Expectation, Job, Live, Measurement, Request, Target, exchange, run,
};
use model::{Arrival, Load, Phase, Rate, Stop};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let address = words
        .next()
        .ok_or("usage: saturate ADDRESS [connections=100] [threads=1] [seconds=5] [requests=N] [rate=N] [cpu=N] [path=/] [check=body|graphql] [spin=PERCENT] [keep-alive=off]")?;
    let options: BTreeMap<String, String> = words
        .filter_map(|word| {
            word.split_once('=')
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
        })
        .collect();
    let job = job(&address, &options)?;
    let measurement = run(&job, &Live::new(), &AtomicBool::new(false))?;
    print(&measurement);
    Ok(())
}

fn job(
    address: &str,
    options: &BTreeMap<String, String>,
) -> Result<Job, Box<dyn std::error::Error>> {
    let number = |key: &str, default: u64| -> Result<u64, std::num::ParseIntError> {
        options.get(key).map_or(Ok(default), |value| value.parse())
    };
    let duration = Duration::from_secs(number("seconds", 5)?);
    let connections = u32::try_from(number("connections", 100)?)?;
    let timeout = Duration::from_millis(number("timeout-ms", 5000)?);
    let target = Target {
        address: Address::Tcp(address.parse()?),
        host: address.to_owned(),
        protocol: load::Protocol::default(),
    };
    let mut request = Request {
        method: "GET".to_owned(),
        path: options.get("path").map_or("/", String::as_str).to_owned(),
        headers: Vec::new(),
        body: Vec::new(),
        expect: Expectation::default(),
        websocket: None,
        grpc: None,
        weight: 1,
    };
    let check = options.get("check").map_or("", String::as_str);
    if check.contains("body") {
        let answer = exchange(&target, &request, timeout)?;
        request.expect.body = BodyRule::Equals(Arc::from(answer.body));
    }
    request.expect.graphql = check.contains("graphql");
    let load = match options.get("rate") {
        Some(rate) => Load::Open {
            phases: vec![Phase::constant(duration, Rate::new(rate.parse()?)?)],
            arrival: match options.get("arrival").map(String::as_str) {
                Some("poisson") => Arrival::Poisson { seed: 7 },
                _ => Arrival::Uniform,
            },
            connections_max: connections,
            requests_max: None,
        },
        None => Load::Closed {
            connections,
            stop: Stop {
                requests: options.get("requests").map(|n| n.parse()).transpose()?,
                duration: Some(duration),
            },
        },
    };
    Ok(Job {
        threads: u32::try_from(number("threads", 1)?)?,
        timeout,
        keep_alive: options.get("keep-alive").is_none_or(|value| value != "off"),
        spin_share: match options.get("spin") {
            Some(percent) => percent.parse::<f64>()? / 100.0,
            None => Job::SPIN_SHARE,
        },
        realtime: options.get("realtime").is_none_or(|value| value != "off"),
        cpus: options
            .get("cpu")
            .map(|cpus| cpus.split(',').map(str::parse).collect())
            .transpose()?,
        ..Job::new(target, vec![request], load)
    })
}

#[expect(clippy::print_stdout, reason = "printing is what this program is for")]
fn print(measurement: &Measurement) {
    let requests = measurement.sent as f64;
    let cpu_us = measurement.generator.cpu.as_secs_f64() * 1e6;
    println!(
        "requests_per_s {:.0}  generator_cpu_us_per_request {:.2}  sent {}  elapsed_s {:.3}",
        requests / measurement.elapsed.as_secs_f64(),
        cpu_us / requests,
        measurement.sent,
        measurement.elapsed.as_secs_f64(),
    );
    for (name, histogram) in [
        ("latency", &measurement.latency),
        ("service", &measurement.service),
        ("lateness", &measurement.lateness),
        ("connect", &measurement.connect),
        ("first_byte", &measurement.first_byte),
    ] {
        let us = |quantile| histogram.quantile_ns(quantile).unwrap_or(0) as f64 / 1e3;
        println!(
            "{name}_us p50 {:.1}  p90 {:.1}  p99 {:.1}  p99.9 {:.1}  max {:.1}  n {}",
            us(0.5),
            us(0.9),
            us(0.99),
            us(0.999),
            us(1.0),
            histogram.len(),
        );
    }
    println!(
        "sending_rate {:.2}/s  generator_core {:.1} %  pauses {}  waited {}",
        (requests - 1.0) / measurement.sending.as_secs_f64(),
        cpu_us / measurement.elapsed.as_secs_f64() / 1e4,
        measurement.generator.pauses.len(),
        measurement.waited,
    );
    println!("{:?}  {:?}", measurement.outcomes, measurement.statuses);
    for failure in &measurement.failures {
        println!("{failure:?}");
    }
}
