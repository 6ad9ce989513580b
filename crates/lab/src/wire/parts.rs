//! Parts of several keys, as they are written.

use model::Resumption;
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

/// Use of tickets of earlier connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub(crate) enum ResumptionEntry {
    Off,
    On,
    #[serde(rename = "0-rtt")]
    EarlyData,
}

impl ResumptionEntry {
    pub(crate) fn meaning(self) -> Resumption {
        match self {
            ResumptionEntry::Off => Resumption::Off,
            ResumptionEntry::On => Resumption::On,
            ResumptionEntry::EarlyData => Resumption::EarlyData,
        }
    }
}
