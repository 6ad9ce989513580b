//! The reasons why variants have no number, such as failed starts, as one line of a report.

use std::collections::BTreeSet;
use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use model::InvalidKind;
use rig::{ReadyError, SpawnError};

use crate::exit::Exit;

/// The reason why a variant has no number: a row of the report.
#[derive(Clone, Debug)]
pub struct Invalid {
    pub kind: InvalidKind,
    /// A text on one line.
    pub reason: String,
    /// The log that shows more than the reason. `None` if there is no such log.
    pub(crate) log: Option<PathBuf>,
    /// The end of the log of a pod. `None` for other systems.
    pub(crate) pod_log: Option<PodLog>,
}

/// The last lines of the log of a pod that is not ready. The pod is deleted at the end of the round.
#[derive(Clone, Debug)]
pub(crate) struct PodLog {
    pub(crate) pod: String,
    pub(crate) last_lines: Vec<String>,
}

impl Invalid {
    pub fn new(kind: InvalidKind, reason: impl Into<String>) -> Invalid {
        Invalid {
            kind,
            reason: reason.into(),
            log: None,
            pod_log: None,
        }
    }

    /// True if the log of a system or of a build shows more.
    pub fn is_logged(&self) -> bool {
        let kinds = [
            InvalidKind::NotReady,
            InvalidKind::BuildFailed,
            InvalidKind::Crashed,
        ];
        kinds.contains(&self.kind)
    }

    /// Returns it with the log of the system that failed.
    pub(crate) fn logged(self, log: &Path) -> Invalid {
        Invalid {
            log: Some(log.to_owned()),
            ..self
        }
    }

    /// The line for a user who watches the run: the variant, the kind of problem, and the last lines of the
    /// log. The result contains the reason. `here` is the current folder, and the path of the log is relative
    /// to it.
    pub(crate) fn note(&self, variant: &str, here: Option<&Path>) -> String {
        let mut note = format!("`{variant}` has no number: {}", self.kind);
        if let Some(PodLog { pod, last_lines }) = &self.pod_log {
            let last = &last_lines[last_lines.len().saturating_sub(LINES_SHOWN)..];
            return note + &end_of_log(&format!("of pod `{pod}`"), last);
        }
        let Some(log) = &self.log else {
            return note;
        };
        let text = fs::read(log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        let last = &lines[lines.len().saturating_sub(LINES_SHOWN)..];
        let path = opened_from(log, here).display();
        note += &end_of_log(&format!("`{path}`"), last);
        note
    }

    /// The exit code for this reason.
    pub fn exit(&self) -> Exit {
        Exit::from(self.kind)
    }

    pub fn interrupted() -> Invalid {
        Invalid::new(InvalidKind::Interrupted, "stopped before it was measured")
    }
}

/// The last lines of a log as the end of a note. `whose` names the log.
fn end_of_log<Line: std::fmt::Display>(whose: &str, lines: &[Line]) -> String {
    if lines.is_empty() {
        return format!(". The log {whose} is empty");
    }
    let lines = lines.iter().map(|line| format!("\n    {line}"));
    format!(". The end of the log {whose}:{}", lines.collect::<String>())
}

/// Number of lines of a log that a note shows.
pub(crate) const LINES_SHOWN: usize = 10;

/// Number of lines of the log of a pod that the folder of a recording keeps.
pub(crate) const LINES_KEPT: usize = 200;

/// The path of a file as a user in the folder `here` would type it.
fn opened_from<'a>(path: &'a Path, here: Option<&Path>) -> &'a Path {
    here.and_then(|here| path.strip_prefix(here).ok())
        .unwrap_or(path)
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

/// The listen addresses of a system that is not ready, compared with the address that it received: `. It
/// listens at [::1]:8080`. Empty if it listens at its own address.
pub(crate) fn listens_at(own: SocketAddr, found: &BTreeSet<SocketAddr>) -> String {
    let is_own = |it: &SocketAddr| {
        // A socket for all addresses of IPv6 usually also serves IPv4.
        it.port() == own.port() && (it.ip().is_unspecified() || it.ip() == own.ip())
    };
    if found.iter().any(is_own) {
        return String::new();
    }
    if found.is_empty() {
        return ". It listens nowhere".to_owned();
    }
    let shown: Vec<String> = found.iter().map(ToString::to_string).collect();
    let other = match found.iter().find(|it| it.port() == own.port()) {
        Some(same_port) => format!(
            ", and not at {}. Let it listen at {{{{addr}}}}, or at {}",
            own.ip(),
            match same_port.ip() {
                IpAddr::V6(_) => "0.0.0.0",
                IpAddr::V4(_) => "127.0.0.1",
            }
        ),
        None => format!(
            ", and not at port {}. Pass {{{{port}}}} or {{{{addr}}}} to it, in its command or in `env`",
            own.port()
        ),
    };
    format!(". It listens at {}{other}", shown.join(", "))
}

/// `listens` is the end of a sentence from [`listens_at`].
pub(crate) fn invalid_ready(error: ReadyError, listens: &str) -> Invalid {
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
        )
        .logged(&log),
        ReadyError::TimedOut {
            system,
            within,
            last_reason,
            log,
            last_lines,
        } => Invalid::new(
            InvalidKind::NotReady,
            format!(
                "`{system}` was not ready within {within:?}: {last_reason}{listens}{}",
                last_words(&last_lines, &log)
            ),
        )
        .logged(&log),
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
    fn a_system_that_is_not_ready_says_where_it_listens() {
        let own: SocketAddr = "127.0.0.1:18687".parse().unwrap();
        let of = |found: &[&str]| {
            let found = found.iter().map(|it| it.parse().unwrap()).collect();
            listens_at(own, &found)
        };
        assert_eq!(of(&[]), ". It listens nowhere");
        assert_eq!(
            of(&["[::1]:18687"]),
            ". It listens at [::1]:18687, and not at 127.0.0.1. Let it listen at {{addr}}, or at 0.0.0.0"
        );
        assert_eq!(
            of(&["127.0.0.1:9399"]),
            ". It listens at 127.0.0.1:9399, and not at port 18687. Pass {{port}} or {{addr}} to it, in its \
             command or in `env`"
        );
        // It answers at its address, only not as it should.
        assert_eq!(of(&["127.0.0.1:18687"]), "");
        assert_eq!(of(&["[::]:18687", "127.0.0.1:9399"]), "");
    }

    #[test]
    fn a_note_has_the_last_ten_lines_of_the_log() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("server.log");
        let text: String = (1..=12).map(|line| format!("line {line}\n")).collect();
        fs::write(&log, text).unwrap();
        let invalid = Invalid::new(InvalidKind::NotReady, "slow");
        assert_eq!(
            invalid.note("as it is", None),
            "`as it is` has no number: not ready"
        );
        let note = invalid.logged(&log).note("as it is", Some(folder.path()));
        let lines: Vec<&str> = note.lines().collect();
        assert_eq!(
            lines[0],
            "`as it is` has no number: not ready. The end of the log `server.log`:"
        );
        assert_eq!(
            (lines.len(), lines[1], lines[10]),
            (11, "    line 3", "    line 12")
        );
    }

    #[test]
    fn a_note_of_a_pod_has_the_end_of_its_log() {
        let pod = |last_lines: &[&str]| Invalid {
            pod_log: Some(PodLog {
                pod: "wb-x-1".to_owned(),
                last_lines: last_lines.iter().map(|it| (*it).to_owned()).collect(),
            }),
            ..Invalid::new(InvalidKind::NotReady, "slow")
        };
        assert_eq!(
            pod(&["reading", "no database"]).note("a", None),
            "`a` has no number: not ready. The end of the log of pod `wb-x-1`:\n    reading\n    no database"
        );
        assert_eq!(
            pod(&[]).note("a", None),
            "`a` has no number: not ready. The log of pod `wb-x-1` is empty"
        );
    }

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
