//! Reaping children, and killing everything below this process for certain.
//!
//! Keeper and shepherds are child subreapers (prctl(2)). Every descendant that loses its parent becomes their
//! child, even if it forked twice, called `setsid` or closed its files. When the kernel reports that no
//! children are left, no descendant is left. A list of processes could not prove that.

use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Signal, WaitOptions, WaitStatus, wait};

use crate::lines::wait_readable;
use crate::wakeups::Wakeups;
use crate::{clock, processes};

/// Time limit of attempts to kill. A process that survives SIGKILL this long sits in the kernel (`D` in
/// `ps`), and no signal reaches it there.
pub(crate) const KILL_WITHIN: Duration = Duration::from_secs(10);

/// Longest time between two scans for processes that were forked during the last scan. SIGCHLD starts a scan
/// earlier.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// Result of one call of wait(2).
#[derive(Clone, Copy, Debug)]
pub(crate) enum Reaped {
    Ended(i32, WaitStatus),
    NoneYet,
    NoChildren,
}

/// Reaps one ended child, without waiting.
pub(crate) fn reap() -> Reaped {
    match wait(WaitOptions::NOHANG) {
        Ok(Some((pid, status))) => Reaped::Ended(pid.as_raw_nonzero().get(), status),
        // An interrupted call has no result. The caller repeats it.
        Ok(None) | Err(Errno::INTR) => Reaped::NoneYet,
        Err(_) => Reaped::NoChildren,
    }
}

/// Makes this process the parent of orphans below it.
pub(crate) fn adopt_orphans() -> std::io::Result<()> {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    Ok(())
}

/// Kills descendants until all are gone, and calls `on_end` for each child that ended. Returns the survivors.
pub(crate) fn kill_everything(
    wakeups: &Wakeups,
    kill_at_once: impl Fn(),
    mut on_end: impl FnMut(i32, WaitStatus),
) -> Vec<i32> {
    let deadline = clock::now() + KILL_WITHIN;
    loop {
        // Cleared before the scan, so that a child that ends during the scan ends the next wait.
        wakeups.clear();
        loop {
            match reap() {
                Reaped::Ended(pid, status) => on_end(pid, status),
                Reaped::NoneYet => break,
                Reaped::NoChildren => return Vec::new(),
            }
        }
        kill_at_once();
        // Read again in every round, because a process may have forked before its signal arrived.
        let living = processes::descendants(processes::own_pid());
        for process in &living {
            processes::signal(process.pid, Signal::KILL);
        }
        if clock::now() >= deadline {
            return living.iter().map(|process| process.pid).collect();
        }
        let _interrupted = wait_readable(&[wakeups], Some(LOOK_AGAIN));
    }
}
