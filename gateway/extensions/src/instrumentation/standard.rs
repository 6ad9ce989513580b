//! The values of standard attributes.

use std::net::IpAddr;

use gateway_config::{CostValue, TraceIdFormat};
use http::header::{HOST, USER_AGENT};
use http::{HeaderMap, Method, Uri};
use serde_json::Value;

use super::Facts;
use crate::cost;

/// The value of a standard attribute. `None` if there is none.
pub(super) fn standard(name: &str, facts: &Facts<'_>) -> Option<Value> {
    of_request(name, facts)
        .or_else(|| of_connection(name, facts))
        .or_else(|| of_response(name, facts))
        .or_else(|| of_operation(name, facts))
}

fn method<'a>(facts: &Facts<'a>) -> &'a Method {
    let client = &facts.exchange.client.method;
    facts.request.map_or(client, |it| &it.method)
}

fn uri<'a>(facts: &Facts<'a>) -> &'a Uri {
    let client = &facts.exchange.client.uri;
    facts.request.map_or(client, |it| &it.uri)
}

fn headers<'a>(facts: &Facts<'a>) -> &'a HeaderMap {
    let client = &facts.exchange.client.headers;
    facts.request.map_or(client, |it| &it.headers)
}

fn of_request(name: &str, facts: &Facts<'_>) -> Option<Value> {
    let header = |name| headers(facts).get(name)?.to_str().ok();
    match name {
        // Clients can invent methods, and each one would be a series of its own.
        "http.request.method" => match method(facts).as_str() {
            method @ ("GET" | "POST" | "PUT" | "DELETE" | "PATCH" | "HEAD" | "OPTIONS") => {
                Some(method.into())
            }
            _ => Some("_OTHER".into()),
        },
        "http.request.body.size" => Some(facts.request?.body.len().into()),
        "url.path" => Some(uri(facts).path().into()),
        "url.query" => Some(uri(facts).query()?.into()),
        "url.full" => {
            let uri = uri(facts);
            let (scheme, authority) = (uri.scheme_str()?, uri.authority()?);
            Some(format!("{scheme}://{}{}", authority.as_str(), uri.path()).into())
        }
        "user_agent.original" => Some(header(USER_AGENT)?.into()),
        "server.address" => match uri(facts).host() {
            Some(host) => Some(host.into()),
            None => {
                let authority: http::uri::Authority = header(HOST)?.parse().ok()?;
                Some(authority.host().into())
            }
        },
        "server.port" => match uri(facts).authority() {
            Some(authority) => Some(authority.port_u16()?.into()),
            None => {
                let authority: http::uri::Authority = header(HOST)?.parse().ok()?;
                Some(authority.port_u16()?.into())
            }
        },
        "http.request.resend_count" => (facts.resend_count > 0).then(|| facts.resend_count.into()),
        _ => None,
    }
}

fn of_connection(name: &str, facts: &Facts<'_>) -> Option<Value> {
    let connection = facts.connection?;
    match name {
        "http.route" => Some(connection.route.as_str().into()),
        "url.scheme" => Some(connection.scheme.into()),
        "network.protocol.name" => Some("http".into()),
        "network.protocol.version" => Some(connection.version.into()),
        "network.transport" => Some(match connection.peer {
            Some(_) => "tcp".into(),
            None => "unix".into(),
        }),
        "network.type" => Some(match connection.peer? {
            IpAddr::V4(_) => "ipv4".into(),
            IpAddr::V6(_) => "ipv6".into(),
        }),
        "network.peer.address" | "client.address" => Some(connection.peer?.to_string().into()),
        _ => None,
    }
}

fn of_response(name: &str, facts: &Facts<'_>) -> Option<Value> {
    match name {
        "http.response.status_code" => Some(facts.response?.status.as_u16().into()),
        "http.response.body.size" => Some(facts.response?.body.len().into()),
        "error.type" => {
            let Some(response) = facts.response else {
                return facts.failure.map(|_| "no_response".into());
            };
            let status = response.status;
            // For a client, status 4xx is an error, too.
            let is_error = match facts.subgraph {
                Some(_) => status.is_client_error() || status.is_server_error(),
                None => status.is_server_error(),
            };
            is_error.then(|| status.as_u16().to_string().into())
        }
        _ => None,
    }
}

fn of_operation(name: &str, facts: &Facts<'_>) -> Option<Value> {
    let exchange = facts.exchange;
    let trace = |format| Some(exchange.trace.as_ref()?.shown_id(format).into());
    match name {
        "graphql.operation.name" => Some(exchange.operation_name.as_deref()?.into()),
        "graphql.operation.type" => Some(exchange.operation_kind?.into()),
        "graphql.document" => exchange.client_body.parsed().get("query").cloned(),
        "subgraph.name" => Some(facts.subgraph?.into()),
        "subgraph.graphql.operation.name" => subgraph_member(facts, "operationName"),
        "subgraph.graphql.document" => subgraph_member(facts, "query"),
        "subgraph.graphql.operation.type" => {
            let query = subgraph_member(facts, "query")?;
            Some(crate::condition::kind_of(query.as_str()?).into())
        }
        "cost.estimated" => cost::value(CostValue::Estimated, &exchange.context),
        "cost.actual" => cost::value(CostValue::Actual, &exchange.context),
        "cost.delta" => cost::value(CostValue::Delta, &exchange.context),
        "cost.result" => cost::value(CostValue::Result, &exchange.context),
        "trace_id" => trace(TraceIdFormat::Hexadecimal),
        "dd.trace_id" => trace(TraceIdFormat::Datadog),
        _ => None,
    }
}

fn subgraph_member(facts: &Facts<'_>, member: &str) -> Option<Value> {
    let request: Value = serde_json::from_slice(&facts.request?.body).ok()?;
    request.get(member).cloned()
}
