//! Adds escapes to written strings, and removes escapes from read strings.

use crate::plain::plain_run;

/// The spelling of control characters without a common short escape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlEscapes {
    /// Backspace and form feed as `\b` and `\f`, like most writers.
    Short,
    /// Both as numeric escapes, like Hasura's writer.
    Numbered,
}

/// Appends `text` as a JSON string, byte for byte like serde_json.
#[inline]
pub fn write_string(text: &str, out: &mut Vec<u8>) {
    write(text.as_bytes(), ControlEscapes::Short, out);
}

/// Like [`write_string`], for bytes in UTF-8. They are not checked, because all escaped characters are ASCII.
#[inline]
pub fn write_utf8(text: &[u8], out: &mut Vec<u8>) {
    write(text, ControlEscapes::Short, out);
}

/// Like [`write_string`], with a choice for control characters.
#[inline]
pub fn write_string_with(text: &str, controls: ControlEscapes, out: &mut Vec<u8>) {
    write(text.as_bytes(), controls, out);
}

#[inline]
fn write(bytes: &[u8], controls: ControlEscapes, out: &mut Vec<u8>) {
    // Enough for a string without escapes, which is the common case.
    out.reserve(bytes.len() + 2);
    out.push(b'"');
    // Runs are copied as a whole. A copy of single bytes would check the capacity for each.
    let mut start = 0;
    loop {
        let end = plain_run(bytes, start, bytes.len());
        out.extend_from_slice(&bytes[start..end]);
        let Some(special) = bytes.get(end) else {
            break;
        };
        write_escape(*special, controls, out);
        start = end + 1;
    }
    out.push(b'"');
}

/// Appends the escape of a quote, a backslash or a control character.
fn write_escape(special: u8, controls: ControlEscapes, out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let short = match special {
        b'"' | b'\\' => special,
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        0x08 if controls == ControlEscapes::Short => b'b',
        0x0c if controls == ControlEscapes::Short => b'f',
        control => {
            assert!(control < 0x20, "only control characters are left");
            out.extend_from_slice(b"\\u00");
            out.push(HEX[usize::from(control >> 4)]);
            out.push(HEX[usize::from(control & 0xf)]);
            return;
        }
    };
    out.extend_from_slice(&[b'\\', short]);
}

/// Half of a surrogate pair without the other half. JSON allows it, but no text can contain it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoneSurrogate {
    /// The position after the last escape that was read.
    pub at: usize,
    /// True if it is a first half and the second half is missing.
    pub is_first: bool,
}

/// The text of a string without escapes. `inside` is the content between the quotes, and has passed
/// [`Cursor::string`](crate::Cursor::string).
///
/// # Errors
/// Fails if half of a surrogate pair stands alone.
///
/// # Panics
/// Panics if an escape is invalid.
pub fn unescape(inside: &str) -> Result<String, LoneSurrogate> {
    let bytes = inside.as_bytes();
    // An escape is never shorter than its character, so this capacity is enough.
    let mut text = String::with_capacity(inside.len());
    let mut start = 0;
    while let Some(length) = memchr::memchr(b'\\', &bytes[start..]) {
        let at = start + length;
        text.push_str(&inside[start..at]);
        // There is a next byte, because the cursor has refused a backslash at the end.
        let (letter, end) = match bytes[at + 1] {
            b'u' => surrogates(inside, at + 2)?,
            b'b' => ('\u{8}', at + 2),
            b'f' => ('\u{c}', at + 2),
            b'n' => ('\n', at + 2),
            b'r' => ('\r', at + 2),
            b't' => ('\t', at + 2),
            same => (char::from(same), at + 2),
        };
        text.push(letter);
        start = end;
    }
    text.push_str(&inside[start..]);
    Ok(text)
}

/// Checks surrogates like [`unescape`], without creating a text.
pub(crate) fn check_surrogates(inside: &str) -> Result<(), LoneSurrogate> {
    let bytes = inside.as_bytes();
    let mut at = 0;
    while let Some(length) = memchr::memchr(b'\\', &bytes[at..]) {
        at += length + 2;
        if bytes[at - 1] == b'u' {
            at = surrogates(inside, at)?.1;
        }
    }
    Ok(())
}

/// The character with its number at `at`, and the end of its escape or pair of escapes.
fn surrogates(inside: &str, at: usize) -> Result<(char, usize), LoneSurrogate> {
    let unit = |at: usize| {
        let digits = inside.get(at..at + 4);
        let number = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        number.expect("the cursor has seen four hexadecimal digits")
    };
    let lone = |at, is_first| LoneSurrogate { at, is_first };
    let first = unit(at);
    let end = at + 4;
    if !(0xd800..0xdc00).contains(&first) {
        // All numbers except second halves are characters.
        let letter = char::from_u32(first).ok_or(lone(end, false))?;
        return Ok((letter, end));
    }
    if !inside[end..].starts_with("\\u") {
        return Err(lone(end, true));
    }
    let second = unit(end + 2);
    let end = end + 6;
    if !(0xdc00..0xe000).contains(&second) {
        return Err(lone(end, true));
    }
    let number = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
    let letter = char::from_u32(number).expect("a pair of halves is a letter");
    Ok((letter, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str, controls: ControlEscapes) -> String {
        let mut out = Vec::new();
        write_string_with(text, controls, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn control_characters_are_short_or_numbered() {
        let text = "\u{8}\u{c}\n\u{1f}\u{7f}";
        let short = written(text, ControlEscapes::Short);
        assert_eq!(short, "\"\\b\\f\\n\\u001f\u{7f}\"");
        let numbered = written(text, ControlEscapes::Numbered);
        assert_eq!(numbered, "\"\\u0008\\u000c\\n\\u001f\u{7f}\"");
    }

    #[test]
    fn halves_of_pairs_are_refused() {
        let lone = |at, is_first| Err(LoneSurrogate { at, is_first });
        assert_eq!(
            unescape(r"\ud83d\ude00\/\\ud800").as_deref(),
            Ok("😀/\\ud800")
        );
        assert_eq!(unescape(r"a\ud800"), lone(7, true));
        assert_eq!(unescape(r"\ud800\n"), lone(6, true));
        assert_eq!(unescape(r"\ud800\ud800"), lone(12, true));
        assert_eq!(unescape(r"\udc00"), lone(6, false));
    }

    proptest::proptest! {
        #[test]
        fn a_string_is_written_as_serde_json_writes_it(text in "\\PC*|[\\x00-\\x7f]{0,40}") {
            let ours = written(&text, ControlEscapes::Short);
            proptest::prop_assert_eq!(&ours, &serde_json::to_string(&text).unwrap());
            for controls in [ControlEscapes::Short, ControlEscapes::Numbered] {
                let string = written(&text, controls);
                let inside = &string[1..string.len() - 1];
                proptest::prop_assert_eq!(unescape(inside), Ok(text.clone()));
            }
        }
    }
}
