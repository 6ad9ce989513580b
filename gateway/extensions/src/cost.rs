//! The entries of demand control in the context, under the names of the original.

use gateway_config::CostValue;
use serde_json::Value;

use crate::context::Context;

/// The estimated cost, a number.
pub const ESTIMATED: &str = "apollo::demand_control::estimated_cost";
/// The actual cost of the response, a number.
pub const ACTUAL: &str = "apollo::demand_control::actual_cost";
/// The name of the strategy.
pub const STRATEGY: &str = "apollo::demand_control::strategy";
/// The result of the check, a code.
pub const RESULT: &str = "apollo::demand_control::result";

/// Upper bounds of the buckets of all histograms of costs.
pub const BUCKETS: [f64; 7] = [0.0, 10.0, 100.0, 1_000.0, 10_000.0, 100_000.0, 1_000_000.0];

/// Returns a value of demand control. `None` before it exists, and without demand control.
pub(crate) fn value(form: CostValue, context: &Context) -> Option<Value> {
    match form {
        CostValue::Estimated => context.get(ESTIMATED),
        CostValue::Actual => context.get(ACTUAL),
        CostValue::Result => context.get(RESULT),
        CostValue::Delta => {
            let number = |name| context.get(name)?.as_f64();
            Some((number(ESTIMATED)? - number(ACTUAL)?).into())
        }
    }
}
