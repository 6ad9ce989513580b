//! Compares numbers by their digits.
//!
//! A float has about sixteen digits, and identifiers can be longer. As floats, 9007199254740993 and
//! 9007199254740992 are equal.

use std::cmp::Ordering;
use std::iter;

/// A JSON number other than zero: 0.d₁d₂d₃… times ten to the power of `magnitude`, with d₁ not zero.
struct Decimal<'a> {
    is_negative: bool,
    magnitude: i64,
    /// The digits before and after the decimal point.
    digits: (&'a str, &'a str),
}

impl<'a> Decimal<'a> {
    /// Reads a number. `None` if it is zero.
    fn read(text: &'a str) -> Option<Self> {
        let (is_negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let exponent = read_exponent(exponent);
        let whole = whole.trim_start_matches('0');
        if !whole.is_empty() {
            return Some(Self {
                is_negative,
                magnitude: exponent.saturating_add(length(whole)),
                digits: (whole, fraction),
            });
        }
        let digits = fraction.trim_start_matches('0');
        (!digits.is_empty()).then(|| Self {
            is_negative,
            magnitude: exponent.saturating_sub(length(fraction) - length(digits)),
            digits: (digits, ""),
        })
    }

    /// Compares the absolute values of two numbers.
    fn compare_size(&self, other: &Self) -> Ordering {
        self.magnitude.cmp(&other.magnitude).then_with(|| {
            let count = self.count().max(other.count());
            self.padded().take(count).cmp(other.padded().take(count))
        })
    }

    fn count(&self) -> usize {
        self.digits.0.len() + self.digits.1.len()
    }

    fn padded(&self) -> impl Iterator<Item = u8> {
        let digits = self.digits.0.bytes().chain(self.digits.1.bytes());
        digits.chain(iter::repeat(b'0'))
    }
}

/// Reads an exponent. An exponent outside of 64 bits becomes the nearest 64-bit number.
fn read_exponent(text: &str) -> i64 {
    let furthest = if text.starts_with('-') {
        i64::MIN
    } else {
        i64::MAX
    };
    text.parse().unwrap_or(furthest)
}

fn length(text: &str) -> i64 {
    i64::try_from(text.len()).expect("a text is shorter than 2^63 bytes")
}

/// Compares two numbers in their JSON form.
pub(crate) fn compare(one: &str, other: &str) -> Ordering {
    let sign = |number: &Decimal<'_>| if number.is_negative { -1 } else { 1 };
    let (one, other) = (Decimal::read(one), Decimal::read(other));
    let signs = [&one, &other].map(|it| it.as_ref().map_or(0, sign));
    match (one, other) {
        (Some(one), Some(other)) if signs[0] == signs[1] => {
            let order = one.compare_size(&other);
            if one.is_negative {
                order.reverse()
            } else {
                order
            }
        }
        _ => signs[0].cmp(&signs[1]),
    }
}

/// True if a number is zero, in any form.
pub(crate) fn is_zero(text: &str) -> bool {
    Decimal::read(text).is_none()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_are_compared_by_value_to_the_last_digit() {
        use Ordering::{Equal, Greater, Less};
        for (one, other, order) in [
            ("9007199254740993", "9007199254740992", Greater),
            ("-9007199254740993", "-9007199254740992", Less),
            ("12345678901234567890.10", "12345678901234567890.1", Equal),
            ("1", "1.0", Equal),
            ("1e3", "1000", Equal),
            ("0.001", "1E-3", Equal),
            ("0.0010", "0.0009", Greater),
            ("10", "9", Greater),
            ("-0", "0.0e5", Equal),
            ("-1", "0", Less),
            ("1e-400", "0", Greater),
            ("1e400", "1e401", Less),
            ("1e99999999999999999999", "9", Greater),
            ("1e-99999999999999999999", "9", Less),
            ("0.5e-99999999999999999999", "0", Greater),
        ] {
            assert_eq!(compare(one, other), order, "{one} and {other}");
            assert_eq!(compare(other, one), order.reverse(), "{other} and {one}");
        }
        assert!(is_zero("-0.00e7") && !is_zero("1e-400"));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn whole_numbers_are_ordered_as_integers_are(one: i64, other: i64) {
            prop_assert_eq!(compare(&one.to_string(), &other.to_string()), one.cmp(&other));
            let tenth = format!("{other}0e-1");
            prop_assert_eq!(compare(&one.to_string(), &tenth), one.cmp(&other));
        }

        #[test]
        fn fractions_are_ordered_as_floats_are(one in -1e6..1e6_f64, other in -1e6..1e6_f64) {
            let order = one.partial_cmp(&other).unwrap();
            prop_assert_eq!(compare(&one.to_string(), &other.to_string()), order);
        }
    }
}
