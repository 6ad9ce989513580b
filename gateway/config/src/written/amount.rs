//! Durations and sizes: `30s`, `16KiB`.

use std::time::Duration;

use super::Form;

/// Maximum duration: a thousand hours. A longer one most likely has a wrong unit.
const TIME_MAX: Duration = Duration::from_secs(3_600_000);

impl Form for Duration {
    const NAME: &'static str = "duration-text";

    fn read(text: &str) -> Result<Self, String> {
        let expected =
            || format!("expected a time such as `30s`, `250ms` or `1h 5s`, found `{text}`");
        // 128 bits: the largest number of weeks must not overflow before the comparison with the limit.
        let mut total = 0_u128;
        let mut rest = text.trim();
        if rest.is_empty() {
            return Err(expected());
        }
        while !rest.is_empty() {
            let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let number: u64 = rest[..digits].parse().map_err(|_| expected())?;
            rest = rest[digits..].trim_start();
            let letters = rest
                .find(|c: char| c.is_ascii_digit() || c.is_whitespace())
                .unwrap_or(rest.len());
            let unit_ns = unit_ns(&rest[..letters]).ok_or_else(expected)?;
            total += u128::from(number) * unit_ns;
            rest = rest[letters..].trim_start();
        }
        if total > TIME_MAX.as_nanos() {
            return Err(format!("expected at most 1000h, found `{text}`"));
        }
        u64::try_from(total)
            .map(Duration::from_nanos)
            .map_err(|_| expected())
    }

    fn write(&self) -> String {
        match (self.as_secs(), self.subsec_nanos()) {
            (seconds, 0) => format!("{seconds}s"),
            // Nanoseconds are always exact.
            _ => format!("{}ns", self.as_nanos()),
        }
    }
}

/// Nanoseconds in a unit of time, with humantime's unit names.
fn unit_ns(unit: &str) -> Option<u128> {
    let seconds = 1_000_000_000;
    Some(match unit {
        "ns" | "nsec" | "nanos" => 1,
        "us" | "µs" | "usec" | "micros" => 1_000,
        "ms" | "msec" | "millis" => 1_000_000,
        "s" | "sec" | "secs" | "second" | "seconds" => seconds,
        "m" | "min" | "mins" | "minute" | "minutes" => 60 * seconds,
        "h" | "hr" | "hrs" | "hour" | "hours" => 3_600 * seconds,
        "d" | "day" | "days" => 86_400 * seconds,
        "w" | "week" | "weeks" => 604_800 * seconds,
        _ => return None,
    })
}

/// A number of bytes: `16384`, `16KiB`, `400kb`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteSize(pub usize);

impl Form for ByteSize {
    const NAME: &'static str = "byte-size";

    fn read(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("expected a number of bytes such as `16KiB` or `2000000`, found `{text}`");
        let letters = text
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(text.len());
        let number: usize = text[..letters].parse().map_err(|_| wrong())?;
        let factor = match text[letters..].trim().to_ascii_lowercase().as_str() {
            "" | "b" => 1,
            "kb" => 1_000,
            "kib" => 1_024,
            "mb" => 1_000_000,
            "mib" => 1 << 20,
            "gb" => 1_000_000_000,
            "gib" => 1 << 30,
            _ => return Err(wrong()),
        };
        // A product beyond the address space is an error. It does not become the largest size.
        number.checked_mul(factor).map(ByteSize).ok_or_else(wrong)
    }

    fn write(&self) -> String {
        self.0.to_string()
    }
}
