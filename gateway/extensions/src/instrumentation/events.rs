//! Events in the log.

use std::collections::BTreeMap;

use gateway_config::{
    Attributes, Condition, EventLevel, EventMoment, EventRule, InstrumentedService,
};
use gateway_telemetry::shortened;
use serde_json::{Map, Value};

use super::attributes::{self, ResolvedAttribute, condition_reads_body};
use super::seen::Seen;
use super::{Facts, LogIds};
use crate::masked_headers::MaskedHeaders;

/// The target of events in the log.
const TARGET: &str = "event";
/// Maximum number of characters of a body in the log.
const BODY_CHARS_MAX: usize = 65_536;

/// An event with its level and its moment.
pub(super) struct Event {
    kind: String,
    message: String,
    level: EventLevel,
    moment: EventMoment,
    attributes: Vec<ResolvedAttribute>,
    condition: Option<Condition>,
    /// True if the line contains the message that passes the service.
    is_standard: bool,
}

/// Resolves the events of a service. Events that are off are left out.
pub(super) fn resolve(
    service: InstrumentedService,
    events: &BTreeMap<String, EventRule>,
) -> Vec<Event> {
    let resolved = events.iter().filter_map(|(name, rule)| {
        let standard = match name.as_str() {
            "request" => Some(EventMoment::Request),
            "response" => Some(EventMoment::Response),
            "error" => Some(EventMoment::Error),
            _ => None,
        };
        let none = Attributes::new();
        let (level, condition, message, moment, attributes) = match rule {
            EventRule::Level(level) => (*level, None, None, standard, &none),
            EventRule::Defined(it) => (
                it.level,
                it.condition.clone(),
                it.message.as_deref(),
                standard.or(it.on),
                &it.attributes,
            ),
        };
        let own = format!("{}.{name}", service.as_str());
        let kind = if standard.is_some() {
            own
        } else {
            name.clone()
        };
        (level != EventLevel::Off).then_some(())?;
        Some(Event {
            message: message.unwrap_or(&kind).to_owned(),
            kind,
            level,
            // The check of the configuration refuses custom events without a moment.
            moment: moment?,
            attributes: attributes::resolve(service, attributes, |_| false),
            condition,
            is_standard: standard.is_some(),
        })
    });
    resolved.collect()
}

impl Event {
    pub(super) fn is_at_request(&self) -> bool {
        self.moment == EventMoment::Request
    }

    pub(super) fn is_at_part(&self) -> bool {
        self.moment == EventMoment::EventResponse
    }

    pub(super) fn is_at_end(&self, has_response: bool, has_failed: bool) -> bool {
        match self.moment {
            EventMoment::Response => has_response,
            EventMoment::Error => has_failed,
            EventMoment::Request | EventMoment::EventResponse => false,
        }
    }

    pub(super) fn reads_body(&self) -> bool {
        let is_whole = self.is_standard && self.moment == EventMoment::Response;
        is_whole
            || condition_reads_body(self.condition.as_ref())
            || self.attributes.iter().any(ResolvedAttribute::reads_body)
    }

    /// Writes the line if the condition holds.
    pub(super) fn log(
        &self,
        service: InstrumentedService,
        seen: &Seen<'_>,
        facts: &Facts<'_>,
        ids: LogIds,
    ) {
        if !seen.meets(self.condition.as_ref()) {
            return;
        }
        let mut values = Map::new();
        if self.is_standard {
            self.add_message(service, seen.masked, facts, &mut values);
        }
        for attribute in &self.attributes {
            if let Some(value) = attribute.value(seen, facts) {
                values.insert(attribute.name.to_string(), value);
            }
        }
        let trace = facts.exchange.trace.as_ref();
        let trace_id = ids.trace.and_then(|format| Some(trace?.shown_id(format)));
        let trace_id = trace_id.as_deref();
        let span_id = trace
            .filter(|_| ids.span)
            .map(|it| it.span_id().to_string());
        let span_id = span_id.as_deref();
        let (kind, message) = (self.kind.as_str(), self.message.as_str());
        let attributes = (!values.is_empty()).then(|| Value::from(values).to_string());
        let attributes = attributes.as_deref();
        // The level is part of a macro's static data, so each level has a macro of its own.
        match self.level {
            EventLevel::Info => {
                tracing::info!(target: TARGET, kind, trace_id, span_id, attributes, "{message}");
            }
            EventLevel::Warn => {
                tracing::warn!(target: TARGET, kind, trace_id, span_id, attributes, "{message}");
            }
            EventLevel::Error => {
                tracing::error!(target: TARGET, kind, trace_id, span_id, attributes, "{message}");
            }
            EventLevel::Off => {}
        }
    }

    /// Adds the request, the response or the failure of a standard event.
    fn add_message(
        &self,
        service: InstrumentedService,
        masked: &MaskedHeaders,
        facts: &Facts<'_>,
        values: &mut Map<String, Value>,
    ) {
        let mut add = |name: &str, value: Value| values.insert(name.to_owned(), value);
        if let Some(subgraph) = facts.subgraph {
            add("subgraph.name", subgraph.into());
        }
        match self.moment {
            EventMoment::Request => {
                let client = &facts.exchange.client;
                let (method, uri, headers) = match facts.request {
                    Some(request) => (&request.method, &request.uri, &request.headers),
                    None => (&client.method, &client.uri, &client.headers),
                };
                add("http.request.method", method.as_str().into());
                add("http.request.uri", uri.to_string().into());
                let headers = masked.shown_request(headers, facts.subgraph);
                add("http.request.headers", headers);
                let body = match (facts.request, service) {
                    (Some(request), _) => &request.body,
                    (None, _) => facts.exchange.client_body.text(),
                };
                add("http.request.body", body_text(body));
            }
            EventMoment::Response => {
                if let Some(response) = facts.response {
                    add("http.response.status_code", response.status.as_u16().into());
                    let headers = masked.shown_response(&response.headers, facts.subgraph);
                    add("http.response.headers", headers);
                    add("http.response.body", body_text(&response.body));
                }
            }
            EventMoment::Error => {
                add("error", facts.failure.unwrap_or_default().into());
            }
            EventMoment::EventResponse => {}
        }
    }
}

fn body_text(body: &[u8]) -> Value {
    shortened(&String::from_utf8_lossy(body), BODY_CHARS_MAX).into()
}
