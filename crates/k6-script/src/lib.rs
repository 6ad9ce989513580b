//! k6 scripts as recordings of their requests.
//!
//! A script runs in a sandbox without a network. Its functions of `k6/http` record requests instead of sending
//! them. Values of answers are placeholders, so a later request shows the value that it needs.

mod engine;
mod files;
mod raw;
mod reader;
mod recording;
mod source;
mod vary;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

pub use files::{FileSource, Unreadable};
pub use recording::{
    AcceptedStatus, AnswerForm, AnswerValue, CallBody, CallWire, Drawn, GRPC_STATUS, LeftModule,
    SEPARATOR, ScriptCall, ScriptMessage, ScriptNote, ScriptPause, ScriptRecording, ScriptRows,
    ScriptScenario, TextPart,
};

/// The stack of the thread for a script, in bytes. The parser of deep files needs most of it.
const THREAD_STACK: usize = 512 << 20;

/// The usual limit on the time of a script, with all its iterations.
pub const TIME_MAX: Duration = Duration::from_secs(10);

/// A place in a file of the script.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ScriptPlace {
    /// The file, as an absolute path.
    pub file: PathBuf,
    /// The line, from 1.
    pub line: u32,
    /// True for the file of the script itself.
    pub is_entry: bool,
}

impl std::fmt::Display for ScriptPlace {
    fn fmt(&self, text: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.file.file_name() {
            Some(name) if !self.is_entry => {
                write!(text, "{} line {}", name.to_string_lossy(), self.line)
            }
            _ => write!(text, "line {}", self.line),
        }
    }
}

/// The reason why a script has no recording.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// A file is no JavaScript or TypeScript.
    #[error("expected JavaScript or TypeScript, found a mistake in {place}: {text}")]
    Syntax {
        /// The place of the mistake.
        place: ScriptPlace,
        /// The parser's message.
        text: String,
    },
    /// A file of the script cannot be read.
    #[error("`{}` cannot be read: {why}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// An import has no file.
    #[error("{place}: `{module}` cannot be imported: {why}")]
    Import {
        /// The place of the import.
        place: ScriptPlace,
        /// The module, as the script names it.
        module: String,
        /// The reason.
        why: String,
    },
    /// The script ended with an error.
    #[error("the script ended with an error{}: {text}", place.as_ref().map(|it| format!(" in {it}")).unwrap_or_default())]
    Thrown {
        /// The place of the error.
        place: Option<ScriptPlace>,
        /// The error.
        text: String,
    },
    /// The script took too long.
    #[error("the script did not end within {0} s. Does a loop wait for an answer?")]
    Late(u64),
    /// The script used too much memory.
    #[error("the script used more than {0} MiB of memory")]
    Large(usize),
    /// The script waits for a promise without an end.
    #[error("the script waits for a promise that never ends")]
    Waits,
    /// The engine failed.
    #[error("the engine for scripts failed: {0}")]
    Internal(String),
}

/// Runs the script in a file, for at most `time`, and returns its requests.
///
/// # Errors
/// The mistake of the script, or the limit that it exceeded.
pub fn record(
    entry: &Path,
    files: &Arc<dyn FileSource>,
    environment: &BTreeMap<String, String>,
    time: Duration,
) -> Result<ScriptRecording, ScriptError> {
    thread::scope(|scope| {
        let run = || engine::run(entry, files.clone(), environment, time).map(reader::recording);
        let thread = thread::Builder::new().stack_size(THREAD_STACK);
        let thread = thread.spawn_scoped(scope, run);
        let ended = thread
            .map_err(|error| ScriptError::Internal(error.to_string()))?
            .join();
        ended.unwrap_or_else(|_| Err(ScriptError::Internal("it panicked".to_owned())))
    })
}

#[cfg(test)]
mod tests;
