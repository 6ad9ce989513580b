//! Serialization of durations in recordings, as whole microseconds.
//!
//! For `#[serde(with = "as_micros")]` on a [`Duration`], and `with = "as_micros::option"` on an
//! `Option<Duration>`, which is `null` when absent.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serializer};

/// Whole microseconds of a duration. [`Duration::MAX`], which stands for "without end", is `u64::MAX`.
///
/// # Panics
/// When another duration is longer than half a million years. No measurement is that long, so it would be a
/// defect.
#[must_use]
pub fn micros(duration: Duration) -> u64 {
    // A phase without end does not fit into 64 bits of microseconds.
    if duration == Duration::MAX {
        return u64::MAX;
    }
    u64::try_from(duration.as_micros()).expect("no duration is longer than half a million years")
}

/// The inverse of [`micros`].
fn duration(micros: u64) -> Duration {
    if micros == u64::MAX {
        Duration::MAX
    } else {
        Duration::from_micros(micros)
    }
}

/// Writes whole microseconds.
///
/// # Errors
/// Errors of the serializer.
pub fn serialize<S: Serializer>(value: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(micros(*value))
}

/// Reads whole microseconds.
///
/// # Errors
/// Errors of the deserializer.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    u64::deserialize(deserializer).map(duration)
}

/// Serialization of durations that may be absent.
pub mod option {
    use super::{Deserialize, Deserializer, Duration, Serializer, duration, micros};

    /// Writes whole microseconds, or `null` for `None`.
    ///
    /// # Errors
    /// Errors of the serializer.
    pub fn serialize<S: Serializer>(
        value: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => serializer.serialize_some(&micros(*value)),
            None => serializer.serialize_none(),
        }
    }

    /// Reads whole microseconds, or `None` from `null`.
    ///
    /// # Errors
    /// Errors of the deserializer.
    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<u64>::deserialize(deserializer)?.map(duration))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_without_end_stays_without_end() {
        for (length, number) in [
            (Duration::ZERO, 0),
            (Duration::from_nanos(1_999), 1),
            (Duration::from_secs(60), 60_000_000),
            (Duration::MAX, u64::MAX),
        ] {
            assert_eq!(micros(length), number);
        }
        assert_eq!(duration(micros(Duration::MAX)), Duration::MAX);
    }

    #[test]
    #[should_panic(expected = "half a million years")]
    fn a_duration_that_cannot_be_is_a_defect() {
        let _too_long = micros(Duration::from_secs(u64::MAX));
    }
}
