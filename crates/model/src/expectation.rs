//! What a right answer looks like.

use std::fmt;
use std::sync::Arc;

/// What every answer is checked against. The first rule that fails, in the order of the fields,
/// names the mismatch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expectation {
    /// The status line.
    pub status: StatusRule,
    /// The body is a JSON object without a top-level `errors` member (`null` and `[]` count as
    /// none).
    pub graphql: bool,
    /// The body.
    pub body: BodyRule,
    /// Headers that must be there with exactly this value; names in any case.
    pub headers: Vec<(String, String)>,
}

/// Which status is right.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StatusRule {
    /// 200 to 299.
    #[default]
    Success,
    /// This one, 100 to 599.
    Exactly(u16),
    /// All are.
    Any,
}

impl StatusRule {
    /// Statuses by which a server asks for less load: 429 (RFC 6585, section 4) and 503 (RFC 9110,
    /// section 15.6.4).
    pub const PUSHED_BACK: [u16; 2] = [429, 503];
}

/// Which body is right.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum BodyRule {
    /// All are.
    #[default]
    Any,
    /// The same bytes as these.
    Equals(Arc<[u8]>),
    /// The same bytes as these, or the same JSON value but for what is ignored.
    Alike {
        /// A right body.
        body: Arc<[u8]>,
        /// JSON pointers (RFC 6901) to what differs by nature; it may also be missing.
        ignore: Vec<String>,
    },
}

impl fmt::Display for StatusRule {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StatusRule::Success => out.write_str("2xx"),
            StatusRule::Exactly(status) => write!(out, "{status}"),
            StatusRule::Any => out.write_str("any"),
        }
    }
}

impl BodyRule {
    /// The rule for a known body, and for what in it differs by nature.
    #[must_use]
    pub fn known(body: &[u8], ignore: &[String]) -> BodyRule {
        let body = Arc::from(body);
        if ignore.is_empty() {
            BodyRule::Equals(body)
        } else {
            let ignore = ignore.to_vec();
            BodyRule::Alike { body, ignore }
        }
    }
}
