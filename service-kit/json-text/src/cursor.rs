//! A position in text that may not be JSON. It moves token by token.
//!
//! It keeps no reference to the text, and receives it with each call. So a reader may append to the text that
//! it reads from, for instance to keep all texts of a request in one buffer.

use crate::plain::plain_run;

/// A position in a part of a text.
#[derive(Clone, Copy, Debug)]
pub struct Cursor {
    /// Position of the next byte. After a mistake, it is the position of the mistake.
    pub at: usize,
    /// The end of the part, exclusive.
    end: usize,
}

/// The position of a string's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StringSpan {
    /// The position after the opening quote.
    pub start: usize,
    /// Position of the closing quote.
    pub end: usize,
    /// True if the string has escapes.
    pub is_escaped: bool,
}

/// The expected token that is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unexpected {
    /// The word `true`, `false` or `null`.
    Word,
    /// A character of a string, or its closing quote.
    StringRest,
    /// A valid character after a backslash.
    Escape,
    /// Four hexadecimal digits after `\u`.
    HexDigits,
    /// A digit of a number.
    Digit,
}

impl Cursor {
    /// Creates a cursor at the beginning of `start..end` of a text.
    #[inline]
    #[must_use]
    pub const fn new(start: usize, end: usize) -> Self {
        assert!(start <= end, "a part does not end before it begins");
        Self { at: start, end }
    }

    /// The next byte. `None` at the end.
    #[inline]
    #[must_use]
    pub fn peek(&self, text: &[u8]) -> Option<u8> {
        // Two limits: the part's own end, and the end of the text, because a caller may pass a text that is
        // too short.
        if self.at < self.end {
            text.get(self.at).copied()
        } else {
            None
        }
    }

    /// True if no byte is left.
    #[inline]
    #[must_use]
    pub const fn is_at_end(&self) -> bool {
        self.at >= self.end
    }

    /// Moves over white space.
    #[inline]
    pub fn skip_space(&mut self, text: &[u8]) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek(text) {
            self.at += 1;
        }
    }

    /// Moves over this word.
    ///
    /// # Errors
    /// Fails if the next word differs.
    #[inline]
    pub fn word(&mut self, text: &[u8], word: &[u8]) -> Result<(), Unexpected> {
        // Cut at the part's end, so that a word that extends beyond it does not count.
        let end = (self.at + word.len()).min(self.end);
        if text.get(self.at..end) != Some(word) {
            return Err(Unexpected::Word);
        }
        self.at = end;
        Ok(())
    }

    /// Moves over a string. The next byte must be its quote. Halves of surrogate pairs are accepted. See
    /// [`crate::unescape`].
    ///
    /// # Errors
    /// Fails if the string does not end, or contains a control character or an invalid escape.
    #[inline]
    pub fn string(&mut self, text: &[u8]) -> Result<StringSpan, Unexpected> {
        debug_assert_eq!(self.peek(text), Some(b'"'));
        self.at += 1;
        let start = self.at;
        let mut is_escaped = false;
        loop {
            // The hot loop of reading: nearly all bytes of a body are plain characters of strings.
            self.at = plain_run(text, self.at, self.end);
            match self.peek(text) {
                Some(b'"') => {
                    let end = self.at;
                    self.at += 1;
                    return Ok(StringSpan {
                        start,
                        end,
                        is_escaped,
                    });
                }
                Some(b'\\') => {
                    is_escaped = true;
                    self.escape(text)?;
                }
                _ => return Err(Unexpected::StringRest),
            }
        }
    }

    fn escape(&mut self, text: &[u8]) -> Result<(), Unexpected> {
        self.at += 1;
        match self.peek(text) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 1,
            Some(b'u') => {
                self.at += 1;
                for _ in 0..4 {
                    if !self.peek(text).is_some_and(|byte| byte.is_ascii_hexdigit()) {
                        return Err(Unexpected::HexDigits);
                    }
                    self.at += 1;
                }
            }
            _ => return Err(Unexpected::Escape),
        }
        Ok(())
    }

    /// Moves over a number.
    ///
    /// # Errors
    /// Fails if digits are missing. A leading zero ends a number. The caller must refuse digits after it.
    #[inline]
    pub fn number(&mut self, text: &[u8]) -> Result<(), Unexpected> {
        if self.peek(text) == Some(b'-') {
            self.at += 1;
        }
        // JSON has no leading zeros, so `01` is not one number.
        if self.peek(text) == Some(b'0') {
            self.at += 1;
        } else {
            self.digits(text)?;
        }
        if self.peek(text) == Some(b'.') {
            self.at += 1;
            self.digits(text)?;
        }
        if let Some(b'e' | b'E') = self.peek(text) {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek(text) {
                self.at += 1;
            }
            self.digits(text)?;
        }
        Ok(())
    }

    #[inline]
    fn digits(&mut self, text: &[u8]) -> Result<(), Unexpected> {
        let first = self.at;
        while self.peek(text).is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        if self.at == first {
            return Err(Unexpected::Digit);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn string(text: &str) -> Result<StringSpan, (Unexpected, usize)> {
        let mut cursor = Cursor::new(0, text.len());
        let span = cursor.string(text.as_bytes());
        if let Ok(span) = span {
            assert_eq!(cursor.at, span.end + 1);
        }
        span.map_err(|wrong| (wrong, cursor.at))
    }

    #[test]
    fn strings_are_measured_and_mistakes_have_places() {
        let span = |start, end, is_escaped| StringSpan {
            start,
            end,
            is_escaped,
        };
        assert_eq!(string(r#""a é" x"#), Ok(span(1, 5, false)));
        assert_eq!(string(r#""\u00e9\"""#), Ok(span(1, 9, true)));
        assert_eq!(string(r#""abc"#), Err((Unexpected::StringRest, 4)));
        assert_eq!(string("\"a\nb\""), Err((Unexpected::StringRest, 2)));
        assert_eq!(string(r#""\x""#), Err((Unexpected::Escape, 2)));
        assert_eq!(string(r#""\u00g0""#), Err((Unexpected::HexDigits, 5)));
    }

    #[test]
    fn nothing_behind_the_end_is_read() {
        let text = br#"12345 true "abc""#;
        let mut cursor = Cursor::new(0, 3);
        cursor.number(text).unwrap();
        assert!(cursor.is_at_end() && cursor.at == 3);
        assert_eq!(Cursor::new(6, 9).word(text, b"true"), Err(Unexpected::Word));
        let cut = Cursor::new(11, 15).string(text);
        assert_eq!(cut, Err(Unexpected::StringRest));
    }

    proptest::proptest! {
        #[test]
        fn numbers_are_those_of_serde_json(text in "-?[0-9]{0,3}(\\.[0-9]{0,2})?([eE][+-]?[0-9]{0,2})?") {
            let mut cursor = Cursor::new(0, text.len());
            let is_number = cursor.number(text.as_bytes()).is_ok() && cursor.is_at_end();
            // As a raw value, so that the range of numbers does not matter.
            let theirs = serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok();
            proptest::prop_assert_eq!(is_number, theirs, "{}", text);
        }

        #[test]
        fn any_bytes_are_scanned_or_refused(bytes: Vec<u8>) {
            let text: Vec<u8> = [b"\"", &bytes[..]].concat();
            let mut cursor = Cursor::new(0, text.len());
            if let Ok(span) = cursor.string(&text) {
                let is_utf8 = std::str::from_utf8(&text[..cursor.at]).is_ok();
                let is_escaped = text[span.start..span.end].contains(&b'\\');
                proptest::prop_assert_eq!(span.is_escaped, is_escaped);
                let theirs = serde_json::from_slice::<serde::de::IgnoredAny>(&text[..cursor.at]);
                proptest::prop_assert!(!is_utf8 || theirs.is_ok());
            }
            proptest::prop_assert!(cursor.at <= text.len());
        }
    }
}
