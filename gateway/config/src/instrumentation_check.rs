//! Checks `telemetry.instrumentation`: names that the gateway does not know, and values that do not exist yet.

use std::collections::BTreeMap;

use crate::attribute::{Attribute, Measured};
use crate::condition::Condition;
use crate::instrumentation::{
    Attributes, EventDefinition, EventMoment, EventRule, Instrument, InstrumentDefinition,
    Instrumentation, Instruments,
};
use crate::original;
use crate::report::Report;
use crate::selector::{Redact, Selector};
use crate::standard_attributes::{InstrumentedService, SPAN_SETTINGS, UNKNOWABLE};

/// The units of durations.
const TIMES: [&str; 4] = ["s", "ms", "us", "ns"];
/// The standard events.
const EVENTS: [&str; 3] = ["request", "response", "error"];

/// The beginnings of names of the gateway's own metrics.
const OWN_METRICS: [&str; 9] = [
    "apollo_router_",
    "cost_",
    "gateway_",
    "graphql_client_",
    "graphql_responses_",
    "graphql_subscriptions",
    "http_client_",
    "http_server_",
    "process_",
];

/// Reports names and values that the gateway cannot honor.
pub(crate) fn check(instrumentation: &Instrumentation, report: &mut Report<'_>) {
    let Instrumentation {
        spans,
        instruments,
        events,
    } = instrumentation;
    use InstrumentedService::{Router, Subgraph, Supergraph};
    for (service, spans) in [
        (Router, &spans.router),
        (Supergraph, &spans.supergraph),
        (Subgraph, &spans.subgraph),
    ] {
        let mut place = Place::new(service, &["spans", service.as_str()], report);
        place.is_span = true;
        place.attributes(&spans.attributes);
    }
    for (service, instruments) in [
        (Router, &instruments.router),
        (Supergraph, &instruments.supergraph),
        (Subgraph, &instruments.subgraph),
    ] {
        for (name, instrument) in instruments {
            let path = ["instruments", service.as_str(), name];
            Place::new(service, &path, report).instrument(name, instrument);
        }
    }
    check_shared_names(instruments, report);
    for (service, events) in [
        (Router, &events.router),
        (Supergraph, &events.supergraph),
        (Subgraph, &events.subgraph),
    ] {
        for (name, event) in events {
            let path = ["events", service.as_str(), name];
            Place::new(service, &path, report).event(name, event);
        }
    }
}

/// Reports metrics with one name and two definitions. Prometheus refuses such metrics.
fn check_shared_names(instruments: &Instruments, report: &mut Report<'_>) {
    let mut known: BTreeMap<String, (&str, &InstrumentDefinition)> = BTreeMap::new();
    for (service, instruments) in [
        ("router", &instruments.router),
        ("supergraph", &instruments.supergraph),
        ("subgraph", &instruments.subgraph),
    ] {
        for (name, instrument) in instruments {
            let Instrument::Defined(definition) = instrument else {
                continue;
            };
            let shown = name.replace(['.', '-', '/'], "_");
            let Some((other, before)) = known.insert(shown, (name, definition)) else {
                continue;
            };
            let is_same = other == name
                && before.r#type == definition.r#type
                && before.unit == definition.unit
                && before.description == definition.description;
            if !is_same {
                let path = ["telemetry", "instrumentation", "instruments", service, name];
                let message = format!(
                    "`{name}` and `{other}` are one metric with two definitions: give one of them another name, or both the same `type`, `unit` and `description`"
                );
                report(&path, message);
            }
        }
    }
}

/// A part of the section, with its service.
struct Place<'a, 'r> {
    service: InstrumentedService,
    path: Vec<&'a str>,
    report: &'a mut Report<'r>,
    /// True if the attributes belong to a span.
    is_span: bool,
    /// True if there is no response yet.
    is_request: bool,
}

impl<'a, 'r> Place<'a, 'r> {
    fn new(service: InstrumentedService, path: &[&'a str], report: &'a mut Report<'r>) -> Self {
        Self {
            service,
            path: [&["telemetry", "instrumentation"], path].concat(),
            report,
            is_span: false,
            is_request: false,
        }
    }

    fn tell(&mut self, keys: &[&str], message: String) {
        let path: Vec<&str> = self.path.iter().chain(keys).copied().collect();
        (self.report)(&path, message);
    }

    fn attributes(&mut self, attributes: &Attributes) {
        for (name, attribute) in attributes {
            let keys = ["attributes", name.as_str()];
            match attribute {
                Attribute::Switch(_) | Attribute::Alias(_) => self.standard(name, &keys),
                Attribute::Selected {
                    selector,
                    condition,
                } => {
                    self.selector(selector, &keys);
                    self.condition(condition.as_ref(), &keys);
                }
            }
        }
    }

    fn standard(&mut self, name: &str, keys: &[&str]) {
        if self.service.attribute(name).is_some() {
            return;
        }
        let service = self.service.as_str();
        let message = if UNKNOWABLE.contains(&name) {
            format!("the gateway does not have `{name}`: remove it")
        } else if self.is_span && SPAN_SETTINGS.contains(&name) {
            format!("`{name}` needs a value: write `static: …`, or another selector")
        } else {
            let known = self.service.attributes().iter().map(|it| it.name);
            let known: Vec<&str> = known.collect();
            format!(
                "`{name}` is not a standard attribute of `{service}`: write a selector, or one of {}",
                known.join(", ")
            )
        };
        self.tell(keys, message);
    }

    fn condition(&mut self, condition: Option<&Condition>, keys: &[&str]) {
        let selectors = condition.map(Condition::selectors).unwrap_or_default();
        let keys = [keys, &["condition"]].concat();
        for selector in selectors {
            if selector.redact == Some(Redact::Mask) {
                let message = "a condition compares the value of the header and shows nothing: remove `redact`";
                self.tell(&keys, message.to_owned());
            }
            self.selector(selector, &keys);
        }
    }

    fn selector(&mut self, selector: &Selector, keys: &[&str]) {
        let source = &selector.source;
        if source.needs_subgraph() && self.service != InstrumentedService::Subgraph {
            let service = self.service.as_str();
            let message = format!(
                "`{service}` has no values of subgraph requests: move it to `subgraph`, or write another selector"
            );
            self.tell(keys, message);
        }
        if self.is_request && source.needs_response() {
            let message = "at the request, there is no response yet: write `on: response`, or a selector of the request";
            self.tell(keys, message.to_owned());
        }
        let is_router = self.service == InstrumentedService::Router;
        if self.is_request && is_router && source.needs_operation() {
            let message = "`router` does not know the operation at the request: write `on: response`, or move it to `supergraph`";
            self.tell(keys, message.to_owned());
        }
    }

    fn instrument(&mut self, name: &str, instrument: &Instrument) {
        // A standard instrument of the original without effect here is not a mistake.
        let path: Vec<String> = self.path.iter().map(|key| (*key).to_owned()).collect();
        if original::find(&path).is_some() {
            return;
        }
        let is_standard = self.service.instruments().contains(&name);
        let definition = match instrument {
            Instrument::Switch(_) if is_standard => return,
            Instrument::Switch(_) => {
                let message = format!(
                    "`{name}` is not a standard instrument of `{}`: write `type` and `value`",
                    self.service.as_str()
                );
                self.tell(&[], message);
                return;
            }
            Instrument::Defined(definition) => definition,
        };
        if is_standard {
            let is_plain = definition.r#type.is_none()
                && definition.value.is_none()
                && definition.unit.is_none()
                && definition.description.is_none()
                && definition.condition.is_none();
            if !is_plain {
                let message =
                    format!("`{name}` is a standard instrument: it can only have `attributes`");
                self.tell(&[], message);
            }
        } else {
            self.custom_instrument(name, definition);
        }
        self.attributes(&definition.attributes);
    }

    fn custom_instrument(&mut self, name: &str, definition: &InstrumentDefinition) {
        if definition.r#type.is_none() || definition.value.is_none() {
            let message = format!(
                "`{name}` is not a standard instrument of `{}`, so it needs `type` (`counter` or `histogram`) and `value`",
                self.service.as_str()
            );
            self.tell(&[], message);
        }
        if !is_metric_name(name) {
            let message = format!(
                "`{name}` cannot be the name of a metric: write letters, digits, `.`, `_`, `-` or `/`, and begin with a letter"
            );
            self.tell(&[], message);
        }
        let shown = name.replace(['.', '-', '/'], "_");
        if let Some(own) = OWN_METRICS.iter().find(|own| shown.starts_with(**own)) {
            let message = format!(
                "`{name}` could be mistaken for a metric of the gateway, which are at `{own}…`: write another name"
            );
            self.tell(&[], message);
        }
        self.measured(definition);
        self.condition(definition.condition.as_ref(), &[]);
    }

    /// Checks the value of a custom instrument.
    fn measured(&mut self, definition: &InstrumentDefinition) {
        match &definition.value {
            Some(Measured::Selected(selector) | Measured::EventSelected(selector)) => {
                self.selector(selector, &["value"]);
            }
            Some(Measured::Duration | Measured::EventDuration) => {
                let unit = definition.unit.as_deref().filter(|unit| !unit.is_empty());
                if unit.is_some_and(|unit| !TIMES.contains(&unit)) {
                    let message = format!(
                        "a duration is in `s`, `ms`, `us` or `ns`, found `{}`",
                        unit.unwrap_or_default()
                    );
                    self.tell(&["unit"], message);
                }
            }
            _ => {}
        }
        let is_event = matches!(
            definition.value,
            Some(Measured::EventUnit | Measured::EventDuration | Measured::EventSelected(_))
        );
        if is_event && self.service != InstrumentedService::Supergraph {
            let message =
                "only `supergraph` has parts of responses: write a value without `event_`";
            self.tell(&["value"], message.to_owned());
        }
    }

    fn event(&mut self, name: &str, event: &EventRule) {
        let is_standard = EVENTS.contains(&name);
        let definition = match event {
            EventRule::Level(_) if is_standard => return,
            EventRule::Level(_) => {
                let message = format!(
                    "`{name}` is not a standard event: write `request`, `response` or `error`, or a custom event with `message`, `level` and `on`"
                );
                self.tell(&[], message);
                return;
            }
            EventRule::Defined(definition) => definition,
        };
        if is_standard {
            self.standard_event(name, definition);
        } else {
            self.custom_event(name, definition);
        }
    }

    fn standard_event(&mut self, name: &str, definition: &EventDefinition) {
        let is_plain = definition.message.is_none()
            && definition.on.is_none()
            && definition.attributes.is_empty();
        if !is_plain {
            let message =
                format!("`{name}` is a standard event: it can only have `level` and `condition`");
            self.tell(&[], message);
        }
        self.is_request = name == "request";
        self.condition(definition.condition.as_ref(), &[]);
    }

    fn custom_event(&mut self, name: &str, definition: &EventDefinition) {
        if definition.message.is_none() || definition.on.is_none() {
            let message = format!(
                "the event `{name}` needs `message`, and `on` (`request`, `response`, `event_response` or `error`)"
            );
            self.tell(&[], message);
        }
        if definition.on == Some(EventMoment::EventResponse)
            && self.service != InstrumentedService::Supergraph
        {
            let message = "only `supergraph` has parts of responses: write `on: response`";
            self.tell(&["on"], message.to_owned());
        }
        self.is_request = definition.on == Some(EventMoment::Request);
        self.attributes(&definition.attributes);
        self.condition(definition.condition.as_ref(), &[]);
    }
}

/// True for the names of instruments that OpenTelemetry allows.
fn is_metric_name(name: &str) -> bool {
    let is_inside = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/".contains(&byte);
    name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.len() <= 255
        && name.bytes().all(is_inside)
}
