//! Messages to a coprocessor.

use gateway_config::{BodyParts, ContextParts};
use http::HeaderMap;
use json_text::write_string;

use super::CoprocessorStage;
use crate::context::old_name;
use crate::exchange::{Exchange, Response, StageRequest};
use crate::json::ResponseParts;
use crate::observer::StageKind;

/// The message of a request stage.
pub(super) fn of_request(
    stage: &CoprocessorStage,
    exchange: &Exchange,
    subgraph: Option<(&str, &str)>,
    request: &StageRequest,
) -> Vec<u8> {
    let mut out = opening(stage, exchange, request.body.len());
    let switches = &stage.stage;
    if switches.headers {
        headers(&request.headers, &mut out);
    }
    if switches.body != BodyParts::Nothing {
        member("body", &mut out);
        if stage.kind.is_router() {
            // At the router, a body is any text and travels as a string. JSON cannot contain bytes that are
            // not UTF-8.
            write_string(&String::from_utf8_lossy(&request.body), &mut out);
        // After the router, a body is JSON and is copied unchanged. The protocol represents a missing body as
        // an empty object.
        } else if request.body.is_empty() {
            out.extend_from_slice(b"{}");
        } else {
            out.extend_from_slice(&request.body);
        }
    }
    context(stage, exchange, &mut out);
    sdl(stage, &mut out);
    if switches.path && stage.kind == StageKind::RouterRequest {
        let path = request.uri.path_and_query();
        text("path", path.map_or("/", |path| path.as_str()), &mut out);
    }
    // As in Apollo Router: these two stages send the method even if it is switched off.
    let is_method_always_sent = matches!(
        stage.kind,
        StageKind::RouterRequest | StageKind::SubgraphRequest
    );
    if switches.method || is_method_always_sent {
        text("method", request.method.as_str(), &mut out);
    }
    if switches.uri {
        text("uri", &request.uri.to_string(), &mut out);
    }
    if switches.query_plan
        && let Some(plan) = &exchange.query_plan
    {
        member("queryPlan", &mut out);
        out.extend_from_slice(plan.json.as_bytes());
    }
    names(stage, subgraph, &mut out);
    out.push(b'}');
    out
}

/// The message of a response stage.
pub(super) fn of_response(
    stage: &CoprocessorStage,
    exchange: &Exchange,
    subgraph: Option<(&str, &str)>,
    response: &Response,
) -> Vec<u8> {
    let mut out = opening(stage, exchange, response.body.len());
    let switches = &stage.stage;
    // Only the first part has headers and a status.
    let is_further = response.is_further();
    if switches.headers && !is_further {
        headers(&response.headers, &mut out);
    }
    match switches.body {
        BodyParts::Nothing => {}
        BodyParts::Everything if stage.kind.is_router() => {
            member("body", &mut out);
            write_string(&String::from_utf8_lossy(&response.body), &mut out);
        }
        BodyParts::Everything => {
            member("body", &mut out);
            out.extend_from_slice(&response.body);
        }
        BodyParts::Selected {
            data,
            errors,
            extensions,
        } => {
            // A body that is not a GraphQL response has no parts. The coprocessor then receives the
            // placeholders.
            let parts = ResponseParts::read(&response.body).unwrap_or_default();
            member("body", &mut out);
            let mut separator = b'{';
            for (name, wanted, part, absent) in [
                ("data", data, parts.data, "null"),
                ("errors", errors, parts.errors, "[]"),
                ("extensions", extensions, parts.extensions, "{}"),
            ] {
                if wanted {
                    out.push(separator);
                    separator = b',';
                    write_string(name, &mut out);
                    out.push(b':');
                    out.extend_from_slice(part.map_or(absent, |part| part.get()).as_bytes());
                }
            }
            // No member was written, so the object still needs its opening brace.
            if separator == b'{' {
                out.push(b'{');
            }
            out.push(b'}');
        }
    }
    context(stage, exchange, &mut out);
    sdl(stage, &mut out);
    if switches.status_code && !is_further {
        member("statusCode", &mut out);
        out.extend_from_slice(response.status.as_str().as_bytes());
    }
    if let Some(part) = response.part
        && !stage.kind.is_router()
    {
        member("hasNext", &mut out);
        out.extend_from_slice(if part.has_next { b"true" } else { b"false" });
    }
    names(stage, subgraph, &mut out);
    out.push(b'}');
    out
}

fn opening(stage: &CoprocessorStage, exchange: &Exchange, body_bytes: usize) -> Vec<u8> {
    // 512 bytes: enough for the members around the body.
    let mut out = Vec::with_capacity(512 + body_bytes);
    out.extend_from_slice(b"{\"version\":1,\"stage\":\"");
    out.extend_from_slice(stage.kind.as_str().as_bytes());
    out.push(b'"');
    if stage.kind.is_request() {
        out.extend_from_slice(b",\"control\":\"continue\"");
    }
    text("id", exchange.id(), &mut out);
    out
}

fn member(name: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
}

fn text(name: &str, value: &str, out: &mut Vec<u8>) {
    member(name, out);
    write_string(value, out);
}

fn headers(headers: &HeaderMap, out: &mut Vec<u8>) {
    member("headers", out);
    let mut separator = b'{';
    for name in headers.keys() {
        out.push(separator);
        separator = b',';
        write_string(name.as_str(), out);
        out.extend_from_slice(b":[");
        let mut is_first = true;
        for value in headers.get_all(name) {
            match std::str::from_utf8(value.as_bytes()) {
                Ok(value) => {
                    if !is_first {
                        out.push(b',');
                    }
                    is_first = false;
                    write_string(value, out);
                }
                Err(_) => {
                    log::warn!("header `{name}` is not UTF-8; the coprocessor does not see it")
                }
            }
        }
        out.push(b']');
    }
    if separator == b'{' {
        out.push(b'{');
    }
    out.push(b'}');
}

fn context(stage: &CoprocessorStage, exchange: &Exchange, out: &mut Vec<u8>) {
    let parts = &stage.stage.context;
    if *parts == ContextParts::Nothing {
        return;
    }
    member("context", out);
    out.extend_from_slice(b"{\"entries\":{");
    exchange.context.entries(|entries| {
        let mut is_first = true;
        for (key, value) in entries {
            let key = match parts {
                ContextParts::Selective(keys) if !keys.contains(key) => continue,
                ContextParts::Deprecated => old_name(key),
                _ => key,
            };
            if !is_first {
                out.push(b',');
            }
            is_first = false;
            write_string(key, out);
            out.push(b':');
            serde_json::to_writer(&mut *out, value)
                .expect("a JSON value written to memory cannot fail");
        }
    });
    out.extend_from_slice(b"}}");
}

fn sdl(stage: &CoprocessorStage, out: &mut Vec<u8>) {
    if let Some(sdl) = &stage.sdl {
        member("sdl", out);
        out.extend_from_slice(sdl.as_bytes());
    }
}

fn names(stage: &CoprocessorStage, subgraph: Option<(&str, &str)>, out: &mut Vec<u8>) {
    if let Some((name, id)) = subgraph {
        if stage.stage.service_name {
            text("serviceName", name, out);
        }
        if stage.stage.subgraph_request_id {
            text("subgraphRequestId", id, out);
        }
    }
}
