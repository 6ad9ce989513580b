//! The result of rendering: a value or an error.

use std::borrow::Cow;

use crate::json::Json;

/// Reason why a template has no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RenderError {
    /// A value is missing, or an operation does not apply to it.
    #[error("{0}")]
    Wrong(String),
    /// The work limit ([`crate::Work`]) of this many bytes would be exceeded.
    #[error("templates may make {0} bytes of the values that they see, and would make more")]
    TooMuch(usize),
}

pub(crate) type Value<'a> = Cow<'a, Json<'a>>;
pub(crate) type Rendered<'a> = Result<Value<'a>, RenderError>;

pub(crate) fn wrong<T>(message: impl Into<String>) -> Result<T, RenderError> {
    Err(RenderError::Wrong(message.into()))
}

/// Reads a boolean. `what` describes the value in the error.
pub(crate) fn truth(value: &Json<'_>, what: &str) -> Result<bool, RenderError> {
    match value {
        Json::Bool(flag) => Ok(*flag),
        other => wrong(format!("{what} must be a boolean, found {}", other.kind())),
    }
}
