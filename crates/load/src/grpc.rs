//! The outcome of a gRPC call: status and message in trailers.

use std::borrow::Cow;

use crate::parser::Head;

/// The names of the statuses, by number (gRPC, "Status codes and their use in gRPC").
const NAMES: [&str; 17] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];

/// The received outcome of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct GrpcOutcome {
    /// `None` until a status arrived.
    pub(crate) status: Option<u32>,
    pub(crate) message: Option<Box<str>>,
}

impl GrpcOutcome {
    /// Reads the outcome from trailers, or from the head of a response without a body.
    pub(crate) fn read(&mut self, lines: &Head<'_>) {
        let text = |name: &str| std::str::from_utf8(lines.header(name)?).ok();
        if let Some(status) = text("grpc-status").and_then(|status| status.parse().ok()) {
            self.status = Some(status);
            let message = text("grpc-message").filter(|message| !message.is_empty());
            self.message = message.map(|message| decoded(message).into());
        }
    }
}

/// Returns a status with its name: `14 (UNAVAILABLE)`.
pub(crate) fn named(status: u32) -> String {
    let index = usize::try_from(status).unwrap_or(usize::MAX);
    match NAMES.get(index) {
        Some(name) => format!("{status} ({name})"),
        None => status.to_string(),
    }
}

/// Decodes the percent encoding of a message.
fn decoded(message: &str) -> String {
    let decoded: Cow<'_, str> = percent_encoding::percent_decode_str(message).decode_utf8_lossy();
    decoded.into_owned()
}

#[cfg(test)]
mod tests {
    use httparse::Header;

    use super::*;

    #[test]
    fn an_outcome_is_read_from_trailers() {
        let lines = |status: &'static str, message: &'static str| {
            let both = [("grpc-status", status), ("grpc-message", message)];
            let both = both.map(|(name, value)| Header {
                name,
                value: value.as_bytes(),
            });
            let mut outcome = GrpcOutcome::default();
            outcome.read(&Head::new(200, &both));
            outcome
        };
        let found = lines("5", "caf%C3%A9 %25");
        assert_eq!(
            (found.status, found.message.as_deref()),
            (Some(5), Some("café %"))
        );
        assert_eq!(lines("x", "").status, None);
        assert_eq!(named(14), "14 (UNAVAILABLE)");
        assert_eq!(named(17), "17");
    }
}
