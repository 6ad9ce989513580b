//! Steps of a scenario, which are requests that follow one another, and the captures from their responses.

use std::fmt;
use std::time::Duration;

/// Properties of a request that is a step of a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Name of the step in reports.
    pub name: String,
    /// Think time before the step. It starts when the previous response is complete, or for the first step
    /// when the iteration is due. The latency does not include it, because the step is due when the think
    /// time is over.
    pub pause: Duration,
    /// Values that are kept from the response for later steps.
    pub captures: Vec<Capture>,
}

/// A value from a response, for `{{name}}` in later steps.
///
/// A response that passed all checks but does not contain the value is mismatched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    /// Name of the value in later steps. A later step may capture it again.
    pub name: String,
    /// Location of the value in the response.
    pub from: CaptureFrom,
    /// A regular expression for a part of the value. Its first group counts, or the whole match if it has no
    /// group. It is always present for a value [in the body](CaptureFrom::Body).
    pub pattern: Option<String>,
}

/// Location of a captured value in the response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CaptureFrom {
    /// JSON pointer (RFC 6901) into the body. Strings lose their quotes. Lists and objects are written as
    /// compact JSON. `null` counts as a missing value.
    Json(String),
    /// The first header with this name, in any case.
    Header(String),
    /// Any place in the body, as text, at which the pattern matches.
    Body,
}

/// The location in the words of an error: ``in the header `Location` ``.
impl fmt::Display for CaptureFrom {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CaptureFrom::Json(pointer) => write!(out, "at `{pointer}` of the body"),
            CaptureFrom::Header(name) => write!(out, "in the header `{name}`"),
            CaptureFrom::Body => out.write_str("in the body"),
        }
    }
}
