//! Parses values with units, as people type them: `64KiB`, `10s`, `127.0.0.1:8080`.

use std::time::Duration;

/// The reason why a value is invalid. The text follows the flag's name and the value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum QuantityError {
    #[error("expected a whole number and a unit (B, KiB, MiB), such as 1MiB")]
    Size,
    #[error("expected at most 1024MiB")]
    SizeTooLarge,
    #[error("expected a whole number and a unit (s, m), such as 10s")]
    Time,
    #[error("expected at least 1s")]
    NoTime,
    #[error("expected at most 60m")]
    TimeTooLong,
    #[error("expected a whole number from 1 to {WORKERS_MAX}")]
    Workers,
    #[error("expected a host and a port, such as 127.0.0.1:8080 or [::1]:8080")]
    Address,
}

/// Maximum of worker threads in the HTTP libraries.
pub(super) const WORKERS_MAX: usize = 512;

const SIZE_MAX: u64 = 1 << 30;
const TIME_MAX: Duration = Duration::from_secs(3600);

/// Parses a size in bytes, at most 1 GiB.
pub(super) fn size(text: &str) -> Result<u64, QuantityError> {
    let (number, unit) = split(text).ok_or(QuantityError::Size)?;
    let bytes_in_unit = match unit {
        "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        _ => return Err(QuantityError::Size),
    };
    number
        .checked_mul(bytes_in_unit)
        .filter(|bytes| *bytes <= SIZE_MAX)
        .ok_or(QuantityError::SizeTooLarge)
}

/// Parses a time limit in whole seconds, from one second to an hour. The HTTP libraries do not support
/// shorter limits.
pub(super) fn time_limit(text: &str) -> Result<Duration, QuantityError> {
    let time = time(text)?;
    if time.is_zero() {
        return Err(QuantityError::NoTime);
    }
    Ok(time)
}

/// Parses a time in whole seconds, from zero to an hour.
fn time(text: &str) -> Result<Duration, QuantityError> {
    let (number, unit) = split(text).ok_or(QuantityError::Time)?;
    let seconds_in_unit = match unit {
        "s" => 1,
        "m" => 60,
        _ => return Err(QuantityError::Time),
    };
    number
        .checked_mul(seconds_in_unit)
        .map(Duration::from_secs)
        .filter(|time| *time <= TIME_MAX)
        .ok_or(QuantityError::TimeTooLong)
}

/// Parses a number of worker threads.
pub(super) fn workers(text: &str) -> Result<usize, QuantityError> {
    let number = text.parse().map_err(|_| QuantityError::Workers)?;
    if !(1..=WORKERS_MAX).contains(&number) {
        return Err(QuantityError::Workers);
    }
    Ok(number)
}

/// Returns the text unchanged if it has the form of an address. Host names are resolved when listening.
pub(super) fn host_and_port(text: &str) -> Result<String, QuantityError> {
    // From the right, because an IPv6 address contains colons.
    let (host, port) = text.rsplit_once(':').ok_or(QuantityError::Address)?;
    let is_port = port.parse::<u16>().is_ok();
    if host.is_empty() || !is_port {
        return Err(QuantityError::Address);
    }
    Ok(text.to_owned())
}

/// Splits a text into leading digits and the rest.
fn split(text: &str) -> Option<(u64, &str)> {
    // Digits without a unit are refused, because the unit would be ambiguous.
    let end = text.find(|letter: char| !letter.is_ascii_digit())?;
    let (number, unit) = text.split_at(end);
    Some((number.parse().ok()?, unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_needs_its_unit() {
        assert_eq!(size("64KiB"), Ok(65_536));
        assert_eq!(size("0B"), Ok(0));
        for wrong in ["64", "KiB", "64 KiB", "1.5MiB", "-1B", "64kb", ""] {
            assert_eq!(size(wrong), Err(QuantityError::Size), "{wrong}");
        }
        assert_eq!(time("2m"), Ok(Duration::from_secs(120)));
        for wrong in ["10", "s", "10 s", "1h", "500ms", ""] {
            assert_eq!(time(wrong), Err(QuantityError::Time), "{wrong}");
        }
    }

    #[test]
    fn too_much_is_refused_without_overflow() {
        assert_eq!(size("1025MiB"), Err(QuantityError::SizeTooLarge));
        let many = format!("{}MiB", u64::MAX);
        assert_eq!(size(&many), Err(QuantityError::SizeTooLarge));
        let long = format!("{}m", u64::MAX);
        assert_eq!(time_limit(&long), Err(QuantityError::TimeTooLong));
        assert_eq!(time_limit("3601s"), Err(QuantityError::TimeTooLong));
    }
}
