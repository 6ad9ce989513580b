//! Requests that follow one another: the steps of a scenario, and what is kept of their answers.

use std::fmt;
use std::time::Duration;

/// What a scenario adds to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// How reports call it.
    pub name: String,
    /// Think time before it, from the moment the answer before it was complete, or for the first step
    /// from the moment the iteration was due. It is no part of the latency: the step is due when the
    /// think time is over.
    pub pause: Duration,
    /// What is kept of its answer, for the steps after it.
    pub captures: Vec<Capture>,
}

/// A value that is kept of an answer, for `{{name}}` in the steps after it.
///
/// An answer that passed all checks and does not hold it is mismatched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    /// What places call it. A later step may capture it anew.
    pub name: String,
    /// Where it stands.
    pub from: CaptureFrom,
    /// A regular expression for a part of it: its first group, or all that it matches where it has
    /// no group. Where it stands [in the body](CaptureFrom::Body), there is one.
    pub pattern: Option<String>,
}

/// Where a captured value stands in the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CaptureFrom {
    /// At a JSON pointer (RFC 6901) in the body. Texts lose their quotes; lists and objects are
    /// written as compact JSON; `null` counts as nothing.
    Json(String),
    /// In the first header of this name, in any case.
    Header(String),
    /// Anywhere in the body, as text, where the pattern finds it.
    Body,
}

/// As an error says it: ``in the header `Location` ``.
impl fmt::Display for CaptureFrom {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CaptureFrom::Json(pointer) => write!(out, "at `{pointer}` of the body"),
            CaptureFrom::Header(name) => write!(out, "in the header `{name}`"),
            CaptureFrom::Body => out.write_str("in the body"),
        }
    }
}
