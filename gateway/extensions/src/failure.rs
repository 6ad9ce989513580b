//! Client responses for failed stages and failed subgraph requests.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde_json::{Map, Value, json};

use crate::exchange::Response;

/// A GraphQL error that the gateway adds to a subgraph response.
#[derive(Clone, Debug, PartialEq)]
pub struct FetchProblem {
    /// The message in plain English.
    pub message: String,
    /// `code`, `reason` and similar members. If errors are redacted, `service` is added.
    pub extensions: Map<String, Value>,
}

impl FetchProblem {
    /// Builds the error `HTTP fetch failed from '<service>': <reason>`.
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

/// Builds a response with a JSON body.
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

/// Builds a JSON response with one GraphQL error.
pub(crate) fn error_response(status: StatusCode, message: &str, code: &str) -> Response {
    let body = json!({"errors": [{"message": message, "extensions": {"code": code}}]});
    json_response(status, body.to_string())
}

/// The client's response if a stage has a defect. Only the log contains the reason.
pub(crate) fn internal() -> Response {
    error_response(
        StatusCode::INTERNAL_SERVER_ERROR,
        "internal server error",
        "INTERNAL_SERVER_ERROR",
    )
}

/// The client's response if too many requests wait for a coprocessor.
pub(crate) fn crowded() -> Response {
    error_response(
        StatusCode::SERVICE_UNAVAILABLE,
        "Your request has been concurrency limited",
        "REQUEST_CONCURRENCY_LIMITED",
    )
}

/// The client's response if a coprocessor was too slow.
pub(crate) fn timeout() -> Response {
    error_response(
        StatusCode::GATEWAY_TIMEOUT,
        "Your request has been timed out",
        "GATEWAY_TIMEOUT",
    )
}
