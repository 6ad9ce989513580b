//! Failures over HTTP/3: the outcome, and a message with the part of the server.

use h3::error::{Code, StreamError};
use quinn::{Connection, ConnectionError, ReadError, TransportErrorCode};

use super::frames::FrameFault;
use super::{Early, Shared};
use crate::answer::CLOSED_IDLE;
use crate::general::http2::too_large;
use crate::general::progress::ExchangeError;
use crate::general::tls;
use crate::job::Bounds;
use crate::measurement::FailureKind;
use crate::socket::refusal;

/// The alert of TLS for a protocol that is not offered (RFC 7301, section 3.2).
const NO_APPLICATION_PROTOCOL: u8 = 120;

/// The first code of TLS alerts (RFC 9001, section 4.8).
const ALERTS: u64 = 0x100;

/// The progress of a response at its failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// No byte had arrived, on a connection that may have been idle before.
    Head { was_idle: bool },
    /// The head had arrived.
    Body,
}

/// Returns the failure for a rule that the server broke.
pub(super) fn broken(code: Code, words: &str) -> ExchangeError {
    ExchangeError::failed(FailureKind::Protocol, words_of_broken(code, words))
}

fn words_of_broken(code: Code, words: &str) -> String {
    format!("the server broke a rule of HTTP/3 ({code}): {words}")
}

/// Returns the failure of a stream without a further frame.
pub(super) fn of_frames(
    fault: FrameFault,
    stage: Stage,
    connection: &Connection,
    shared: &Shared,
) -> ExchangeError {
    match fault {
        FrameFault::TooLarge { limit } => too_large(
            match stage {
                Stage::Head { .. } => "head",
                Stage::Body => "trailers",
            },
            limit as u64,
        ),
        FrameFault::Broken(code, words) => broken(code, words),
        FrameFault::Read(ReadError::Reset(code)) => {
            let code = Code::from(code.into_inner());
            let reason = format!("the server reset the stream ({code})");
            match stage {
                Stage::Head { .. } if code == Code::H3_REQUEST_REJECTED => {
                    ExchangeError::Unprocessed {
                        is_leaving: false,
                        reason,
                    }
                }
                _ => ExchangeError::failed(FailureKind::Reset, reason),
            }
        }
        FrameFault::Read(ReadError::ZeroRttRejected) => rejected(shared),
        FrameFault::Read(_) => {
            let (kind, reason) = of_connection(connection, shared);
            match (kind, stage) {
                (FailureKind::Closed, Stage::Head { was_idle: true }) => {
                    ExchangeError::failed(FailureKind::ClosedIdle, CLOSED_IDLE)
                }
                _ => ExchangeError::failed(kind, reason),
            }
        }
    }
}

/// Returns the failure of a request that the target did not accept as 0-RTT. Its handshake continues.
pub(super) fn rejected(shared: &Shared) -> ExchangeError {
    if shared.early.get() == Early::Offered {
        shared.early.set(Early::Rejected);
    }
    ExchangeError::Unprocessed {
        is_leaving: false,
        reason: "the server rejected 0-RTT".to_owned(),
    }
}

/// Returns the failure of a request that the library did not take.
pub(super) fn of_request(
    error: &StreamError,
    connection: &Connection,
    shared: &Shared,
) -> ExchangeError {
    match error {
        StreamError::HeaderTooBig { max_size, .. } => ExchangeError::failed(
            FailureKind::Protocol,
            format!("the server accepts no request with a head of more than {max_size} bytes"),
        ),
        StreamError::RemoteTerminate { code, .. } => ExchangeError::failed(
            FailureKind::Reset,
            format!("the server stopped the stream ({code})"),
        ),
        _ => ExchangeError::Stale(of_connection(connection, shared).1),
    }
}

/// Returns the failure of a head that the library did not accept.
///
/// `None` if the library closes the connection for it.
pub(super) fn of_part(error: &StreamError, bounds: Bounds) -> Option<ExchangeError> {
    Some(match error {
        StreamError::HeaderTooBig { .. } => too_large("head", bounds.head_bytes as u64),
        StreamError::StreamError { code, .. } => ExchangeError::failed(
            FailureKind::Protocol,
            format!(
                "the head of the answer is malformed: `:status` is missing or repeated, a name is \
                 not in lower case, or HTTP/3 forbids a header (such as `connection`) ({code})"
            ),
        ),
        _ => return None,
    })
}

/// Returns the outcome and the message for a connection that has ended.
pub(super) fn of_connection(connection: &Connection, shared: &Shared) -> (FailureKind, String) {
    if shared.early.get() == Early::Offered
        && let Some(refused) = without_handshake(connection, shared)
    {
        return refused;
    }
    if let Some(error) = shared.fault.get() {
        let reason = format!("the server closed its port: {error}");
        return (FailureKind::Closed, reason);
    }
    if let Some((code, words)) = &*shared.broken.borrow() {
        return (FailureKind::Protocol, words_of_broken(*code, words));
    }
    match connection.close_reason() {
        // The connection is still open, but the server has announced its end.
        None => (
            FailureKind::Closed,
            "the server ended the connection (GOAWAY)".to_owned(),
        ),
        Some(error) => (kind(&error), words(&error)),
    }
}

/// Returns the reason that a connection with 0-RTT was never established.
fn without_handshake(connection: &Connection, shared: &Shared) -> Option<(FailureKind, String)> {
    if let Some(error) = shared.fault.get() {
        return Some(refusal(error));
    }
    let error = connection.close_reason()?;
    Some((FailureKind::Connect, of_handshake(&error)))
}

fn kind(error: &ConnectionError) -> FailureKind {
    match error {
        ConnectionError::ApplicationClosed(_)
        | ConnectionError::ConnectionClosed(_)
        | ConnectionError::TimedOut
        | ConnectionError::LocallyClosed => FailureKind::Closed,
        ConnectionError::Reset => FailureKind::Reset,
        ConnectionError::TransportError(_)
        | ConnectionError::VersionMismatch
        | ConnectionError::CidsExhausted => FailureKind::Protocol,
    }
}

/// Returns a message about the server for the error.
fn words(error: &ConnectionError) -> String {
    match error {
        ConnectionError::ApplicationClosed(close) => {
            let code = Code::from(close.error_code.into_inner());
            let reason = quoted(&close.reason);
            format!("the server closed the connection (CONNECTION_CLOSE, {code}{reason})")
        }
        ConnectionError::ConnectionClosed(close) => {
            let (code, reason) = (close.error_code, quoted(&close.reason));
            format!("the server closed the connection (CONNECTION_CLOSE, {code:?}{reason})")
        }
        ConnectionError::TransportError(error) => {
            format!("the server broke a rule of QUIC: {error}")
        }
        ConnectionError::Reset => {
            "the server reset the connection (stateless reset), perhaps after a restart".to_owned()
        }
        ConnectionError::TimedOut => {
            "the server sent nothing, and did not close the connection".to_owned()
        }
        ConnectionError::VersionMismatch => "the server does not know version 1 of QUIC".to_owned(),
        ConnectionError::LocallyClosed | ConnectionError::CidsExhausted => {
            "the connection was closed".to_owned()
        }
    }
}

/// The largest number of characters of a reason that the server gives.
const REASON_MAX: usize = 200;

fn quoted(reason: &[u8]) -> String {
    if reason.is_empty() {
        return String::new();
    }
    let text = String::from_utf8_lossy(reason);
    let text: String = text.chars().take(REASON_MAX).collect();
    format!(", `{}`", text.escape_debug())
}

/// Returns the message for a connection that was not established.
pub(super) fn of_handshake(error: &ConnectionError) -> String {
    match error {
        ConnectionError::ConnectionClosed(close)
            if close.error_code == TransportErrorCode::crypto(NO_APPLICATION_PROTOCOL) =>
        {
            "TLS: expected a target that offers HTTP/3 (ALPN `h3`), found a target without it"
                .to_owned()
        }
        ConnectionError::ConnectionClosed(close) => match alert(u64::from(close.error_code)) {
            Some(alert) => format!(
                "TLS: the server refused the handshake (alert {alert}{})",
                quoted(&close.reason)
            ),
            None => words(error),
        },
        ConnectionError::TransportError(fault) if alert(u64::from(fault.code)).is_some() => {
            tls::words(&fault.reason)
        }
        ConnectionError::TimedOut => {
            "the server sent no answer over QUIC. It may have no HTTP/3".to_owned()
        }
        _ => words(error),
    }
}

/// Returns the alert of TLS in a code of QUIC.
fn alert(code: u64) -> Option<u64> {
    code.checked_sub(ALERTS).filter(|alert| *alert < 0x100)
}
