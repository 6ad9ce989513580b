//! Number of digits that a figure may show.
//!
//! The main idea is that the error decides. An error keeps one significant digit, or two if the first is a 1
//! (the Particle Data Group's habit, simplified). Its value is rounded to the same place. So `0.9012 ±0.0312`
//! is shown as `0.90 ±0.03` and `137164 ±812` as `137,200 ±800`.
//!
//! A figure without an error keeps three significant digits, which is the precision of the histograms.

/// The smallest relative half-width that histograms of three significant digits can resolve.
const RESOLUTION: f64 = 0.0005;

/// Place to round to: digits after the decimal point. Negative for tens, hundreds and so on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place(i32);

/// Nine decimals show a nanosecond of a second. A smaller end is shown as 0.
const MOST: Place = Place(9);

impl Place {
    /// The place that an error of this half-width supports.
    ///
    /// Callers pass errors through [`at_least_resolution`] first. So an error of 0 occurs only if all values
    /// are 0, and these need no decimals.
    pub(crate) fn of_error(half_width: f64) -> Self {
        // An error of zero means that all values were zero, so there are no decimals.
        if !(half_width > 0.0 && half_width.is_finite()) {
            return Self(0);
        }
        // Rounding to two digits first treats 0.096 as 0.096 and 0.0996 as 0.10.
        let mut exponent = exponent(half_width);
        let two_digits = (half_width / 10f64.powi(exponent - 1)).round();
        // Rounding to two digits may carry into the next decade. For example, 0.0996 becomes 0.10, which
        // begins with a 1.
        let leading_is_one = if two_digits >= 100.0 {
            exponent += 1;
            true
        } else {
            two_digits < 20.0
        };
        // The exponent of the last kept digit: one digit, or two with a leading 1. No figure has more than
        // nine places.
        Self((i32::from(leading_is_one) - exponent).clamp(-9, 9))
    }

    /// The place that leaves three significant digits of a value.
    pub(crate) fn of_value(value: f64) -> Self {
        if value == 0.0 || !value.is_finite() {
            return Self(0);
        }
        // Three significant digits: the leading one and two more.
        Self((2 - exponent(value.abs())).clamp(-9, 9))
    }

    /// The value rounded to this place, with thousands separated.
    pub(crate) fn show(self, value: f64) -> String {
        if !value.is_finite() {
            return "–".to_owned();
        }
        let text = self.plain(value);
        // A value that rounds to zero has no sign.
        match text.strip_prefix('-') {
            Some(rest) if rest.chars().all(|character| matches!(character, '0' | '.')) => {
                rest.to_owned()
            }
            Some(rest) => format!("-{}", with_thousands(rest)),
            None => with_thousands(&text),
        }
    }

    /// The value rounded to this place, with a sign unless it rounds to zero.
    pub(crate) fn show_signed(self, value: f64) -> String {
        let text = self.show(value);
        let is_nothing = !text.contains(|character: char| ('1'..='9').contains(&character));
        if is_nothing || text.starts_with('-') {
            text
        } else {
            format!("+{text}")
        }
    }

    fn plain(self, value: f64) -> String {
        match usize::try_from(self.0) {
            Ok(decimals) => format!("{value:.decimals$}"),
            Err(_) => {
                let unit = 10f64.powi(-self.0);
                format!("{:.0}", (value / unit).round() * unit)
            }
        }
    }

    fn floor(self, value: f64) -> f64 {
        let unit = 10f64.powi(-self.0);
        // The small addition keeps 0.30000000000000004 from becoming 0.2.
        (value / unit + 1e-9).floor() * unit
    }

    fn ceil(self, value: f64) -> f64 {
        let unit = 10f64.powi(-self.0);
        // The small subtraction has the same reason in the other direction.
        (value / unit - 1e-9).ceil() * unit
    }
}

fn exponent(positive: f64) -> i32 {
    // The range of f64 exponents is -324 to 308.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the exponent of an f64 is below 400"
    )]
    let exponent = positive.log10().floor() as i32;
    exponent
}

fn with_thousands(digits: &str) -> String {
    let (whole, fraction) = match digits.find('.') {
        Some(point) => digits.split_at(point),
        None => (digits, ""),
    };
    let mut grouped = String::new();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped + fraction
}

/// Text for a missing number.
pub const NOTHING: &str = "–";

/// The half-width, or the resolution of the histograms at a value of this size, whichever is larger.
pub(crate) fn at_least_resolution(half_width: f64, scale: f64) -> f64 {
    half_width.max(scale.abs() * RESOLUTION)
}

/// A value with the digits that its error supports: `0.90`. It has at most four significant digits, because
/// the error is not shown next to it. Without an error it has three.
pub fn value(value: f64, half_width: Option<f64>) -> String {
    // Without its error next to it, the value may show a fourth digit but not a fifth.
    let most = Place(Place::of_value(value).0 + 1);
    place(value, half_width).min(most).show(value)
}

/// A value that a user chose, exactly: `100`, `1,600`, `0.25`.
///
/// It has four significant digits and no zeros after the point. It was not measured, so such zeros would have
/// no meaning.
pub fn planned(chosen: f64) -> String {
    let text = value(chosen, Some(chosen * RESOLUTION));
    match text.split_once('.') {
        Some((whole, part)) => match part.trim_end_matches('0') {
            "" => whole.to_owned(),
            part => format!("{whole}.{part}"),
        },
        None => text,
    }
}

/// A value and its error: `0.90 ±0.03`. Without an error, the value alone.
pub fn value_with_error(value: f64, half_width: Option<f64>) -> String {
    let place = place(value, half_width);
    match half_width {
        Some(half) => {
            let half = at_least_resolution(half, value);
            let error = Place::of_error(half).min(place).show(half);
            format!("{} ±{error}", place.show(value))
        }
        None => place.show(value),
    }
}

/// A difference and its error: `+0.22 ±0.03`. `scale` is the size of the values that were subtracted. Without
/// an error, the scale decides the digits. With an error, it limits them.
pub fn difference(difference: f64, half_width: Option<f64>, scale: f64) -> String {
    match half_width {
        Some(half) => {
            let half = at_least_resolution(half, scale);
            let place = Place::of_error(half);
            format!("{} ±{}", place.show_signed(difference), place.show(half))
        }
        None => Place::of_value(scale).show_signed(difference),
    }
}

/// An estimate with its interval: `+0.22 ±0.03`. It shows the ends, `-1.7 to -0.1`, if ± would be wrong on
/// whether the interval contains 0. This happens because an interval over rounds may be asymmetric.
pub fn estimate(value: f64, ends: Option<(f64, f64)>, scale: f64) -> String {
    let Some((low, high)) = ends else {
        return difference(value, None, scale);
    };
    let half = (high - low) / 2.0;
    let excludes_zero = low > 0.0 || high < 0.0;
    // ± suggests a symmetric interval. The ends are shown if it would be wrong on whether 0 is inside.
    if excludes_zero == (value.abs() > half) {
        return difference(value, Some(half), scale);
    }
    let (low, high) = interval_ends(low, high);
    let signed = |end: String| {
        let is_bare =
            end.starts_with('-') || !end.contains(|digit: char| ('1'..='9').contains(&digit));
        if is_bare { end } else { format!("+{end}") }
    };
    format!("{} to {}", signed(low), signed(high))
}

/// The ends of an interval: `0.10` and `0.14`. They are rounded outward, so that the shown interval contains
/// the computed one. An end that rounds to 0 although the interval excludes 0 gets the digits to show it:
/// `0.009` and `5`.
pub fn interval_ends(low: f64, high: f64) -> (String, String) {
    let half = at_least_resolution((high - low) / 2.0, low.abs().max(high.abs()));
    let place = Place::of_error(half);
    // The other end keeps the digits of the error.
    let mut of_low = place;
    while low > 0.0 && of_low.floor(low) <= 0.0 && of_low < MOST {
        of_low = Place(of_low.0 + 1);
    }
    let mut of_high = place;
    while high < 0.0 && of_high.ceil(high) >= 0.0 && of_high < MOST {
        of_high = Place(of_high.0 + 1);
    }
    (
        of_low.show(of_low.floor(low)),
        of_high.show(of_high.ceil(high)),
    )
}

/// The place for a value with this error. It keeps at least one digit of the value, because 0 would be
/// another value.
fn place(value: f64, half_width: Option<f64>) -> Place {
    match half_width {
        Some(half) => {
            let by_error = Place::of_error(at_least_resolution(half, value));
            let first_digit = Place(Place::of_value(value).0 - 2);
            by_error.max(first_digit)
        }
        None => Place::of_value(value),
    }
}

/// A duration in a suitable unit, with three significant digits: `714 us`, `1.29 ms`, `2.50 s`.
pub fn duration_ns(nanoseconds: f64) -> String {
    let (value, unit) = if nanoseconds < 1e6 {
        (nanoseconds / 1e3, "us")
    } else if nanoseconds < 1e9 {
        (nanoseconds / 1e6, "ms")
    } else {
        (nanoseconds / 1e9, "s")
    };
    format!("{} {unit}", Place::of_value(value).show(value))
}

/// A duration as a user wrote it: `5 s`, `250 ms`, `1.5 s`.
pub fn length_us(microseconds: u64) -> String {
    #[expect(
        clippy::cast_precision_loss,
        reason = "lengths of rounds are far below 2^53 microseconds"
    )]
    let microseconds = microseconds as f64;
    let (value, unit) = if microseconds < 1e3 {
        (microseconds, "us")
    } else if microseconds < 1e6 {
        (microseconds / 1e3, "ms")
    } else {
        (microseconds / 1e6, "s")
    };
    // Three decimals reach the next smaller unit. Zeros at the end are not printed.
    format!("{} {unit}", (value * 1e3).round() / 1e3)
}

/// A size in binary units, three significant digits: `12.3 MiB`.
pub fn bytes(bytes: f64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1024.0 {
        return format!("{bytes:.0} B");
    }
    let mut value = bytes / 1024.0;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{} {}", Place::of_value(value).show(value), UNITS[unit])
}

/// A count with thousands separated.
pub fn count(count: u64) -> String {
    with_thousands(&count.to_string())
}

/// A mark on an axis, with the digits of the step between marks.
pub fn tick(value: f64, step: f64) -> String {
    // The small factor keeps the logarithm of 0.1 at -1.
    Place((-exponent(step * (1.0 + 1e-9))).max(0)).show(value)
}

/// A share in percent, with enough digits to distinguish it from 0 and from 100.
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    let distance = percent.abs().min((100.0 - percent).abs());
    // A share of exactly 0 or 100 % needs no decimals. A share close to them needs enough decimals to look
    // different.
    let place = if distance == 0.0 {
        Place(0)
    } else {
        Place::of_error(distance).max(Place(0))
    };
    format!("{} %", place.show(percent))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_was_chosen_is_shown_as_it_was_chosen() {
        for (chosen, shown) in [
            (100.0, "100"),
            (1_600.0, "1,600"),
            (0.25, "0.25"),
            (12.5, "12.5"),
        ] {
            assert_eq!(planned(chosen), shown);
        }
    }

    #[test]
    fn the_error_decides_how_many_digits_are_shown() {
        assert_eq!(value_with_error(0.9012, Some(0.0312)), "0.90 ±0.03");
        assert_eq!(value_with_error(0.9012, Some(0.0132)), "0.901 ±0.013");
        assert_eq!(value_with_error(137_164.04, Some(812.0)), "137,200 ±800");
        assert_eq!(value_with_error(137_164.04, Some(1812.0)), "137,200 ±1,800");
        assert_eq!(value_with_error(12.7, Some(40.0)), "10 ±40");
        assert_eq!(value_with_error(0.27, Some(40.0)), "0.3 ±40");
        assert_eq!(value_with_error(5.04, Some(0.0996)), "5.04 ±0.10");
        assert_eq!(value_with_error(5.04, Some(0.096)), "5.04 ±0.10");
    }

    #[test]
    fn a_figure_without_an_error_keeps_three_significant_digits() {
        assert_eq!(value(0.901_234, None), "0.901");
        assert_eq!(value(16.8234, None), "16.8");
        assert_eq!(value(137_164.04, None), "137,000");
        assert_eq!(value(0.0, None), "0");
        assert_eq!(value(1.2, Some(0.0)), "1.200");
        assert_eq!(value(f64::NAN, None), "–");
    }

    #[test]
    fn rounds_that_agree_exactly_do_not_make_the_histogram_finer_than_it_is() {
        assert_eq!(value_with_error(0.9012, Some(0.0)), "0.9012 ±0.0005");
        assert_eq!(difference(0.1, Some(0.0), 0.9), "+0.1000 ±0.0005");
    }

    #[test]
    fn nothing_is_shown_without_decimals() {
        assert_eq!(value_with_error(0.0, Some(0.0)), "0 ±0");
        assert_eq!(value(0.0, Some(0.0)), "0");
        assert_eq!(difference(0.0, Some(0.0), 0.0), "0 ±0");
    }

    #[test]
    fn a_difference_has_a_sign_unless_it_rounds_to_nothing() {
        assert_eq!(difference(0.2234, Some(0.031), 0.9), "+0.22 ±0.03");
        assert_eq!(difference(-0.2234, Some(0.031), 0.9), "-0.22 ±0.03");
        assert_eq!(difference(-0.0034, Some(0.031), 0.9), "0.00 ±0.03");
        assert_eq!(difference(0.2234, None, 0.9), "+0.223");
        assert_eq!(difference(-7234.0, Some(812.0), 137_000.0), "-7,200 ±800");
    }

    #[test]
    fn a_lopsided_interval_is_shown_by_its_ends_where_its_half_would_mislead() {
        assert_eq!(estimate(0.22, Some((0.19, 0.25)), 0.9), "+0.22 ±0.03");
        // ±0.8 around -0.6 would contain 0, but the interval does not.
        assert_eq!(estimate(-0.6, Some((-1.65, -0.08)), 5.0), "-1.7 to -0.08");
        assert_eq!(estimate(0.9, Some((-0.1, 1.2)), 5.0), "-0.1 to +1.2");
        assert_eq!(estimate(0.1, Some((-0.1, 1.2)), 5.0), "+0.1 ±0.7");
        assert_eq!(estimate(0.1, None, 5.0), "+0.10");
    }

    #[test]
    fn an_interval_is_rounded_outward() {
        assert_eq!(interval(0.104, 0.136), "0.104 to 0.136");
        assert_eq!(interval(0.1049, 0.1631), "0.10 to 0.17");
        assert_eq!(interval(12.2, 13.7), "12.2 to 13.7");
        assert_eq!(interval(11.0, 17.2), "11 to 18");
    }

    #[test]
    fn an_interval_that_excludes_zero_does_not_print_zero() {
        assert_eq!(interval(0.004, 0.093), "0.004 to 0.10");
        assert_eq!(interval(0.009, 4.094), "0.009 to 5");
        assert_eq!(interval(-0.093, -0.004), "-0.10 to -0.004");
        assert_eq!(interval(-0.004, 0.093), "-0.01 to 0.10");
    }

    #[test]
    fn durations_sizes_and_shares_read_as_people_write_them() {
        assert_eq!(duration_ns(714_000.0), "714 us");
        assert_eq!(duration_ns(1_290_000.0), "1.29 ms");
        assert_eq!(duration_ns(2.5e9), "2.50 s");
        assert_eq!(length_us(5_000_000), "5 s");
        assert_eq!(length_us(1_500_000), "1.5 s");
        assert_eq!(length_us(250_000), "250 ms");
        assert_eq!(bytes(512.0), "512 B");
        assert_eq!(bytes(12.3 * 1024.0 * 1024.0), "12.3 MiB");
        assert_eq!(count(10_000_000), "10,000,000");
        assert_eq!(percent(0.996), "99.6 %");
        assert_eq!(percent(1.0), "100 %");
        assert_eq!(percent(0.000_012), "0.0012 %");
    }

    fn interval(low: f64, high: f64) -> String {
        let (low, high) = interval_ends(low, high);
        format!("{low} to {high}")
    }

    proptest! {
        #[test]
        fn the_shown_value_is_never_farther_off_than_its_error(
            value in -1e9..1e9f64,
            relative in 1e-6..10.0f64,
        ) {
            let half = at_least_resolution(value.abs() * relative, value);
            prop_assume!(half > 1e-8);
            let shown: f64 = Place::of_error(half).show(value).replace(',', "").parse().unwrap();
            prop_assert!((shown - value).abs() <= half);
        }

        #[test]
        fn the_shown_interval_contains_the_interval(low in -1e6..1e6f64, width in 1e-3..1e6f64) {
            let text = interval(low, low + width).replace(',', "");
            let (shown_low, shown_high) = text.split_once(" to ").unwrap();
            let tolerance = 1e-6 * (low.abs() + width);
            prop_assert!(shown_low.parse::<f64>().unwrap() <= low + tolerance);
            prop_assert!(shown_high.parse::<f64>().unwrap() >= low + width - tolerance);
        }
    }
}
