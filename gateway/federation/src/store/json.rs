//! Reads JSON into a [`Store`], in one pass and without unescaping.
//!
//! [`json_text`] reads the tokens, and the text between quotes stays in its place. This file reads lists and
//! objects directly into the store's lists of all items and members. So a response with many objects is
//! cheap. The depth is limited, so that no response can exhaust the stack.

use std::ops::Range;

use json_text::{Cursor, Unexpected};

use super::{Malformed, Slice, Store, Value, slice};

/// Maximum nesting of lists and objects.
const DEPTH_MAX: usize = 256;

/// Reads the value in a range of the store's text. At most `values_max` values are allowed.
pub(super) fn parse(
    store: &mut Store,
    range: Range<usize>,
    values_max: usize,
) -> Result<Value, Malformed> {
    let mut reader = Reader {
        store,
        cursor: Cursor::new(range.start, range.end),
        start: range.start,
        values_left: values_max,
    };
    reader.skip_space();
    let value = reader.value(0)?;
    reader.skip_space();
    if !reader.cursor.is_at_end() {
        return Err(reader.unexpected("the end of the body"));
    }
    Ok(value)
}

struct Reader<'a> {
    store: &'a mut Store,
    cursor: Cursor,
    /// Start of the body. Places in messages count from there.
    start: usize,
    /// Number of further values that fit into memory. A value takes many times the bytes of its text.
    values_left: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.cursor.peek(self.store.raw())
    }

    fn skip_space(&mut self) {
        self.cursor.skip_space(self.store.raw());
    }

    fn unexpected(&self, wanted: &str) -> Malformed {
        let offset = self.cursor.at - self.start;
        Malformed(match self.peek() {
            Some(byte) => format!(
                "expected {wanted} at byte {offset}, found `{}`",
                char::from(byte).escape_default()
            ),
            None => format!("expected {wanted} at byte {offset}, found the end of the body"),
        })
    }

    #[cold]
    fn wrong_token(&self, wrong: Unexpected) -> Malformed {
        self.unexpected(match wrong {
            Unexpected::Word => "`true`, `false` or `null`",
            Unexpected::StringRest => "the rest of a string",
            Unexpected::Escape => "an escape",
            Unexpected::HexDigits => "four hexadecimal digits",
            Unexpected::Digit => "a digit",
        })
    }

    fn value(&mut self, depth: usize) -> Result<Value, Malformed> {
        let Some(left) = self.values_left.checked_sub(1) else {
            return Err(self.store.full());
        };
        self.values_left = left;
        match self.peek() {
            Some(b'"') => Ok(Value::String(self.string()?.0)),
            Some(b'{') => self.object(depth),
            Some(b'[') => self.list(depth),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word(b"true", Value::Bool(true)),
            Some(b'f') => self.word(b"false", Value::Bool(false)),
            Some(b'n') => self.word(b"null", Value::Null),
            _ => Err(self.unexpected("a JSON value")),
        }
    }

    fn word(&mut self, word: &[u8], value: Value) -> Result<Value, Malformed> {
        let read = self.cursor.word(self.store.raw(), word);
        read.map_err(|wrong| self.wrong_token(wrong))?;
        Ok(value)
    }

    fn deeper(&self, depth: usize) -> Result<usize, Malformed> {
        if depth >= DEPTH_MAX {
            return Err(Malformed(format!(
                "lists and objects are nested deeper than {DEPTH_MAX}"
            )));
        }
        Ok(depth + 1)
    }

    fn list(&mut self, depth: usize) -> Result<Value, Malformed> {
        let depth = self.deeper(depth)?;
        let (open, _) = self.store.begin();
        self.cursor.at += 1;
        self.skip_space();
        if self.peek() == Some(b']') {
            self.cursor.at += 1;
            return Ok(self.store.close_list(open));
        }
        loop {
            let value = self.value(depth)?;
            self.store.push_item(value);
            self.skip_space();
            match self.peek() {
                Some(b',') => self.cursor.at += 1,
                Some(b']') => {
                    self.cursor.at += 1;
                    return Ok(self.store.close_list(open));
                }
                _ => return Err(self.unexpected("`,` or `]`")),
            }
            self.skip_space();
        }
    }

    fn object(&mut self, depth: usize) -> Result<Value, Malformed> {
        let depth = self.deeper(depth)?;
        let (_, open) = self.store.begin();
        self.cursor.at += 1;
        self.skip_space();
        if self.peek() == Some(b'}') {
            self.cursor.at += 1;
            return Ok(self.store.close_object(open));
        }
        loop {
            if self.peek() != Some(b'"') {
                return Err(self.unexpected("a key in quotes"));
            }
            let (mut key, escaped) = self.string()?;
            if escaped {
                key = self.unescape(key);
            }
            self.skip_space();
            if self.peek() != Some(b':') {
                return Err(self.unexpected("`:`"));
            }
            self.cursor.at += 1;
            self.skip_space();
            let value = self.value(depth)?;
            self.store.push_member(key, value);
            self.skip_space();
            match self.peek() {
                Some(b',') => self.cursor.at += 1,
                Some(b'}') => {
                    self.cursor.at += 1;
                    return Ok(self.store.close_object(open));
                }
                _ => return Err(self.unexpected("`,` or `}`")),
            }
            self.skip_space();
        }
    }

    /// Unescapes a key, because keys are compared with names. Such keys are rare.
    fn unescape(&mut self, key: Slice) -> Slice {
        let inside = std::str::from_utf8(self.store.text(key)).expect("the body is UTF-8");
        match json_text::unescape(inside) {
            Ok(text) => self.store.keep_text(text.as_bytes()),
            // No name contains half a surrogate pair. So the key cannot match a field anyway.
            Err(_) => key,
        }
    }

    /// The text between the quotes, and true if it contains escapes.
    fn string(&mut self) -> Result<(Slice, bool), Malformed> {
        let read = self.cursor.string(self.store.raw());
        let span = read.map_err(|wrong| self.wrong_token(wrong))?;
        Ok((slice(span.start, span.end - span.start), span.is_escaped))
    }

    fn number(&mut self) -> Result<Value, Malformed> {
        let start = self.cursor.at;
        let read = self.cursor.number(self.store.raw());
        read.map_err(|wrong| self.wrong_token(wrong))?;
        Ok(Value::Number(slice(start, self.cursor.at - start)))
    }
}

/// Appends `"key":`. The key comes from a body that is valid UTF-8.
pub(super) fn write_key(key: &[u8], out: &mut Vec<u8>) {
    json_text::write_utf8(key, out);
    out.push(b':');
}

#[cfg(test)]
mod tests;
