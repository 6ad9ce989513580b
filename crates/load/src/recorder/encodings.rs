//! Counts of responses by their `Content-Encoding`.

use std::borrow::Cow;
use std::collections::BTreeMap;

/// The name for all content codings without their own count.
const OTHER: &str = "other";

/// The largest number of names with their own count. A server may choose another name for each response.
const NAMES_MAX: usize = 16;

/// The longest name with its own count, in bytes.
const NAME_BYTES_MAX: usize = 40;

/// A `Content-Encoding` in lower case, or `identity`.
pub(crate) type Encoding = Cow<'static, str>;

/// Counts of complete responses by content coding.
#[derive(Debug, Default)]
pub(crate) struct Encodings(Vec<(Encoding, u64)>);

impl Encodings {
    /// Counts one response by its content coding.
    #[inline]
    pub(crate) fn count(&mut self, encoding: &Encoding) {
        self.add(encoding, 1);
    }

    fn add(&mut self, encoding: &Encoding, responses: u64) {
        if let Some((_, count)) = self.0.iter_mut().find(|(known, _)| known == encoding) {
            *count += responses;
        } else if self.0.len() < NAMES_MAX && encoding.len() <= NAME_BYTES_MAX {
            self.0.push((encoding.clone(), responses));
        } else {
            self.add_other(responses);
        }
    }

    /// The list has one entry more than [`NAMES_MAX`], for all other names.
    fn add_other(&mut self, responses: u64) {
        match self.0.iter_mut().find(|(known, _)| known == OTHER) {
            Some((_, count)) => *count += responses,
            None => self.0.push((Cow::Borrowed(OTHER), responses)),
        }
    }

    /// Adds the counts of another thread.
    pub(crate) fn absorb(&mut self, other: &Encodings) {
        for (encoding, responses) in &other.0 {
            self.add(encoding, *responses);
        }
    }

    /// Returns the counts by name.
    pub(crate) fn into_counts(self) -> BTreeMap<String, u64> {
        let counts = self.0.into_iter();
        counts
            .map(|(name, count)| (name.into_owned(), count))
            .collect()
    }
}
