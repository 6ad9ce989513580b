//! The formats of trace ids.

use schemars::JsonSchema;
use serde::Deserialize;

/// The format of a trace id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TraceIdFormat {
    /// The id as 32 hexadecimal digits.
    #[default]
    Hexadecimal,
    /// The id as 32 hexadecimal digits, like `hexadecimal`.
    OpenTelemetry,
    /// The whole id in decimal digits.
    Decimal,
    /// The lower 64 bits of the id in decimal digits.
    Datadog,
    /// The id with hyphens, as a UUID.
    Uuid,
}
