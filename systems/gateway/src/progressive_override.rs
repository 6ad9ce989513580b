//! Labels of `@override`, and the context entries by which stages know and activate them.

use gateway_extensions::{Exchange, LABELS_TO_OVERRIDE, UNRESOLVED_LABELS, random};
use gateway_federation::Overrides;
use serde_json::Value;

use crate::serving::Serving;

/// Tells the stages which labels only they can activate.
pub(crate) fn announce(serving: &Serving, exchange: &Exchange) {
    let Some(labels) = serving.generation.engine.override_labels() else {
        return;
    };
    if !labels.custom().is_empty() {
        let labels = Value::from(labels.custom().to_vec());
        exchange.context.insert(UNRESOLVED_LABELS, labels);
    }
}

/// Draws the labels of a request, once: a plan that is made anew after a later stage must not move
/// fields back. A supergraph without labels costs one comparison.
pub(crate) fn draw(serving: &Serving, exchange: &Exchange) -> Overrides {
    let Some(labels) = serving.generation.engine.override_labels() else {
        return Overrides::default();
    };
    let overrides = exchange.context.with(LABELS_TO_OVERRIDE, |asked| {
        let asked = asked.and_then(Value::as_array);
        labels.draw(random(), |label| {
            asked.is_some_and(|asked| asked.iter().any(|it| it == label))
        })
    });
    // Later stages see what the request drew.
    let active = Value::from(labels.active(&overrides));
    exchange.context.insert(LABELS_TO_OVERRIDE, active);
    overrides
}
