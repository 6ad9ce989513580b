//! Errors of the rig's operations, one enum per operation.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use thiserror::Error;

use crate::outcome::Status;

/// Error of starting or ending the rig.
#[derive(Debug, Error)]
pub enum RigError {
    /// The folder for logs or the keeper's log cannot be written.
    #[error("cannot write the keeper's log `{}`: {source}. Make its folder writable", path.display())]
    Log {
        /// Path of the keeper's log.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The keeper's program could not be run.
    #[error("cannot start the keeper `{}`: {source}", program.display())]
    Start {
        /// Path of the keeper's program.
        program: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The keeper has ended or does not respond. Its systems are dead.
    #[error("the keeper process {what}, so every system was stopped. Its log `{}` {}", log.display(), quoted(last_lines))]
    KeeperLost {
        /// The observed failure, as a predicate of "the keeper process".
        what: String,
        /// Path of the keeper's log.
        log: PathBuf,
        /// The end of that log.
        last_lines: Vec<String>,
    },
    /// Processes that could not be killed.
    #[error(
        "processes {pids:?} are still alive {within:?} after SIGKILL. Inspect them with `ps -o pid,stat,wchan,args`"
    )]
    Unkillable {
        /// Process ids of the survivors.
        pids: Vec<i32>,
        /// The time since SIGKILL was sent.
        within: Duration,
    },
}

/// Error of starting a system.
#[derive(Debug, Error)]
pub enum SpawnError {
    /// The command has no words.
    #[error("the command of `{name}` is empty. Give a program")]
    EmptyCommand {
        /// Name of the system or build step.
        name: String,
    },
    /// There is no such program.
    #[error(
        "`{name}` needs the program `{program}`, which is not {searched}. Install it or correct the command"
    )]
    ProgramMissing {
        /// Name of the system or build step.
        name: String,
        /// The program as the caller wrote it.
        program: String,
        /// The searched place, as the end of a sentence: "in any folder of PATH (`…`)".
        searched: String,
    },
    /// The working directory does not exist.
    #[error("`{name}` should run in `{}`, which is not a folder", folder.display())]
    FolderMissing {
        /// Name of the system or build step.
        name: String,
        /// The working directory of the command.
        folder: PathBuf,
    },
    /// The log cannot be opened.
    #[error("cannot write the log `{}` of `{name}`: {reason}", log.display())]
    Log {
        /// Name of the system or build step.
        name: String,
        /// Path of the log.
        log: PathBuf,
        /// The error of the operating system.
        reason: String,
    },
    /// The system cannot run on the requested CPUs.
    #[error("`{name}` cannot be pinned to CPUs {cpus:?}: {reason}")]
    Pin {
        /// Name of the system.
        name: String,
        /// The requested CPUs, as numbers of the kernel.
        cpus: Vec<usize>,
        /// The error of the operating system.
        reason: String,
    },
    /// The value of a limit is out of range.
    #[error("the limit `{limit}` of `{name}` is {found}. {expected}")]
    Limit {
        /// Name of the system.
        name: String,
        /// Key of the limit: `cpus` or `memory`.
        limit: &'static str,
        /// The value that was given.
        found: String,
        /// The advice for the user.
        expected: &'static str,
    },
    /// The kernel refused to run the program.
    #[error("cannot run `{program}` of `{name}`: {reason}")]
    Exec {
        /// Name of the system or build step.
        name: String,
        /// Path of the executable that was found.
        program: PathBuf,
        /// The error of the operating system.
        reason: String,
    },
    /// The shepherd could not be set up.
    #[error("cannot watch over `{name}`: {reason}")]
    Watch {
        /// Name of the system or build step.
        name: String,
        /// The error of the operating system.
        reason: String,
    },
    /// The connection to the keeper was lost.
    #[error(transparent)]
    Keeper(#[from] RigError),
}

/// Error of a build step.
#[derive(Debug, Error)]
pub enum BuildError {
    /// The command could not be started.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// The command ended with a status other than exit code 0.
    #[error("`{command}` (building `{name}`) ended with {status}. Its log `{}` {}", log.display(), quoted(last_lines))]
    Failed {
        /// Name of the build step.
        name: String,
        /// The command in the form that a person would type.
        command: String,
        /// Exit status of the command.
        status: Status,
        /// Path of its log.
        log: PathBuf,
        /// The end of its log.
        last_lines: Vec<String>,
    },
    /// The command exceeded its time limit and was ended.
    #[error("`{command}` ({name}) did not end within {within:?}. Its log `{}` {}", log.display(), quoted(last_lines))]
    TimedOut {
        /// Name of the build step.
        name: String,
        /// The command in the form that a person would type.
        command: String,
        /// The time limit of the build step.
        within: Duration,
        /// Path of its log.
        log: PathBuf,
        /// The end of its log.
        last_lines: Vec<String>,
    },
    /// The caller's stop flag was raised.
    #[error("building `{name}` was interrupted")]
    Interrupted {
        /// Name of the build step.
        name: String,
    },
}

/// Error of waiting for a system to be ready.
#[derive(Debug, Error)]
pub enum ReadyError {
    /// The system ended before it was ready.
    #[error("`{system}` ended with {status} before it was ready. Its log `{}` {}", log.display(), quoted(last_lines))]
    Exited {
        /// Name of the system.
        system: String,
        /// Exit status of its first process.
        status: Status,
        /// Path of its log.
        log: PathBuf,
        /// The end of its log.
        last_lines: Vec<String>,
    },
    /// The system was still not ready at the time limit.
    #[error("`{system}` was not ready within {within:?}: {last_reason}. Its log `{}` {}", log.display(), quoted(last_lines))]
    TimedOut {
        /// Name of the system.
        system: String,
        /// The time limit of readiness.
        within: Duration,
        /// The reason that the last probe returned.
        last_reason: String,
        /// Path of its log.
        log: PathBuf,
        /// The end of its log.
        last_lines: Vec<String>,
    },
    /// The caller's stop flag was raised.
    #[error("waiting for `{system}` was interrupted")]
    Interrupted {
        /// Name of the system.
        system: String,
    },
}

/// Error of reading the usage of a system.
#[derive(Debug, Error)]
pub enum UsageError {
    /// The system has ended and can no longer be read.
    #[error("`{system}` has ended, so its resource usage can no longer be read")]
    Gone {
        /// Name of the system.
        system: String,
    },
}

/// Formats log lines for the end of a message.
fn quoted(lines: &[String]) -> String {
    if lines.is_empty() {
        return "is empty".to_owned();
    }
    let mut text = "ends with:".to_owned();
    for line in lines {
        text.push_str("\n  | ");
        text.push_str(line);
    }
    text
}
