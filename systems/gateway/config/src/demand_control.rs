//! `demand_control`: limits on the estimated cost of an operation for its subgraphs.

use schemars::JsonSchema;
use serde::Deserialize;

/// What an operation is estimated to cost its subgraphs, before it is carried out.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DemandControl {
    /// Whether costs are estimated.
    pub enabled: bool,
    /// What happens to an operation that costs too much.
    pub mode: DemandMode,
    /// How costs are estimated. Needed when `enabled`.
    pub strategy: Option<DemandStrategy>,
}

/// What happens to an operation that costs too much.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DemandMode {
    /// It is counted.
    #[default]
    Measure,
    /// It is refused with `COST_ESTIMATED_TOO_EXPENSIVE`.
    Enforce,
}

/// How costs are estimated.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DemandStrategy {
    /// By the text of the operation, its variables, and the directives of the supergraph.
    pub static_estimated: StaticEstimated,
}

/// By the text of an operation alone: 1 for an object, 0 for a leaf, 10 for a mutation, lists by
/// their expected size; `@cost` and `@listSize` of the supergraph say more.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StaticEstimated {
    /// The size of lists about which the supergraph says nothing.
    pub list_size: u32,
    /// The highest estimate that is carried out.
    #[schemars(range(min = 0.0))]
    pub max: f64,
}
