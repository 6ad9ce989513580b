//! The facts about a client's request for `telemetry.instrumentation`.

use std::net::IpAddr;
use std::rc::Rc;
use std::time::Instant;

use bytes::Bytes;
use gateway_extensions::{ClientConnection, ClientHead, Exchange, Facts, StageRequest};
use gateway_telemetry::{Active, Held};
use http::request::Parts;

use crate::http::entrance::Entrance;
use crate::http::reply::Reply;
use crate::http::spans::{self, Traced};
use crate::process::clock;
use crate::process::worker_state::WorkerState;

/// A client's request as it arrived, and its exchange.
#[derive(Debug)]
pub(crate) struct Observed {
    connection: ClientConnection,
    request: StageRequest,
    exchange: Exchange,
    start: Instant,
    /// Counts the request as in flight until its response.
    held: Vec<Held>,
}

impl Observed {
    /// Begins with the head of a request. `None` if no part of the configuration needs the facts.
    pub(crate) fn begin(
        serving: &WorkerState,
        entrance: Entrance,
        parts: &Parts,
        peer: Option<IpAddr>,
        traced: Option<&mut Traced>,
    ) -> Option<Box<Self>> {
        let router = serving.extensions.instrumentation.router.as_ref()?;
        let trace: Option<Active> = traced.as_ref().map(|it| it.active.clone());
        router.begin(traced.and_then(Traced::server));
        let head = ClientHead {
            method: parts.method.clone(),
            uri: parts.uri.clone(),
            headers: parts.headers.clone(),
        };
        let request = StageRequest {
            method: head.method.clone(),
            uri: head.uri.clone(),
            headers: head.headers.clone(),
            body: Bytes::new(),
        };
        let mut exchange = Exchange::new(Rc::new(head));
        exchange.trace = trace;
        let is_tls = serving.generation.tls.is_some();
        let mut observed = Self {
            connection: ClientConnection {
                route: spans::route(&serving.generation, entrance).to_owned(),
                scheme: if is_tls { "https" } else { "http" },
                version: spans::version(parts.version),
                peer,
            },
            request,
            exchange,
            start: clock::now(),
            held: Vec::new(),
        };
        observed.held = router.hold(&observed.facts());
        Some(Box::new(observed))
    }

    /// Adds the body of the request, and logs the events of its arrival.
    pub(crate) fn arrived(&mut self, serving: &WorkerState, body: &Bytes, exchange: &Exchange) {
        self.request.body = body.clone();
        self.keep(exchange);
        if let Some(router) = &serving.extensions.instrumentation.router {
            router.requested(&self.facts());
        }
    }

    /// Keeps the operation and the context of an exchange.
    pub(crate) fn keep(&mut self, exchange: &Exchange) {
        self.exchange = exchange.shared();
    }

    /// Records the response in the span, in metrics and in the log.
    pub(crate) fn answered(
        &self,
        serving: &WorkerState,
        traced: Option<&mut Traced>,
        reply: &Reply,
    ) {
        if let Some(router) = &serving.extensions.instrumentation.router {
            let facts = Facts {
                response: Some(reply),
                took: self.start.elapsed(),
                ..self.facts()
            };
            router.answered(traced.and_then(Traced::server), &facts);
        }
    }

    fn facts(&self) -> Facts<'_> {
        Facts {
            request: Some(&self.request),
            connection: Some(&self.connection),
            ..Facts::new(&self.exchange)
        }
    }
}

/// Records the response to an operation. It is also the only part of a response, or the first of several.
pub(crate) fn operation_answered(
    serving: &WorkerState,
    span: Option<&mut gateway_telemetry::OpenSpan>,
    exchange: &Exchange,
    reply: &Reply,
) {
    if let Some(supergraph) = &serving.extensions.instrumentation.supergraph {
        let facts = operation(exchange, reply);
        supergraph.answered(span, &facts);
        supergraph.part(&facts);
    }
}

/// Records one of several parts of a response.
pub(crate) fn part(serving: &WorkerState, exchange: &Exchange, reply: &Reply) {
    if let Some(supergraph) = &serving.extensions.instrumentation.supergraph {
        supergraph.part(&operation(exchange, reply));
    }
}

fn operation<'a>(exchange: &'a Exchange, reply: &'a Reply) -> Facts<'a> {
    Facts {
        response: Some(reply),
        took: exchange
            .started
            .map(|start| start.elapsed())
            .unwrap_or_default(),
        ..Facts::new(exchange)
    }
}
