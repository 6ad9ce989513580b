//! Unicode escapes of the specification of September 2025, in the form of older specifications.
//!
//! Parsers that follow the specification of October 2021 refuse `\u{1F600}` and the surrogate pair
//! `\uD83D\uDE00`. Both stand for one character, which a string may contain itself.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Replaces new escapes in the strings of a document by the characters that they stand for. Everything else
/// stays, so the parser reports invalid escapes. Borrows if there is nothing to replace.
#[must_use]
pub fn with_old_escapes(document: &str) -> Cow<'_, str> {
    // Nearly every document has no escape at all.
    if !document.contains("\\u") {
        return Cow::Borrowed(document);
    }
    let mut out = String::with_capacity(document.len());
    let mut rest = document;
    let mut place = Place::Outside;
    while let Some(first) = rest.chars().next() {
        let taken = match place {
            Place::String if let Some((character, length)) = new_escape(rest) => {
                write_character(character, &mut out);
                rest = &rest[length..];
                continue;
            }
            _ => place.step(rest).unwrap_or(first.len_utf8()),
        };
        out.push_str(&rest[..taken]);
        rest = &rest[taken..];
    }
    Cow::Owned(out)
}

/// The part of a document at a position.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Outside,
    Comment,
    String,
    BlockString,
}

impl Place {
    /// Goes to the next place, if the text begins with the end of this one or with the start of another.
    /// Returns the length of that delimiter or escape.
    fn step(&mut self, text: &str) -> Option<usize> {
        const BLOCK: &str = "\"\"\"";
        let delimiters: &[(&str, Place)] = match self {
            Place::Outside => &[
                (BLOCK, Place::BlockString),
                ("\"", Place::String),
                ("#", Place::Comment),
            ],
            Place::Comment => &[("\n", Place::Outside), ("\r", Place::Outside)],
            // A string ends with its line. The parser refuses that.
            Place::String => &[
                ("\\\\", Place::String),
                ("\\\"", Place::String),
                ("\"", Place::Outside),
                ("\n", Place::Outside),
                ("\r", Place::Outside),
            ],
            Place::BlockString => &[("\\\"\"\"", Place::BlockString), (BLOCK, Place::Outside)],
        };
        let (delimiter, next) = delimiters
            .iter()
            .find(|(delimiter, _)| text.starts_with(delimiter))?;
        *self = *next;
        Some(delimiter.len())
    }
}

/// The character of a new escape at the start of a text, and the length of the escape.
fn new_escape(text: &str) -> Option<(char, usize)> {
    let digits = text.strip_prefix("\\u")?;
    if let Some(digits) = digits.strip_prefix('{') {
        let (digits, _) = digits.split_once('}')?;
        let is_hex = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        // Any number of leading zeros is allowed.
        let significant = digits.trim_start_matches('0');
        let number = match significant {
            "" => 0,
            _ if significant.len() > 6 => return None,
            _ => u32::from_str_radix(significant, 16).ok()?,
        };
        let character = char::from_u32(number).filter(|_| is_hex)?;
        return Some((character, "\\u{}".len() + digits.len()));
    }
    let high = four_digits(digits)?;
    let low = four_digits(digits.get(4..)?.strip_prefix("\\u")?)?;
    let mut decoded = char::decode_utf16([high, low]);
    // Two characters of the basic plane decode to two.
    match (decoded.next(), decoded.next()) {
        (Some(Ok(character)), None) => Some((character, "\\u0000\\u0000".len())),
        _ => None,
    }
}

fn four_digits(text: &str) -> Option<u16> {
    let digits = text.get(..4)?;
    let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    u16::from_str_radix(digits, 16).ok().filter(|_| is_hex)
}

/// Writes a character as a part of a string.
fn write_character(character: char, out: &mut String) {
    match character {
        '"' | '\\' => out.extend(['\\', character]),
        _ if character.is_control() => {
            // Control characters are below U+0100. Writing to a string cannot fail.
            let _ = write!(out, "\\u{:04X}", u32::from(character));
        }
        _ => out.push(character),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_escapes_become_their_characters() {
        for (document, wanted) in [
            (r#"{a(s: "\u{1F600}")}"#, "{a(s: \"\u{1F600}\")}"),
            (r#"{a(s: "\uD83D\uDE00")}"#, "{a(s: \"\u{1F600}\")}"),
            (r#"{a(s: "\ud83d\ude00!")}"#, "{a(s: \"\u{1F600}!\")}"),
            (r#"{a(s: "\u{e9}\u{00000000E9}")}"#, "{a(s: \"éé\")}"),
            (
                r#"{a(s: "\u{22}\u{5C}\u{A}\u{0}")}"#,
                r#"{a(s: "\"\\\u000A\u0000")}"#,
            ),
            (r#"{a(s: "\u{10FFFF}")}"#, "{a(s: \"\u{10FFFF}\")}"),
            (r#"{a(s: "\\\u{41}")}"#, r#"{a(s: "\\A")}"#),
            (r#"{a(s: "\"\u{41}")}"#, r#"{a(s: "\"A")}"#),
            (
                r##"{a} # "\n{a(s: "\u{41}")}"##,
                r##"{a} # "\n{a(s: "\u{41}")}"##,
            ),
            ("{a} # \"\n{a(s: \"\\u{41}\")}", "{a} # \"\n{a(s: \"A\")}"),
        ] {
            assert_eq!(with_old_escapes(document), wanted, "{document}");
        }
    }

    #[test]
    fn everything_else_stays() {
        for document in [
            "",
            "{a}",
            r#"{a(s: "\u00e9")}"#,
            r#"{a(s: "\uD83D")}"#,
            r#"{a(s: "\uDE00\uD83D")}"#,
            r#"{a(s: "\uD83D\u0041")}"#,
            r#"{a(s: "\u0041\u0042")}"#,
            r#"{a(s: "\u{110000}")}"#,
            r#"{a(s: "\u{D83D}")}"#,
            r#"{a(s: "\u{}")}"#,
            r#"{a(s: "\u{41")}"#,
            r#"{a(s: "\u{+41}")}"#,
            r#"{a(s: "\u{xyz}")}"#,
            r#"{a(s: "\\u{41}")}"#,
            r#"{a(s: """\u{41} \uD83D\uDE00""")}"#,
            r#"{a(s: """ \""" \u{41} """)}"#,
            r#"{a(s: """\u{41}"#,
            r#"# \u{41}"#,
            r#"{a(s: "\uD83"#,
            r#"{a(s: "\u"#,
            "{a(s: \"\\ué\u{1F600}\")}",
        ] {
            assert_eq!(with_old_escapes(document), document);
        }
    }
}
