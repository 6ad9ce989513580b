//! A run that takes precedence over other programs on the same cores.
//!
//! If the kernel groups ordinary programs by session (`autogroup`, sched(7)), it shares the cores between
//! sessions and control groups by weight, and `nice` counts only within a session. A compiler in another
//! terminal then has half of each core, however nice it is, and all systems of a run together have the other
//! half. A request waits for milliseconds until its system has a core.
//!
//! Main idea: every part of a run weighs some ten times as much as any other program. There are three
//! parts: the session of the owner (with the generator), the session of the keeper (with systems without a
//! processor limit), and the control group of systems with a limit. All three get the weight of the same
//! niceness, so they share the cores among each other as before.
//!
//! **Invariant:** all three have the weight, or no part has it. A generator that weighs less than its target
//! would be delayed by the target, and the difference would look like latency.
//!
//! Absent on purpose: version 2 of control groups with a `cpu` controller. There the owner is one leaf among
//! many, and groups outside the run determine its weight.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::cgroup::Hierarchies;

/// The niceness of the run's sessions.
const NICE: i32 = -10;

/// Weight of a program of that niceness in the kernel (`sched_prio_to_weight`). A program of niceness 0, and
/// a control group by default, weighs 1024.
const SHARES: &str = "9548";

const ENABLED: &str = "/proc/sys/kernel/sched_autogroup_enabled";

/// The changes that must be undone. The keeper undoes them, or the owner if the keeper is gone.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Precedence {
    /// The owner's session. `None` if it had the niceness already, through another run.
    session: Option<Session>,
}

impl Precedence {
    /// Gives the run `run` of this keeper precedence over other programs. `None` if the system refuses (it
    /// requires root or `CAP_SYS_NICE`) or does not weigh by session. Then everything stays unchanged.
    pub(crate) fn take(
        owner_pid: i32,
        own_pid: i32,
        hierarchies: &Hierarchies,
        run: &str,
    ) -> Option<Precedence> {
        // A program in a `cpu` group below the root is weighed by that group and not by its session.
        let group = hierarchies.cpu_below_root(run)?;
        let is_on = |text: String| text.trim() == "1";
        if !fs::read_to_string(ENABLED).is_ok_and(is_on) {
            return None;
        }
        let owner = Session::of(owner_pid)?;
        let was_taken = owner.nice <= NICE;
        if !was_taken && !set_nice(owner_pid, NICE) {
            return None;
        }
        let taken = Precedence {
            session: (!was_taken).then_some(owner),
        };
        // The keeper leads a session of its own, and the session ends with the keeper.
        if set_nice(own_pid, NICE) && group.is_none_or(|group| set_shares(&group)) {
            Some(taken)
        } else {
            taken.give_back();
            set_nice(own_pid, 0);
            None
        }
    }

    /// Restores the niceness of the owner's session. The owner may be gone, so any process of its session
    /// serves. If the session has no process, it is gone, too.
    pub(crate) fn give_back(&self) {
        let Some(session) = &self.session else {
            return;
        };
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        for pid in pids {
            if Session::of(pid).is_some_and(|found| found.name == session.name)
                && set_nice(pid, session.nice)
            {
                return;
            }
        }
    }
}

/// A session, as the scheduler weighs it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Session {
    name: String,
    nice: i32,
}

impl Session {
    fn of(pid: i32) -> Option<Session> {
        Session::parse(&fs::read_to_string(file(pid)).ok()?)
    }

    /// Parses a text such as `/autogroup-57 nice 0`.
    fn parse(text: &str) -> Option<Session> {
        let (name, nice) = text.trim().split_once(" nice ")?;
        Some(Session {
            name: name.to_owned(),
            nice: nice.parse().ok()?,
        })
    }
}

fn file(pid: i32) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}/autogroup"))
}

fn set_nice(pid: i32, nice: i32) -> bool {
    fs::write(file(pid), nice.to_string()).is_ok()
}

/// Creates the group of a run, as parent of the groups of its systems, and sets its weight.
fn set_shares(group: &Path) -> bool {
    fs::create_dir_all(group)
        .and_then(|()| fs::write(group.join("cpu.shares"), SHARES))
        .is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_read_as_the_kernel_writes_it() {
        let session = |nice| Session {
            name: "/autogroup-57".to_owned(),
            nice,
        };
        assert_eq!(Session::parse("/autogroup-57 nice 0\n"), Some(session(0)));
        assert_eq!(
            Session::parse("/autogroup-57 nice -10\n"),
            Some(session(-10))
        );
        for other in ["", "/autogroup-57", "/autogroup-57 nice high"] {
            assert_eq!(Session::parse(other), None, "{other}");
        }
    }
}
