//! JSON as a tree that borrows from its text.
//!
//! [`json_text`] reads tokens and escapes. This file reads lists and objects into the values of templates.

use std::borrow::Cow;

use json_text::{ControlEscapes, Cursor, LoneSurrogate, Unexpected};

/// Maximum nesting. Reading and writing are recursive, and the stack is limited.
const DEPTH_MAX: usize = 128;

/// A JSON value. Numbers keep their digits, and strings are decoded.
#[derive(Clone, Debug, PartialEq)]
pub enum Json<'a> {
    /// The JSON value `null`.
    Null,
    /// The JSON value `true` or `false`.
    Bool(bool),
    /// A number with its digits as written.
    Number(Cow<'a, str>),
    /// A string without its quotes and escapes.
    Text(Cow<'a, str>),
    /// A list of values.
    List(Vec<Json<'a>>),
    /// An object. Its members are in the order of the text and can repeat keys.
    Object(Vec<(Cow<'a, str>, Json<'a>)>),
}

/// Reason why bytes are not JSON.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected {expected} at byte {at}")]
pub struct JsonError {
    expected: &'static str,
    at: usize,
}

impl<'a> Json<'a> {
    /// Reads a whole JSON text.
    ///
    /// # Errors
    /// The expected token and its place.
    pub fn parse(bytes: &'a [u8]) -> Result<Json<'a>, JsonError> {
        // Checked once for the whole text, so that slices of it need no further check.
        let text = std::str::from_utf8(bytes).map_err(|error| JsonError {
            expected: "UTF-8",
            at: error.valid_up_to(),
        })?;
        let mut reader = Reader {
            text,
            cursor: Cursor::new(0, text.len()),
        };
        reader.space();
        let value = reader.value(0)?;
        reader.space();
        if !reader.cursor.is_at_end() {
            return Err(reader.expected("the end"));
        }
        Ok(value)
    }

    /// The member of an object with this key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Json<'a>> {
        match self {
            Json::Object(members) => members
                .iter()
                // A search instead of a table, because a template reads a few members of small objects.
                .find(|(name, _)| name == key)
                .map(|(_, value)| value),
            _ => None,
        }
    }

    /// The kind of the value with its article, for error messages.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Json::Null => "null",
            Json::Bool(_) => "a boolean",
            Json::Number(_) => "a number",
            Json::Text(_) => "a string",
            Json::List(_) => "an array",
            Json::Object(_) => "an object",
        }
    }

    /// Appends the value as JSON.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Json::Null => out.extend_from_slice(b"null"),
            Json::Bool(true) => out.extend_from_slice(b"true"),
            Json::Bool(false) => out.extend_from_slice(b"false"),
            Json::Number(digits) => out.extend_from_slice(digits.as_bytes()),
            Json::Text(text) => write_text(text, out),
            Json::List(items) => {
                out.push(b'[');
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        out.push(b',');
                    }
                    item.write(out);
                }
                out.push(b']');
            }
            Json::Object(members) => {
                out.push(b'{');
                for (index, (key, value)) in members.iter().enumerate() {
                    if index > 0 {
                        out.push(b',');
                    }
                    write_text(key, out);
                    out.push(b':');
                    value.write(out);
                }
                out.push(b'}');
            }
        }
    }

    /// The value as JSON text.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.write(&mut out);
        out
    }
}

/// Appends a text as a JSON string, in the form that Hasura writes.
pub fn write_text(text: &str, out: &mut Vec<u8>) {
    json_text::write_string_with(text, ControlEscapes::Numbered, out);
}

struct Reader<'a> {
    text: &'a str,
    cursor: Cursor,
}

impl<'a> Reader<'a> {
    fn expected(&self, expected: &'static str) -> JsonError {
        JsonError {
            expected,
            at: self.cursor.at,
        }
    }

    fn wrong_token(&self, wrong: Unexpected) -> JsonError {
        self.expected(match wrong {
            Unexpected::Word => "`true`, `false` or `null`",
            Unexpected::StringRest if self.cursor.is_at_end() => "the end of the string",
            Unexpected::StringRest => "no control character in a string",
            Unexpected::Escape => "an escape",
            Unexpected::HexDigits => "four hexadecimal digits",
            Unexpected::Digit => "a digit",
        })
    }

    fn peek(&self) -> Option<u8> {
        self.cursor.peek(self.text.as_bytes())
    }

    fn space(&mut self) {
        self.cursor.skip_space(self.text.as_bytes());
    }

    fn value(&mut self, depth: usize) -> Result<Json<'a>, JsonError> {
        if depth > DEPTH_MAX {
            return Err(self.expected("less nesting"));
        }
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.list(depth),
            Some(b'"') => self.string().map(Json::Text),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true", Json::Bool(true)),
            Some(b'f') => self.word("false", Json::Bool(false)),
            Some(b'n') => self.word("null", Json::Null),
            _ => Err(self.expected("a JSON value")),
        }
    }

    fn word(&mut self, word: &str, value: Json<'a>) -> Result<Json<'a>, JsonError> {
        let read = self.cursor.word(self.text.as_bytes(), word.as_bytes());
        read.map_err(|wrong| self.wrong_token(wrong))?;
        Ok(value)
    }

    fn object(&mut self, depth: usize) -> Result<Json<'a>, JsonError> {
        let mut members = Vec::new();
        self.cursor.at += 1;
        self.space();
        if self.peek() == Some(b'}') {
            self.cursor.at += 1;
            // Outside of the loop, because an object can be empty but cannot end with a comma.
            return Ok(Json::Object(members));
        }
        loop {
            self.space();
            if self.peek() != Some(b'"') {
                return Err(self.expected("a key"));
            }
            let key = self.string()?;
            self.space();
            if self.peek() != Some(b':') {
                return Err(self.expected("`:`"));
            }
            self.cursor.at += 1;
            self.space();
            // A duplicate key stays in the object. `get` finds the first.
            let value = self.value(depth + 1)?;
            members.push((key, value));
            self.space();
            match self.peek() {
                Some(b',') => self.cursor.at += 1,
                Some(b'}') => {
                    self.cursor.at += 1;
                    return Ok(Json::Object(members));
                }
                _ => return Err(self.expected("`,` or `}`")),
            }
        }
    }

    fn list(&mut self, depth: usize) -> Result<Json<'a>, JsonError> {
        let mut items = Vec::new();
        self.cursor.at += 1;
        self.space();
        if self.peek() == Some(b']') {
            self.cursor.at += 1;
            return Ok(Json::List(items));
        }
        loop {
            self.space();
            items.push(self.value(depth + 1)?);
            self.space();
            match self.peek() {
                Some(b',') => self.cursor.at += 1,
                Some(b']') => {
                    self.cursor.at += 1;
                    return Ok(Json::List(items));
                }
                _ => return Err(self.expected("`,` or `]`")),
            }
        }
    }

    fn number(&mut self) -> Result<Json<'a>, JsonError> {
        let start = self.cursor.at;
        let read = self.cursor.number(self.text.as_bytes());
        read.map_err(|wrong| self.wrong_token(wrong))?;
        Ok(Json::Number(Cow::Borrowed(
            &self.text[start..self.cursor.at],
        )))
    }

    /// Reads a string. The next byte is its quote.
    fn string(&mut self) -> Result<Cow<'a, str>, JsonError> {
        let read = self.cursor.string(self.text.as_bytes());
        let span = read.map_err(|wrong| self.wrong_token(wrong))?;
        let inside = &self.text[span.start..span.end];
        // Most strings have no escape and stay slices of the text.
        if !span.is_escaped {
            return Ok(Cow::Borrowed(inside));
        }
        let lone = |half: LoneSurrogate| JsonError {
            expected: if half.is_first {
                "the second half of a surrogate pair"
            } else {
                "a character"
            },
            at: span.start + half.at,
        };
        json_text::unescape(inside).map(Cow::Owned).map_err(lone)
    }
}
