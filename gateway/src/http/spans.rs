//! The spans of a request: its response, its operations and their planning.

use gateway_extensions::Exchange;
use gateway_federation::OperationKind;
use gateway_telemetry::{Active, OpenSpan, SpanKind, kept};
use http::header::{HOST, USER_AGENT};
use http::request::Parts;
use http::{StatusCode, Version};

use crate::http::entrance::Entrance;
use crate::http::reply::Reply;
use crate::process::generation::Generation;

/// A request's trace, and the span of its response if the trace is recorded.
pub(crate) struct Traced {
    pub(crate) active: Active,
    server: Option<Box<OpenSpan>>,
}

impl Traced {
    /// Starts the trace of a request. `None` if requests are not traced.
    pub(crate) fn begin(
        generation: &Generation,
        entrance: Entrance,
        parts: &Parts,
        peer: Option<std::net::IpAddr>,
    ) -> Option<Self> {
        let tracer = generation.exports.tracer.as_ref()?;
        let (active, mut server) = tracer.begin(&parts.headers)?;
        if let Some(span) = &mut server {
            let is_tls = generation.tls.is_some();
            let route = route(generation, entrance);
            // An unknown method is not a span name. `early` responds to such a request.
            let method = match parts.method.as_str() {
                method @ ("GET" | "POST" | "PUT" | "DELETE" | "PATCH" | "HEAD") => method,
                _ => "_OTHER",
            };
            let shown = if method == "_OTHER" { "HTTP" } else { method };
            span.name(format!("{shown} {route}"));
            span.set("http.request.method", method.to_owned());
            span.set("http.route", route.to_owned());
            span.set("url.path", kept(parts.uri.path()).to_owned());
            span.set("url.scheme", if is_tls { "https" } else { "http" });
            span.set("network.protocol.version", version(parts.version));
            if let Some(peer) = peer {
                span.set("client.address", peer.to_string());
            }
            describe_host(span, parts);
            if let Some(agent) = parts.headers.get(USER_AGENT)
                && let Ok(agent) = agent.to_str()
            {
                span.set("user_agent.original", kept(agent).to_owned());
            }
        }
        Some(Self { active, server })
    }

    /// The span of the response, if the trace is recorded.
    pub(crate) fn server(&mut self) -> Option<&mut OpenSpan> {
        self.server.as_deref_mut()
    }

    /// Ends the trace. Without a status, the client has disconnected.
    pub(crate) fn end(&mut self, status: Option<StatusCode>) {
        let Some(span) = &mut self.server else {
            return;
        };
        match status {
            Some(status) => {
                span.set("http.response.status_code", status.as_u16());
                if status.is_server_error() {
                    span.set("error.type", status.as_u16().to_string());
                    span.fail(status.canonical_reason().unwrap_or("unknown status"));
                }
            }
            None => span.set("error.type", "client_disconnected"),
        }
    }
}

/// The configured path of an endpoint.
pub(crate) fn route(generation: &Generation, entrance: Entrance) -> &str {
    match entrance {
        Entrance::Graphql => generation.config.supergraph.path.0.0.as_str(),
        Entrance::Rest => "/api/rest/*",
    }
}

/// The number of an HTTP version.
pub(crate) fn version(version: Version) -> &'static str {
    match version {
        Version::HTTP_2 => "2",
        Version::HTTP_10 => "1.0",
        _ => "1.1",
    }
}

/// Records the host and the port that the client used.
fn describe_host(span: &mut OpenSpan, parts: &Parts) {
    let named = parts.headers.get(HOST).and_then(|host| host.to_str().ok());
    let authority = named
        .and_then(|host| host.parse::<http::uri::Authority>().ok())
        .or_else(|| parts.uri.authority().cloned());
    if let Some(authority) = authority {
        span.set("server.address", kept(authority.host()).to_owned());
        if let Some(port) = authority.port_u16() {
            span.set("server.port", port);
        }
    }
}

/// Begins the span of one operation of a request. From here, the work on the operation belongs to this span.
pub(crate) fn operation(exchange: &mut Exchange) -> Option<Box<OpenSpan>> {
    let span = exchange
        .trace
        .as_ref()?
        .start("GraphQL Operation", SpanKind::Internal)?;
    exchange.trace = Some(span.active());
    Some(span)
}

/// Records the kind and the name of the operation after planning.
pub(crate) fn planned(exchange: &Exchange, kind: OperationKind) {
    // Called twice if a stage has changed the operation. The response's span keeps the first values.
    if let Some(trace) = exchange.trace.as_ref().filter(|trace| trace.is_recorded()) {
        trace.describe("graphql.operation.type", kind.as_str());
        if let Some(name) = &exchange.operation_name {
            trace.describe("graphql.operation.name", kept(name).to_owned());
        }
    }
}

/// Ends the span of an operation with its result.
pub(crate) fn answered(
    span: Option<Box<OpenSpan>>,
    exchange: &Exchange,
    reply: &Reply,
    errors: usize,
) {
    let Some(mut span) = span else {
        return;
    };
    if let Some(kind) = exchange.operation_kind {
        // The client chooses the name of the operation, so the span's name does not contain it.
        span.name(kind);
        span.set("graphql.operation.type", kind);
    }
    if let Some(name) = &exchange.operation_name {
        span.set("graphql.operation.name", kept(name).to_owned());
    }
    if errors > 0 {
        span.fail(format!("{errors} errors in the response"));
    } else if !reply.status.is_success() {
        span.fail("refused");
    }
}
