//! Sends any request to a service through header rules and stages. Remote schemas and action handlers use it.

use std::borrow::Cow;
use std::time::Duration;

use bytes::Bytes;
use gateway_config::SessionName;
use gateway_telemetry::{TEXT_CHARS_MAX, shortened};
use gateway_upstream::{Call, EndpointError, Reply, SendError, UpstreamEndpoint};
use http::{HeaderMap, HeaderName, Method, Uri, header};

use crate::encoding::{self, ExpandError};
use crate::exchange::{Exchange, Response, StageRequest, Step};
use crate::identifier;
use crate::subgraph::Subgraph;

/// A request to a service.
#[derive(Debug)]
pub struct RelayCall {
    /// The HTTP method.
    pub method: Method,
    /// The URL, if it differs from the service's configured URL.
    pub url: Option<String>,
    /// Headers of the call. Rules and stages add more.
    pub headers: HeaderMap,
    /// The body, sent unchanged unless a stage replaces it.
    pub body: Bytes,
    /// True if the body is a GraphQL request. Then `content-type` and `accept` are fixed.
    pub is_graphql: bool,
    /// True if the request may be sent again when a connection breaks.
    pub is_idempotent: bool,
    /// Time limit from connecting to the end of the response.
    pub timeout: Duration,
}

/// The reason why no response arrived.
#[derive(Debug, thiserror::Error)]
pub enum RelayError {
    /// The URL cannot be called.
    #[error(transparent)]
    Address(#[from] EndpointError),
    /// The connection failed, or the time limit passed.
    #[error(transparent)]
    Send(#[from] SendError),
    /// The response has an unsupported content encoding.
    #[error("subgraph response {0}")]
    Encoding(ExpandError),
}

const GRAPHQL_HEADERS: &[u8] = b"content-type: application/json\r\n\
    accept: application/json, application/graphql-response+json\r\n";
const ACCEPT_JSON: &[u8] = b"accept: application/json\r\n";

/// The client's headers without session headers. The call has the checked session. A rule such as
/// `propagate: {matching: ".*"}` would add the client's unchecked values.
fn without_session(client: &HeaderMap) -> Cow<'_, HeaderMap> {
    let is_session = |name: &HeaderName| name.as_str().starts_with(SessionName::PREFIX);
    if !client.keys().any(is_session) {
        return Cow::Borrowed(client);
    }
    let others = client.iter().filter(|(name, _)| !is_session(name));
    let mut kept = HeaderMap::with_capacity(client.len());
    for (name, value) in others {
        kept.append(name.clone(), value.clone());
    }
    Cow::Owned(kept)
}

impl Subgraph {
    pub(crate) async fn relay(
        &self,
        exchange: &Exchange,
        call: RelayCall,
    ) -> Result<Response, RelayError> {
        let relayed = self.relayed(exchange, call).await;
        // The log contains the address, which clients must not see.
        relayed.inspect_err(|error| {
            let error = error.to_string();
            let error = shortened(&error, 2 * TEXT_CHARS_MAX);
            log::warn!("`{}` at {}: {error}", self.name, self.endpoint.as_str());
        })
    }

    async fn relayed(&self, exchange: &Exchange, call: RelayCall) -> Result<Response, RelayError> {
        let moved = match &call.url {
            None => None,
            Some(url) => Some(self.moved(url)?),
        };
        let mut headers = call.headers;
        // Rules see the configured and forwarded headers and may overwrite them, as at subgraphs.
        if !self.rules.is_empty() {
            let client = without_session(&exchange.client.headers);
            let (context, body) = (&exchange.context, &exchange.client_body);
            self.rules.apply(&client, context, body, &mut headers);
        }
        let endpoint = moved.as_ref().unwrap_or(&self.endpoint);
        let sending = Sending {
            is_graphql: call.is_graphql,
            is_idempotent: call.is_idempotent,
            timeout: call.timeout,
        };
        let request = StageRequest {
            method: call.method,
            uri: Uri::default(),
            headers,
            body: call.body,
        };
        let Some(service) = &self.service else {
            let reply = self.dispatch(exchange, endpoint, request, &sending).await?;
            return Ok(with_cookies_only(reply));
        };
        let id = identifier::uuid_v4();
        let mut request = StageRequest {
            uri: endpoint.uri().clone(),
            ..request
        };
        if let Step::Break(response) = service.request_of(exchange, &mut request, &id).await {
            return Ok(response);
        }
        // Compared by value, because a script may set the URI to its old value. The endpoint's connection
        // pool then stays in use.
        let rewritten = (request.uri != *endpoint.uri())
            .then(|| endpoint.moved_to(&request.uri))
            .transpose()?;
        let endpoint = rewritten.as_ref().unwrap_or(endpoint);
        let reply = self.dispatch(exchange, endpoint, request, &sending).await?;
        let mut response = for_stages(reply);
        service.response_of(exchange, &mut response, &id).await;
        Ok(response)
    }

    fn moved(&self, url: &str) -> Result<UpstreamEndpoint, EndpointError> {
        match url.parse::<Uri>() {
            Ok(uri) => self.endpoint.moved_to(&uri),
            Err(error) => Err(EndpointError::NotAUrl {
                // Truncated, because client input may be part of the URL.
                text: shortened(url, TEXT_CHARS_MAX).into_owned(),
                reason: error.to_string(),
            }),
        }
    }

    async fn dispatch(
        &self,
        exchange: &Exchange,
        endpoint: &UpstreamEndpoint,
        mut request: StageRequest,
        sending: &Sending,
    ) -> Result<Reply, RelayError> {
        let rendered_headers = if sending.is_graphql {
            // Fixed for GraphQL, because the body is JSON even if rules or stages have changed these headers.
            request.headers.remove(header::CONTENT_TYPE);
            request.headers.remove(header::ACCEPT);
            GRAPHQL_HEADERS
        } else if request.headers.contains_key(header::ACCEPT) {
            b""
        } else {
            ACCEPT_JSON
        };
        let mut span = gateway_telemetry::sending(
            exchange.trace.as_ref(),
            &request.method,
            &self.endpoint,
            endpoint,
            &mut request.headers,
        );
        if let Some(span) = &mut span {
            span.set("subgraph.name", self.name.to_string());
        }
        let started = tokio::time::Instant::now();
        let call = Call {
            method: request.method,
            headers: &request.headers,
            rendered_headers,
            body: request.body,
            timeout: Some(sending.timeout),
            reply_bytes_max: self.reply_bytes_max,
            is_idempotent: sending.is_idempotent,
        };
        let sent = self.shared.client.send(endpoint, call).await;
        // Observed before decompression, because the metric is about the service's response.
        let status = sent.as_ref().ok().map(|reply| reply.status.as_u16());
        self.shared
            .observer
            .subgraph(self.index, status, started.elapsed());
        gateway_telemetry::sent(span, &sent);
        let mut reply = sent?;
        if let Some(coding) = reply.content_encoding() {
            let most = self.reply_bytes_max;
            // Boxed: most responses are not compressed and must not reserve memory for it.
            let expanded = encoding::expand(coding, &reply.body, most, encoding::give_way);
            reply.body = Box::pin(expanded).await.map_err(RelayError::Encoding)?;
        }
        Ok(reply)
    }
}

/// A reply that no stage sees. Only its cookies are used, so the other headers are never parsed into a map.
fn with_cookies_only(reply: Reply) -> Response {
    let mut headers = HeaderMap::new();
    for cookie in reply.values(&header::SET_COOKIE) {
        headers.append(header::SET_COOKIE, cookie);
    }
    Response {
        status: reply.status,
        headers,
        body: reply.body,
        part: None,
    }
}

/// The reply in the form that stages see.
fn for_stages(reply: Reply) -> Response {
    let mut headers = reply.headers();
    encoding::end_message_headers(&mut headers);
    Response {
        status: reply.status,
        headers,
        body: reply.body,
        part: None,
    }
}

/// Properties of a request that stages cannot change.
struct Sending {
    is_graphql: bool,
    is_idempotent: bool,
    timeout: Duration,
}
