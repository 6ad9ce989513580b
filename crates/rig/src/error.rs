//! Why an operation of the rig was not possible, one enum per operation.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use thiserror::Error;

use crate::outcome::Status;

/// Why the rig could not start or did not end cleanly.
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

/// Why a system could not be started.
#[derive(Debug, Error)]
pub enum SpawnError {
    /// The command has no words.
    #[error("the command of `{name}` is empty. Give a program")]
    EmptyCommand {
        /// The system or build step.
        name: String,
    },
    /// There is no such program.
    #[error(
        "`{name}` needs the program `{program}`, which is not {searched}. Install it or correct the command"
    )]
    ProgramMissing {
        /// The system or build step.
        name: String,
        /// The program as it was written.
        program: String,
        /// The searched place, as the end of a sentence: "in any folder of PATH (`…`)".
        searched: String,
    },
    /// The folder to run in does not exist.
    #[error("`{name}` should run in `{}`, which is not a folder", folder.display())]
    FolderMissing {
        /// The system or build step.
        name: String,
        /// The working directory of the command.
        folder: PathBuf,
    },
    /// The log cannot be opened.
    #[error("cannot write the log `{}` of `{name}`: {reason}", log.display())]
    Log {
        /// The system or build step.
        name: String,
        /// Path of the log.
        log: PathBuf,
        /// The error of the operating system.
        reason: String,
    },
    /// The CPUs asked for cannot be had.
    #[error("`{name}` cannot be pinned to CPUs {cpus:?}: {reason}")]
    Pin {
        /// Name of the system.
        name: String,
        /// The requested CPUs, as numbers of the kernel.
        cpus: Vec<usize>,
        /// The error of the operating system.
        reason: String,
    },
    /// A limit makes no sense.
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
        /// The system or build step.
        name: String,
        /// The program that was found.
        program: PathBuf,
        /// The error of the operating system.
        reason: String,
    },
    /// The process that should watch it could not be set up.
    #[error("cannot watch over `{name}`: {reason}")]
    Watch {
        /// The system or build step.
        name: String,
        /// The error of the operating system.
        reason: String,
    },
    /// The connection to the keeper was lost.
    #[error(transparent)]
    Keeper(#[from] RigError),
}

/// Why a build step did not succeed.
#[derive(Debug, Error)]
pub enum BuildError {
    /// It could not be started.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// It ended with something else than exit code 0.
    #[error("`{command}` (building `{name}`) ended with {status}. Its log `{}` {}", log.display(), quoted(last_lines))]
    Failed {
        /// Name of the build step.
        name: String,
        /// The command as a person would type it.
        command: String,
        /// The status at its end.
        status: Status,
        /// Path of its log.
        log: PathBuf,
        /// The end of its log.
        last_lines: Vec<String>,
    },
    /// It did not end in its time, and was ended.
    #[error("`{command}` ({name}) did not end within {within:?}. Its log `{}` {}", log.display(), quoted(last_lines))]
    TimedOut {
        /// Name of the build step.
        name: String,
        /// The command as a person would type it.
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

/// Why a system did not become ready.
#[derive(Debug, Error)]
pub enum ReadyError {
    /// The system ended before it was ready.
    #[error("`{system}` ended with {status} before it was ready. Its log `{}` {}", log.display(), quoted(last_lines))]
    Exited {
        /// Name of the system.
        system: String,
        /// The status at its end.
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
        /// The reason of the last probe.
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

/// Why the usage of a system is not known.
#[derive(Debug, Error)]
pub enum UsageError {
    /// The system has ended and can no longer be read.
    #[error("`{system}` has ended, so its resource usage can no longer be read")]
    Gone {
        /// Name of the system.
        system: String,
    },
}

/// Log lines as they are put at the end of a message.
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
