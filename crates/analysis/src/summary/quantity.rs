//! Quantities with their units in words.

use model::Unit;
use recording::digits;

/// A size without its sign, because the words around it contain the direction: `80 us (75 to 88)`.
pub fn with_ends(unit: Unit, value: f64, low: f64, high: f64) -> String {
    let (low, high) = if value < 0.0 {
        (-high, -low)
    } else {
        (low, high)
    };
    let value = value.abs();
    let (scale, sign) = scale(unit);
    let (from, to) = digits::interval_ends(low / scale, high / scale);
    let half = (high - low) / 2.0 / scale;
    let value = digits::value(value / scale, Some(half));
    format!("{value}{sign} ({from} to {to})")
}

/// A difference with its sign, because no word contains the direction: `+80 us (75 to 88)`,
/// `-3 us (-8 to +2)`.
pub fn signed(unit: Unit, value: f64, low: f64, high: f64) -> String {
    let (scale, sign) = scale(unit);
    let (from, to) = digits::interval_ends(low / scale, high / scale);
    let half = (high - low) / 2.0 / scale;
    let size = digits::value(value.abs() / scale, Some(half));
    let direction = if value < 0.0 { '-' } else { '+' };
    // If the interval crosses zero, both ends have a sign.
    let plus = if low < 0.0 && high > 0.0 { "+" } else { "" };
    format!("{direction}{size}{sign} ({from} to {plus}{to})")
}

/// An amount with its unit: `80 us`, `1.2 ms`, `8,180 requests`
pub fn amount(unit: Unit, value: f64) -> String {
    let (scale, sign) = scale(unit);
    // A size without an interval has two digits, as in speech.
    let shown = digits::value(value / scale, Some(value.abs() / scale * 0.2));
    format!("{shown}{sign}")
}

/// A figure of one row in the form of the table, with three digits: `105 us`.
pub fn figure(unit: Unit, value: f64) -> String {
    let (scale, sign) = scale(unit);
    format!("{}{sign}", digits::value(value / scale, None))
}

/// Returns the divisor of a value in the unit of the recording, and the sign after it.
fn scale(unit: Unit) -> (f64, &'static str) {
    match unit {
        Unit::Milliseconds => (1e3, " ms"),
        Unit::Microseconds => (1.0, " us"),
        Unit::Mebibytes => (1024.0 * 1024.0, " MiB"),
        _ => (1.0, " requests"),
    }
}

/// A predicted duration with suitable precision: `45 s`, `3 minutes`, `2.5 hours`.
pub fn minutes(seconds: f64) -> String {
    let about = |value: f64| digits::value(value, Some(value * 0.2));
    match seconds {
        seconds if seconds < 90.0 => format!("{} s", about(seconds)),
        seconds if seconds < 5400.0 => format!("{} minutes", about(seconds / 60.0)),
        seconds => format!("{} hours", about(seconds / 3600.0)),
    }
}
