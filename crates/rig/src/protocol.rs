//! What the rig, the keeper, the shepherds and the launchers say to each other.
//!
//! ```text
//!            Order (stdin)          Order (socket)           Launch (socket)
//! rig ◄────────────────► keeper ◄──────────────────► shepherd ────────────► launcher ══► program
//!            Event (stdout)         Event (socket)           refusal or end
//! ```
//!
//! The keeper passes orders and events on as they are, so they carry the
//! system's `id`.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::cgroup::Groups;
use crate::outcome::{Enforced, Leftover, Manner, Status};
use crate::spec::Limits;
use crate::usage::Usage;

/// Tells the keeper whose it is; the first line it reads.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Begin {
    /// The owner's process.
    pub(crate) owner_pid: i32,
    /// The owner's start, in clock ticks since boot.
    pub(crate) owner_start: u64,
    /// Arguments that lead to [`crate::launch::main`].
    pub(crate) launch: Vec<String>,
}

/// Tells the rig that the keeper keeps; the first line it writes.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Begun {
    /// The run's name, also that of its cgroups.
    pub(crate) run: String,
    pub(crate) leftovers: Vec<Leftover>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Order {
    Start(Box<Job>),
    Stop {
        id: u64,
        grace: Duration,
    },
    /// Remove this folder when everything is ended.
    RemoveAtEnd(PathBuf),
    /// Run this errand when everything is ended.
    RunAtEnd(String),
    /// The owner ends by itself: it waits for no answer of anything outside.
    Finish,
}

/// Something to run: a system or a build step.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Job {
    pub(crate) id: u64,
    /// The run's name; filled in by the keeper.
    pub(crate) run: String,
    /// Arguments that lead to [`crate::launch::main`]; filled in by the keeper.
    pub(crate) launch: Vec<String>,
    pub(crate) name: String,
    pub(crate) program: Program,
    pub(crate) log: PathBuf,
    pub(crate) limits: Limits,
    pub(crate) cpus_allowed: Option<Vec<usize>>,
}

/// What a launcher turns into.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Program {
    /// Absolute.
    pub(crate) path: PathBuf,
    /// The program as the caller wrote it, which is what it sees as its name.
    pub(crate) arg0: String,
    pub(crate) args: Vec<String>,
    pub(crate) folder: PathBuf,
    pub(crate) env: Vec<(String, String)>,
}

/// Tells a launcher what to do; the only line it reads.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Launch {
    /// The shepherd; another parent means that it has died meanwhile.
    pub(crate) parent: i32,
    pub(crate) program: Program,
    pub(crate) cpus_allowed: Option<Vec<usize>>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Event {
    /// The kernel runs the program.
    Started { id: u64, started: Started },
    /// It does not.
    Refused { id: u64, refusal: Refusal },
    /// The program's process has ended.
    Exited {
        id: u64,
        status: Status,
        at: Duration,
    },
    /// Nothing of the system is left.
    Stopped {
        id: u64,
        manner: Manner,
        usage: Option<Usage>,
    },
    /// The shepherd was killed; nothing of the system is left.
    Lost { id: u64 },
    /// SIGKILL did not help; the keeper's last word.
    Unkillable { pids: Vec<i32> },
}

/// The name of a system's cgroup, within the run's.
pub(crate) fn instance_name(id: u64, name: &str) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    // Short and plain: it becomes a folder's name; the id keeps two such names apart.
    let name: String = name.chars().take(40).map(safe).collect();
    format!("{id}-{name}")
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Started {
    pub(crate) pid: i32,
    pub(crate) shepherd_pid: i32,
    pub(crate) shepherd_start: u64,
    pub(crate) groups: Groups,
    pub(crate) enforced: Enforced,
    /// Length of the log when the system was started.
    pub(crate) log_start_bytes: u64,
}

/// Why a launcher did not become the program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Refusal {
    pub(crate) step: Step,
    pub(crate) reason: String,
}

/// The steps to a running program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Step {
    Watch,
    Log,
    Pin,
    Folder,
    Exec,
}

impl Step {
    pub(crate) fn refused(self, reason: impl ToString) -> Refusal {
        Refusal {
            step: self,
            reason: reason.to_string(),
        }
    }
}
