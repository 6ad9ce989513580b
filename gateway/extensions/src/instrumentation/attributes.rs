//! Attributes, resolved from their names and levels.

use std::sync::Arc;

use gateway_config::{
    Attribute, Attributes, Condition, InstrumentedService, RequirementLevel, Selector,
    StandardAttribute,
};
use gateway_telemetry::{OpenSpan, SpanEdits, Value as SpanValue, kept};
use serde_json::Value;

use super::Facts;
use super::seen::Seen;
use super::standard::standard;

/// An attribute with the source of its value.
pub(super) struct ResolvedAttribute {
    pub(super) name: Arc<str>,
    source: Source,
}

enum Source {
    Standard(&'static str),
    Selected(Box<Selector>, Option<Condition>),
}

impl ResolvedAttribute {
    /// The value, if there is one and the condition holds.
    pub(super) fn value(&self, seen: &Seen<'_>, facts: &Facts<'_>) -> Option<Value> {
        let value = match &self.source {
            Source::Standard(name) => standard(name, facts)?,
            Source::Selected(selector, condition) => {
                if !seen.meets(condition.as_ref()) {
                    return None;
                }
                seen.shown(selector)?
            }
        };
        Some(value).filter(|value| !value.is_null())
    }

    pub(super) fn reads_body(&self) -> bool {
        match &self.source {
            Source::Standard(_) => false,
            Source::Selected(selector, condition) => {
                selector.source.reads_body() || condition_reads_body(condition.as_ref())
            }
        }
    }
}

pub(super) fn condition_reads_body(condition: Option<&Condition>) -> bool {
    let selectors = condition.map(Condition::selectors).unwrap_or_default();
    selectors.iter().any(|it| it.source.reads_body())
}

/// Resolves attributes. `is_default` decides about standard attributes without a key.
pub(super) fn resolve(
    service: InstrumentedService,
    attributes: &Attributes,
    is_default: impl Fn(&StandardAttribute) -> bool,
) -> Vec<ResolvedAttribute> {
    let standard = service.attributes().iter().filter_map(|it| {
        let name = match attributes.get(it.name) {
            Some(Attribute::Switch(true)) => it.name,
            Some(Attribute::Alias(alias)) => alias,
            Some(Attribute::Switch(false) | Attribute::Selected { .. }) => return None,
            None => Some(it.name).filter(|_| is_default(it))?,
        };
        Some(ResolvedAttribute {
            name: name.into(),
            source: Source::Standard(it.name),
        })
    });
    let selected = attributes.iter().filter_map(|(name, attribute)| {
        let Attribute::Selected {
            selector,
            condition,
        } = attribute
        else {
            return None;
        };
        Some(ResolvedAttribute {
            name: name.as_str().into(),
            source: Source::Selected(selector.clone(), condition.clone()),
        })
    });
    standard.chain(selected).collect()
}

/// The attributes to add to a span, and the changes of its own attributes.
pub(super) fn of_span(
    service: InstrumentedService,
    attributes: &Attributes,
    level: RequirementLevel,
) -> (Vec<ResolvedAttribute>, SpanEdits) {
    let is_at = |it: &StandardAttribute| it.on_spans.is_some_and(|least| least <= level);
    let mut added = resolve(service, attributes, |it| is_at(it));
    // The gateway sets these attributes itself, at the best moment.
    added.retain(|it| match it.source {
        Source::Standard(name) => !service.attribute(name).is_some_and(|it| it.is_built_in),
        Source::Selected(..) => true,
    });
    let mut edits = SpanEdits::default();
    for it in service.attributes().iter().filter(|it| it.is_built_in) {
        match attributes.get(it.name) {
            Some(Attribute::Switch(false)) => edits.removed.push(it.name.into()),
            Some(Attribute::Alias(alias)) => {
                edits.renamed.push((it.name.into(), alias.as_str().into()));
            }
            // A selected value replaces the gateway's own value, and it may be absent.
            Some(Attribute::Selected { .. }) => edits.removed.push(it.name.into()),
            None if !is_at(it) => edits.removed.push(it.name.into()),
            Some(Attribute::Switch(true)) | None => {}
        }
    }
    (added, edits)
}

/// Sets the attributes, the name and the status of a span.
pub(super) fn apply(
    attributes: &[ResolvedAttribute],
    span: &mut OpenSpan,
    seen: &Seen<'_>,
    facts: &Facts<'_>,
) {
    for attribute in attributes {
        let Some(value) = attribute.value(seen, facts) else {
            continue;
        };
        let text = || match &value {
            Value::String(text) => kept(text).to_owned(),
            other => kept(&other.to_string()).to_owned(),
        };
        match &*attribute.name {
            "otel.name" => span.choose_name(text()),
            "otel.status_code" => span.choose_status(text().eq_ignore_ascii_case("error")),
            "otel.status_description" => span.choose_description(text()),
            _ => span.choose(&attribute.name, span_value(&value)),
        }
    }
}

fn span_value(value: &Value) -> SpanValue {
    match value {
        Value::String(text) => kept(text).to_owned().into(),
        Value::Bool(is_on) => SpanValue::Switch(*is_on),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(number), _) => SpanValue::Integer(number),
            (None, Some(number)) => SpanValue::Number(number),
            (None, None) => number.to_string().into(),
        },
        other => kept(&other.to_string()).to_owned().into(),
    }
}
