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

/// Returns the status with this name in Connect, such as `not_found`. An error cannot have the name `ok`.
#[must_use]
pub fn of_connect(code: &str) -> Option<u32> {
    let name = match code {
        // Connect spells it with one `l`.
        "canceled" => "CANCELLED".to_owned(),
        "ok" => return None,
        code if code.chars().any(|it| it.is_ascii_uppercase()) => return None,
        code => code.to_ascii_uppercase(),
    };
    let index = NAMES.iter().position(|known| *known == name)?;
    u32::try_from(index).ok()
}

/// Returns the name of a status in Connect. `None` for 0, which is no error, and for unknown statuses.
#[must_use]
pub fn connect_code(status: u32) -> Option<String> {
    match status {
        0 => None,
        1 => Some("canceled".to_owned()),
        status => {
            let name = NAMES.get(usize::try_from(status).ok()?)?;
            Some(name.to_ascii_lowercase())
        }
    }
}

/// Returns the HTTP status of an error of Connect (Connect Protocol, "Error Codes").
#[must_use]
pub fn connect_http(status: u32) -> u16 {
    match status {
        1 => 499,
        3 | 9 | 11 => 400,
        4 => 504,
        5 => 404,
        6 | 10 => 409,
        7 => 403,
        8 => 429,
        12 => 501,
        14 => 503,
        16 => 401,
        _ => 500,
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
    fn a_code_of_connect_is_a_status() {
        assert_eq!(of_connect("canceled"), Some(1));
        assert_eq!(of_connect("not_found"), Some(5));
        assert_eq!(of_connect("unauthenticated"), Some(16));
        for status in 1..=16 {
            assert_eq!(of_connect(&connect_code(status).unwrap()), Some(status));
            assert!(connect_http(status) >= 400);
        }
        assert_eq!((connect_code(0), connect_code(17)), (None, None));
        for wrong in ["ok", "NOT_FOUND", "cancelled?", ""] {
            assert_eq!(of_connect(wrong), None, "{wrong}");
        }
    }

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
