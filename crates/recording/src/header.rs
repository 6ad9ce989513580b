//! Record of HTTP headers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A header of a request or a response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Header {
    /// The name of the header, as written.
    pub name: String,
    /// The value. Values of credentials are hidden.
    pub value: String,
}
