//! Order of the variants within a round.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a round measures its variants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// All variants are up at once, and every due time of the plan is one request to each of them.
    #[default]
    SideBySide,
    /// One variant after the other: each starts, is measured and stops before the next one starts.
    InTurn,
}

impl Order {
    /// The word for it in lab files and on the command line.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Order::SideBySide => "side-by-side",
            Order::InTurn => "in-turn",
        }
    }
}
