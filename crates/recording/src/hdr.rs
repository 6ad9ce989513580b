//! Text form of a histogram in a recording.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use stats::{DecodeError, Histogram};

/// A lossless histogram of durations in nanoseconds, as text: HdrHistogram V2, deflated, base64.
///
/// Other tools (HistogramLogProcessor, hdr-plot, the HdrHistogram libraries) read the same text.
/// It stays text in memory, since a recording may hold thousands of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Hdr(String);

impl Hdr {
    /// Encodes a histogram as text.
    pub fn of(histogram: &Histogram) -> Self {
        Self(histogram.encode())
    }

    /// Decodes the text to a histogram.
    pub fn histogram(&self) -> Histogram {
        Histogram::decode(&self.0).expect("an `Hdr` is made of a histogram or decoded once before")
    }

    /// The histogram as encoded text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Hdr {
    type Error = DecodeError;

    fn try_from(text: String) -> Result<Self, DecodeError> {
        // The text is decoded once to check it, so that every later use may rely on it. The histogram would
        // take 270 KiB.
        Histogram::decode(&text)?;
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
