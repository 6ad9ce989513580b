//! The headers that a rule applies to.

use http::HeaderName;
use regex::Regex;

use crate::written::Written;

/// The headers that a rule applies to.
#[derive(Clone, Debug)]
pub enum HeaderSelection {
    /// The header with this name.
    Named(HeaderName),
    /// All headers with matching lower-case names. Reserved headers are excluded.
    Matching(Regex),
}

impl HeaderSelection {
    /// Reads the keys `named` and `matching`.
    pub(crate) fn from_keys(
        named: Option<Written<HeaderName>>,
        matching: Option<Written<Regex>>,
    ) -> Result<Self, &'static str> {
        match (named, matching) {
            (Some(named), None) => Ok(Self::Named(named.0)),
            (None, Some(matching)) => Ok(Self::Matching(matching.0)),
            _ => Err("expected exactly one of `named` and `matching`"),
        }
    }
}
