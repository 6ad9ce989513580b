//! The open loop.

use std::sync::atomic::AtomicBool;
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use load::{Failed, Job, Live, run};
use model::{Arrival, Load, Phase, Rate};

use crate::server::{Client, Server};
use crate::{closed, job, measure, open};

fn polite(mut client: Client) {
    while client.request().is_some() {
        client.answer("hello");
    }
}

/// Sleeps for at least `duration`: the fixture's service time, not a wait for an event.
pub(crate) fn idle_for(duration: Duration) {
    let nothing = Mutex::new(());
    drop(
        Condvar::new()
            .wait_timeout_while(nothing.lock().unwrap(), duration, |()| true)
            .unwrap(),
    );
}

#[test]
fn every_slot_of_the_plan_is_sent_over_any_number_of_threads() {
    for threads in [1, 3] {
        let server = Server::tcp(polite);
        let mut job = job(&server.target, open(1000.0, Duration::from_millis(100)));
        job.threads = threads;
        let live = Live::new();
        let measurement = run(&job, &live, &AtomicBool::new(false)).unwrap();
        assert_eq!(measurement.planned, 100);
        assert_eq!(measurement.outcomes.passed, 100);
        assert_eq!(measurement.lateness.len(), 100);
        assert_eq!(server.requests(), 100);
        assert_eq!(live.read().planned, 100);
        // The last slot is due after 99 ms. No slot leaves before it is due.
        assert!(
            measurement.sending + Duration::from_nanos(measurement.lateness.max_ns().unwrap())
                >= Duration::from_millis(99)
        );
    }
}

#[test]
fn phases_and_poisson_gaps_are_sent_as_planned() {
    let server = Server::tcp(polite);
    let phases = vec![
        Phase {
            duration: Duration::from_millis(100),
            from: Rate::new(0.0).unwrap(),
            to: Rate::new(1000.0).unwrap(),
        },
        Phase::constant(Duration::from_millis(50), Rate::new(200.0).unwrap()),
    ];
    for arrival in [Arrival::Uniform, Arrival::Poisson { seed: 3 }] {
        let plan = schedule::OpenPlan::new(&phases, arrival, None).unwrap();
        let load = Load::Open {
            phases: phases.clone(),
            arrival,
            connections_max: 100,
            requests_max: None,
        };
        let mut job = job(&server.target, load);
        job.threads = 2;
        assert_eq!(measure(&job).outcomes.passed, plan.len());
    }
}

#[test]
fn a_stall_is_in_the_latency_of_all_who_waited_and_in_the_service_time_of_one() {
    const STALL: Duration = Duration::from_millis(400);
    let server = Server::tcp(|mut client| {
        while let Some((number, _)) = client.request() {
            if number == 20 {
                idle_for(STALL);
            }
            client.answer("hello");
        }
    });
    let mut job = job(&server.target, open(200.0, Duration::from_secs(1)));
    job.load.limit_connections(1);
    let measurement = measure(&job);
    assert_eq!(measurement.outcomes.passed, 200, "nothing is dropped");
    let beyond = |histogram: &stats::Histogram, limit: Duration| {
        let limit = u64::try_from(limit.as_nanos()).unwrap();
        histogram
            .recorded()
            .filter(|(value, _)| *value >= limit)
            .map(|(_, count)| count)
            .sum::<u64>()
    };
    // One slot got its response after the stall. 60 more were due at least 100 ms before its end. The figures
    // are lower bounds, so a slow machine only makes them larger.
    assert!(beyond(&measurement.latency, STALL.mul_f64(0.99)) >= 1);
    assert!(beyond(&measurement.latency, Duration::from_millis(100)) >= 60);
    assert!(
        measurement.waited >= 79,
        "{} slots waited",
        measurement.waited
    );
    // Each of these requests was served alone, and at once.
    assert!(beyond(&measurement.service, STALL.mul_f64(0.99)) >= 1);
    assert!(beyond(&measurement.service, Duration::from_millis(100)) < 20);
    // A slot that was not served yet was not sent either: the wait is lateness.
    assert!(beyond(&measurement.lateness, Duration::from_millis(100)) >= 60);
}

#[test]
fn slots_that_find_all_connections_busy_until_the_end_are_missed() {
    let server = Server::tcp(|mut client| client.wait_for_end());
    let mut job = job(&server.target, open(100.0, Duration::from_millis(100)));
    job.load.limit_connections(1);
    job.timeout = Duration::from_millis(60);
    let measurement = measure(&job);
    assert_eq!(measurement.planned, 10);
    let outcomes = measurement.outcomes;
    assert!(outcomes.failed.timeout >= 1);
    assert!(outcomes.missed >= 1);
    assert_eq!(outcomes.failed.timeout + outcomes.missed, 10);
    assert_eq!(measurement.sent, outcomes.failed.timeout);
    server.seen.wait_until_open(|open| open == 0);
}

#[test]
fn connections_are_opened_on_demand_and_used_again() {
    let server = Server::tcp(polite);
    let mut job = job(&server.target, open(50.0, Duration::from_millis(200)));
    job.load.limit_connections(1000);
    measure(&job);
    assert!(
        server.connections() <= 10,
        "{} connections",
        server.connections()
    );
}

#[test]
fn an_idle_connection_that_the_server_closes_is_no_failure() {
    let server = Server::tcp(|mut client| {
        if client.request().is_some() {
            client.answer_and_close("hello");
        }
    });
    let measurement = measure(&job(
        &server.target,
        open(100.0, Duration::from_millis(100)),
    ));
    assert_eq!(measurement.outcomes.passed, 10);
    assert_eq!(server.connections(), 10);
}

#[test]
fn a_refused_connection_fails_its_slot_and_no_other() {
    let target = crate::server::closed_port();
    let measurement = measure(&job(&target, open(100.0, Duration::from_millis(50))));
    assert_eq!(
        measurement.outcomes.failed,
        Failed {
            connect: 5,
            ..Failed::default()
        }
    );
}

#[test]
fn an_open_loop_has_the_priority_it_asks_for_and_is_given() {
    let is_given = std::thread::spawn(load::raise_priority).join().unwrap();
    let server = Server::tcp(polite);
    let mut job = job(&server.target, open(1000.0, Duration::from_millis(5)));
    let priority = |job: &Job| measure(job).generator.realtime;
    assert_eq!(priority(&job), is_given);
    job.spin_share = 1.0;
    assert!(!priority(&job), "a thread that never sleeps");
    job.spin_share = 0.0;
    job.realtime = false;
    assert!(!priority(&job), "a thread that does not ask");
    job.realtime = true;
    job.load = closed(1, 1);
    assert!(!priority(&job), "a closed loop");
}

#[test]
fn what_is_read_of_a_job_at_its_end_is_what_was_measured() {
    for threads in [1, 2] {
        let server = Server::tcp(polite);
        let mut job = job(&server.target, open(500.0, Duration::from_millis(200)));
        job.threads = threads;
        let live = Live::with_jobs(1);
        let measured = run(&job, &live, &AtomicBool::new(false)).unwrap();
        let seen = live.read_jobs().pop().unwrap();
        assert_eq!((seen.counts.begun, seen.counts.ended), (100, 100));
        assert_eq!((seen.counts.sent, seen.counts.passed), (100, 100));
        assert_eq!(seen.counts.under_way(), 0);
        assert_eq!((seen.latency.len(), seen.lateness.len()), (100, 100));
        // Cells and histogram contain the same responses, each with its own precision.
        for share in [0.5, 0.9, 1.0] {
            let exact = measured.latency.quantile_ns(share).unwrap() as f64;
            let shown = seen.latency.quantile_ns(share).unwrap() as f64;
            let ratio = shown / exact;
            assert!((0.99..=1.07).contains(&ratio), "{share}: {shown} {exact}");
        }
    }
}

#[test]
fn without_being_asked_for_no_job_is_counted_apart() {
    let server = Server::tcp(polite);
    let job = job(&server.target, open(500.0, Duration::from_millis(20)));
    let live = Live::new();
    run(&job, &live, &AtomicBool::new(false)).unwrap();
    assert_eq!(live.read().passed, 10);
    assert!(live.read_jobs().is_empty());
}
