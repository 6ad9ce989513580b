//! `telemetry.instrumentation`: attributes of spans, instruments of metrics, and events in the log.
//!
//! A configuration is resolved once into a [`Plan`]. Each worker binds the plan to its own series of metrics.
//! Without the section there is no plan, and a request pays one comparison for each service.
//!
//! Attributes of spans and instruments are evaluated once, at the response. At that time, all values exist.

mod attributes;
mod events;
mod instruments;
mod seen;
mod standard;

use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use gateway_config::{Config, Instrumentation as Written, InstrumentedService, TraceIdFormat};
use gateway_telemetry::{Held, InstrumentHead, OpenSpan, Series, SpanEdits};

use crate::condition::ConditionInput;
use crate::environment::Environment;
use crate::exchange::{Exchange, Response, StageRequest};
use crate::json;
use crate::masked_headers::MaskedHeaders;
use attributes::ResolvedAttribute;
use events::Event;
use instruments::{BoundInstrument, ResolvedInstrument};
use seen::Seen;

/// The facts about the connection of a client's request.
#[derive(Clone, Debug)]
pub struct ClientConnection {
    /// The configured path of the endpoint.
    pub route: String,
    /// The scheme of the request, `http` or `https`.
    pub scheme: &'static str,
    /// The version of HTTP.
    pub version: &'static str,
    /// The address of the client. `None` for a Unix socket.
    pub peer: Option<IpAddr>,
}

/// The facts about one request at one service.
#[derive(Clone, Copy)]
pub struct Facts<'a> {
    /// The client's request with its operation and its context.
    pub exchange: &'a Exchange,
    /// The request at this service. `None` means the client's request.
    pub request: Option<&'a StageRequest>,
    /// The response at this service, if there is one.
    pub response: Option<&'a Response>,
    /// The time since the request.
    pub took: Duration,
    /// The client's connection, at the router.
    pub connection: Option<&'a ClientConnection>,
    /// The reason why there is no response.
    pub failure: Option<&'a str>,
    /// The name of the subgraph, at a subgraph.
    pub subgraph: Option<&'a str>,
    /// Number of times that a subgraph request was sent again.
    pub resend_count: u32,
}

impl<'a> Facts<'a> {
    /// The facts about a request of a client, before its response.
    pub fn new(exchange: &'a Exchange) -> Self {
        Self {
            exchange,
            request: None,
            response: None,
            took: Duration::ZERO,
            connection: None,
            failure: None,
            subgraph: None,
            resend_count: 0,
        }
    }
}

/// The ids in lines of the log about requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogIds {
    /// The format of the trace's id. `None` if lines have no id.
    pub trace: Option<TraceIdFormat>,
    /// True if lines have the id of their span.
    pub span: bool,
}

/// The instrumentation of a configuration, resolved. All workers share it.
pub(crate) struct Plan {
    services: Vec<ServicePlan>,
    masked: MaskedHeaders,
    ids: LogIds,
    environment: Environment,
}

/// The instrumentation of one service, resolved.
struct ServicePlan {
    service: InstrumentedService,
    edits: Arc<SpanEdits>,
    span: Vec<ResolvedAttribute>,
    instruments: Vec<ResolvedInstrument>,
    events: Vec<Event>,
}

impl Plan {
    /// Resolves a configuration. `None` without the section.
    pub(crate) fn of(config: &Config, ids: LogIds, environment: &Environment) -> Option<Self> {
        let written = config.telemetry.instrumentation.as_ref()?;
        let services = InstrumentedService::ALL.map(|service| ServicePlan::new(service, written));
        Some(Self {
            services: services.into_iter().collect(),
            masked: MaskedHeaders::new(&config.headers),
            ids,
            environment: Arc::clone(environment),
        })
    }

    /// The definitions of all instruments.
    pub(crate) fn heads(&self) -> impl Iterator<Item = &Arc<InstrumentHead>> {
        let instruments = self.services.iter().flat_map(|it| &it.instruments);
        instruments.map(|it| &it.head)
    }

    /// Binds the instruments to the series of a worker.
    pub(crate) fn bind(
        self: &Arc<Self>,
        series: &dyn Fn(&Arc<InstrumentHead>) -> Arc<Series>,
    ) -> Instrumentation {
        let mut bound = InstrumentedService::ALL.map(|service| {
            let index = self.services.iter().position(|it| it.service == service)?;
            let plan = &self.services[index];
            let is_empty = plan.edits.removed.is_empty()
                && plan.edits.renamed.is_empty()
                && plan.span.is_empty()
                && plan.instruments.is_empty()
                && plan.events.is_empty();
            let bind = |it: &ResolvedInstrument| series(&it.head);
            (!is_empty).then(|| {
                Rc::new(ServiceInstrumentation {
                    series: plan.instruments.iter().map(bind).collect(),
                    plan: Arc::clone(self),
                    index,
                })
            })
        });
        let [router, supergraph, subgraph] = &mut bound;
        Instrumentation {
            router: router.take(),
            supergraph: supergraph.take(),
            subgraph: subgraph.take(),
        }
    }
}

impl ServicePlan {
    fn new(service: InstrumentedService, written: &Written) -> Self {
        use InstrumentedService::{Router, Subgraph, Supergraph};
        let (spans, instruments, events) = match service {
            Router => (
                &written.spans.router,
                &written.instruments.router,
                &written.events.router,
            ),
            Supergraph => (
                &written.spans.supergraph,
                &written.instruments.supergraph,
                &written.events.supergraph,
            ),
            Subgraph => (
                &written.spans.subgraph,
                &written.instruments.subgraph,
                &written.events.subgraph,
            ),
        };
        let level = written.spans.default_attribute_requirement_level;
        let (span, edits) = attributes::of_span(service, &spans.attributes, level);
        let level = written.instruments.default_requirement_level;
        Self {
            service,
            edits: Arc::new(edits),
            span,
            instruments: instruments::resolve(service, instruments, level),
            events: events::resolve(service, events),
        }
    }
}

/// The instrumentation of one worker. A service without it is `None`.
#[derive(Default)]
pub struct Instrumentation {
    /// The client's HTTP requests.
    pub router: Option<Rc<ServiceInstrumentation>>,
    /// Operations.
    pub supergraph: Option<Rc<ServiceInstrumentation>>,
    pub(crate) subgraph: Option<Rc<ServiceInstrumentation>>,
}

/// The instrumentation of one service in one worker.
pub struct ServiceInstrumentation {
    plan: Arc<Plan>,
    index: usize,
    /// The series of the instruments, in the order of the plan.
    series: Vec<Arc<Series>>,
}

impl ServiceInstrumentation {
    fn service(&self) -> &ServicePlan {
        &self.plan.services[self.index]
    }

    fn seen<'a>(&'a self, facts: &Facts<'a>) -> Seen<'a> {
        let data = ConditionInput {
            request: facts.request,
            response: facts.response,
            subgraph: facts.subgraph,
            resend_count: facts.resend_count,
            failure: facts.failure,
            ..ConditionInput::new(facts.exchange, &*self.plan.environment)
        };
        Seen {
            data,
            masked: &self.plan.masked,
        }
    }

    fn bound(&self) -> impl Iterator<Item = BoundInstrument<'_>> {
        let instruments = self.service().instruments.iter().zip(&self.series);
        instruments.map(|(resolved, series)| BoundInstrument { resolved, series })
    }

    /// True if attributes, values or conditions read the body of a response.
    pub(crate) fn reads_body(&self) -> bool {
        let service = self.service();
        service.span.iter().any(ResolvedAttribute::reads_body)
            || service
                .instruments
                .iter()
                .any(ResolvedInstrument::reads_body)
            || service.events.iter().any(Event::reads_body)
    }

    /// Prepares the span of a request.
    pub fn begin(&self, span: Option<&mut OpenSpan>) {
        let edits = &self.service().edits;
        if let Some(span) = span
            && !(edits.removed.is_empty() && edits.renamed.is_empty())
        {
            span.edit(edits);
        }
    }

    /// Counts a request in flight until the result is dropped.
    pub fn hold(&self, facts: &Facts<'_>) -> Vec<Held> {
        let seen = self.seen(facts);
        let bound = self.bound();
        bound.filter_map(|it| it.hold(&seen, facts)).collect()
    }

    /// Logs the events of a request.
    pub fn requested(&self, facts: &Facts<'_>) {
        let service = self.service();
        if service.events.iter().any(Event::is_at_request) {
            let seen = self.seen(facts);
            let events = service.events.iter().filter(|it| it.is_at_request());
            events.for_each(|event| event.log(service.service, &seen, facts, self.plan.ids));
        }
    }

    /// Records the end of a request: attributes of its span, instruments, and events.
    pub fn answered(&self, span: Option<&mut OpenSpan>, facts: &Facts<'_>) {
        let failure = self.failure(facts);
        let facts = Facts {
            failure: facts.failure.or(failure.as_deref()),
            ..*facts
        };
        let service = self.service();
        let seen = self.seen(&facts);
        if let Some(span) = span {
            attributes::apply(&service.span, span, &seen, &facts);
        }
        for instrument in self.bound().filter(|it| !it.resolved.is_event) {
            instrument.record(&seen, &facts);
        }
        for event in &service.events {
            if event.is_at_end(facts.response.is_some(), facts.failure.is_some()) {
                event.log(service.service, &seen, &facts, self.plan.ids);
            }
        }
    }

    /// Records one part of a response, or a whole response as its only part.
    pub fn part(&self, facts: &Facts<'_>) {
        let service = self.service();
        let seen = self.seen(facts);
        for instrument in self.bound().filter(|it| it.resolved.is_event) {
            instrument.record(&seen, facts);
        }
        for event in service.events.iter().filter(|it| it.is_at_part()) {
            event.log(service.service, &seen, facts, self.plan.ids);
        }
    }

    /// The reason of a failure: the first error of a response with status 5xx. A response of a subgraph is
    /// not a failure.
    fn failure(&self, facts: &Facts<'_>) -> Option<String> {
        if self.service().service == InstrumentedService::Subgraph {
            return None;
        }
        let response = facts.response.filter(|it| it.status.is_server_error())?;
        let status = response.status;
        let reason = status.canonical_reason().unwrap_or("unknown status");
        let message = json::first_error(&response.body);
        Some(message.unwrap_or_else(|| format!("{}: {reason}", status.as_u16())))
    }
}
