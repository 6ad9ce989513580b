//! Responses before they are passed to the HTTP server.

use bytes::Bytes;
use gateway_federation::{GraphqlError, errors_body};
use graphql_http::Media;
use http::StatusCode;
use http::header::{self, HeaderMap, HeaderValue};

/// A whole response, in the form that passes the extensions.
pub(crate) type Reply = gateway_extensions::Response;

/// A response that rejects a request.
pub(crate) type Refusal = Box<Reply>;

pub(crate) const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// The `content-type` of a GraphQL response.
pub(crate) const fn content_type(media: Media) -> HeaderValue {
    HeaderValue::from_static(media.essence())
}

/// A response with a body of this media type.
pub(crate) fn with_body(
    status: StatusCode,
    content_type: HeaderValue,
    body: impl Into<Bytes>,
) -> Reply {
    let mut headers = HeaderMap::with_capacity(4);
    headers.insert(header::CONTENT_TYPE, content_type);
    Reply {
        status,
        headers,
        body: body.into(),
        part: None,
    }
}

/// A response without a body.
pub(crate) fn empty(status: StatusCode) -> Reply {
    Reply {
        status,
        ..Reply::default()
    }
}

/// A response with one GraphQL error.
pub(crate) fn error(status: StatusCode, message: &str, code: &str) -> Reply {
    errors(status, JSON, &[GraphqlError::new(message, code)])
}

/// A response with GraphQL errors.
pub(crate) fn errors(
    status: StatusCode,
    content_type: HeaderValue,
    errors: &[GraphqlError],
) -> Reply {
    with_body(status, content_type, errors_body(errors))
}

/// The response to a request that is not a GraphQL request.
pub(crate) fn invalid_request(status: StatusCode, details: &str) -> Reply {
    let error = GraphqlError::new("Invalid GraphQL request", "INVALID_GRAPHQL_REQUEST")
        .with("details", details);
    errors(status, JSON, &[error])
}

/// Status 504, for the gateway's own time limit or a coprocessor's.
pub(crate) fn timed_out() -> Reply {
    error(
        StatusCode::GATEWAY_TIMEOUT,
        "Your request has been timed out",
        "GATEWAY_TIMEOUT",
    )
}

/// The rejection of a request if its connection has too many running requests.
pub(crate) fn connection_is_busy() -> Reply {
    error(
        StatusCode::SERVICE_UNAVAILABLE,
        "Your connection has too many requests under way",
        "REQUEST_CONCURRENCY_LIMITED",
    )
}

/// Removes headers that belong to a connection or to a replaced body. Extensions can copy them from a
/// request.
pub(crate) fn strip_connection_headers(headers: &mut HeaderMap) {
    gateway_hop::remove_hop_by_hop(headers);
    headers.remove(header::CONTENT_LENGTH);
    headers.remove(header::HOST);
}
