//! Steps over tokens of valid JSON.
//!
//! Only the end of a string must be found. So the search uses memchr, which compares more bytes at once than
//! [`crate::plain_run`].

/// The length of the string that begins at `start`, with its quotes. The second value is true if it has
/// escapes.
#[inline]
#[must_use]
pub fn string_length(json: &[u8], start: usize) -> (usize, bool) {
    debug_assert_eq!(json.get(start), Some(&b'"'));
    let (mut at, mut is_escaped) = (start + 1, false);
    while let Some(rest) = json.get(at..)
        && let Some(length) = memchr::memchr2(b'"', b'\\', rest)
    {
        if rest[length] == b'"' {
            return (at + length + 1 - start, is_escaped);
        }
        is_escaped = true;
        // Over the backslash and the escaped character, which may be a quote.
        at += length + 2;
    }
    // Valid JSON never reaches this line. For invalid text, the rest of the text is the safe result.
    (json.len() - start, is_escaped)
}

/// The length of the number or word that begins at `start`.
#[inline]
#[must_use]
pub fn bare_length(json: &[u8], start: usize) -> usize {
    let is_end = |byte: &u8| matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r');
    let length = json[start..].iter().position(is_end);
    length.unwrap_or(json.len() - start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_end_where_the_next_begins() {
        assert_eq!(string_length(br#"["a"]"#, 1), (3, false));
        assert_eq!(string_length(br#""\\\"b" "c""#, 0), (7, true));
        assert_eq!(string_length(br#""\"#, 0), (2, true));
        assert_eq!(bare_length(b"[-1.5e3 ,null]", 1), 6);
        assert_eq!(bare_length(b"[-1.5e3 ,null]", 9), 4);
        assert_eq!(bare_length(b"true", 0), 4);
    }

    proptest::proptest! {
        #[test]
        fn a_string_is_as_long_as_it_was_written(text: String, rest in "[ ,\"\\]]{0,3}") {
            let json = serde_json::to_string(&text).unwrap();
            let followed = format!("{json}{rest}");
            let is_escaped = json.contains('\\');
            proptest::prop_assert_eq!(string_length(followed.as_bytes(), 0), (json.len(), is_escaped));
        }
    }
}
