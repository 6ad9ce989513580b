//! The `@override` labels, and the context entries for them. Stages read and activate labels through these
//! entries.

use gateway_extensions::{Exchange, LABELS_TO_OVERRIDE, UNRESOLVED_LABELS, random};
use gateway_federation::{OverrideLabels, Overrides};
use serde_json::Value;

/// Writes the labels that only stages can activate into the context. `labels` is `None` if the
/// supergraph has no label.
pub(crate) fn announce(labels: Option<&OverrideLabels>, exchange: &Exchange) {
    let Some(labels) = labels else {
        return;
    };
    if !labels.custom().is_empty() {
        let labels = Value::from(labels.custom().to_vec());
        exchange.context.insert(UNRESOLVED_LABELS, labels);
    }
}

/// Draws the labels of a request. Call it once per request, because a second plan for a later stage
/// must not move fields back. A supergraph without labels costs one comparison.
pub(crate) fn draw(labels: Option<&OverrideLabels>, exchange: &Exchange) -> Overrides {
    let Some(labels) = labels else {
        return Overrides::default();
    };
    let overrides = exchange.context.with(LABELS_TO_OVERRIDE, |asked| {
        let asked = asked.and_then(Value::as_array);
        labels.draw(random(), |label| {
            asked.is_some_and(|asked| asked.iter().any(|it| it == label))
        })
    });
    // Later stages see the drawn labels.
    let active = Value::from(labels.active(&overrides));
    exchange.context.insert(LABELS_TO_OVERRIDE, active);
    overrides
}
