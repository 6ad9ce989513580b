//! Reaping children, and killing everything below this process for certain.
//!
//! Keeper and shepherds are child subreapers (prctl(2)): whatever below them
//! loses its parent becomes their child, whether it forked twice, called
//! `setsid` or closed its files. "No children left" from the kernel therefore
//! proves that nothing is left, which no list of processes could.

use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Signal, WaitOptions, WaitStatus, wait};

use crate::lines::wait_readable;
use crate::wakeups::Wakeups;
use crate::{clock, processes};

/// How long something is tried to be killed. A process that survives SIGKILL
/// this long sits in the kernel (`D` in `ps`), where no signal reaches it.
pub(crate) const KILL_WITHIN: Duration = Duration::from_secs(10);

/// SIGCHLD wakes earlier; this only bounds the time to the next look for
/// processes that were forked during the last one.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// What there was to reap.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Reaped {
    Ended(i32, WaitStatus),
    NoneYet,
    NoChildren,
}

/// Takes one ended child, without waiting.
pub(crate) fn reap() -> Reaped {
    match wait(WaitOptions::NOHANG) {
        Ok(Some((pid, status))) => Reaped::Ended(pid.as_raw_nonzero().get(), status),
        // An interrupted look says nothing; the caller looks again.
        Ok(None) | Err(Errno::INTR) => Reaped::NoneYet,
        Err(_) => Reaped::NoChildren,
    }
}

/// Becomes the parent of orphans below this process.
pub(crate) fn adopt_orphans() -> std::io::Result<()> {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    Ok(())
}

/// Kills descendants until none is left; `on_end` is called for each child
/// that ended. Returns those that survived.
pub(crate) fn kill_everything(
    wakeups: &Wakeups,
    kill_at_once: impl Fn(),
    mut on_end: impl FnMut(i32, WaitStatus),
) -> Vec<i32> {
    let deadline = clock::now() + KILL_WITHIN;
    loop {
        // Cleared before looking: a child that ends during the look wakes the next wait.
        wakeups.clear();
        loop {
            match reap() {
                Reaped::Ended(pid, status) => on_end(pid, status),
                Reaped::NoneYet => break,
                Reaped::NoChildren => return Vec::new(),
            }
        }
        kill_at_once();
        // Read anew in every round: a process may have forked before its signal came.
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
