//! A load with a start time, so that several generators start together.

use std::str::FromStr;
use std::thread;
use std::time::Duration;

use experiment::environment;
use experiment::exit::Failure;
use experiment::stop::StopSignal;
use jiff::Timestamp;

/// A start further ahead is treated as a mistake in the date.
const AHEAD_MAX: Duration = Duration::from_secs(3_600);
/// Interval between two checks for a stop by the user.
const LOOK: Duration = Duration::from_millis(50);

/// The start time of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StartAt(pub(super) Timestamp);

impl FromStr for StartAt {
    type Err = String;

    fn from_str(text: &str) -> Result<StartAt, String> {
        let seconds = text.parse::<f64>().ok().filter(|it| it.is_finite());
        let of_seconds = seconds.and_then(|seconds| {
            // Below 2^53, a double distinguishes microseconds.
            let since = Duration::try_from_secs_f64(seconds).ok()?;
            Timestamp::UNIX_EPOCH.checked_add(since).ok()
        });
        let read = of_seconds.map_or_else(|| text.parse().map_err(|_| ()), Ok);
        read.map(StartAt).map_err(|()| {
            format!(
                "expected a time with its zone, such as 2026-11-23T20:00:00Z, or seconds since 1970, \
                 found `{text}`"
            )
        })
    }
}

/// Refuses a start that is in the past or too far ahead.
///
/// # Errors
/// A message with the current time.
pub(super) fn check(at: Timestamp) -> Result<(), Failure> {
    let now = environment::now();
    let ahead = at.duration_since(now);
    match Duration::try_from(ahead) {
        Ok(ahead) if ahead <= AHEAD_MAX => Ok(()),
        Ok(ahead) => Err(Failure::bad_input(format!(
            "expected a start within the next hour, found {at}, {} s from now",
            ahead.as_secs()
        ))),
        Err(_) => Err(Failure::bad_input(format!(
            "expected a start in the future, found {at}. It is {now} now"
        ))),
    }
}

/// Waits until this time, or until the user stops it.
#[expect(
    clippy::disallowed_methods,
    reason = "a time of the day is the condition that is waited for"
)]
pub(super) fn wait_until(at: Timestamp, stop: &StopSignal) {
    while !stop.is_asked() {
        let left = Duration::try_from(at.duration_since(environment::now()));
        match left {
            Ok(left) if !left.is_zero() => thread::sleep(left.min(LOOK)),
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_is_a_time_with_its_zone_or_seconds() {
        let read = |text: &str| text.parse::<StartAt>().map(|StartAt(at)| at.to_string());
        let at = "2026-11-23T20:00:00.25Z";
        assert_eq!(read(at).as_deref(), Ok(at));
        assert_eq!(read("1795464000.25").as_deref(), Ok(at));
        assert_eq!(read("2026-11-23T21:00:00.25+01:00").as_deref(), Ok(at));
        for wrong in ["", "soon", "20:00", "2026-11-23T20:00:00", "-5", "inf"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_start_that_was_or_is_far_ahead_is_refused() {
        let now = environment::now();
        let after = |seconds: u64| now.checked_add(Duration::from_secs(seconds)).unwrap();
        assert!(check(after(10)).is_ok());
        assert!(check(after(2 * 3_600)).is_err());
        assert!(check(now).is_err());
    }
}
