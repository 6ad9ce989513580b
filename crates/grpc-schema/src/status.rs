//! Statuses of calls.

use std::time::Duration;

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

/// The largest number of digits of a deadline (gRPC over HTTP/2, "Timeout").
const DEADLINE_MAX: u128 = 99_999_999;

/// Returns a status with its name: `14 (UNAVAILABLE)`.
#[must_use]
pub fn named(status: u32) -> String {
    let index = usize::try_from(status).unwrap_or(usize::MAX);
    match NAMES.get(index) {
        Some(name) => format!("{status} ({name})"),
        None => status.to_string(),
    }
}

/// Returns the status of a response without a status of its own (gRPC, "HTTP to gRPC status code mapping").
#[must_use]
pub fn of_http(status: u16) -> u32 {
    match status {
        400 => 13,
        401 => 16,
        403 => 7,
        404 => 12,
        429 | 502 | 503 | 504 => 14,
        _ => 2,
    }
}

/// Returns a time limit as the value of `grpc-timeout`.
#[must_use]
pub fn deadline(limit: Duration) -> String {
    match limit.as_micros() {
        us if us <= DEADLINE_MAX => format!("{us}u"),
        us => format!("{}m", (us / 1000).min(DEADLINE_MAX)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_have_names() {
        assert_eq!(named(14), "14 (UNAVAILABLE)");
        assert_eq!(named(17), "17");
        let of = [400, 401, 403, 404, 429, 500, 503, 200].map(of_http);
        assert_eq!(of, [13, 16, 7, 12, 14, 2, 14, 2]);
    }

    #[test]
    fn a_deadline_has_at_most_eight_digits() {
        assert_eq!(deadline(Duration::from_secs(2)), "2000000u");
        assert_eq!(deadline(Duration::from_secs(3600)), "3600000m");
    }
}
