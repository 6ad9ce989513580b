//! The data that telemetry reads and shows.

use gateway_config::{Condition, Selector};
use serde_json::Value;

use crate::condition::{ConditionInput, find, holds};
use crate::masked_headers::MaskedHeaders;

/// The data of a request for telemetry. Conditions compare values, and only shown values are masked.
pub(super) struct Seen<'a> {
    pub(super) data: ConditionInput<'a>,
    pub(super) masked: &'a MaskedHeaders,
}

impl Seen<'_> {
    /// True if there is no condition, or if it holds.
    pub(super) fn meets(&self, condition: Option<&Condition>) -> bool {
        condition.is_none_or(|condition| holds(condition, &self.data))
    }

    /// The value of a selector, or its default. A masked header has a text in its place.
    pub(super) fn shown(&self, selector: &Selector) -> Option<Value> {
        let found = find(&selector.source, &self.data);
        let subgraph = self.data.subgraph;
        let shown = found.map(|value| self.masked.shown(selector, subgraph, value));
        shown.or_else(|| selector.default.clone())
    }
}
