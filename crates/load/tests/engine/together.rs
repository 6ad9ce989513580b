//! Several jobs from the same threads.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use load::{Job, Live, LoadError, Measurement, Slice, Version, run_together};
use model::{Load, Stop};

use crate::general::{speech, target};
use crate::modern::{Act, Modern};
use crate::open::idle_for;
use crate::server::{Client, Server};
use crate::{closed, job, open, verify};

fn polite(mut client: Client) {
    while client.request().is_some() {
        client.answer("hello");
    }
}

fn together(jobs: &[Job]) -> Vec<Measurement> {
    let (live, stop) = (Live::new(), AtomicBool::new(false));
    let (measurements, ()) = run_together(jobs, &live, &stop, || ()).unwrap();
    for measurement in &measurements {
        assert!(!measurement.interrupted);
        verify(measurement);
    }
    let sent = measurements.iter().map(|measurement| measurement.sent);
    assert_eq!(
        live.read().sent,
        sent.sum::<u64>(),
        "live counts are of all"
    );
    measurements
}

#[test]
fn each_job_has_its_own_plan_target_and_account() {
    for threads in [1, 2] {
        let (one, other) = (Server::tcp(polite), Server::tcp(polite));
        let mut jobs = [
            job(&one.target, open(500.0, Duration::from_millis(200))),
            job(&other.target, open(1000.0, Duration::from_millis(100))),
            job(&other.target, closed(3, 77)),
        ];
        for job in &mut jobs {
            job.threads = threads;
        }
        let found = together(&jobs);
        let passed: Vec<u64> = found.iter().map(|each| each.outcomes.passed).collect();
        assert_eq!(passed, [100, 100, 77]);
        assert_eq!((one.requests(), other.requests()), (100, 177));
        let lateness: Vec<u64> = found.iter().map(|each| each.lateness.len()).collect();
        assert_eq!(lateness, [100, 100, 0]);
        assert_eq!(found[0].generator.threads, threads);
    }
}

#[test]
fn one_that_stalls_does_not_hold_up_the_other() {
    const STALL: Duration = Duration::from_millis(300);
    let stalled = Server::tcp(|mut client| {
        while let Some((number, _)) = client.request() {
            if number == 0 {
                idle_for(STALL);
            }
            client.answer("hello");
        }
    });
    let quick = Server::tcp(polite);
    let plan = || open(200.0, Duration::from_millis(500));
    let mut jobs = [job(&stalled.target, plan()), job(&quick.target, plan())];
    jobs[0].load.limit_connections(1);
    let found = together(&jobs);
    assert!(found[0].waited > 0, "its one connection was busy");
    assert!(found[0].latency.max_ns() >= Some(300_000_000));
    assert_eq!(found[1].waited, 0);
    assert!(found[1].latency.quantile_ns(0.5) < Some(100_000_000));
}

#[test]
fn seats_place_the_slots_of_two_jobs_between_each_other() {
    let heard: Arc<Mutex<Vec<char>>> = Arc::default();
    let server = |name: char| {
        let heard = Arc::clone(&heard);
        Server::tcp(move |mut client| {
            while client.request().is_some() {
                heard.lock().unwrap().push(name);
                client.answer("hello");
            }
        })
    };
    let (one, other) = (server('a'), server('b'));
    let gap_ns = 20_000_000;
    let seat = |variant| schedule::Seat {
        variant,
        variants: 2,
        seed: 7,
        spread: schedule::Spread::Seats,
    };
    let plan = || open(50.0, Duration::from_millis(400));
    let mut jobs = [job(&one.target, plan()), job(&other.target, plan())];
    jobs[0].seat = Some(seat(0));
    jobs[1].seat = Some(seat(1));
    for job in &mut jobs {
        job.keep_slots = Some(20);
    }
    let found = together(&jobs);
    let mut expected = String::new();
    for cycle in 0..20 {
        let slots = [&found[0].slots[cycle], &found[1].slots[cycle]];
        for slot in slots {
            assert_eq!(slot.index as usize, cycle);
            assert!(slot.passed());
            assert!(slot.due_ns <= slot.sent_ns && slot.sent_ns <= slot.done_ns);
        }
        let due_ns = cycle as u64 * gap_ns;
        let mut dues = slots.map(|slot| slot.due_ns);
        expected += if dues.is_sorted() { "ab" } else { "ba" };
        dues.sort_unstable();
        // Each slot is in its seat, which is half of the gap long.
        let second_ns = due_ns + gap_ns / 2;
        assert!((due_ns..second_ns).contains(&dues[0]), "{dues:?}");
        assert!((second_ns..due_ns + gap_ns).contains(&dues[1]), "{dues:?}");
    }
    let order: String = heard.lock().unwrap().iter().collect();
    let as_planned = order.chars().zip(expected.chars());
    let swapped = as_planned
        .filter(|(found, expected)| found != expected)
        .count();
    assert!(
        swapped <= 4 && expected.contains("abba"),
        "a busy machine may swap a few: {order}"
    );
}

#[test]
fn one_over_http2_and_one_in_the_clear_run_together_too() {
    let version = Version::Http2 { streams: 4 };
    let modern = Modern::start(speech(version, false), |_| Act::answer("hello"));
    let plain = Server::tcp(polite);
    let fancy = target(&modern, version, false);
    let mut jobs = [
        job(&fancy, open(500.0, Duration::from_millis(100))),
        job(&plain.target, open(500.0, Duration::from_millis(100))),
    ];
    for job in &mut jobs {
        job.keep_slots = Some(50);
    }
    for measurement in together(&jobs) {
        assert_eq!(measurement.outcomes.passed, 50);
        let indices: Vec<u32> = measurement.slots.iter().map(|slot| slot.index).collect();
        assert_eq!(indices, (0..50).collect::<Vec<_>>());
    }
    assert_eq!((modern.requests(), plain.requests()), (50, 50));
}

#[test]
fn a_slot_that_fails_is_in_the_trace_as_one_that_did_not_pass() {
    let server = Server::tcp(|mut client| {
        while let Some((number, _)) = client.request() {
            if number % 2 == 0 {
                client.answer("hello");
            } else {
                return;
            }
        }
    });
    let mut job = job(&server.target, closed(1, 10));
    job.keep_slots = Some(10);
    let found = &together(&[job])[0];
    let passed = found.slots.iter().filter(|slot| slot.passed()).count();
    assert_eq!(passed as u64, found.outcomes.passed);
    assert_eq!(found.slots.len(), 10);
    assert!(passed < 10);
}

#[test]
fn what_cannot_be_is_refused_before_it_starts() {
    let server = Server::tcp(polite);
    let refused = |jobs: &[Job]| {
        let stop = AtomicBool::new(false);
        run_together(jobs, &Live::new(), &stop, || ())
            .unwrap_err()
            .to_string()
    };
    let plain = job(&server.target, open(100.0, Duration::from_secs(1)));
    insta::assert_snapshot!(refused(&[]), @"expected at least one job, found 0");
    let alike = [plain.clone(), plain.clone()];
    let unlike = |change: fn(&mut Job)| {
        let mut jobs = alike.clone();
        change(&mut jobs[1]);
        refused(&jobs)
    };
    insta::assert_snapshot!(
        unlike(|job| job.threads = 2),
        @"expected the same number of generator threads in all jobs that run together"
    );
    insta::assert_snapshot!(
        unlike(|job| job.spin_share = 0.5),
        @"expected the same spin share in all jobs that run together"
    );
    insta::assert_snapshot!(
        unlike(|job| job.keep_slots = Some(99)),
        @"expected a plan of at most 99 slots with recorded times, found 100"
    );
    insta::assert_snapshot!(
        unlike(|job| {
            let (from, to) = (Duration::ZERO, Duration::from_secs(1));
            job.slices = vec![Slice { from, to, count_from: from }];
        }),
        @"expected slices of a closed loop without steps, in order, disjoint and not empty, found other slices"
    );
    let mut jobs = alike.clone();
    jobs[1].requests.clear();
    let error = run_together(&jobs, &Live::new(), &AtomicBool::new(false), || ()).unwrap_err();
    assert!(matches!(error, LoadError::NoRequests));
    assert_eq!(server.requests(), 0);
}

#[test]
fn a_closed_loop_in_slices_sends_within_them_and_counts_the_later_part_of_each() {
    let (one, other) = (Server::tcp(polite), Server::tcp(polite));
    let slices = |first: u64| -> Vec<Slice> {
        let at = |ms: u64| Duration::from_millis(ms);
        let slice = |from: u64| Slice {
            from: at(from),
            to: at(from + 50),
            count_from: at(from + 20),
        };
        [first, first + 100].map(slice).to_vec()
    };
    let whole = Load::Closed {
        connections: 4,
        stop: Stop {
            requests: None,
            duration: Some(Duration::from_secs(10)),
        },
    };
    let mut jobs = [job(&one.target, whole.clone()), job(&other.target, whole)];
    jobs[0].slices = slices(0);
    jobs[1].slices = slices(50);
    let found = together(&jobs);
    for (measurement, server) in found.iter().zip([&one, &other]) {
        let (counted, discarded) = (measurement.outcomes, measurement.discarded);
        assert!(
            counted.passed > 0 && discarded.passed > 0,
            "{counted:?} {discarded:?}"
        );
        assert_eq!(server.requests(), counted.total() + discarded.total());
        assert_eq!(server.connections(), 4, "they idle between slices");
        assert_eq!(measurement.sent, counted.total());
        // The first counted request is sent in the first slice, the last in the second slice.
        assert!(measurement.sending <= Duration::from_millis(135));
        assert!(measurement.sending >= Duration::from_millis(70));
    }
    assert!(
        found[0].elapsed < Duration::from_secs(5),
        "slices end the load"
    );
}

#[test]
fn a_closed_loop_that_ends_by_time_keeps_the_times_of_all_its_slots_or_of_none() {
    let server = Server::tcp(polite);
    let mut job = job(&server.target, closed(2, 1));
    job.load = Load::Closed {
        connections: 2,
        stop: Stop {
            requests: None,
            duration: Some(Duration::from_millis(100)),
        },
    };
    job.slices = vec![Slice {
        from: Duration::ZERO,
        count_from: Duration::from_millis(50),
        to: Duration::from_millis(100),
    }];
    job.keep_slots = Some(1 << 20);
    let found = &together(std::slice::from_ref(&job))[0];
    let all = found.outcomes.total() + found.discarded.total();
    assert!(found.discarded.passed > 0);
    assert_eq!(found.slots.len() as u64, all, "those that do not count too");
    job.keep_slots = Some(1);
    assert_eq!(together(&[job])[0].slots, []);
}
