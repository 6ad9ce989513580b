//! How much templates may make of what they see.
//!
//! A template is written by an operator and goes over what a client sends. A loop within a loop over
//! the same list makes the square of it, and so does a loop that puts one long text beside each item:
//! 2 MB would become a terabyte. So everything that grows with the values is counted before it is done.

use std::borrow::Cow;
use std::cell::Cell;

use crate::json::Json;
use crate::rendered::{RenderError, Value};

/// What a value counts besides its text, in bytes: less than the memory that it takes, because a
/// payload with many small values should not be refused for being copied once.
const VALUE: usize = 8;

/// The work that templates may do, which several of them can share.
///
/// It is counted in bytes that are made or looked at: a text counts its length, every value 8, and
/// every member that is passed over in search of another 1.
#[derive(Debug)]
pub struct Work {
    most: usize,
    left: Cell<usize>,
}

impl Work {
    /// As much as this, in bytes.
    #[must_use]
    pub const fn of(most: usize) -> Self {
        Self {
            most,
            left: Cell::new(most),
        }
    }

    /// Counts bytes that are made or looked at. Once it has failed it fails for more than nothing.
    pub(crate) fn spend(&self, bytes: usize) -> Result<(), RenderError> {
        let left = self.left.get().checked_sub(bytes);
        self.left.set(left.unwrap_or_default());
        match left {
            Some(_) => Ok(()),
            None => Err(RenderError::TooMuch(self.most)),
        }
    }

    /// Counts so many values without what is in them.
    pub(crate) fn spend_values(&self, count: usize) -> Result<(), RenderError> {
        self.spend(count.saturating_mul(VALUE))
    }

    /// Counts a value that is copied or gone through.
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

    /// A copy of the value.
    pub(crate) fn copy<'a>(&self, value: &Json<'a>) -> Result<Json<'a>, RenderError> {
        self.see(value)?;
        Ok(value.clone())
    }

    /// The value itself if it is owned, otherwise a copy.
    pub(crate) fn own<'a>(&self, value: Value<'a>) -> Result<Json<'a>, RenderError> {
        match value {
            Cow::Borrowed(value) => self.copy(value),
            Cow::Owned(value) => Ok(value),
        }
    }
}
