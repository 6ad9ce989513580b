//! The body of a client's request: its size, and its content coding.

use bytes::Bytes;
use gateway_extensions::ExpandError;
use http::StatusCode;
use http::header::{self, HeaderMap, HeaderValue};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::Incoming;

use crate::http::reply::{self, Refusal, Reply};

/// Reads the whole body, of at most `limit` bytes.
pub(super) async fn read(
    headers: &HeaderMap,
    body: Incoming,
    limit: usize,
) -> Result<Bytes, Refusal> {
    // Rejects a body with a too large `content-length` before reading it. `Limited` below counts the bytes of
    // bodies without a length.
    let announced = headers
        .get(header::CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    if announced.is_some_and(|length| length > limit) {
        return Err(Box::new(too_large()));
    }
    match Limited::new(body, limit).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(Box::new(too_large())),
        Err(_) => Err(invalid("the body ended early or is malformed")),
    }
}

/// Decompresses the body and removes the headers of its coding, as Apollo Router does. `limit` also counts the
/// decompressed bytes.
pub(super) async fn expand(
    headers: &mut HeaderMap,
    body: Bytes,
    limit: usize,
) -> Result<Bytes, Refusal> {
    // Most requests have no coding and do not reserve memory for the work.
    if !headers.contains_key(header::CONTENT_ENCODING) {
        return Ok(body);
    }
    Box::pin(expand_coding(headers, body, limit)).await
}

async fn expand_coding(
    headers: &mut HeaderMap,
    body: Bytes,
    limit: usize,
) -> Result<Bytes, Refusal> {
    let codings = headers.get_all(header::CONTENT_ENCODING).iter();
    let codings: Vec<&[u8]> = codings.map(HeaderValue::as_bytes).collect();
    // Several headers mean the same as one header with a list, which is refused by name.
    let coding = codings.join(&b", "[..]);
    let give_way = async || tokio::task::yield_now().await;
    let expanded = gateway_extensions::expand(&coding, &body, Some(limit), give_way).await;
    let body = expanded.map_err(|error| match error {
        ExpandError::TooLarge(_) => Box::new(too_large()),
        ExpandError::Invalid(_) => invalid(&format!("the body {error}")),
        ExpandError::Unsupported(_) => Box::new(reply::error(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            &format!("the body {error}: expected gzip, deflate, br or identity"),
            "INVALID_CONTENT_ENCODING_HEADER",
        )),
    })?;
    headers.remove(header::CONTENT_ENCODING);
    headers.remove(header::CONTENT_LENGTH);
    Ok(body)
}

fn invalid(message: &str) -> Refusal {
    Box::new(reply::invalid_request(StatusCode::BAD_REQUEST, message))
}

fn too_large() -> Reply {
    let status = StatusCode::PAYLOAD_TOO_LARGE;
    let error = gateway_federation::GraphqlError::new(
        "Request body payload too large",
        "INVALID_GRAPHQL_REQUEST",
    )
    .with("details", "Request body payload too large");
    let mut reply = reply::errors(status, reply::JSON, &[error]);
    // The rest of the body is not read, so the connection cannot carry another request.
    reply
        .headers
        .insert(header::CONNECTION, HeaderValue::from_static("close"));
    reply
}
