//! Places of a request's entries in its body, found by the check of the body.

use std::borrow::Cow;
use std::ops::Range;

use json_text::{Member, MemberValue, StringSpan};
use serde::Deserialize;

use super::{DecodeError, Incomplete, from_checked_body_or_hash};

/// Places of the entries of one body.
///
/// A body is read twice: for the check and for the execution. The results of the first pass save most of the
/// work of the second, and the code of another reader.
#[derive(Clone, Debug, Default)]
pub struct Entries {
    query: Option<StringSpan>,
    operation_name: Option<StringSpan>,
    variables: Option<Range<usize>>,
    extensions: Option<Range<usize>>,
    /// True if serde must read the body, because it is invalid or has a rare form.
    is_unusual: bool,
}

impl Entries {
    /// The entries of a body that serde must read.
    pub(super) fn unusual() -> Self {
        Self {
            is_unusual: true,
            ..Self::default()
        }
    }

    pub(super) fn add(&mut self, body: &str, Member { key, value }: Member<'_>) {
        let is_null = |range: &Range<usize>| &body[range.clone()] == "null";
        match (&*key, value) {
            ("query", MemberValue::String(span)) => self.query = Some(span),
            ("operationName", MemberValue::String(span)) => self.operation_name = Some(span),
            ("query" | "operationName" | "variables" | "extensions", MemberValue::Other(range))
                if is_null(&range) => {}
            ("variables", MemberValue::Other(range)) => self.variables = Some(range),
            ("extensions", MemberValue::Other(range)) => self.extensions = Some(range),
            // An unknown key must be checked completely, or a known key has the wrong type.
            _ => self.is_unusual = true,
        }
    }

    /// Reads the checked body.
    ///
    /// # Errors
    /// Fails if the body is not a JSON object, or if an entry has the wrong type.
    pub fn read<'a, V, E>(&self, body: &'a [u8]) -> Result<Incomplete<'a, V, E>, DecodeError>
    where
        V: Deserialize<'a>,
        E: Deserialize<'a>,
    {
        // If an entry cannot be read here, serde reports the reason.
        match self.find(body) {
            Some(found) => Ok(found),
            None => from_checked_body_or_hash(body),
        }
    }

    pub(super) fn find<'a, V, E>(&self, body: &'a [u8]) -> Option<Incomplete<'a, V, E>>
    where
        V: Deserialize<'a>,
        E: Deserialize<'a>,
    {
        if self.is_unusual {
            return None;
        }
        Some(Incomplete {
            query: entry(&self.query, |span| text(body, span))?,
            operation_name: entry(&self.operation_name, |span| text(body, span))?,
            variables: entry(&self.variables, |range| object(body, range))?,
            extensions: entry(&self.extensions, |range| object(body, range))?,
        })
    }
}

/// An optional entry. `None` if the entry exists and cannot be read.
fn entry<P, T>(place: &Option<P>, read: impl FnOnce(&P) -> Option<T>) -> Option<Option<T>> {
    match place {
        Some(place) => read(place).map(Some),
        None => Some(None),
    }
}

fn text<'a>(body: &'a [u8], span: &StringSpan) -> Option<Cow<'a, str>> {
    let inside = std::str::from_utf8(body.get(span.start..span.end)?).ok()?;
    if span.is_escaped {
        Some(Cow::Owned(json_text::unescape(inside).ok()?))
    } else {
        Some(Cow::Borrowed(inside))
    }
}

fn object<'a, T: Deserialize<'a>>(body: &'a [u8], range: &Range<usize>) -> Option<T> {
    serde_json::from_slice(body.get(range.clone())?).ok()
}
