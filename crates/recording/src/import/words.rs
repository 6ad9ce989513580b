//! Parsers for numbers in texts for humans.

use std::borrow::Cow;

/// A duration in microseconds: `3.39ms`, `850.00us`, `1m2.5s`. A unit is required. `1.02s` read as
/// milliseconds has ranked servers wrongly before.
pub(super) fn time_us(text: &str) -> Option<f64> {
    let mut rest = text.trim().trim_end_matches(',');
    let mut sum = None;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !(c.is_ascii_digit() || c == '.'))?;
        let number: f64 = rest[..digits].parse().ok()?;
        // A unit must follow, so a number at the end makes the whole text unreadable on purpose.
        rest = &rest[digits..];
        let unit = rest
            .find(|c: char| c.is_ascii_digit())
            .unwrap_or(rest.len());
        let factor = match &rest[..unit] {
            "ns" => 1e-3,
            // The micro sign and the Greek letter look equal and are two characters.
            "us" | "µs" | "μs" => 1.0,
            "ms" => 1e3,
            "s" => 1e6,
            "m" => 60e6,
            "h" => 3600e6,
            _ => return None,
        };
        sum = Some(sum.unwrap_or(0.0) + number * factor);
        rest = &rest[unit..];
    }
    sum
}

/// A duration with a blank before its unit: `2.0045 secs`, `181.57 ms`. A unit is required.
pub(super) fn spaced_time_us(text: &str) -> Option<f64> {
    let mut words = text.split_whitespace();
    let first = words.next()?;
    time_us(first).or_else(|| {
        let unit = words.next()?.trim_end_matches(',');
        // Tools also print `sec` and `secs`. The common reader expects `s`.
        let unit = if unit.starts_with("sec") { "s" } else { unit };
        time_us(&format!("{first}{unit}"))
    })
}

/// A number, optionally with `k`, `M` or `G`.
pub(super) fn number(text: &str) -> Option<f64> {
    let text = text.trim().trim_end_matches(',');
    let (digits, factor) = match text.chars().last()? {
        'k' => (&text[..text.len() - 1], 1e3),
        'M' => (&text[..text.len() - 1], 1e6),
        'G' => (&text[..text.len() - 1], 1e9),
        _ => (text, 1.0),
    };
    digits.parse::<f64>().ok().map(|number| number * factor)
}

/// The first word after a label at the start of a line.
pub(super) fn after<'a>(text: &'a str, label: &str) -> Option<&'a str> {
    rest_of(text, label)?.split_whitespace().next()
}

/// All text after a label at the start of a line.
pub(super) fn rest_of<'a>(text: &'a str, label: &str) -> Option<&'a str> {
    text.lines()
        .find_map(|line| line.trim_start().strip_prefix(label))
        .map(str::trim)
}

/// The number after a label at the start of a line.
pub(super) fn number_after(text: &str, label: &str) -> Option<f64> {
    after(text, label).and_then(number)
}

/// The text without the escape sequences that color a terminal.
pub(super) fn without_colors(text: &str) -> Cow<'_, str> {
    if !text.contains("\u{1b}[") {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        out += before;
        let end = after.find(|c: char| c.is_ascii_alphabetic());
        // A sequence without an end removes the rest of the text.
        rest = end.map_or("", |end| &after[end + 1..]);
    }
    Cow::Owned(out + rest)
}

/// The value of a `key=value` word in a line of k6.
pub(super) fn pair<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    line.split_whitespace()
        .find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_is_not_a_millisecond() {
        for (text, us) in [
            ("1.02s", 1_020_000.0),
            ("1.02ms", 1020.0),
            ("850.00us", 850.0),
            ("850.5µs", 850.5),
            ("1m2.5s", 62_500_000.0),
            ("2m", 120_000_000.0),
            ("400ns,", 0.4),
        ] {
            let found = time_us(text).unwrap();
            assert!((found - us).abs() < 1e-6, "{text}: {found}");
        }
        for text in ["1.02", "", "ms", "1.02 parsecs", "-1s"] {
            assert_eq!(time_us(text), None, "{text}");
        }
    }

    #[test]
    fn thousands_and_millions_are_spelled_out() {
        assert_eq!(number("3.01k"), Some(3010.0));
        assert_eq!(number("1.5M"), Some(1_500_000.0));
        assert_eq!(number("12,"), Some(12.0));
        assert_eq!(number("k"), None);
    }

    #[test]
    fn colors_are_no_part_of_a_figure() {
        assert_eq!(
            without_colors("\u{1b}[1;32mhttp_reqs\u{1b}[0m..: 7"),
            "http_reqs..: 7"
        );
        assert_eq!(without_colors("plain \u{1b}[31"), "plain ");
    }
}
