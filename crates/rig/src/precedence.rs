//! A run that goes before other programs on the same cores.
//!
//! Where the kernel groups ordinary programs by session (`autogroup`, sched(7)), it shares the cores
//! between sessions and control groups by weight, and `nice` counts only within a session. A compiler
//! in another terminal then has half of each core, however nice it is, and all systems of a run
//! together have the other half: a request waits for milliseconds until its system has a core.
//!
//! The one idea: what belongs to a run weighs some ten times as much as any other program.
//! That is the session of the owner, where the generator is, the session of the keeper, where systems
//! without a processor limit are, and the control group of those with one. All three get the weight of
//! the same niceness, so what they have of each other's cores stays as it was.
//!
//! **Invariant:** either all three have it or none. A generator that weighs less than what it loads
//! would be held up by it, and the difference would look like latency.
//!
//! Absent on purpose: version 2 of control groups with a `cpu` controller. There the owner is one leaf
//! among many, and what it weighs is a matter of groups that are not the run's.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::cgroup::Hierarchies;

/// The niceness of the run's sessions.
const NICE: i32 = -10;

/// What the kernel lets a program of that niceness weigh (`sched_prio_to_weight`); one of niceness 0,
/// and a control group by default, weighs 1024.
const SHARES: &str = "9548";

const ENABLED: &str = "/proc/sys/kernel/sched_autogroup_enabled";

/// What was changed, so that it can be given back: by the keeper, or by the owner if the keeper is gone.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Precedence {
    /// The owner's session; none where it had the niceness already, through another run.
    session: Option<Session>,
}

impl Precedence {
    /// Lets the run `run` of this keeper go before other programs; `None` where the system refuses
    /// (it wants root or `CAP_SYS_NICE`) or does not weigh by session, and then nothing is changed.
    pub(crate) fn take(
        owner_pid: i32,
        own_pid: i32,
        hierarchies: &Hierarchies,
        run: &str,
    ) -> Option<Precedence> {
        // In a group of its own below the root, a program is weighed by that and not by its session.
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
        // The keeper leads a session of its own, which ends with it.
        if set_nice(own_pid, NICE) && group.is_none_or(|group| set_shares(&group)) {
            Some(taken)
        } else {
            taken.give_back();
            set_nice(own_pid, 0);
            None
        }
    }

    /// Gives the owner's session back what it had. The owner may be gone: any process of its session
    /// serves, and without one the session is gone, too.
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

    /// Of `/autogroup-57 nice 0`.
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

/// Makes the group of a run, which its systems come below, and weighs it.
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
