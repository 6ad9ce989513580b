//! The reasons why variants have no number, such as failed starts, as one line of a report.

use std::path::Path;

use model::InvalidKind;
use rig::{ReadyError, SpawnError};

use crate::exit::Exit;

/// The reason why a variant has no number: a row of the report.
#[derive(Clone, Debug)]
pub struct Invalid {
    pub kind: InvalidKind,
    /// A text on one line.
    pub reason: String,
}

impl Invalid {
    pub fn new(kind: InvalidKind, reason: impl Into<String>) -> Invalid {
        Invalid {
            kind,
            reason: reason.into(),
        }
    }

    /// The exit code for this reason.
    pub fn exit(&self) -> Exit {
        Exit::from(self.kind)
    }

    pub fn interrupted() -> Invalid {
        Invalid::new(InvalidKind::Interrupted, "stopped before it was measured")
    }
}

/// The reason in the last lines of a log, and the path of the log, as sentences to append.
pub(crate) fn last_words(lines: &[String], log: &Path) -> String {
    let said: Vec<&str> = lines
        .iter()
        .map(|line| line.trim())
        .filter(|line| !line.is_empty())
        .collect();
    // Programs print the error first, and then a hint or a backtrace.
    let is_reason = |line: &&str| {
        let line = line.to_lowercase();
        ["error:", "error[", "fatal:", "panicked at", "exception"]
            .iter()
            .any(|word| line.contains(word))
    };
    let reason = said.iter().rposition(is_reason);
    let words = match reason {
        // Rust prints the place on one line and the reason on the next.
        Some(at) if said[at].contains("panicked at") => {
            said[at..].iter().take(2).copied().collect()
        }
        Some(at) => vec![said[at]],
        None => said.last().copied().into_iter().collect(),
    };
    let words = match words.as_slice() {
        [] => String::new(),
        words => format!(
            ". Its last words: {}",
            words.join(" ").trim_end_matches('.')
        ),
    };
    words + &kept(log).map_or_else(String::new, |log| format!(". Its log is `{log}`"))
}

/// The path of a log within the folder of the recording. `None` if the log is not kept there.
fn kept(log: &Path) -> Option<String> {
    let parts: Vec<&str> = log.iter().filter_map(|part| part.to_str()).collect();
    let logs = parts.iter().rposition(|part| *part == LOGS)?;
    Some(parts[logs..].join("/"))
}

/// The folder of logs within the folder of a recording.
pub(crate) const LOGS: &str = "logs";

/// A system that could not be started, as the reason of a row.
pub(crate) fn invalid_spawn(error: &SpawnError) -> Invalid {
    match error {
        // The report does not contain the searched folders, because they only concern this machine.
        SpawnError::ProgramMissing { name, program, .. } => Invalid::new(
            InvalidKind::ProgramMissing,
            format!(
                "`{name}` needs the program `{program}`, which was not found. Install it or correct the command"
            ),
        ),
        _ => Invalid::new(InvalidKind::NotReady, one_line(&error.to_string())),
    }
}

pub(crate) fn invalid_ready(error: ReadyError) -> Invalid {
    match error {
        ReadyError::Interrupted { .. } => Invalid::interrupted(),
        ReadyError::Exited {
            system,
            status,
            log,
            last_lines,
        } => Invalid::new(
            InvalidKind::NotReady,
            format!(
                "`{system}` ended with {status} before it was ready{}",
                last_words(&last_lines, &log)
            ),
        ),
        ReadyError::TimedOut {
            system,
            within,
            last_reason,
            log,
            last_lines,
        } => Invalid::new(
            InvalidKind::NotReady,
            format!(
                "`{system}` was not ready within {within:?}: {last_reason}{}",
                last_words(&last_lines, &log)
            ),
        ),
    }
}

/// Joins the lines of a message, because a table row has one line.
fn one_line(text: &str) -> String {
    text.lines().map(str::trim).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_words_are_the_reason_and_not_the_advice() {
        let of = |lines: &[&str], log: &str| {
            let lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
            last_words(&lines, Path::new(log))
        };
        let clap = [
            "error: invalid value '0us' for '--delay'",
            "",
            "For more information, try '--help'.",
        ];
        assert_eq!(
            of(&clap, "/runs/a/logs/plain/proof/server.log"),
            ". Its last words: error: invalid value '0us' for '--delay'. Its log is \
             `logs/plain/proof/server.log`"
        );
        let rust = [
            "listening",
            "thread 'main' panicked at src/main.rs:5:9:",
            "no such table.",
            "note: run with `RUST_BACKTRACE=1`",
        ];
        assert_eq!(
            of(&rust, "/tmp/x/server.log"),
            ". Its last words: thread 'main' panicked at src/main.rs:5:9: no such table"
        );
        assert_eq!(of(&["bye", " "], "/tmp/x"), ". Its last words: bye");
        assert_eq!(of(&[], "/tmp/x"), "");
    }
}
