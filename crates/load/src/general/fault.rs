//! Failures over HTTP/2: the outcome, and a message with the part of the server.

use std::io;

use h2::{Error, Reason};

use super::progress::ExchangeError;
use crate::answer::CLOSED_IDLE;
use crate::measurement::FailureKind;

/// The progress of a response at its failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// No byte had arrived, on a connection that may have been idle before.
    Head { was_idle: bool },
    /// The head had arrived, perhaps with this `content-length`.
    Body { length: Option<u64> },
}

/// Returns the failure of a stream.
///
/// If the server ends the whole connection, the failure is `closed`. If it ends only the stream, the failure
/// is `reset`. An error that the library itself raises means that the server violated the protocol.
pub(super) fn failure(error: &Error, stage: Stage) -> ExchangeError {
    if matches!(stage, Stage::Head { .. })
        && let Some(is_leaving) = is_unprocessed(error)
    {
        let reason = words(error);
        return ExchangeError::Unprocessed { is_leaving, reason };
    }
    if stage == (Stage::Head { was_idle: true }) && error.is_io() {
        return ExchangeError::failed(FailureKind::ClosedIdle, CLOSED_IDLE);
    }
    let kind = match error.get_io().map(io::Error::kind) {
        Some(io::ErrorKind::BrokenPipe | io::ErrorKind::UnexpectedEof) => FailureKind::Closed,
        Some(io::ErrorKind::InvalidData) => FailureKind::Protocol,
        Some(_) => FailureKind::Reset,
        None if error.is_library() => FailureKind::Protocol,
        None if error.is_go_away() => FailureKind::Closed,
        None => FailureKind::Reset,
    };
    ExchangeError::failed(kind, words_at(error, stage))
}

/// Returns `Some` if the server declares that it did not process a request. The value is true if the
/// declaration covers all later requests on the connection (RFC 9113, sections 6.8 and 8.7). The library
/// gives the error of a GOAWAY only to streams above its last stream.
fn is_unprocessed(error: &Error) -> Option<bool> {
    if !error.is_remote() {
        return None;
    }
    match error.reason() {
        _ if error.is_go_away() => Some(true),
        Some(Reason::REFUSED_STREAM) => Some(false),
        _ => None,
    }
}

fn words_at(error: &Error, stage: Stage) -> String {
    let is_malformed = error.is_library() && error.is_reset();
    match stage {
        Stage::Body {
            length: Some(length),
        } if is_malformed => format!(
            "the length of the body differs from the {length} bytes of its `content-length`"
        ),
        Stage::Head { .. } if is_malformed => format!(
            "the head of the answer is malformed: `:status` is missing or repeated, a name is not \
             in lower case, or HTTP/2 forbids a header (such as `connection`) ({})",
            name(error)
        ),
        _ => words(error),
    }
}

/// Returns a message about the server for the error.
pub(super) fn words(error: &Error) -> String {
    if let Some(error) = error.get_io() {
        return match error.kind() {
            io::ErrorKind::BrokenPipe | io::ErrorKind::UnexpectedEof => {
                "the server closed the connection during the answer".to_owned()
            }
            _ => format!("the connection failed: {error}"),
        };
    }
    let name = name(error);
    match error.reason() {
        Some(_) if error.is_remote() && error.is_go_away() => {
            format!("the server ended the connection (GOAWAY, {name})")
        }
        Some(_) if error.is_remote() => format!("the server reset the stream ({name})"),
        Some(Reason::FRAME_SIZE_ERROR) => format!(
            "expected frames of HTTP/2, found a frame of invalid size ({name}). This may be an \
             HTTP/1.1 server, which needs a load without `--http2`"
        ),
        Some(_) if error.is_library() && error.is_go_away() => format!(
            "the server broke a rule of HTTP/2 ({name}), for example with a forbidden push or a \
             frame at the wrong time"
        ),
        Some(_) if error.is_library() => format!("the server broke a rule of HTTP/2 ({name})"),
        _ => error.to_string(),
    }
}

/// Returns the name of its code as in RFC 9113.
fn name(error: &Error) -> String {
    error
        .reason()
        .map_or_else(String::new, |reason| format!("{reason:?}"))
}
