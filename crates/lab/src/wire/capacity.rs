//! The search for the highest rate, as it is written.

use schemars::JsonSchema;
use serde::Deserialize;

use super::default;
use yaml_with_places::At;

use crate::formats::Written;
use crate::quantities::{LongerThanZero, PositiveRate};

/// The rates to try, and the conditions of a sustained rate. 99 % of the latencies, which count from
/// the planned time, must stay below a limit. Every request must receive the expected answer.
///
/// A round begins at `from` and goes up in strides that double. Then it narrows down between the
/// highest rate that was sustained and the lowest rate that was not. Each rate lasts for `duration`.
/// `weigh` tries a failed rate again until it has failed three times, so hiccups of the machine do not
/// end the search. A failure does not count if other guests of the host had more than a hundredth of
/// the processor time. At most three such failures at a rate are excused.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "capacity")]
pub(crate) struct CapacityFile {
    /// The lowest rate. A variant that does not sustain it has no number.
    #[schemars(required)]
    pub(crate) from: Option<At<Written<PositiveRate>>>,
    /// The highest rate to try. If a variant sustains it, the report contains this rate as its lower
    /// bound.
    #[schemars(required)]
    pub(crate) to: Option<At<Written<PositiveRate>>>,
    /// The limit of the latencies: `10ms`.
    #[schemars(required)]
    pub(crate) p99_below: Option<At<Written<LongerThanZero>>>,
    /// The difference in percent between each rate and the rate before it. It is the resolution of the
    /// result.
    #[schemars(range(min = 1, max = 100), extend("default" = default::STEP_PERCENT))]
    pub(crate) step_percent: Option<At<f64>>,
}
