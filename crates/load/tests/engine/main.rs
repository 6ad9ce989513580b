//! The engine against real sockets: its counts, its times, and its reaction to a misbehaving server.

#![expect(
    clippy::unwrap_used,
    reason = "clippy exempts test functions, but not what they call"
)]

mod answers;
mod caddy_http3;
mod closed;
mod connect;
mod failures;
mod general;
mod general_scenario;
mod grpc;
mod grpc_scenario;
mod modern;
mod null_http3;
mod null_websocket;
mod open;
mod resumption;
mod scenario;
mod scenario_websocket;
mod server;
mod streams;
mod together;
mod websocket;
mod wire;
mod wire_http2;
mod wire_http3;

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use load::{Expectation, Job, Live, Measurement, Request, Target, run};
use model::{Arrival, Load, Phase, Rate, Stop};

use server::PATIENCE;

/// Returns a GET that only expects a 2xx.
fn get(path: &str) -> Request {
    Request {
        method: "GET".to_owned(),
        path: path.to_owned(),
        headers: Vec::new(),
        body: Vec::new(),
        expect: Expectation::default(),
        websocket: None,
        grpc: None,
        weight: 1,
    }
}

fn job(target: &Target, load: Load) -> Job {
    Job {
        timeout: PATIENCE,
        ..Job::new(target.clone(), vec![get("/")], load)
    }
}

/// Returns a closed loop that stops after this number of requests.
fn closed(connections: u32, requests: u64) -> Load {
    Load::Closed {
        connections,
        stop: Stop {
            requests: Some(requests),
            duration: None,
        },
    }
}

/// Returns an open loop with equal gaps.
fn open(per_second: f64, duration: Duration) -> Load {
    Load::Open {
        phases: vec![Phase::constant(duration, Rate::new(per_second).unwrap())],
        arrival: Arrival::Uniform,
        connections_max: 100,
        requests_max: None,
    }
}

/// Runs a job to its end and checks the sums that hold for all loads.
fn measure(job: &Job) -> Measurement {
    let live = Live::new();
    let measurement = run(job, &live, &AtomicBool::new(false)).unwrap();
    assert!(!measurement.interrupted);
    verify(&measurement);
    let (live, outcomes) = (live.read(), &measurement.outcomes);
    assert_eq!(live.sent, measurement.sent);
    assert_eq!(live.passed, outcomes.passed);
    assert_eq!(live.mismatched, outcomes.mismatched.total());
    assert_eq!(live.failed, outcomes.failed.total());
    assert_eq!(live.missed, outcomes.missed);
    measurement
}

fn verify(measurement: &Measurement) {
    let outcomes = &measurement.outcomes;
    assert_eq!(
        measurement.planned,
        outcomes.total(),
        "every slot has an outcome"
    );
    let complete = outcomes.passed + outcomes.mismatched.total();
    assert_eq!(measurement.latency.len(), complete);
    assert_eq!(measurement.service.len(), complete);
    assert_eq!(measurement.first_byte.len(), complete);
    assert_eq!(measurement.statuses.by_code.values().sum::<u64>(), complete);
    let in_windows = measurement.windows.iter().map(|window| window.completed);
    assert_eq!(in_windows.sum::<u64>(), complete);
    let errors = measurement.windows.iter().map(|window| window.errors);
    assert_eq!(
        errors.sum::<u64>(),
        outcomes.mismatched.total() + outcomes.failed.total()
    );
}
