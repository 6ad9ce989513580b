//! Messages between the rig, the keeper, the shepherds and the launchers.
//!
//! ```text
//!           Order (stdin)          Order (socket)           Launch (socket)
//! rig ◄────────────────► keeper ◄──────────────────► shepherd ────────────► launcher ══► program
//!           Event (stdout)         Event (socket)           refusal or end
//! ```
//!
//! The keeper passes orders and events on unchanged, so they carry the system's `id`.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::cgroup::Groups;
use crate::outcome::{Enforced, Leftover, Manner, Status};
use crate::precedence::Precedence;
use crate::spec::ProcessLimits;
use crate::usage::Usage;

/// Describes the owner to the keeper. It is the first line that the keeper reads.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Begin {
    /// Process id of the owner.
    pub(crate) owner_pid: i32,
    /// The owner's start, in clock ticks since boot.
    pub(crate) owner_start: u64,
    /// Arguments that lead to [`crate::launch::main`].
    pub(crate) launch: Vec<String>,
}

/// Confirms to the rig that the keeper runs. It is the first line that the keeper writes.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Begun {
    /// Name of the run and of its cgroups.
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
    /// Give the run precedence over other programs until it ends.
    TakePrecedence,
    /// Run this cleanup task when everything is ended.
    RunAtEnd(String),
    /// The owner ends normally, and does not wait for a response of any other service.
    Finish,
}

/// Something to run: a system or a build step.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Job {
    pub(crate) id: u64,
    /// Name of the run. The keeper fills it in.
    pub(crate) run: String,
    /// Arguments that lead to [`crate::launch::main`]. The keeper fills them in.
    pub(crate) launch: Vec<String>,
    pub(crate) name: String,
    pub(crate) program: Program,
    pub(crate) log: PathBuf,
    pub(crate) limits: ProcessLimits,
    pub(crate) cpus_allowed: Option<Vec<usize>>,
}

/// The program that replaces a launcher.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Program {
    /// Absolute path of the executable.
    pub(crate) path: PathBuf,
    /// The program as the caller wrote it. The program sees it as its own name (`argv[0]`).
    pub(crate) arg0: String,
    pub(crate) args: Vec<String>,
    pub(crate) folder: PathBuf,
    pub(crate) env: Vec<(String, String)>,
}

/// Instructions for a launcher. It is the only line that a launcher reads.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Launch {
    /// Process id of the shepherd. If the launcher has another parent, the shepherd has died.
    pub(crate) parent: i32,
    pub(crate) program: Program,
    pub(crate) cpus_allowed: Option<Vec<usize>>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Event {
    /// The kernel runs the program.
    Started { id: u64, started: Started },
    /// The kernel or the shepherd refused to run the program.
    Refused { id: u64, refusal: Refusal },
    /// The program's process has ended.
    Exited {
        id: u64,
        status: Status,
        at: Duration,
    },
    /// All processes of the system have ended.
    Stopped {
        id: u64,
        manner: Manner,
        usage: Option<Usage>,
    },
    /// The shepherd was killed, and all processes of the system have ended.
    Lost { id: u64 },
    /// The run has precedence over other programs now, or the system refused it.
    Precedence { taken: Option<Precedence> },
    /// SIGKILL did not end these processes. It is the last message of the keeper.
    Unkillable { pids: Vec<i32> },
}

/// The name of a system's cgroup, within the run's cgroup.
pub(crate) fn instance_name(id: u64, name: &str) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    // Short and plain, because it becomes the name of a folder. The id makes it unique.
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

/// The reason why a launcher did not become the program.
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
