//! Samples the system calls that block the threads of systems, from `/proc` alone. It needs no tool and no
//! setting of the kernel, only the permission of a debugger.
//!
//! The times between two looks are random, so that a load with a fixed rhythm does not deceive the sampler.
//! A look counts for the time since the look before it. The expected sum is therefore the real time, also if
//! most waits are shorter than the gap between two looks.

mod call;

use std::collections::BTreeMap;
use std::fs;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use recording::WaitKind;

use crate::environment::instant;
use call::Blocked;

/// Mean time between two looks.
const GAP: Duration = Duration::from_millis(10);

/// A sampler that runs in its own thread.
pub(crate) struct WaitSampler {
    /// Dropped to end the thread.
    stop: Sender<()>,
    thread: JoinHandle<Vec<Episodes>>,
}

/// The waits of the threads of one system.
#[derive(Default)]
pub(crate) struct Episodes(Vec<Episode>);

/// One wait of one thread, as far as looks saw it.
#[derive(Clone, Debug, PartialEq)]
struct Episode {
    kind: WaitKind,
    /// `thread;system call`.
    stack: String,
    /// The time that its looks stand for.
    time: Duration,
    /// The time between its first and its last look. The wait lasted at least this time.
    at_least: Duration,
}

/// A thread between two looks.
struct ThreadState {
    name: String,
    /// How often it got a core. An unchanged number means that it has not run since the last look.
    runs: Option<u64>,
    wait: Option<Episode>,
}

/// The time of waits by kind, and by kind and stack, in microseconds.
#[derive(Default)]
pub(crate) struct WaitTimes {
    pub(crate) by_kind: BTreeMap<WaitKind, u64>,
    pub(crate) by_stack: BTreeMap<(WaitKind, String), u64>,
}

impl WaitSampler {
    /// Starts to look at the threads of these systems, each with its processes.
    pub(crate) fn start(systems: Vec<Vec<i32>>, seed: u64) -> WaitSampler {
        let (stop, stopped) = mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            let mut gap = Gaps(seed);
            let mut looks: Vec<Look> = systems.into_iter().map(Look::new).collect();
            let mut last = instant();
            while stopped.recv_timeout(gap.next()) == Err(RecvTimeoutError::Timeout) {
                let now = instant();
                let passed = now.duration_since(last);
                last = now;
                for look in &mut looks {
                    look.at(passed);
                }
            }
            looks.into_iter().map(Look::end).collect()
        });
        WaitSampler { stop, thread }
    }

    /// Ends sampling. Returns the waits of each system, in the order of the systems.
    pub(crate) fn finish(self) -> Vec<Episodes> {
        drop(self.stop);
        self.thread
            .join()
            .expect("the sampler reads files and cannot panic")
    }
}

impl Episodes {
    /// The time of the waits that a response can contain. A wait that lasted longer than the slowest response
    /// belongs to an idle thread.
    pub(crate) fn within(&self, slowest: Duration) -> WaitTimes {
        let mut times = WaitTimes::default();
        for wait in self.0.iter().filter(|wait| wait.at_least <= slowest) {
            let us = model::micros(wait.time);
            *times.by_kind.entry(wait.kind).or_default() += us;
            let stack = (wait.kind, wait.stack.clone());
            *times.by_stack.entry(stack).or_default() += us;
        }
        times
    }
}

/// The looks at one system.
struct Look {
    pids: Vec<i32>,
    threads: BTreeMap<i32, ThreadState>,
    ended: Episodes,
}

impl Look {
    fn new(pids: Vec<i32>) -> Look {
        Look {
            pids,
            threads: BTreeMap::new(),
            ended: Episodes::default(),
        }
    }

    /// Looks at every thread. `passed` is the time since the last look.
    fn at(&mut self, passed: Duration) {
        for pid in &self.pids {
            // Listed again each time, because threads start and end.
            let tasks = fs::read_dir(format!("/proc/{pid}/task"));
            for task in tasks.into_iter().flatten().flatten() {
                let Some(id) = task.file_name().to_str().and_then(|id| id.parse().ok()) else {
                    continue;
                };
                let read = |file: &str| fs::read_to_string(task.path().join(file)).ok();
                let thread = self.threads.entry(id).or_insert_with(|| ThreadState {
                    name: read("comm").map_or_else(String::new, |name| name.trim().to_owned()),
                    runs: None,
                    wait: None,
                });
                let runs = read("schedstat").and_then(|text| runs_of(&text));
                let blocked = call::blocked(read);
                self.ended.0.extend(thread.seen(runs, blocked, passed));
            }
        }
    }

    fn end(mut self) -> Episodes {
        let open = self.threads.into_values().filter_map(|thread| thread.wait);
        self.ended.0.extend(open);
        self.ended
    }
}

impl ThreadState {
    /// Adds a look. Returns the wait that has ended since the last look.
    fn seen(
        &mut self,
        runs: Option<u64>,
        blocked: Option<Blocked>,
        passed: Duration,
    ) -> Option<Episode> {
        let is_same_wait = runs.is_some() && runs == self.runs;
        self.runs = runs;
        if is_same_wait && let (Some(wait), Some(_)) = (&mut self.wait, &blocked) {
            wait.time += passed;
            wait.at_least += passed;
            return None;
        }
        let next = blocked.map(|blocked| Episode {
            kind: blocked.kind,
            stack: format!("{};{}", thread_name(&self.name), blocked.place),
            time: passed,
            at_least: Duration::ZERO,
        });
        std::mem::replace(&mut self.wait, next)
    }
}

/// The name without the number at its end, so that threads of one pool are grouped.
fn thread_name(name: &str) -> &str {
    let kept = name.trim_end_matches(|it: char| it.is_ascii_digit() || "-#:".contains(it));
    if kept.is_empty() { "thread" } else { kept }
}

/// The third number of `schedstat`: how often the thread got a core.
fn runs_of(schedstat: &str) -> Option<u64> {
    schedstat.split_ascii_whitespace().nth(2)?.parse().ok()
}

/// The reason why the system calls of a process cannot be read. `None` if they can.
pub(crate) fn refusal(pid: i32) -> Option<String> {
    let file = format!("/proc/{pid}/syscall");
    fs::read_to_string(&file)
        .err()
        .map(|error| format!("`{file}`: {error}"))
}

/// Random gaps between half and one and a half of [`GAP`].
struct Gaps(u64);

impl Gaps {
    fn next(&mut self) -> Duration {
        // Knuth's generator (MMIX). The upper bits are random enough for gaps.
        let next = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = next.wrapping_add(1_442_695_040_888_963_407);
        let share = (self.0 >> 33) % 1000;
        GAP / 2 + Duration::from_micros(share * 10)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn blocked(kind: WaitKind) -> Option<Blocked> {
        Some(Blocked {
            kind,
            place: "call".to_owned(),
        })
    }

    fn thread() -> ThreadState {
        ThreadState {
            name: "worker-12".to_owned(),
            runs: None,
            wait: None,
        }
    }

    #[test]
    fn a_thread_that_has_not_run_is_in_one_long_wait() {
        let mut thread = thread();
        assert_eq!(
            thread.seen(Some(7), blocked(WaitKind::Timer), 10 * MS),
            None
        );
        assert_eq!(
            thread.seen(Some(7), blocked(WaitKind::Timer), 12 * MS),
            None
        );
        let long = thread.seen(Some(8), blocked(WaitKind::Timer), 9 * MS);
        let long = long.expect("the thread ran, so the wait has ended");
        assert_eq!((long.time, long.at_least), (22 * MS, 12 * MS));
        assert_eq!(long.stack, "worker;call");
        let short = thread.seen(Some(9), None, 11 * MS).expect("it ended");
        assert_eq!((short.time, short.at_least), (9 * MS, Duration::ZERO));
    }

    #[test]
    fn a_wait_longer_than_every_response_is_in_no_response() {
        let wait = |ms: u32, kind| Episode {
            kind,
            stack: "a;call".to_owned(),
            time: ms * MS,
            at_least: ms * MS,
        };
        let waits = Episodes(vec![wait(3, WaitKind::Lock), wait(900, WaitKind::Timer)]);
        let times = waits.within(20 * MS);
        assert_eq!(times.by_kind, BTreeMap::from([(WaitKind::Lock, 3000)]));
        assert_eq!(waits.within(MS).by_kind, BTreeMap::new());
    }

    #[test]
    fn gaps_differ_and_have_the_planned_mean() {
        let mut gaps = Gaps(1);
        let all: Vec<Duration> = (0..1000).map(|_| gaps.next()).collect();
        assert!(all.iter().all(|gap| (5 * MS..15 * MS).contains(gap)));
        let mean = all.iter().sum::<Duration>() / 1000;
        assert!((9 * MS..11 * MS).contains(&mean), "{mean:?}");
    }

    #[test]
    fn a_sleeping_thread_of_this_process_is_seen_in_its_timer() {
        let (hold, held) = mpsc::channel::<()>();
        let (begun, has_begun) = mpsc::channel();
        let sleeper = std::thread::spawn(move || {
            begun.send(()).unwrap();
            // Ends when the test drops its half, or after a minute.
            let _ = held.recv_timeout(Duration::from_secs(60));
        });
        has_begun.recv().unwrap();
        let pid = i32::try_from(std::process::id()).unwrap();
        assert_eq!(refusal(pid), None, "a process may look at itself");
        let mut look = Look::new(vec![pid]);
        look.at(10 * MS);
        let waits = look.end();
        assert!(!waits.0.is_empty(), "some thread of a test run waits");
        drop(hold);
        sleeper.join().unwrap();
    }
}
