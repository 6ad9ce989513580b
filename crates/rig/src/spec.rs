//! Orders of a caller: a system to run, or a build step.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The command that starts the keeper and, from it, the launchers.
///
/// Both are the caller's own program with arguments that end in [`crate::keeper::main`] and
/// [`crate::launch::main`]. The keeper starts the launchers through `/proc/self/exe`, so a build that
/// replaces the program file in the middle of a run does no harm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeeperCommand {
    /// The program, normally the running one (`std::env::current_exe()`).
    pub program: PathBuf,
    /// Arguments that lead to [`crate::keeper::main`].
    pub keeper: Vec<String>,
    /// Arguments that lead to [`crate::launch::main`]. The rig appends its own arguments, and they must reach
    /// that function unchanged.
    pub launch: Vec<String>,
}

impl KeeperCommand {
    /// Uses `PROGRAM keeper` and `PROGRAM launch …`.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            keeper: vec!["keeper".to_owned()],
            launch: vec!["launch".to_owned()],
        }
    }
}

/// A system that the rig can start.
#[derive(Clone, Debug, PartialEq)]
pub struct SystemSpec {
    /// Display name. It appears in errors, in the process list and in the name of its cgroup.
    pub name: String,
    /// Program and arguments. [`crate::find_program`] finds the program.
    pub command: Vec<String>,
    /// Working directory of the system. It must exist.
    pub folder: PathBuf,
    /// Variables that are added to, or replace, the variables of the calling process.
    pub env: Vec<(String, String)>,
    /// Upper limits of its resources.
    pub limits: ProcessLimits,
    /// The CPUs that the system may run on, by number. `None` means the CPUs that the caller could use when
    /// it started the rig.
    pub cpus_allowed: Option<Vec<usize>>,
    /// Standard output and standard error are appended here.
    pub log: PathBuf,
}

/// Upper limits of a system's resources. `None` means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessLimits {
    /// CPU time per wall time, 0.01 or more: `0.25` is a quarter of one core.
    pub cpus: Option<f64>,
    /// Bytes of memory, including page cache and kernel memory. Swap is off.
    pub memory: Option<u64>,
}

/// A command that must run to its end before a system can be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildSpec {
    /// Display name. It appears in errors.
    pub name: String,
    /// Program and arguments. [`crate::find_program`] finds the program.
    pub command: Vec<String>,
    /// Working directory of the command. It must exist.
    pub folder: PathBuf,
    /// Variables that are added to, or replace, the variables of the calling process.
    pub env: Vec<(String, String)>,
    /// Standard output and standard error are appended here.
    pub log: PathBuf,
    /// Time limit of the command. `None` means no limit until the caller stops it.
    pub within: Option<Duration>,
}
