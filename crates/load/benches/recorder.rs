//! Measures the cost to record one request, and checks that memory stays flat over 10^8 requests.
//!
//! The recorder is no part of the public interface, so its sources are compiled into this program.

#![expect(
    dead_code,
    unreachable_pub,
    unused_imports,
    reason = "only a part of these modules is used here"
)]

use std::fs;
use std::hint::black_box;
use std::time::{Duration, Instant};

#[path = "../src"]
mod sources {
    pub mod clock;
    pub mod live;
    pub mod measurement;
    pub mod recorder;
}

// The path under which the sources refer to each other.
use sources::{clock, live, measurement, recorder};

use recorder::{Recorder, Times};

const SAMPLES: u64 = 100_000_000;

fn main() {
    // One request every 100 us. The 10^8 requests take nearly three hours of the simulated clock.
    run("closed loop, one read", SAMPLES, false, |now_ns, bits| {
        Times {
            due_ns: now_ns,
            sent_ns: now_ns,
            first_byte_ns: now_ns + service_ns(bits),
            first_event_ns: 0,
            done_ns: now_ns + service_ns(bits),
        }
    });
    run(
        "open loop, two reads",
        SAMPLES / 4,
        false,
        |now_ns, bits| Times {
            due_ns: now_ns - (bits & 0xffff),
            sent_ns: now_ns,
            first_byte_ns: now_ns + service_ns(bits) / 2,
            first_event_ns: 0,
            done_ns: now_ns + service_ns(bits),
        },
    );
    // The cost of `--prometheus`, `--otlp` and the terminal screen, in addition to the first line.
    run(
        "closed loop, one read, looked at",
        SAMPLES,
        true,
        |now_ns, bits| Times {
            due_ns: now_ns,
            sent_ns: now_ns,
            first_byte_ns: now_ns + service_ns(bits),
            first_event_ns: 0,
            done_ns: now_ns + service_ns(bits),
        },
    );
}

/// Returns 50 us to 1.1 ms.
fn service_ns(bits: u64) -> u64 {
    50_000 + (bits >> 44)
}

#[expect(clippy::print_stdout, reason = "the answer of a bench")]
fn run(name: &str, samples: u64, is_looked_at: bool, times: impl Fn(u64, u64) -> Times) {
    let mut recorder = Recorder::new(0, 3).with_live(is_looked_at);
    let live = live::Live::with_jobs(usize::from(is_looked_at));
    let (mut bits, mut now_ns) = (0x9e37_79b9_7f4a_7c15_u64, 1_000_000_000);
    let mut answer = |recorder: &mut Recorder| {
        bits ^= bits << 13;
        bits ^= bits >> 7;
        bits ^= bits << 17;
        now_ns += 100_000;
        let times = black_box(times(now_ns, bits));
        let planned = (times.due_ns != times.sent_ns).then_some(times.due_ns);
        recorder.sent(times.sent_ns, planned);
        recorder.answered(times, 200, true);
    };
    let before = resident_kib();
    let start = now();
    for _ in 0..samples / 100 {
        answer(&mut recorder);
    }
    let early = resident_kib();
    for sample in samples / 100..samples {
        answer(&mut recorder);
        // As frequent as at 100,000 responses a second.
        if is_looked_at && sample % 10_000 == 0 {
            recorder.publish(&live, 0, sample, sample);
        }
    }
    let took_ns = start.elapsed().as_nanos() as f64;
    let late = resident_kib();
    let cost = measurement::GeneratorCost {
        cpu: Duration::ZERO,
        ..Default::default()
    };
    let whole = recorder.into_measurement(cost, None);
    assert_eq!(whole.outcomes.passed, samples);
    println!(
        "- {name}: {:.1} ns per request. Memory grew by {} KiB over the first {} and by {} KiB over all {}",
        took_ns / samples as f64,
        early - before,
        samples / 100,
        late - before,
        samples,
    );
}

/// Resident memory of this process in KiB.
fn resident_kib() -> i64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux tells");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok())
        .expect("a process has memory")
}

#[expect(clippy::disallowed_methods, reason = "a bench measures")]
fn now() -> Instant {
    Instant::now()
}
