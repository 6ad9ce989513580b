//! Order of the variants within a round.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The order of the variants within a round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// All variants run at once. Each due time of the plan is one request to each variant.
    #[default]
    SideBySide,
    /// The variants run one after the other. Each variant starts, is measured and stops before the next
    /// starts.
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
