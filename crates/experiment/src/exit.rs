//! The exit codes of `weigh`.

use std::process::ExitCode;

use analysis::summary::Invalidity;
use model::InvalidKind;

/// Exit codes are API. `weigh --help` lists them, and a number never changes its meaning.
///
/// If several apply, the last one in this list wins. An interrupted run reports that even if a variant had
/// failed before. A crashed system is not hidden by a check that failed because of disturbances. A requested
/// gate that did not pass wins over the reason that prevented it, so that a CI job needs only one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    /// The command succeeded.
    Done,
    /// The run happened, but a failed check makes its verdict untrustworthy, or it did not reach the width of
    /// `--until`.
    Withheld,
    /// A program, a port or a system is missing or not ready, or the run left out every variant.
    NotReady,
    /// The run happened, but responses were wrong or missing. Numbers were withheld.
    Mismatch,
    /// The run happened, but a gate was broken or undecided.
    GateNotPassed,
    /// The command line or a file is wrong. No system was started.
    BadInput,
    /// A defect in `weigh` itself, or in the machine.
    Bug,
    /// Stopped by the user. The measured rounds are kept and marked.
    Interrupted,
}

impl Exit {
    /// The number that the shell receives.
    pub(crate) fn code(self) -> u8 {
        match self {
            Exit::Done => 0,
            Exit::Bug => 1,
            Exit::BadInput => 2,
            Exit::Mismatch => 3,
            Exit::GateNotPassed => 4,
            Exit::NotReady => 5,
            Exit::Interrupted => 6,
            Exit::Withheld => 7,
        }
    }
}

/// The exit code for a variant that has no number for this reason.
impl From<Invalidity> for Exit {
    fn from(kind: Invalidity) -> Exit {
        match kind {
            Invalidity::CheckFailed => Exit::Withheld,
            Invalidity::Recorded(kind) => kind.into(),
        }
    }
}

/// The exit code for a variant that cannot be measured for this reason.
impl From<InvalidKind> for Exit {
    fn from(kind: InvalidKind) -> Exit {
        match kind {
            InvalidKind::Mismatched | InvalidKind::NotProven => Exit::Mismatch,
            // The reason of the other candidate decides. It made this candidate needless.
            InvalidKind::NotNeeded => Exit::Done,
            // The variant is new in a change. That is not a fault of the change.
            InvalidKind::Absent => Exit::Done,
            InvalidKind::Interrupted => Exit::Interrupted,
            InvalidKind::NotReady
            | InvalidKind::ProgramMissing
            | InvalidKind::BuildFailed
            | InvalidKind::Crashed
            | InvalidKind::LoadFailed => Exit::NotReady,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit.code())
    }
}

/// The table shown at the end of `weigh --help`.
pub const TABLE: &str = "\
Exit codes:
  0  success
  1  a defect in weigh or in the machine
  2  the command line or a file is wrong. Nothing was started
  3  responses were wrong or missing, or a variant did not do its work. Its figures are withheld
  4  a gate did not pass: it is broken or undecided
  5  a program, a port or a system is missing or not ready, or --quick left out every variant
  6  stopped by the user. The recording contains the rounds until then
  7  a check failed and the verdict is withheld, or --until was not reached";

/// The reason why a subcommand failed. `main` prints it and exits with its code.
#[derive(Debug)]
pub struct Failure {
    /// The exit code of the program.
    pub exit: Exit,
    /// The message for the user: expected, found, remedy.
    pub message: String,
}

impl Failure {
    /// Wrong input from the user.
    pub fn bad_input(message: impl Into<String>) -> Failure {
        Failure {
            exit: Exit::BadInput,
            message: message.into(),
        }
    }

    /// A dependency that is missing or not ready.
    pub fn not_ready(message: impl Into<String>) -> Failure {
        Failure {
            exit: Exit::NotReady,
            message: message.into(),
        }
    }

    /// A refusal by the machine, or a defect in `weigh`.
    pub fn bug(message: impl Into<String>) -> Failure {
        Failure {
            exit: Exit::Bug,
            message: message.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_lists_every_code_once() {
        let exits = [
            Exit::Done,
            Exit::Bug,
            Exit::BadInput,
            Exit::Mismatch,
            Exit::GateNotPassed,
            Exit::NotReady,
            Exit::Interrupted,
            Exit::Withheld,
        ];
        let listed: Vec<u8> = TABLE
            .lines()
            .filter_map(|line| line.split_whitespace().next()?.parse().ok())
            .collect();
        assert_eq!(exits.map(Exit::code).to_vec(), listed);
    }

    #[test]
    fn the_graver_exit_wins() {
        assert!(Exit::Interrupted > Exit::GateNotPassed);
        assert!(Exit::GateNotPassed > Exit::Mismatch);
        assert!(Exit::Mismatch > Exit::NotReady);
        assert!(Exit::NotReady > Exit::Withheld);
        assert!(Exit::Withheld > Exit::Done);
    }
}
