//! Converts an error that a script throws to a response.

use gateway_telemetry::{TEXT_CHARS_MAX, shortened};
use http::StatusCode;
use rhai::{EvalAltResult, Map};

use super::bounds;
use super::handles::Kind;
use super::values::to_json;
use crate::exchange::Response;
use crate::failure::{self, json_response};

/// The response for an error of a callback. `script` is the path of the callback's script.
pub(super) fn response(error: &EvalAltResult, kind: Kind, script: &str) -> Response {
    if let Some(key) = bounds::exceeded(error) {
        let (kind, error) = (kind.as_str(), error.to_string());
        let error = shortened(&error, TEXT_CHARS_MAX);
        log::error!("rhai at {kind}: `{script}` was ended at `rhai.limits.{key}`: {error}");
        return failure::internal();
    }
    let text = || format!("rhai execution error: '{error}'");
    let Some(map) = thrown_map(error) else {
        tell(error, kind);
        return with_message(StatusCode::INTERNAL_SERVER_ERROR, &text());
    };
    let status = map
        .get("status")
        .and_then(|status| status.as_int().ok())
        .and_then(|status| u16::try_from(status).ok())
        .and_then(|status| StatusCode::from_u16(status).ok());
    // A status outside of HTTP's range is a mistake of the script, like any other error.
    let Some(status) = status else {
        tell(error, kind);
        return with_message(StatusCode::INTERNAL_SERVER_ERROR, &text());
    };
    // A thrown body is an intended response, so it is not logged as an error.
    if let Some(body) = map.get("body").filter(|body| body.is_map()) {
        return json_response(status, to_json(body));
    }
    tell(error, kind);
    match map.get("message") {
        Some(message) => with_message(status, &message.to_string()),
        None => with_message(status, &text()),
    }
}

/// Logs the thrown error. It may contain client input.
fn tell(error: &EvalAltResult, kind: Kind) {
    let error = error.to_string();
    let error = shortened(&error, TEXT_CHARS_MAX);
    log::error!("rhai at {}: {error}", kind.as_str());
}

fn with_message(status: StatusCode, message: &str) -> Response {
    let body = serde_json::json!({"errors": [{ "message": message }]});
    json_response(status, body.to_string())
}

/// The map of `throw #{…}`, at any depth of calls.
fn thrown_map(error: &EvalAltResult) -> Option<Map> {
    match error {
        EvalAltResult::ErrorInFunctionCall(_, _, inner, _)
        | EvalAltResult::ErrorInModule(_, inner, _) => thrown_map(inner),
        EvalAltResult::ErrorRuntime(value, _) => value.clone().try_cast::<Map>(),
        _ => None,
    }
}
