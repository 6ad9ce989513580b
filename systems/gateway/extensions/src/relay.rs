//! Any request to a service, on its way through header rules and stages: remote schemas and
//! handlers of actions.

use std::borrow::Cow;
use std::time::Duration;

use bytes::Bytes;
use gateway_config::SessionName;
use gateway_telemetry::{TEXT_CHARS_MAX, shortened};
use gateway_upstream::{Call, Endpoint, EndpointError, Reply, SendError};
use http::{HeaderMap, HeaderName, Method, Uri, header};

use crate::encoding;
use crate::exchange::{Exchange, Request, Response, Step};
use crate::identifier;
use crate::subgraph::Subgraph;

/// A request to a service.
#[derive(Debug)]
pub struct RelayCall {
    /// The method.
    pub method: Method,
    /// The URL when it is not the service's own.
    pub url: Option<String>,
    /// Headers; rules and stages add theirs.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
    /// Whether the body is a GraphQL request, which is said in its headers.
    pub is_graphql: bool,
    /// Whether it may be sent again when a connection breaks.
    pub is_idempotent: bool,
    /// How long connecting and the whole answer may take.
    pub timeout: Duration,
}

/// Why nothing came back.
#[derive(Debug, thiserror::Error)]
pub enum RelayError {
    /// The URL cannot be called.
    #[error(transparent)]
    Address(#[from] EndpointError),
    /// The call failed.
    #[error(transparent)]
    Send(#[from] SendError),
    /// The answer is compressed in an unsupported way.
    #[error("{0}")]
    Encoding(String),
}

const GRAPHQL_HEADERS: &[u8] = b"content-type: application/json\r\n\
    accept: application/json, application/graphql-response+json\r\n";
const ACCEPT_JSON: &[u8] = b"accept: application/json\r\n";

/// The client's headers without those that tell of a session. The call has the true ones; a rule
/// such as `propagate: {matching: ".*"}` would add what the client says of itself.
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
        // With the address, which clients are not told.
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
        let request = Request {
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
        let mut request = Request {
            uri: endpoint.uri().clone(),
            ..request
        };
        if let Step::Break(response) = service.request_of(exchange, &mut request, &id).await {
            return Ok(response);
        }
        // Compared by value: a script may set the URI to what it was, and the connection pool of
        // the endpoint then stays in use.
        let rewritten = (request.uri != *endpoint.uri())
            .then(|| endpoint.moved_to(&request.uri))
            .transpose()?;
        let endpoint = rewritten.as_ref().unwrap_or(endpoint);
        let reply = self.dispatch(exchange, endpoint, request, &sending).await?;
        let mut response = for_stages(reply);
        service.response_of(exchange, &mut response, &id).await;
        Ok(response)
    }

    fn moved(&self, url: &str) -> Result<Endpoint, EndpointError> {
        match url.parse::<Uri>() {
            Ok(uri) => self.endpoint.moved_to(&uri),
            Err(error) => Err(EndpointError::NotAUrl {
                // Made from what a client has sent.
                text: shortened(url, TEXT_CHARS_MAX).into_owned(),
                reason: error.to_string(),
            }),
        }
    }

    async fn dispatch(
        &self,
        exchange: &Exchange,
        endpoint: &Endpoint,
        mut request: Request,
        sending: &Sending,
    ) -> Result<Reply, RelayError> {
        let rendered_headers = if sending.is_graphql {
            // Fixed for GraphQL: the body is JSON, whatever rules and stages have left in these
            // headers.
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
        // Observed before decoding: the metric is about the service's answer, not about ours.
        let status = sent.as_ref().ok().map(|reply| reply.status.as_u16());
        self.shared
            .observer
            .subgraph(self.index, status, started.elapsed());
        gateway_telemetry::sent(span, &sent);
        let mut reply = sent?;
        if let Some(coding) = reply.content_encoding() {
            let most = self.reply_bytes_max;
            // Boxed: most answers are not compressed, and have no room for it.
            let expanded = encoding::expand(coding, &reply.body, most, encoding::give_way);
            reply.body = Box::pin(expanded).await.map_err(RelayError::Encoding)?;
        }
        Ok(reply)
    }
}

/// A reply that no stage sees. Only its cookies are used, so the other headers are never parsed into
/// a map.
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

/// A reply as stages see it.
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

/// What holds for a request whatever stages make of it.
struct Sending {
    is_graphql: bool,
    is_idempotent: bool,
    timeout: Duration,
}
