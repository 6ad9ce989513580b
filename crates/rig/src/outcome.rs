//! What became of a system: its state, its end and the limits it ran under.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::usage::Usage;

/// What a system is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The process that was started is alive.
    Running,
    /// The process that was started has ended. Others that it left behind may
    /// live until [`crate::Rig::stop`], which ends them.
    Exited {
        /// How it ended.
        status: Status,
        /// Time from its start to its end.
        at: Duration,
    },
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It ended by itself, with this exit code.
    Code(i32),
    /// A signal ended it.
    Signal {
        /// The signal's number.
        signal: i32,
        /// The kernel killed something in this system because the memory limit
        /// was reached.
        out_of_memory: bool,
    },
    /// The process that watched it was killed, so it was killed as well.
    Lost,
}

impl Status {
    /// Whether this is exit code 0.
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

/// How [`crate::Rig::stop`] ended a system.
#[derive(Clone, Debug, PartialEq)]
pub struct Stopped {
    /// How the process that was started ended.
    pub status: Status,
    /// What it took.
    pub manner: Manner,
    /// What the system had used when it was asked to stop, where that could
    /// still be read.
    pub usage: Option<Usage>,
}

/// What it took to end a system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Manner {
    /// Every process had ended before it was asked to.
    AlreadyGone,
    /// SIGTERM was enough.
    OnRequest,
    /// The grace ran out and what was left was killed.
    Killed,
}

/// The limits that the kernel says are in force, read back after setting them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Enforced {
    /// CPU time per wall time.
    pub cpus: Option<f64>,
    /// Bytes of memory.
    pub memory: Option<u64>,
    /// `cgroup v1` or `cgroup v2`; `None` if nothing is limited.
    pub by: Option<String>,
    /// Why a limit that was asked for is not in force.
    pub why_not: Option<String>,
}

/// A group of processes that an earlier run, killed together with its keeper,
/// has left running. The rig only stops what it started itself, so these are
/// reported and not ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leftover {
    /// The cgroup that holds them.
    pub cgroup: PathBuf,
    /// Their process ids.
    pub pids: Vec<i32>,
}
