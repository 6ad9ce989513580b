//! Numbers in the text of an operation that the parser would change.
//!
//! The parser reads a number with a fraction or an exponent as a 64-bit float. It rounds `12345678901234567.89`
//! and reads `1e400` as infinity, and a subgraph would receive the changed number. It refuses an integer beyond 64
//! bits without its name. A variable keeps all digits.

use crate::error::{GraphqlError, Location};
use crate::tokens::Tokens;

/// The first number that a 64-bit float cannot hold, or the first integer beyond 64 bits.
pub(crate) fn changed(text: &str) -> Option<GraphqlError> {
    // A scan needs a tenth of the time of the parser. Most operations have no number with a dot or an exponent.
    let mut tokens = Tokens::of(text);
    while let Some(token) = tokens.next() {
        if !token.starts_with(|letter: char| letter.is_ascii_digit()) {
            continue;
        }
        let start = tokens.position() - token.len();
        let rest = &text[start..];
        let number = &rest[..length(rest)];
        tokens.go_to(start + number.len());
        let sign = if text[..start].ends_with('-') {
            "-"
        } else {
            ""
        };
        if !is_kept(sign, number) {
            let message = format!(
                "the number `{number}` has more digits, or is larger, than a literal can have: send it as a variable"
            );
            let mut error = GraphqlError::new(message, "GRAPHQL_VALIDATION_FAILED");
            error.locations = vec![location(text, start)];
            return Some(error);
        }
    }
    None
}

/// The length of the number at the start of a text.
fn length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let is_part = |(index, byte): &(usize, &u8)| match byte {
        b'0'..=b'9' | b'.' | b'e' | b'E' => true,
        b'+' | b'-' => *index > 0 && matches!(bytes[index - 1], b'e' | b'E'),
        _ => false,
    };
    bytes.iter().enumerate().take_while(is_part).count()
}

/// True if a float holds exactly this number. An integer is not a float, and has at most 64 bits.
fn is_kept(sign: &str, number: &str) -> bool {
    if number.bytes().all(|byte| byte.is_ascii_digit()) {
        return format!("{sign}{number}").parse::<i64>().is_ok();
    }
    match number.parse::<f64>() {
        // The parser refuses it, too.
        Err(_) => true,
        // Programs print floats with the fewest digits, or with 17 digits. Both stand for this float.
        Ok(float) => {
            let own = digits(number);
            let is_printed = |printed: String| digits(&printed) == own;
            float.is_finite()
                && (is_printed(format!("{float:e}")) || is_printed(format!("{float:.16e}")))
        }
    }
}

/// The significant digits of a number, and the exponent of the last one.
fn digits(number: &str) -> (String, i64) {
    let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    // Exponents beyond 64 bits belong to zero or to infinity.
    let mut exponent: i64 = exponent.parse().unwrap_or(i64::MAX / 2);
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    exponent = exponent.saturating_sub(i64::try_from(fraction.len()).unwrap_or(i64::MAX / 2));
    let all = format!("{whole}{fraction}");
    let significant = all.trim_start_matches('0');
    let kept = significant.trim_end_matches('0');
    if kept.is_empty() {
        return (String::new(), 0);
    }
    let zeros = significant.len() - kept.len();
    exponent = exponent.saturating_add(i64::try_from(zeros).unwrap_or(i64::MAX / 2));
    (kept.to_owned(), exponent)
}

fn location(text: &str, at: usize) -> Location {
    let before = &text[..at];
    let line_start = before.rfind('\n').map_or(0, |end| end + 1);
    Location {
        line: before.matches('\n').count() + 1,
        column: before[line_start..].chars().count() + 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_a_float_holds_are_kept() {
        for number in [
            "0",
            "7",
            "9223372036854775807",
            "0.1",
            "1.0",
            "1.50",
            "1e3",
            "1E+3",
            "12.5e-7",
            "0.0",
            "0e999",
            "1e308",
            "9007199254740993",
            "123456789012345.6",
            "5e-324",
            "52.520006600000002",
        ] {
            let text = format!("{{a(b: {number}, c: -{number})}}");
            assert!(changed(&text).is_none(), "{number}");
        }
        assert!(changed("{a(b: -9223372036854775808)}").is_none());
        for text in [
            "{a(b: \"1e400\")} # 1e400",
            "{a1e400 ...b1e400}",
            "{a(b: \"\"\"1e400\"\"\")}",
        ] {
            assert!(changed(text).is_none(), "{text}");
        }
    }

    #[test]
    fn other_numbers_are_named_with_their_place() {
        for number in [
            "1e400",
            "18446744073709551616",
            "9223372036854775809",
            "12345678901234567.89",
            "0.1000000000000000055511151231257827",
            "1e-400",
            "9007199254740993.0",
            "1e99999999999999999999",
        ] {
            let text = format!("{{\n  a(b: [-{number}])}}");
            let error = changed(&text).unwrap_or_else(|| panic!("{number}"));
            assert!(
                error.message.contains(&format!("`{number}`")),
                "{}",
                error.message
            );
            assert_eq!(
                (error.locations[0].line, error.locations[0].column),
                (2, 10)
            );
        }
    }
}
