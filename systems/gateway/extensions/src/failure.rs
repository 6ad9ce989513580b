//! What a client is told when a stage or a fetch went wrong.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde_json::{Map, Value, json};

use crate::exchange::Response;

/// A GraphQL error that the gateway attaches to a fetch.
#[derive(Clone, Debug, PartialEq)]
pub struct FetchProblem {
    /// The sentence for people.
    pub message: String,
    /// `code`, `reason` and the like; `service` is added where errors are redacted.
    pub extensions: Map<String, Value>,
}

impl FetchProblem {
    /// `HTTP fetch failed from '<service>': <reason>`.
    pub(crate) fn http(service: &str, reason: &str, status: Option<StatusCode>) -> Self {
        let mut extensions = Map::new();
        extensions.insert("code".into(), "SUBREQUEST_HTTP_ERROR".into());
        extensions.insert("reason".into(), reason.into());
        if let Some(status) = status {
            extensions.insert("http".into(), json!({ "status": status.as_u16() }));
        }
        Self {
            message: format!("HTTP fetch failed from '{service}': {reason}"),
            extensions,
        }
    }

    pub(crate) fn malformed(service: &str, reason: &str) -> Self {
        let mut extensions = Map::new();
        extensions.insert("code".into(), "SUBREQUEST_MALFORMED_RESPONSE".into());
        extensions.insert("reason".into(), reason.into());
        Self {
            message: format!("service '{service}' response was malformed: {reason}"),
            extensions,
        }
    }

    pub(crate) fn timed_out() -> Self {
        let mut extensions = Map::new();
        extensions.insert("code".into(), "GATEWAY_TIMEOUT".into());
        Self {
            message: "Your request has been timed out".into(),
            extensions,
        }
    }

    pub(crate) fn crowded(service: &str) -> Self {
        let mut extensions = Map::new();
        extensions.insert("code".into(), "REQUEST_CONCURRENCY_LIMITED".into());
        Self {
            message: format!("too many requests wait for '{service}'"),
            extensions,
        }
    }

    pub(crate) fn to_value(&self) -> Value {
        json!({ "message": self.message, "extensions": self.extensions })
    }
}

/// A JSON response.
pub(crate) fn json_response(status: StatusCode, body: impl Into<Bytes>) -> Response {
    let mut headers = HeaderMap::with_capacity(1);
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    Response {
        status,
        headers,
        body: body.into(),
        part: None,
    }
}

/// The same, with one GraphQL error.
pub(crate) fn error_response(status: StatusCode, message: &str, code: &str) -> Response {
    let body = json!({"errors": [{"message": message, "extensions": {"code": code}}]});
    json_response(status, body.to_string())
}

/// What a client sees of a defect in a stage; the reason is in the log.
pub(crate) fn internal() -> Response {
    error_response(
        StatusCode::INTERNAL_SERVER_ERROR,
        "internal server error",
        "INTERNAL_SERVER_ERROR",
    )
}

/// What a client sees when too many requests wait for a coprocessor.
pub(crate) fn crowded() -> Response {
    error_response(
        StatusCode::SERVICE_UNAVAILABLE,
        "Your request has been concurrency limited",
        "REQUEST_CONCURRENCY_LIMITED",
    )
}

/// What a client sees of a coprocessor that was too slow.
pub(crate) fn timeout() -> Response {
    error_response(
        StatusCode::GATEWAY_TIMEOUT,
        "Your request has been timed out",
        "GATEWAY_TIMEOUT",
    )
}
