//! The spans of the gateway's own requests, by OpenTelemetry's conventions for HTTP clients.

use gateway_upstream::{Reply, SendError, UpstreamEndpoint};
use http::{HeaderMap, Method};

use crate::span::{SpanKind, kept};
use crate::trace::{Active, OpenSpan};

/// Begins a request: writes the trace into its headers, and opens its span if the trace is recorded.
///
/// `configured` is the configured address, and `endpoint` the address of this request. Templates and scripts
/// can make a different address for each client, so the span's name contains only the configured address.
#[must_use]
pub fn sending(
    trace: Option<&Active>,
    method: &Method,
    configured: &UpstreamEndpoint,
    endpoint: &UpstreamEndpoint,
    headers: &mut HeaderMap,
) -> Option<Box<OpenSpan>> {
    let trace = trace?;
    let named = || format!("{method} {}", kept(configured.uri().path()));
    let Some(mut span) = trace
        .is_recorded()
        .then(|| trace.start(named(), SpanKind::Client))
        .flatten()
    else {
        trace.write(headers);
        return None;
    };
    span.active().write(headers);
    span.set("http.request.method", method.as_str().to_owned());
    // Without a password, and without the query, which may contain a key.
    let uri = endpoint.uri();
    let scheme = uri.scheme_str().unwrap_or("http");
    if let Some(socket) = endpoint.socket() {
        span.set("server.address", socket.display().to_string());
        span.set("network.transport", "unix");
    } else {
        let host = uri.host().unwrap_or_default();
        let port = endpoint.port();
        span.set("server.address", kept(host).to_owned());
        span.set("server.port", port);
        let full = format!("{scheme}://{host}:{port}{}", uri.path());
        span.set("url.full", kept(&full).to_owned());
    }
    Some(span)
}

/// Ends the span of a request with its result.
pub fn sent(mut span: Option<Box<OpenSpan>>, sent: &Result<Reply, SendError>) {
    if let Some(span) = &mut span {
        describe(span, sent);
    }
}

/// Records the result of a request in its span.
pub fn describe(span: &mut OpenSpan, sent: &Result<Reply, SendError>) {
    match sent {
        Ok(reply) => {
            let status = reply.status;
            span.set("http.response.status_code", status.as_u16());
            if status.is_client_error() || status.is_server_error() {
                span.set("error.type", status.as_u16().to_string());
                span.fail(status.canonical_reason().unwrap_or("unknown status"));
            }
        }
        Err(error) => {
            span.set("error.type", kind(error));
            span.fail(kept(&error.to_string()).to_owned());
        }
    }
}

/// A short name for each kind of failure.
fn kind(error: &SendError) -> &'static str {
    match error {
        SendError::Crowded { .. } | SendError::Occupied { .. } => "crowded",
        SendError::Unreachable { .. } => "connect",
        SendError::Tls { .. } => "tls",
        SendError::TimedOut { .. } => "timeout",
        SendError::Closed { .. } => "closed",
        SendError::TooLarge { .. } => "too_large",
        SendError::Malformed { .. } => "malformed",
        SendError::Http2 { .. } => "http2",
    }
}
