//! A histogram as it stands in a recording.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// A lossless histogram of durations in nanoseconds, as text: HdrHistogram V2, deflated, base64.
///
/// Other tools (HistogramLogProcessor, hdr-plot, the HdrHistogram libraries) read the same text.
/// It stays text in memory, since a recording may hold thousands of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Hdr(String);

/// The text is not a histogram.
#[derive(Debug, thiserror::Error)]
#[error("expected a histogram (HdrHistogram V2, deflated, base64), found something else: {0}")]
pub struct HdrError(String);

impl Hdr {
    /// The text itself.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Hdr {
    type Error = HdrError;

    fn try_from(text: String) -> Result<Self, HdrError> {
        if text.is_empty() {
            return Err(HdrError("empty text".to_owned()));
        }
        Ok(Self(text))
    }
}

impl From<Hdr> for String {
    fn from(hdr: Hdr) -> Self {
        hdr.0
    }
}

impl JsonSchema for Hdr {
    fn schema_name() -> Cow<'static, str> {
        "Hdr".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "A lossless histogram of durations in nanoseconds: HdrHistogram V2, deflated, base64.",
            "contentEncoding": "base64",
            "minLength": 1
        })
    }
}
