//! `demand_control`: limits on the estimated cost of an operation for its subgraphs.

use schemars::JsonSchema;
use serde::Deserialize;

/// The cost of an operation for its subgraphs, estimated before execution.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DemandControl {
    /// True if the gateway estimates costs.
    pub enabled: bool,
    /// The treatment of operations above the limit.
    pub mode: DemandMode,
    /// The method of the estimate. Required if `enabled` is true.
    pub strategy: Option<DemandStrategy>,
}

/// The treatment of operations above the limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DemandMode {
    /// The gateway counts the operation and executes it.
    #[default]
    Measure,
    /// The gateway refuses the operation with `COST_ESTIMATED_TOO_EXPENSIVE`.
    Enforce,
}

/// The method of the estimate.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DemandStrategy {
    /// An estimate from the operation's text, its variables, and the directives of the supergraph.
    pub static_estimated: StaticEstimated,
}

/// An estimate from an operation and its variables. An object costs 1, a leaf 0, and a mutation 10 more. A
/// list costs its expected size times the cost of an item. `@cost` and `@listSize` of the supergraph change
/// these values.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StaticEstimated {
    /// The expected size of lists without `@listSize`.
    pub list_size: u32,
    /// Maximum estimate of an operation that the gateway executes.
    #[schemars(range(min = 0.0))]
    pub max: f64,
}
