//! Limits the output of templates in relation to their input.
//!
//! An operator writes a template, and clients send its input. A loop inside a loop over the same list
//! produces its square. A loop that repeats a long text for each item grows in a similar way: 2 MB would
//! become a terabyte. So all work that grows with the values is counted before it is done.

use std::borrow::Cow;
use std::cell::Cell;

use crate::json::Json;
use crate::rendered::{RenderError, Value};

/// Bytes that a value counts in addition to its text. It takes more memory, but a payload with many small
/// values should not be refused for a single copy.
const VALUE: usize = 8;

/// A work limit for templates. Several templates can share one.
///
/// The unit is bytes that are made or read. A string counts its length, and every value 8. A member that a
/// search passes counts 1.
#[derive(Debug)]
pub struct Work {
    most: usize,
    left: Cell<usize>,
}

impl Work {
    /// Creates a limit of `most` bytes.
    #[must_use]
    pub const fn of(most: usize) -> Self {
        Self {
            most,
            left: Cell::new(most),
        }
    }

    /// Counts bytes that are made or read. After a failure, it fails for every number above zero.
    pub(crate) fn spend(&self, bytes: usize) -> Result<(), RenderError> {
        let left = self.left.get().checked_sub(bytes);
        self.left.set(left.unwrap_or_default());
        match left {
            Some(_) => Ok(()),
            None => Err(RenderError::TooMuch(self.most)),
        }
    }

    /// Counts `count` values without their content.
    pub(crate) fn spend_values(&self, count: usize) -> Result<(), RenderError> {
        self.spend(count.saturating_mul(VALUE))
    }

    /// Counts a value with its content, before it is copied or read.
    pub(crate) fn see(&self, value: &Json<'_>) -> Result<(), RenderError> {
        self.spend(VALUE)?;
        match value {
            Json::Null | Json::Bool(_) => Ok(()),
            Json::Number(text) | Json::Text(text) => self.spend(text.len()),
            Json::List(items) => items.iter().try_for_each(|item| self.see(item)),
            Json::Object(members) => members.iter().try_for_each(|(key, value)| {
                self.spend(key.len())?;
                self.see(value)
            }),
        }
    }

    /// Copies a value and counts the copy.
    pub(crate) fn copy<'a>(&self, value: &Json<'a>) -> Result<Json<'a>, RenderError> {
        self.see(value)?;
        Ok(value.clone())
    }

    /// Returns an owned value unchanged. Copies and counts a borrowed value.
    pub(crate) fn own<'a>(&self, value: Value<'a>) -> Result<Json<'a>, RenderError> {
        match value {
            Cow::Borrowed(value) => self.copy(value),
            Cow::Owned(value) => Ok(value),
        }
    }
}
