//! Parts of several keys, as they are written.

use schemars::JsonSchema;
use serde::Deserialize;
use yaml_with_places::At;

use crate::fields::Table;
use crate::formats::{HeaderName, HeaderValue, Verbatim};

/// Headers by name.
pub(crate) type Headers = Table<HeaderName, At<Verbatim<HeaderValue>>>;

/// A choice between on and off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub(crate) enum Switch {
    On,
    Off,
}
