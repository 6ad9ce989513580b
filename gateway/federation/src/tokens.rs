//! The tokens of a GraphQL document, read in one scan without recursion.
//!
//! The scan is looser than the grammar. It finds the tokens of every valid document, and leaves the rejection of
//! invalid documents to the parser.

/// The tokens of a document, without commas, whitespace and comments.
pub(crate) struct Tokens<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Tokens<'a> {
    pub(crate) fn of(text: &'a str) -> Self {
        Tokens { text, at: 0 }
    }

    /// The position after the last token, in bytes.
    pub(crate) fn position(&self) -> usize {
        self.at
    }

    /// Continues at this position, in bytes.
    pub(crate) fn go_to(&mut self, position: usize) {
        self.at = position;
    }

    /// The next token, which stays the next one.
    pub(crate) fn peek(&self) -> Option<&'a str> {
        Tokens { ..*self }.next()
    }

    /// Skips the rest of a definition: everything up to the end of its selection set.
    pub(crate) fn skip_definition(&mut self) {
        while let Some(token) = self.next() {
            match token {
                "{" => return self.skip_group(),
                // Default values and arguments of directives may contain braces.
                "(" | "[" => self.skip_group(),
                _ => {}
            }
        }
    }

    /// Skips everything up to the bracket that closes the current one.
    pub(crate) fn skip_group(&mut self) {
        let mut depth = 1_usize;
        for token in self.by_ref() {
            match token {
                "{" | "(" | "[" => depth += 1,
                "}" | ")" | "]" => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return;
            }
        }
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let bytes = self.text.as_bytes();
        let is_ignored = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b',');
        loop {
            self.at += length(&bytes[self.at..], is_ignored);
            // Documents may begin with a byte order mark.
            if self.text[self.at..].starts_with('\u{feff}') {
                self.at += '\u{feff}'.len_utf8();
            } else if bytes.get(self.at) == Some(&b'#') {
                self.at += length(&bytes[self.at..], |byte| !matches!(byte, b'\n' | b'\r'));
            } else {
                break;
            }
        }
        let rest = &self.text[self.at..];
        let first = rest.chars().next()?;
        let length = match first {
            '"' => string_length(rest),
            _ if is_name_byte(first as u32) => {
                length(rest.as_bytes(), |byte| is_name_byte(u32::from(*byte)))
            }
            _ => first.len_utf8(),
        };
        self.at += length;
        Some(&rest[..length])
    }
}

pub(crate) fn is_name(token: &str) -> bool {
    token.bytes().all(|byte| is_name_byte(u32::from(byte)))
}

fn is_name_byte(letter: u32) -> bool {
    u8::try_from(letter).is_ok_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Number of leading bytes that fulfil a condition.
fn length(bytes: &[u8], holds: impl Fn(&u8) -> bool) -> usize {
    bytes.iter().take_while(|byte| holds(byte)).count()
}

/// The length of the string or block string at the start of a text, with its quotes. A string without an end
/// reaches to the end of the text.
fn string_length(text: &str) -> usize {
    let (quote, escape) = match text.starts_with("\"\"\"") {
        true => ("\"\"\"", "\\\"\"\""),
        false => ("\"", "\\"),
    };
    let bytes = text.as_bytes();
    let mut at = quote.len();
    while at < bytes.len() {
        let rest = &bytes[at..];
        if rest.starts_with(escape.as_bytes()) {
            // A string has two bytes after a backslash, at least. A block string only escapes three quotes.
            at += escape.len().max(2);
        } else if rest.starts_with(quote.as_bytes()) {
            return at + quote.len();
        } else {
            at += 1;
        }
    }
    text.len()
}
