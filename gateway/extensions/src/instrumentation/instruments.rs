//! Instruments, resolved from their definitions.

use std::collections::BTreeMap;
use std::sync::Arc;

use gateway_config::{
    Attributes, Condition, CostValue, Instrument, InstrumentDefinition, InstrumentType,
    InstrumentedService, Measured, RequirementLevel, Selector,
};
use gateway_telemetry::{
    Held, InstrumentHead, InstrumentKind, Labels, NAME_CHARS_MAX, Series, shortened,
};
use serde_json::Value;

use super::Facts;
use super::attributes::{self, ResolvedAttribute, condition_reads_body};
use super::seen::Seen;
use crate::cost;

/// Bounds of durations, in seconds. The gateway's own metrics have the same bounds.
const SECONDS: [f64; 15] = [
    0.0001, 0.000_25, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5,
    10.0,
];
/// Bounds of sizes, in bytes.
const BYTES: [f64; 10] = [
    64.0,
    256.0,
    1_024.0,
    4_096.0,
    16_384.0,
    65_536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
];
/// Bounds of all other values.
const NUMBERS: [f64; 14] = [
    0.0, 1.0, 2.0, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1_000.0, 2_500.0, 5_000.0, 10_000.0,
];

/// An instrument with the source of its values.
pub(super) struct ResolvedInstrument {
    pub(super) head: Arc<InstrumentHead>,
    /// True if it records each part of a response.
    pub(super) is_event: bool,
    recorded: Recorded,
    attributes: Vec<ResolvedAttribute>,
    condition: Option<Condition>,
}

enum Recorded {
    One,
    /// The duration, with the number of units in a second.
    Duration(f64),
    RequestSize,
    ResponseSize,
    /// The number of requests in flight.
    InFlight,
    Cost(CostValue),
    Selected(Selector),
}

/// An instrument with the series of a worker.
pub(super) struct BoundInstrument<'a> {
    pub(super) resolved: &'a ResolvedInstrument,
    pub(super) series: &'a Arc<Series>,
}

impl ResolvedInstrument {
    pub(super) fn reads_body(&self) -> bool {
        let is_selected = match &self.recorded {
            Recorded::Selected(selector) => selector.source.reads_body(),
            Recorded::ResponseSize => true,
            Recorded::One
            | Recorded::Duration(_)
            | Recorded::RequestSize
            | Recorded::InFlight
            | Recorded::Cost(_) => false,
        };
        is_selected
            || condition_reads_body(self.condition.as_ref())
            || self.attributes.iter().any(ResolvedAttribute::reads_body)
    }

    fn labels(&self, seen: &Seen<'_>, facts: &Facts<'_>) -> Labels {
        let labels = self.attributes.iter().filter_map(|attribute| {
            let text = match attribute.value(seen, facts)? {
                Value::String(text) => text,
                other => other.to_string(),
            };
            let text = shortened(&text, NAME_CHARS_MAX).into_owned();
            Some((Arc::clone(&attribute.name), text))
        });
        labels.collect()
    }

    fn number(&self, seen: &Seen<'_>, facts: &Facts<'_>) -> Option<f64> {
        match &self.recorded {
            Recorded::One => Some(1.0),
            // It counts from the request on, and not at the response.
            Recorded::InFlight => None,
            Recorded::Duration(units) => Some(facts.took.as_secs_f64() * units),
            // A body has fewer bytes than a float can count.
            Recorded::RequestSize => Some(facts.request?.body.len() as f64),
            Recorded::ResponseSize => Some(facts.response?.body.len() as f64),
            Recorded::Cost(form) => cost::value(*form, &facts.exchange.context)?.as_f64(),
            Recorded::Selected(selector) => match seen.shown(selector)? {
                Value::Number(number) => number.as_f64(),
                // Headers are texts.
                Value::String(text) => text.trim().parse().ok(),
                Value::Bool(is_on) => Some(f64::from(u8::from(is_on))),
                _ => None,
            },
        }
    }
}

impl BoundInstrument<'_> {
    /// Records a value if the condition holds and there is a number.
    pub(super) fn record(&self, seen: &Seen<'_>, facts: &Facts<'_>) {
        let resolved = self.resolved;
        if !seen.meets(resolved.condition.as_ref()) {
            return;
        }
        let Some(number) = resolved.number(seen, facts) else {
            return;
        };
        self.series.record(resolved.labels(seen, facts), number);
    }

    /// Counts a request in flight until the result is dropped. `None` for other instruments.
    pub(super) fn hold(&self, seen: &Seen<'_>, facts: &Facts<'_>) -> Option<Held> {
        let is_level = matches!(self.resolved.recorded, Recorded::InFlight);
        is_level.then(|| Held::new(self.series, self.resolved.labels(seen, facts)))
    }
}

/// Resolves the instruments of a service.
pub(super) fn resolve(
    service: InstrumentedService,
    instruments: &BTreeMap<String, Instrument>,
    level: RequirementLevel,
) -> Vec<ResolvedInstrument> {
    let resolved = instruments.iter().filter_map(|(name, instrument)| {
        let is_standard = service.instruments().contains(&name.as_str());
        match instrument {
            Instrument::Switch(false) => None,
            Instrument::Switch(true) if !is_standard => None,
            Instrument::Switch(true) => Some(standard(service, name, &Attributes::new(), level)),
            Instrument::Defined(definition) if is_standard => {
                Some(standard(service, name, &definition.attributes, level))
            }
            Instrument::Defined(definition) => custom(service, name, definition),
        }
    });
    resolved.collect()
}

fn standard(
    service: InstrumentedService,
    name: &str,
    attributes: &Attributes,
    level: RequirementLevel,
) -> ResolvedInstrument {
    let (recorded, unit, bounds) = match name.rsplit('.').next() {
        Some("duration") => (Recorded::Duration(1.0), "s", &SECONDS[..]),
        Some("estimated") => (Recorded::Cost(CostValue::Estimated), "", &cost::BUCKETS[..]),
        Some("actual") => (Recorded::Cost(CostValue::Actual), "", &cost::BUCKETS[..]),
        Some("delta") => (Recorded::Cost(CostValue::Delta), "", &cost::BUCKETS[..]),
        Some("active_requests") => (Recorded::InFlight, "{request}", &[][..]),
        _ if name.contains(".request.body") => (Recorded::RequestSize, "By", &BYTES[..]),
        _ => (Recorded::ResponseSize, "By", &BYTES[..]),
    };
    let description = match (service, &recorded) {
        (_, Recorded::Cost(CostValue::Estimated)) => "What operations were estimated to cost",
        (_, Recorded::Cost(CostValue::Actual)) => "What responses have cost",
        (_, Recorded::Cost(_)) => "Estimated cost of operations minus the cost of their responses",
        (InstrumentedService::Subgraph, Recorded::Duration(_)) => "Requests to subgraphs",
        (InstrumentedService::Subgraph, Recorded::RequestSize) => {
            "Body sizes of requests to subgraphs"
        }
        (InstrumentedService::Subgraph, _) => "Body sizes of responses of subgraphs",
        (_, Recorded::Duration(_)) => "From the head of a GraphQL request to its answer",
        (_, Recorded::RequestSize) => "Body sizes of GraphQL requests",
        (_, Recorded::InFlight) => "GraphQL requests in flight",
        (..) => "Body sizes of answers before compression",
    };
    let is_default =
        |it: &gateway_config::StandardAttribute| it.on_instruments.is_some_and(|at| at <= level);
    ResolvedInstrument {
        head: Arc::new(InstrumentHead {
            name: name.into(),
            kind: match recorded {
                Recorded::InFlight => InstrumentKind::Level,
                _ => InstrumentKind::Histogram,
            },
            unit: unit.to_owned(),
            description: description.to_owned(),
            bounds: bounds.to_vec(),
        }),
        is_event: false,
        recorded,
        attributes: attributes::resolve(service, attributes, is_default),
        condition: None,
    }
}

/// A custom instrument. The check of the configuration refuses instruments without type or value.
fn custom(
    service: InstrumentedService,
    name: &str,
    definition: &InstrumentDefinition,
) -> Option<ResolvedInstrument> {
    let (kind, value) = (definition.r#type?, definition.value.as_ref()?);
    let unit = definition.unit.clone().unwrap_or_default();
    let (units, name_of_unit) = match unit.as_str() {
        "ms" => (1e3, "ms"),
        "us" => (1e6, "us"),
        "ns" => (1e9, "ns"),
        _ => (1.0, "s"),
    };
    let (recorded, is_event) = match value {
        Measured::Unit => (Recorded::One, false),
        Measured::Duration => (Recorded::Duration(units), false),
        Measured::EventUnit => (Recorded::One, true),
        Measured::EventDuration => (Recorded::Duration(units), true),
        Measured::Selected(selector) => (Recorded::Selected(selector.clone()), false),
        Measured::EventSelected(selector) => (Recorded::Selected(selector.clone()), true),
    };
    let is_time = matches!(recorded, Recorded::Duration(_));
    let unit = if is_time {
        name_of_unit.to_owned()
    } else {
        unit
    };
    let bounds = match unit.as_str() {
        "s" | "ms" | "us" | "ns" => SECONDS.iter().map(|bound| bound * units).collect(),
        "By" => BYTES.to_vec(),
        _ => NUMBERS.to_vec(),
    };
    let (kind, bounds) = match kind {
        InstrumentType::Counter => (InstrumentKind::Counter, Vec::new()),
        InstrumentType::Histogram => (InstrumentKind::Histogram, bounds),
    };
    Some(ResolvedInstrument {
        head: Arc::new(InstrumentHead {
            name: name.into(),
            kind,
            unit,
            description: definition.description.clone().unwrap_or_default(),
            bounds,
        }),
        is_event,
        recorded,
        attributes: attributes::resolve(service, &definition.attributes, |_| false),
        condition: definition.condition.clone(),
    })
}
