//! Reads JSON into a [`Store`], in one pass and without unescaping.
//!
//! Strings are scanned eight bytes at a time; what lies between the quotes stays where it
//! is. Depth is bounded, so that no answer can exhaust the stack.

use crate::store::{Malformed, Slice, Store, Value, slice};

/// Deepest nesting of lists and objects that is read.
const DEPTH_MAX: usize = 256;

/// Reads the value that the store's text holds from `start` to `end`.
pub(crate) fn parse(store: &mut Store, start: usize, end: usize) -> Result<Value, Malformed> {
    let mut reader = Reader {
        store,
        at: start,
        start,
        end,
    };
    reader.skip_space();
    let value = reader.value(0)?;
    reader.skip_space();
    if reader.at < reader.end {
        return Err(reader.unexpected("the end of the body"));
    }
    Ok(value)
}

struct Reader<'a> {
    store: &'a mut Store,
    at: usize,
    start: usize,
    end: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        if self.at < self.end {
            self.store.raw().get(self.at).copied()
        } else {
            None
        }
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    fn unexpected(&self, wanted: &str) -> Malformed {
        let offset = self.at - self.start;
        Malformed(match self.peek() {
            Some(byte) => format!(
                "expected {wanted} at byte {offset}, found `{}`",
                char::from(byte).escape_default()
            ),
            None => format!("expected {wanted} at byte {offset}, found the end of the body"),
        })
    }

    fn value(&mut self, depth: usize) -> Result<Value, Malformed> {
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
        let end = (self.at + word.len()).min(self.end);
        if self.store.raw().get(self.at..end) != Some(word) {
            return Err(self.unexpected("`true`, `false` or `null`"));
        }
        self.at = end;
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
        self.at += 1;
        self.skip_space();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(self.store.close_list(open));
        }
        loop {
            let value = self.value(depth)?;
            self.store.push_item(value);
            self.skip_space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => {
                    self.at += 1;
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
        self.at += 1;
        self.skip_space();
        if self.peek() == Some(b'}') {
            self.at += 1;
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
            self.at += 1;
            self.skip_space();
            let value = self.value(depth)?;
            self.store.push_member(key, value);
            self.skip_space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return Ok(self.store.close_object(open));
                }
                _ => return Err(self.unexpected("`,` or `}`")),
            }
            self.skip_space();
        }
    }

    /// Keys are compared with names, so they are kept unescaped; rare.
    fn unescape(&mut self, key: Slice) -> Slice {
        let mut quoted = vec![b'"'];
        quoted.extend_from_slice(self.store.text(key));
        quoted.push(b'"');
        // A lone surrogate is the one thing `string` lets pass and `serde_json` does not.
        match serde_json::from_slice::<String>(&quoted) {
            Ok(text) => self.store.keep_text(text.as_bytes()),
            Err(_) => key,
        }
    }

    /// The text between the quotes, and whether it has escapes.
    fn string(&mut self) -> Result<(Slice, bool), Malformed> {
        self.at += 1;
        let start = self.at;
        let mut escaped = false;
        loop {
            self.at = plain_run(self.store.raw(), self.at, self.end);
            match self.peek() {
                Some(b'"') => {
                    let text = slice(start, self.at - start);
                    self.at += 1;
                    return Ok((text, escaped));
                }
                Some(b'\\') => {
                    escaped = true;
                    self.escape()?;
                }
                _ => return Err(self.unexpected("the rest of a string")),
            }
        }
    }

    fn escape(&mut self) -> Result<(), Malformed> {
        self.at += 1;
        match self.peek() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 1,
            Some(b'u') => {
                self.at += 1;
                for _ in 0..4 {
                    if !self.peek().is_some_and(|byte| byte.is_ascii_hexdigit()) {
                        return Err(self.unexpected("four hexadecimal digits"));
                    }
                    self.at += 1;
                }
            }
            _ => return Err(self.unexpected("an escape")),
        }
        Ok(())
    }

    fn digits(&mut self) -> Result<(), Malformed> {
        let first = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        if self.at == first {
            return Err(self.unexpected("a digit"));
        }
        Ok(())
    }

    fn number(&mut self) -> Result<Value, Malformed> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(Value::Number(slice(start, self.at - start)))
    }
}

/// Where the run of ordinary characters that begins at `at` ends: at a quote, a backslash,
/// a control character or `end`.
fn plain_run(text: &[u8], mut at: usize, end: usize) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = 0x8080_8080_8080_8080;
    while let Some(Ok(eight)) = text
        .get(at..at + 8)
        .filter(|_| at + 8 <= end)
        .map(<[u8; 8]>::try_from)
    {
        let word = u64::from_le_bytes(eight);
        // A byte's high bit is set where it equals the sought one. A borrow may also set
        // the bit of a later byte, never of an earlier one, so the lowest bit is right.
        let quote = word ^ (ONES * 0x22);
        let slash = word ^ (ONES * 0x5c);
        let found = (quote.wrapping_sub(ONES) & !quote)
            | (slash.wrapping_sub(ONES) & !slash)
            | (word.wrapping_sub(ONES * 0x20) & !word);
        let found = found & HIGHS;
        if found != 0 {
            return at + (found.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    while at < end
        && text
            .get(at)
            .is_some_and(|byte| !matches!(byte, b'"' | b'\\' | 0..0x20))
    {
        at += 1;
    }
    at
}

/// Appends `"key":`, escaping the rare key that needs it.
pub(crate) fn write_key(key: &[u8], out: &mut Vec<u8>) {
    if plain_run(key, 0, key.len()) == key.len() {
        out.push(b'"');
        out.extend_from_slice(key);
        out.push(b'"');
    } else {
        crate::error::write_json_string(&String::from_utf8_lossy(key), out);
    }
    out.push(b':');
}

#[cfg(test)]
mod tests;
