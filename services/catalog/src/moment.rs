//! A point in time, in the precision of both databases.

use std::str::FromStr;

use async_graphql::{InputValueError, InputValueResult, Scalar, ScalarType, Value};
use jiff::Timestamp;
use jiff::tz::Offset;
use serde::{Serialize, Serializer};

/// 0001-01-01 and the last hours of 9999: years with four digits in every time zone.
const FIRST_US: i64 = -62_135_596_800_000_000;
const END_US: i64 = 253_402_207_200_000_000;

/// Length of `2023-01-27T12:00:00.000000+00:00` in bytes.
const TEXT_LENGTH: usize = 32;

/// Microseconds since 1970, UTC, within the years 1 to 9999.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(i64);

/// The text is not a valid point in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected a time with its offset, such as 2023-01-27T12:00:00+00:00, in the years 1 to 9999"
)]
pub(crate) struct MomentError;

impl Moment {
    /// 1970-01-01, midnight, in UTC.
    pub(crate) const EPOCH: Self = Self(0);

    /// The point this many microseconds after 1970. `None` outside of the years 1 to 9999.
    pub(crate) fn from_us(us: i64) -> Option<Self> {
        (FIRST_US..END_US).contains(&us).then_some(Self(us))
    }

    /// Microseconds since 1970, negative before.
    pub(crate) fn us(self) -> i64 {
        self.0
    }

    /// Passes the text to `take`, without an allocation.
    fn with_text<T>(self, take: impl FnOnce(&str) -> T) -> T {
        let timestamp = Timestamp::from_microsecond(self.0).expect("years 1 to 9999 are in range");
        let at = Offset::UTC.to_datetime(timestamp);
        // Filled in place: a response of 100 rows has 200 times, and each text would need an allocation.
        let mut text = *b"0000-00-00T00:00:00.000000+00:00";
        let mut put = |from: usize, digits: usize, number: i32| {
            let mut rest = number;
            for place in text[from..from + digits].iter_mut().rev() {
                *place = b'0' + u8::try_from(rest % 10).expect("a remainder by ten is a digit");
                rest /= 10;
            }
        };
        put(0, 4, at.year().into());
        put(5, 2, at.month().into());
        put(8, 2, at.day().into());
        put(11, 2, at.hour().into());
        put(14, 2, at.minute().into());
        put(17, 2, at.second().into());
        put(20, 6, at.subsec_nanosecond() / 1_000);
        take(std::str::from_utf8(&text).expect("digits are ASCII"))
    }
}

impl FromStr for Moment {
    type Err = MomentError;

    fn from_str(text: &str) -> Result<Self, MomentError> {
        // Longer texts contain names of time zones or digits that the databases do not keep.
        if text.len() > TEXT_LENGTH {
            return Err(MomentError);
        }
        let timestamp: Timestamp = text.parse().map_err(|_| MomentError)?;
        Self::from_us(timestamp.as_microsecond()).ok_or(MomentError)
    }
}

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.with_text(|text| serializer.serialize_str(text))
    }
}

/// A point in time, such as 2023-01-27T12:00:00.000000+00:00.
#[Scalar(name = "timestamptz")]
impl ScalarType for Moment {
    fn parse(value: Value) -> InputValueResult<Self> {
        match &value {
            Value::String(text) => Ok(text.parse::<Self>()?),
            _ => Err(InputValueError::custom(MomentError)),
        }
    }

    fn is_valid(value: &Value) -> bool {
        matches!(value, Value::String(text) if text.parse::<Self>().is_ok())
    }

    fn to_value(&self) -> Value {
        self.with_text(|text| Value::String(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_ends_of_the_range_and_an_offset_are_read() {
        let read = |text: &str| text.parse::<Moment>().map(Moment::us);
        assert_eq!(read("1970-01-01T00:00:00.000001Z"), Ok(1));
        assert_eq!(read("1970-01-01T01:00:00+01:00"), Ok(0));
        assert_eq!(read("0001-01-01T00:00:00Z"), Ok(FIRST_US));
        assert_eq!(read("9999-12-30T21:59:59.999999+00:00"), Ok(END_US - 1));
        assert_eq!(read("9999-12-30T22:00:00Z"), Err(MomentError));
        for wrong in [
            "",
            "now",
            "2023-01-27",
            "2023-01-27T12:00:00",
            "-000001-01-01T00:00:00Z",
        ] {
            assert_eq!(read(wrong), Err(MomentError), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn a_text_comes_back_as_the_same_moment(us in FIRST_US..END_US) {
            let moment = Moment::from_us(us).unwrap();
            let text = moment.with_text(str::to_owned);
            prop_assert_eq!(text.len(), TEXT_LENGTH);
            prop_assert_eq!(text.parse(), Ok(moment));
        }
    }
}
