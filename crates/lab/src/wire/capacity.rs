//! The search for the highest rate, as it is written.

use schemars::JsonSchema;
use serde::Deserialize;

use super::default;
use yaml_with_places::At;

use crate::formats::Written;
use crate::quantities::{LongerThanZero, PositiveRate};

/// The rates that are tried, and what makes one of them sustained: 99 % of the latencies, which count
/// from the planned time, stay below a limit, and every request is answered as expected.
///
/// A round begins at `from`, goes up in strides that double, and narrows down between the highest
/// rate that was sustained and the lowest that was not. Each rate is held for `duration`. One that
/// fails is tried again until it has failed three times, so that hiccups of the machine do not end the
/// search. Up to three failures at a rate do not count at all: those while other guests of the host
/// had more than a hundredth of the processor time.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "capacity")]
pub(crate) struct CapacityFile {
    /// The lowest rate. A variant that does not sustain it has no number.
    #[schemars(required)]
    pub(crate) from: Option<At<Written<PositiveRate>>>,
    /// The highest rate that may be tried. What sustains it is said to sustain at least that.
    #[schemars(required)]
    pub(crate) to: Option<At<Written<PositiveRate>>>,
    /// The limit: `10ms`.
    #[schemars(required)]
    pub(crate) p99_below: Option<At<Written<LongerThanZero>>>,
    /// By how many percent each rate exceeds the one before: how finely rates are told apart.
    #[schemars(range(min = 1, max = 100), extend("default" = default::STEP_PERCENT))]
    pub(crate) step_percent: Option<At<f64>>,
}
