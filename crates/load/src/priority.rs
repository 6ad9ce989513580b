//! Real-time priority for threads that send on schedule, while they leave their cores to other programs.
//!
//! A thread that sleeps until a slot is due is woken in time. It then waits behind other work on its core:
//! another program, a thread of the kernel, or a system under load. With `SCHED_FIFO` it runs at once
//! (sched(7)).
//!
//! Such a thread takes its time from other threads on its core, and the scheduler moves those away slowly. A
//! system under load then waits, and its wait looks like its latency. A thread therefore has priority while
//! it uses a small part of its core, and is ordinary when it uses more. On a core of its own it delays no
//! other thread.

use std::time::Duration;

use thread_priority::unix::{
    NormalThreadSchedulePolicy, RealtimeThreadSchedulePolicy, ThreadSchedulePolicy,
    set_thread_priority_and_policy, thread_native_id,
};
use thread_priority::{ThreadPriority, ThreadPriorityValue};

use crate::clock::thread_cpu_ns;

/// A thread that used less of its core than this share is raised.
const LIGHT_SHARE: f64 = 0.2;

/// A thread that used more of its core than this share is lowered.
const HEAVY_SHARE: f64 = 0.3;

/// Time between two reviews.
const WINDOW_NS: u64 = 20_000_000;

/// Gives the calling thread the lowest real-time priority, which is above every ordinary thread.
///
/// Returns `false` if the system refuses. It requires root, `CAP_SYS_NICE` or a limit for it (`ulimit -r`).
pub fn raise() -> bool {
    let policy = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
    // The lowest priority is enough to run before ordinary programs, and does not affect other real-time
    // threads.
    set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, policy).is_ok()
}

/// Makes the calling thread ordinary again, with its previous niceness.
fn lower() {
    let nice = rustix::process::getpriority_process(None);
    let policy = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Other);
    // The library requires a niceness, and sets the policy first. If the niceness is refused, the old
    // niceness remains.
    let middle =
        ThreadPriorityValue::try_from(NICENESS_0).expect("the library's scale goes from 0 to 99");
    let middle = ThreadPriority::Crossplatform(middle);
    let _ = set_thread_priority_and_policy(thread_native_id(), middle, policy);
    if let Ok(nice) = nice {
        let _ = rustix::process::setpriority_process(None, nice);
    }
}

/// The library's value for niceness 0, on its scale from 0 to 99.
const NICENESS_0: u8 = 48;

/// Other programs that may need the core of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Core {
    /// No other program, because the thread is pinned.
    Own,
    /// Every program on this machine.
    Shared,
}

/// The priority of the calling thread.
#[derive(Debug)]
pub(crate) struct Priority {
    is_given: bool,
    core: Core,
    is_high: bool,
    /// Start of the current window.
    begin_ns: u64,
    cpu_ns: u64,
    high_ns: u64,
}

impl Priority {
    /// Returns an ordinary priority for the whole load.
    pub(crate) fn ordinary() -> Priority {
        Priority {
            is_given: false,
            core: Core::Shared,
            is_high: false,
            begin_ns: 0,
            cpu_ns: 0,
            high_ns: 0,
        }
    }

    /// Requests real-time priority. A thread that shares its core must first show that it uses a small part
    /// of it.
    pub(crate) fn realtime(core: Core) -> Priority {
        // Raised even if the thread is lowered again, to find if the system allows it.
        let is_given = raise();
        let is_high = is_given && core == Core::Own;
        if is_given && !is_high {
            lower();
        }
        Priority {
            is_given,
            core,
            is_high,
            ..Priority::ordinary()
        }
    }

    /// Starts the first window of the load.
    pub(crate) fn begin(&mut self, now_ns: u64) {
        (self.begin_ns, self.cpu_ns) = (now_ns, thread_cpu_ns());
    }

    /// Raises or lowers the thread from time to time, by its use of the core in the last window.
    #[inline]
    pub(crate) fn review(&mut self, now_ns: u64) {
        // No system call before the window is over: this runs in every turn of the event loop.
        let may_move = self.is_given && self.core == Core::Shared;
        if may_move && now_ns - self.begin_ns >= WINDOW_NS {
            self.end_window(now_ns);
        }
    }

    fn end_window(&mut self, now_ns: u64) {
        let cpu_ns = thread_cpu_ns();
        let length_ns = now_ns - self.begin_ns;
        if self.is_high {
            self.high_ns += length_ns;
        }
        let share = (cpu_ns - self.cpu_ns) as f64 / length_ns as f64;
        (self.begin_ns, self.cpu_ns) = (now_ns, cpu_ns);
        // The policy is only set when it changes, because that is a system call.
        match (self.is_high, goes_first(self.is_high, share)) {
            (false, true) => self.is_high = raise(),
            (true, false) => {
                lower();
                self.is_high = false;
            }
            _ => {}
        }
    }

    /// Ends the load. Returns true if real-time priority was available, and its duration.
    pub(crate) fn end(mut self, now_ns: u64) -> (bool, Duration) {
        if self.is_high {
            self.high_ns += now_ns - self.begin_ns;
        }
        (self.is_given, Duration::from_nanos(self.high_ns))
    }
}

/// True if a thread with this share of its core in the last window has priority in the next window. The two
/// limits differ, so that a thread between them does not switch back and forth.
fn goes_first(is_high: bool, share: f64) -> bool {
    share < if is_high { HEAVY_SHARE } else { LIGHT_SHARE }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy() -> ThreadSchedulePolicy {
        thread_priority::unix::thread_schedule_policy_param(thread_native_id())
            .expect("a thread knows its policy")
            .0
    }

    const ORDINARY: ThreadSchedulePolicy =
        ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Other);

    /// Burns processor time of this thread.
    fn burn(length_ns: u64) {
        let end_ns = thread_cpu_ns() + length_ns;
        while thread_cpu_ns() < end_ns {
            std::hint::spin_loop();
        }
    }

    #[test]
    fn little_use_moves_up_and_much_moves_down_and_between_nothing_changes() {
        for (is_high, share, expected) in [
            (false, 0.0, true),
            (false, 0.19, true),
            (false, 0.25, false),
            (true, 0.25, true),
            (true, 0.31, false),
            (true, 1.0, false),
        ] {
            assert_eq!(goes_first(is_high, share), expected, "{is_high} {share}");
        }
    }

    #[test]
    fn a_thread_goes_first_while_it_uses_little_of_a_shared_core() {
        // The policy belongs to the thread, and the thread ends with the test.
        std::thread::spawn(|| {
            let mut priority = Priority::realtime(Core::Shared);
            if !priority.is_given {
                assert_eq!(policy(), ORDINARY);
                return;
            }
            let nice = rustix::process::getpriority_process(None);
            priority.begin(0);
            assert_eq!(policy(), ORDINARY, "nothing was shown yet");
            priority.review(WINDOW_NS);
            assert_ne!(policy(), ORDINARY, "it used nothing");
            burn(WINDOW_NS / 2);
            priority.review(2 * WINDOW_NS - 1);
            assert_ne!(policy(), ORDINARY, "the window is not over");
            priority.review(2 * WINDOW_NS);
            assert_eq!(policy(), ORDINARY, "it used half of the time");
            assert_eq!(rustix::process::getpriority_process(None), nice);
            let used = (true, Duration::from_nanos(WINDOW_NS));
            assert_eq!(priority.end(3 * WINDOW_NS), used);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_core_of_its_own_is_used_as_it_pleases() {
        std::thread::spawn(|| {
            let mut priority = Priority::realtime(Core::Own);
            priority.begin(0);
            burn(WINDOW_NS);
            priority.review(WINDOW_NS);
            assert_eq!(policy() != ORDINARY, priority.is_given);
            let expected = if priority.is_given { 2 * WINDOW_NS } else { 0 };
            assert_eq!(
                priority.end(2 * WINDOW_NS).1,
                Duration::from_nanos(expected)
            );
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_thread_that_did_not_ask_stays_ordinary() {
        let mut priority = Priority::ordinary();
        priority.begin(0);
        priority.review(10 * WINDOW_NS);
        assert_eq!(priority.end(20 * WINDOW_NS), (false, Duration::ZERO));
    }
}
