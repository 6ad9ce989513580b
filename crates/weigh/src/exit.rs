//! How `weigh` leaves.

use std::process::ExitCode;

use model::InvalidKind;
use report::summary::Invalidity;

/// Exit codes are API: listed in `weigh --help`, and a number never changes its meaning.
///
/// Where several apply, the one listed last wins: a run that was interrupted
/// says so even if a variant had failed before, and a system that crashed is
/// not covered up by a check that failed because the machine was disturbed.
/// A gate that was asked for and did not pass wins over what kept it from
/// passing, so that a CI job can tell by one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Exit {
    /// Everything asked for was done.
    Done,
    /// The run happened, and a check says that its verdict cannot be trusted, or the width asked for
    /// by `--until` was not reached.
    Withheld,
    /// Something needed is missing or not ready: a program, a port, a system.
    NotReady,
    /// The run happened, and answers were wrong or missing; numbers were withheld.
    Mismatch,
    /// The run happened, and a gate did not pass: it was broken, or undecided.
    GateNotPassed,
    /// The command line or a file is wrong; nothing was started.
    BadInput,
    /// A defect in `weigh` itself, or in the machine below it.
    Bug,
    /// Stopped by the user; what was recorded so far is kept and marked.
    Interrupted,
}

impl Exit {
    /// The number that the shell sees.
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

/// How `weigh` leaves when a variant has no number for this reason.
impl From<Invalidity> for Exit {
    fn from(kind: Invalidity) -> Exit {
        match kind {
            Invalidity::CheckFailed => Exit::Withheld,
            Invalidity::Recorded(kind) => kind.into(),
        }
    }
}

/// How `weigh` leaves when a variant was found not to be measurable.
impl From<InvalidKind> for Exit {
    fn from(kind: InvalidKind) -> Exit {
        match kind {
            InvalidKind::Mismatched | InvalidKind::NotProven => Exit::Mismatch,
            // The candidate that made it needless has a reason of its own, which decides.
            InvalidKind::NotNeeded => Exit::Done,
            // That a change adds something is no fault of the change.
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
pub(crate) const TABLE: &str = "\
Exit codes:
  0  success
  1  a defect in weigh or in the machine
  2  the command line or a file is wrong. Nothing was started
  3  responses were wrong or missing, or a variant did not do its work. Its figures are withheld
  4  a gate did not pass: it is broken or undecided
  5  a program, a port or a system is missing or not ready
  6  stopped by the user. The recording contains the rounds until then
  7  a check failed and the verdict is withheld, or --until was not reached";

/// Why a subcommand could not do what was asked, for `main` to print and leave with.
#[derive(Debug)]
pub(crate) struct Failure {
    /// How to leave.
    pub(crate) exit: Exit,
    /// What to tell the user: expected, found, what to do.
    pub(crate) message: String,
}

impl Failure {
    /// The user gave something that cannot be used.
    pub(crate) fn bad_input(message: impl Into<String>) -> Failure {
        Failure {
            exit: Exit::BadInput,
            message: message.into(),
        }
    }

    /// Something that is needed is missing or not ready.
    pub(crate) fn not_ready(message: impl Into<String>) -> Failure {
        Failure {
            exit: Exit::NotReady,
            message: message.into(),
        }
    }

    /// The machine below refused, or `weigh` is wrong.
    pub(crate) fn bug(message: impl Into<String>) -> Failure {
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
