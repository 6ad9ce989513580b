//! Measures how punctual this machine lets a thread be that only waits, and the load from other programs
//! meanwhile.
//!
//! Two threads bound the engine. One sleeps until each slot is due, and the other reads the clock without
//! rest until it is due. The lateness of the first is the price of sleeping on this machine. The lateness of
//! the second was caused by other programs or by the host, and no engine can avoid it.

use std::fs;
use std::time::Duration;

use rustix::thread::{ClockId, clock_nanosleep_relative};
use rustix::time::clock_gettime;
use stats::Histogram;

/// The way of waiting for a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waiting {
    Sleeping,
    Spinning,
}

/// The results of a thread that only awaits slots.
pub(super) struct Awaited {
    pub(super) lateness: Histogram,
    pub(super) slots: u64,
    pub(super) cpu: Duration,
}

/// Awaits slots at a constant rate on the core of the generator.
pub(super) fn await_slots(
    waiting: Waiting,
    rate: f64,
    length: Duration,
    cpu: Option<usize>,
) -> Awaited {
    let thread = move || {
        super::settle(cpu);
        let cpu = now(ClockId::ThreadCPUTime);
        let start = now(ClockId::Monotonic);
        let mut lateness = Histogram::new();
        let dues = (0_u32..).map(|slot| Duration::from_secs_f64(f64::from(slot) / rate));
        for due in dues.take_while(|due| *due < length) {
            let due = start + due;
            if waiting == Waiting::Sleeping {
                let left = due.saturating_sub(now(ClockId::Monotonic));
                let left = left.try_into().expect("less than a second");
                let _ = clock_nanosleep_relative(ClockId::Monotonic, &left);
            }
            let woken = loop {
                let time = now(ClockId::Monotonic);
                if time >= due {
                    break time;
                }
            };
            lateness.record_ns(u64::try_from((woken - due).as_nanos()).unwrap_or(u64::MAX));
        }
        Awaited {
            slots: lateness.len(),
            lateness,
            cpu: now(ClockId::ThreadCPUTime) - cpu,
        }
    };
    std::thread::spawn(thread)
        .join()
        .expect("waiting does not panic")
}

/// Time that other programs and the host have used until now.
#[derive(Clone, Copy, Debug)]
pub(super) struct Foreign {
    at: Duration,
    steal_ms: f64,
    others_ms: f64,
}

impl Foreign {
    pub(super) fn now() -> Foreign {
        let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
        let (busy_ms, steal_ms) = busy_and_steal_ms(&stat);
        Foreign {
            at: now(ClockId::Monotonic),
            steal_ms,
            others_ms: busy_ms - now(ClockId::ProcessCPUTime).as_secs_f64() * 1e3,
        }
    }

    /// Returns the time since `before` in milliseconds a second, over all cores: stolen by the host, and used
    /// by other programs. The resolution is the kernel's tick of 10 ms.
    pub(super) fn since(self, before: Foreign) -> (f64, f64) {
        let seconds = (self.at - before.at).as_secs_f64();
        let rate = |now: f64, then: f64| (now - then).max(0.0) / seconds;
        (
            rate(self.steal_ms, before.steal_ms),
            rate(self.others_ms, before.others_ms),
        )
    }
}

/// Reads the first line of `/proc/stat`, in milliseconds at 100 ticks a second.
fn busy_and_steal_ms(stat: &str) -> (f64, f64) {
    let line = stat.lines().next().unwrap_or_default();
    let ticks: Vec<f64> = line
        .split_whitespace()
        .skip(1)
        .filter_map(|word| word.parse().ok())
        .collect();
    match ticks.as_slice() {
        [user, nice, system, _idle, _wait, irq, softirq, steal, ..] => {
            ((user + nice + system + irq + softirq) * 10.0, steal * 10.0)
        }
        _ => (0.0, 0.0),
    }
}

fn now(clock: ClockId) -> Duration {
    Duration::try_from(clock_gettime(clock)).expect("none of these clocks was ever below 0")
}
