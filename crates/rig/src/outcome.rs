//! State of a system, its end, and the limits that it ran under.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::usage::Usage;

/// State of a system's first process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The process that was started is alive.
    Running,
    /// The process that was started has ended. Its orphans may live until [`crate::Rig::stop`], which ends
    /// them.
    Exited {
        /// Exit status of that process.
        status: Status,
        /// Time from its start to its end.
        at: Duration,
    },
}

/// Exit status of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It ended by itself, with this exit code.
    Code(i32),
    /// The process was ended by a signal.
    Signal {
        /// Number of the signal, as in signal(7).
        signal: i32,
        /// True if the kernel killed a process of this system because of the memory limit.
        out_of_memory: bool,
    },
    /// The shepherd was killed, so the system was killed as well.
    Lost,
}

impl Status {
    /// True for exit code 0.
    #[must_use]
    pub fn is_success(self) -> bool {
        self == Self::Code(0)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Signal {
                signal,
                out_of_memory,
            } => {
                write!(f, "signal {signal}")?;
                if let Some(name) = signal_hook::low_level::signal_name(signal) {
                    write!(f, " ({name})")?;
                }
                if out_of_memory {
                    f.write_str(", out of the memory it may use")?;
                }
                Ok(())
            }
            Self::Lost => f.write_str("the death of the process that watched it"),
        }
    }
}

/// Result of [`crate::Rig::stop`] for one system.
#[derive(Clone, Debug, PartialEq)]
pub struct Stopped {
    /// Exit status of the process that was started.
    pub status: Status,
    /// The effort needed to end the system.
    pub manner: Manner,
    /// Resource usage of the system at the time of the stop order. `None` if it could no longer be read.
    pub usage: Option<Usage>,
}

/// The effort needed to end a system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Manner {
    /// Every process had ended before the stop order.
    AlreadyGone,
    /// SIGTERM ended all processes in time.
    OnRequest,
    /// The grace period was over, so the remaining processes were killed.
    Killed,
}

/// The limits in force, read back from the kernel after setting them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Enforced {
    /// CPU time per wall time.
    pub cpus: Option<f64>,
    /// Limit of the memory in bytes.
    pub memory: Option<u64>,
    /// `cgroup v1`, `cgroup v2` or `cgroup v2 and cgroup v1`. `None` without a limit.
    pub by: Option<String>,
    /// Reason why a requested limit is not in force.
    pub why_not: Option<String>,
}

/// Processes in a cgroup that an earlier run left behind, because it was killed together with its keeper. The
/// rig stops only its own processes, so it reports these and does not end them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leftover {
    /// Path of the cgroup.
    pub cgroup: PathBuf,
    /// Process ids of the processes in that cgroup.
    pub pids: Vec<i32>,
}
