//! Checks that all readers understand a JSON text equally.
//!
//! If one program checks a text and another executes it, the text must have one meaning. JSON does not define
//! the meaning of a duplicate key. Most readers keep the last value, some the first. Some readers refuse
//! texts that other readers accept: deep nesting, half a surrogate pair, a number beyond all floats. A reader
//! that refuses the text may then treat it as empty.
//!
//! The check takes one pass, no tree, and no allocation for objects of usual size. Escapes inside string
//! values are mostly skipped, so that a long query costs little. The next reader checks these escapes.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;

use crate::cursor::{Cursor, StringSpan};
use crate::string::{check_surrogates, unescape};

/// Maximum nesting of lists and objects. Common readers stop at 128 levels, and a text is often embedded into
/// another text before they read it.
pub const DEPTH_MAX: usize = 100;

/// Up to this number, an object's keys are compared one by one. Larger objects get a set.
const FEW: usize = 8;

/// The reason why two readers may understand a text differently.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Ambiguity {
    /// An object contains a key twice.
    #[error("the key `{key}` is given twice in one object, at byte {at}; give it once")]
    GivenTwice {
        /// The duplicate key, shortened.
        key: String,
        /// Position of the second occurrence.
        at: usize,
    },
    /// Lists and objects are nested too deeply.
    #[error("lists and objects are nested deeper than {DEPTH_MAX} levels, at byte {at}")]
    TooDeep {
        /// Position of the first list or object beyond the limit.
        at: usize,
    },
    /// A string has half a surrogate pair.
    #[error("a string has half a surrogate pair, at byte {at}; send both halves or the character")]
    LoneSurrogate {
        /// Position of the half.
        at: usize,
    },
    /// A number is larger than any 64-bit float.
    #[error("a number is larger than any 64-bit float, at byte {at}; send it as a string")]
    TooLarge {
        /// Position of the number.
        at: usize,
    },
    /// The text is not JSON.
    #[error("it is not JSON at byte {at}")]
    NotJson {
        /// Position of the mistake.
        at: usize,
    },
}

/// Checks that all readers that accept a text as JSON understand it equally. Keys are compared without their
/// escapes.
///
/// # Errors
/// The first ambiguous place.
pub fn check_unambiguous(json: &str) -> Result<(), Ambiguity> {
    check_unambiguous_part(json, 0)
}

/// Like [`check_unambiguous`], for a value that will be embedded below `depth` lists and objects.
///
/// # Errors
/// The first ambiguous place.
pub fn check_unambiguous_part(json: &str, depth: usize) -> Result<(), Ambiguity> {
    let mut walk = Walk::new(json);
    walk.skip_space();
    walk.value(depth)?;
    walk.end()
}

/// Like [`check_unambiguous`], for an object. `take` receives its members, so that no second pass is needed
/// to find them.
///
/// # Errors
/// The first ambiguous place. Also fails if the text is not an object.
pub fn check_members<'a>(json: &'a str, mut take: impl FnMut(Member<'a>)) -> Result<(), Ambiguity> {
    let mut walk = Walk::new(json);
    walk.skip_space();
    if walk.peek() != Some(b'{') {
        return Err(walk.not_json());
    }
    walk.object(0, Some(&mut take))?;
    walk.end()
}

/// A member of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member<'a> {
    /// The key, without escapes.
    pub key: Cow<'a, str>,
    /// Place of the value.
    pub value: MemberValue,
}

/// The place of a member's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemberValue {
    /// A string. All of it is checked.
    String(StringSpan),
    /// Another value. Its strings are checked like in [`check_unambiguous`].
    Other(Range<usize>),
}

struct Walk<'a> {
    json: &'a str,
    cursor: Cursor,
}

type Take<'t, 'a> = &'t mut dyn FnMut(Member<'a>);

impl<'a> Walk<'a> {
    fn new(json: &'a str) -> Self {
        let cursor = Cursor::new(0, json.len());
        Self { json, cursor }
    }

    fn end(&mut self) -> Result<(), Ambiguity> {
        self.skip_space();
        if self.cursor.is_at_end() {
            Ok(())
        } else {
            Err(self.not_json())
        }
    }

    fn peek(&self) -> Option<u8> {
        self.cursor.peek(self.json.as_bytes())
    }

    fn skip_space(&mut self) {
        self.cursor.skip_space(self.json.as_bytes());
    }

    #[cold]
    const fn not_json(&self) -> Ambiguity {
        let at = self.cursor.at;
        Ambiguity::NotJson { at }
    }

    fn value(&mut self, depth: usize) -> Result<(), Ambiguity> {
        match self.peek() {
            Some(b'"') => self.text(),
            Some(b'{') => self.object(depth, None),
            Some(b'[') => self.list(depth),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word(b"true"),
            Some(b'f') => self.word(b"false"),
            Some(b'n') => self.word(b"null"),
            _ => Err(self.not_json()),
        }
    }

    fn word(&mut self, word: &[u8]) -> Result<(), Ambiguity> {
        let read = self.cursor.word(self.json.as_bytes(), word);
        read.map_err(|_| self.not_json())
    }

    /// Moves over a string value.
    fn text(&mut self) -> Result<(), Ambiguity> {
        let bytes = self.json.as_bytes();
        let start = self.cursor.at + 1;
        let mut end = start;
        // From quote to quote, because an indented query has an escape in each line but few quotes.
        loop {
            let Some(length) = memchr::memchr(b'"', &bytes[end..]) else {
                return Err(self.not_json());
            };
            end += length;
            let before = bytes[start..end].iter().rev();
            let backslashes = before.take_while(|byte| **byte == b'\\').count();
            if backslashes % 2 == 0 {
                break;
            }
            end += 1;
        }
        let inside = &bytes[start..end];
        // The first search is cheaper, and most strings have no escape.
        let has_numbers = memchr::memchr(b'\\', inside).is_some()
            && memchr::memmem::find(inside, br"\u").is_some();
        if has_numbers {
            return self.string().map(drop);
        }
        self.cursor.at = end + 1;
        Ok(())
    }

    /// Moves over a string and checks all of it.
    fn string(&mut self) -> Result<StringSpan, Ambiguity> {
        let read = self.cursor.string(self.json.as_bytes());
        let span = read.map_err(|_| self.not_json())?;
        if span.is_escaped {
            check_surrogates(&self.json[span.start..span.end]).map_err(|lone| {
                let at = span.start + lone.at;
                Ambiguity::LoneSurrogate { at }
            })?;
        }
        Ok(span)
    }

    fn number(&mut self) -> Result<(), Ambiguity> {
        /// A number with fewer digits and without an exponent is below 10^308.
        const DIGITS_MAX: usize = 300;
        let at = self.cursor.at;
        let read = self.cursor.number(self.json.as_bytes());
        read.map_err(|_| self.not_json())?;
        let text = &self.json[at..self.cursor.at];
        let may_be_large = text.len() > DIGITS_MAX || text.contains(['e', 'E']);
        if may_be_large && !text.parse::<f64>().is_ok_and(f64::is_finite) {
            return Err(Ambiguity::TooLarge { at });
        }
        Ok(())
    }

    /// Moves over the opening bracket of a list or an object.
    fn open(&mut self, depth: usize) -> Result<usize, Ambiguity> {
        if depth >= DEPTH_MAX {
            let at = self.cursor.at;
            return Err(Ambiguity::TooDeep { at });
        }
        self.cursor.at += 1;
        self.skip_space();
        Ok(depth + 1)
    }

    /// Moves over a comma and returns true, or over the closing bracket and returns false.
    fn goes_on(&mut self, close: u8) -> Result<bool, Ambiguity> {
        self.skip_space();
        let next = self.peek();
        if next != Some(b',') && next != Some(close) {
            return Err(self.not_json());
        }
        self.cursor.at += 1;
        self.skip_space();
        Ok(next == Some(b','))
    }

    fn list(&mut self, depth: usize) -> Result<(), Ambiguity> {
        let depth = self.open(depth)?;
        if self.peek() == Some(b']') {
            self.cursor.at += 1;
            return Ok(());
        }
        loop {
            self.value(depth)?;
            if !self.goes_on(b']')? {
                return Ok(());
            }
        }
    }

    fn object(&mut self, depth: usize, mut take: Option<Take<'_, 'a>>) -> Result<(), Ambiguity> {
        let depth = self.open(depth)?;
        if self.peek() == Some(b'}') {
            self.cursor.at += 1;
            return Ok(());
        }
        let mut keys = Keys::default();
        loop {
            let at = self.cursor.at;
            let key = self.key()?;
            if let Some(key) = keys.add(key.clone()) {
                return Err(given_twice(&key, at));
            }
            self.skip_space();
            if self.peek() != Some(b':') {
                return Err(self.not_json());
            }
            self.cursor.at += 1;
            self.skip_space();
            match &mut take {
                None => self.value(depth)?,
                Some(take) => {
                    let value = self.member_value(depth)?;
                    take(Member { key, value });
                }
            }
            if !self.goes_on(b'}')? {
                return Ok(());
            }
        }
    }

    fn member_value(&mut self, depth: usize) -> Result<MemberValue, Ambiguity> {
        if self.peek() == Some(b'"') {
            return self.string().map(MemberValue::String);
        }
        let start = self.cursor.at;
        self.value(depth)?;
        // The cursor is after the white space that follows the value.
        let length = self.json[start..self.cursor.at].trim_ascii_end().len();
        Ok(MemberValue::Other(start..start + length))
    }

    fn key(&mut self) -> Result<Cow<'a, str>, Ambiguity> {
        if self.peek() != Some(b'"') {
            return Err(self.not_json());
        }
        let span = self.string()?;
        let inside = &self.json[span.start..span.end];
        if !span.is_escaped {
            return Ok(Cow::Borrowed(inside));
        }
        let text = unescape(inside).expect("`string` has checked its surrogate pairs");
        Ok(Cow::Owned(text))
    }
}

#[cold]
fn given_twice(key: &str, at: usize) -> Ambiguity {
    /// Maximum length of a key in an error.
    const SHOWN_MAX: usize = 60;
    let mut shown: String = key.chars().take(SHOWN_MAX).collect();
    if shown.len() < key.len() {
        shown.push('…');
    }
    Ambiguity::GivenTwice { key: shown, at }
}

/// The keys of one object up to the current place.
#[derive(Default)]
struct Keys<'a> {
    few: [&'a str; FEW],
    count: usize,
    /// All keys, once there are many or one has escapes. The hashes have a random seed, so that no client can
    /// choose colliding keys.
    many: Option<HashSet<Cow<'a, str>>>,
}

impl<'a> Keys<'a> {
    /// Adds a key. Returns the key if it already exists.
    fn add(&mut self, key: Cow<'a, str>) -> Option<Cow<'a, str>> {
        let Self { few, count, many } = self;
        let known = &few[..*count];
        if many.is_none()
            && let Cow::Borrowed(text) = key
            && *count < FEW
        {
            if known.contains(&text) {
                return Some(key);
            }
            few[*count] = text;
            *count += 1;
            return None;
        }
        let many = many.get_or_insert_with(|| known.iter().copied().map(Cow::Borrowed).collect());
        many.replace(key)
    }
}

#[cfg(test)]
mod tests;
