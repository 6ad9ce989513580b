//! HTTP/2: one connection for all requests to an origin, driven by a task.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};

use crate::call::Call;
use crate::connection::Stream;
use crate::endpoint::{Policy, UpstreamEndpoint};
use crate::error::SendError;
use crate::http1::forwardable;
use crate::reply::{Head, Reply};

/// Opens HTTP/2 on a connection. Spawns a task that reads and writes frames until both sides are done.
pub(crate) async fn open(
    stream: Stream,
    policy: &Policy,
) -> Result<SendRequest<Full<Bytes>>, SendError> {
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder.timer(TokioTimer::new());
    if let Some(interval) = policy.keep_alive_interval {
        builder
            .keep_alive_interval(interval)
            .keep_alive_timeout(policy.keep_alive_timeout);
    }
    let (sender, connection) = builder
        .handshake(TokioIo::new(stream))
        .await
        .map_err(failed)?;
    // Each waiting request receives the error of the connection.
    tokio::spawn(async move { drop(connection.await) });
    Ok(sender)
}

/// Sends `call` and reads the whole response, with at most `limit_bytes` of body.
pub(crate) async fn exchange(
    sender: &mut SendRequest<Full<Bytes>>,
    endpoint: &UpstreamEndpoint,
    call: &Call<'_>,
    limit_bytes: usize,
) -> Result<Reply, SendError> {
    let mut request = http::Request::new(Full::new(call.body.clone()));
    *request.method_mut() = call.method.clone();
    *request.uri_mut() = endpoint.uri().clone();
    *request.version_mut() = http::Version::HTTP_2;
    fill(request.headers_mut(), call);
    // Waits for a free stream. Otherwise a request beyond the limit would fail.
    sender.ready().await.map_err(failed)?;
    let response = sender.send_request(request).await.map_err(failed)?;
    let (parts, body) = response.into_parts();
    let collected = Limited::new(body, limit_bytes)
        .collect()
        .await
        .map_err(|error| match error.downcast::<hyper::Error>() {
            Ok(source) => failed(*source),
            Err(other) => {
                debug_assert!(other.is::<LengthLimitError>(), "{other}");
                SendError::TooLarge { limit_bytes }
            }
        })?;
    let trailers = collected.trailers().cloned().map(Box::new);
    let body = collected.to_bytes();
    Ok(Reply {
        status: parts.status,
        body,
        head: Head::Map(Box::new(parts.headers)),
        trailers,
    })
}

fn fill(headers: &mut HeaderMap, call: &Call<'_>) {
    for (name, value) in forwardable(call.headers) {
        headers.append(name.clone(), value.clone());
    }
    // Rendered for HTTP/1.1, which nearly all calls use. Parsed again here.
    for line in call.rendered_headers.split(|byte| *byte == b'\n') {
        let line = line.trim_ascii();
        let Some(colon) = line.iter().position(|byte| *byte == b':') else {
            continue;
        };
        let name = http::HeaderName::from_bytes(&line[..colon]);
        let value = HeaderValue::from_bytes(line[colon + 1..].trim_ascii());
        if let (Ok(name), Ok(value)) = (name, value) {
            headers.append(name, value);
        }
    }
}

fn failed(source: hyper::Error) -> SendError {
    SendError::Http2 { source }
}
