//! Real-time priority for the threads that send on schedule.
//!
//! A thread that sleeps until a slot is due is woken in time and then waits behind whatever runs on
//! its core: another program, a thread of the kernel, a system under load. With `SCHED_FIFO` it runs at
//! once (sched(7)). The kernel keeps a share of every core for ordinary threads all the same.

use thread_priority::ThreadPriority;
use thread_priority::unix::{
    RealtimeThreadSchedulePolicy, ThreadSchedulePolicy, set_thread_priority_and_policy,
    thread_native_id,
};

/// Gives the calling thread the least real-time priority, which is above every ordinary thread.
///
/// `false` where the system refuses: it wants root, `CAP_SYS_NICE` or a limit for it (`ulimit -r`).
pub fn raise() -> bool {
    let policy = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
    set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, policy).is_ok()
}
