//! One HTTP request and its response.
//!
//! Every path is the GraphQL endpoint, as in the original. Only `/metrics` and the health path have their own
//! responses.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use async_graphql::Variables;
use bytes::Bytes;
use chassis::{ClientNetwork, ConnectionTable, ForeignHost, Hosts};
use graphql_http::{DecodeError, DiscardedObject, Media, Negotiated, RequestRefusal, body};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;
use telemetry::metrics;

use crate::advice::Advice;
use crate::cors::Origins;
use crate::graphql::{Answer, Executor, GraphqlRequest};
use crate::metrics::Metrics;

/// Largest body in bytes, as in the original.
const BODY_BYTES_MAX: u64 = 100 * 1024;
/// Time that a client may take to send a body.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

const METHODS: &str = "GET,HEAD,POST,OPTIONS";

type Reply = Response<Full<Bytes>>;

/// The state that a worker needs to handle requests.
pub(crate) struct Handler {
    pub(crate) executor: Executor,
    pub(crate) origins: Origins,
    pub(crate) hosts: Hosts,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) connections: Arc<ConnectionTable>,
}

impl chassis::Handler for Handler {
    type Body = Full<Bytes>;

    /// Handles any request.
    async fn answer(&self, _client: ClientNetwork, request: Request<Incoming>) -> Reply {
        // Before any refusal, because all requests are counted.
        self.metrics.request();
        let is_get = matches!(*request.method(), Method::GET | Method::HEAD);
        let accept = request.headers().get_all(header::ACCEPT).iter();
        let negotiated = graphql_http::negotiate(accept.map(HeaderValue::as_bytes), is_get);
        // As in the original, which responds in JSON for any `Accept` header.
        let negotiated = negotiated.unwrap_or(Negotiated::Response(Media::Json));
        let media = match negotiated {
            Negotiated::Response(media) => media.content_type(),
            // Only for responses other than the page, such as 405.
            Negotiated::Page => Media::Json.content_type(),
        };
        if let Err(foreign) = self.hosts.check(request.headers(), request.uri()) {
            let answer = Answer::no_request(ForeignHost::STATUS, &foreign.to_string());
            return self.in_json(answer, media);
        }
        // Copied, because the request moves into the handler.
        let origin = request.headers().get(header::ORIGIN).cloned();
        let mut reply = match *request.method() {
            Method::OPTIONS => self.options(&request),
            Method::GET | Method::HEAD => self.get(&request, negotiated).await,
            Method::POST => self.in_json(self.post(request).await, media),
            _ => {
                let status = StatusCode::METHOD_NOT_ALLOWED;
                let answer = Answer::no_request(status, "expected GET or POST");
                let mut reply = self.in_json(answer, media);
                set(&mut reply, header::ALLOW, METHODS);
                reply
            }
        };
        self.origins.mark(origin.as_ref(), reply.headers_mut());
        reply
    }
}

impl Handler {
    async fn get(&self, request: &Request<Incoming>, negotiated: Negotiated) -> Reply {
        let parameters = request.uri().query().unwrap_or_default();
        match request.uri().path() {
            "/.well-known/apollo/server-health" => {
                let health = match self.metrics.policy_decides() {
                    None => r#"{"status":"pass"}"#.to_owned(),
                    // Still 200: a restart of this process would not bring Redis back.
                    Some(reason) => format!(
                        r#"{{"status":"warn","output":"the policy decides, because of the store: {reason}"}}"#
                    ),
                };
                return with_body("application/health+json", health);
            }
            "/metrics" if parameters.is_empty() => {
                let counts = (Arc::clone(&self.metrics), Arc::clone(&self.connections));
                return with_body(metrics::CONTENT_TYPE, metrics::text(Arc::new(counts)));
            }
            _ => {}
        }
        let Negotiated::Response(media) = negotiated else {
            let mut reply = with_body(graphiql::CONTENT_TYPE, graphiql::PAGE);
            set(&mut reply, header::VARY, "accept");
            return reply;
        };
        let request = graphql_http::from_parameters::<VariablesText, DiscardedObject>(parameters);
        let request = request.map_err(|error| match error {
            DecodeError::NoQueryParameter => "GET query missing.".to_owned(),
            DecodeError::BadParameter { .. } => BAD_VARIABLES.to_owned(),
            error => error.to_string(),
        });
        let answer = self.executed(request, true).await;
        let is_refused = answer.status == StatusCode::METHOD_NOT_ALLOWED;
        let mut reply = self.in_json(answer, media.content_type());
        if is_refused {
            self.metrics.get_refused();
            set(&mut reply, header::ALLOW, "POST");
        }
        reply
    }

    /// Handles the preflight that a browser sends before a request of another page.
    fn options(&self, request: &Request<Incoming>) -> Reply {
        let mut reply = Response::new(Full::default());
        *reply.status_mut() = StatusCode::NO_CONTENT;
        set(&mut reply, header::ALLOW, METHODS);
        self.origins.permit(request.headers(), reply.headers_mut());
        reply
    }

    async fn post(&self, request: Request<Incoming>) -> Answer {
        if !is_json(&request) {
            let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
            return Answer::no_request(status, "expected content-type application/json");
        }
        let encoding = request.headers().get(header::CONTENT_ENCODING);
        if let Some(refusal) = RequestRefusal::of_coding(encoding.map(HeaderValue::as_bytes)) {
            let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
            return Answer::no_request(status, &refusal.to_string());
        }
        let read = body::read(request.into_body(), BODY_BYTES_MAX);
        let body = match body::in_time(read, || tokio::time::sleep(BODY_TIMEOUT)).await {
            Ok(body) => body,
            Err(error) => {
                let refusal = RequestRefusal::of_body(error, BODY_BYTES_MAX);
                let status = StatusCode::from_u16(refusal.status());
                let status = status.expect("statuses of refusals are valid");
                return Answer::no_request(status, &refusal.to_string());
            }
        };
        let body = body.as_ref();
        match body.trim_ascii_start().first() {
            // The original supports batches, but `graphql_http` does not.
            Some(b'[') => match serde_json::from_slice::<Vec<&RawValue>>(body) {
                Ok(requests) if requests.is_empty() => {
                    Answer::no_request(StatusCode::BAD_REQUEST, NO_QUERY)
                }
                Ok(requests) => self.batch(&requests).await,
                Err(_) => Answer::no_request(StatusCode::BAD_REQUEST, "expected a body of JSON"),
            },
            // Including a body that is not JSON: `one` reports it.
            _ => self.one(body).await,
        }
    }

    /// Executes each of several requests in turn. The status always means success.
    async fn batch(&self, requests: &[&RawValue]) -> Answer {
        let mut body = vec![b'['];
        let mut advice = Advice::default();
        for request in requests {
            if body.len() > 1 {
                body.push(b',');
            }
            // One after the other: requests of one batch may concern one address, and their order matters.
            let answer = self.one(request.get().as_bytes()).await;
            body.extend(answer.body);
            advice.add(answer.advice);
        }
        body.push(b']');
        Answer {
            status: StatusCode::OK,
            body,
            advice,
        }
    }

    async fn one(&self, request: &[u8]) -> Answer {
        let request = graphql_http::from_body::<VariablesText, DiscardedObject>(request);
        let request = request.map_err(|error| match error {
            DecodeError::NoQuery => NO_QUERY.to_owned(),
            error => error.to_string(),
        });
        self.executed(request, false).await
    }

    fn in_json(&self, answer: Answer, media: &'static str) -> Reply {
        let mut reply = with_body(media, answer.body);
        *reply.status_mut() = answer.status;
        answer.advice.write(reply.headers_mut());
        reply
    }

    async fn executed(&self, request: Result<Decoded<'_>, String>, is_get: bool) -> Answer {
        match request {
            Ok(request) => self.executor.execute(request.into(), is_get).await,
            Err(message) => Answer::no_request(StatusCode::BAD_REQUEST, &message),
        }
    }
}

const NO_QUERY: &str = "POST body missing. Did you forget use body-parser middleware?";
const BAD_VARIABLES: &str = "Variables are invalid JSON.";

/// A decoded request.
type Decoded<'a> = graphql_http::GraphqlRequest<'a, VariablesText>;

impl From<Decoded<'_>> for GraphqlRequest {
    fn from(request: Decoded<'_>) -> Self {
        // Some clients send an empty name for an unnamed operation.
        let name = request.operation_name.filter(|name| !name.is_empty());
        Self {
            query: request.query.into_owned(),
            operation_name: name.map(Cow::into_owned),
            variables: request.variables.map_or_else(Variables::default, |it| it.0),
        }
    }
}

/// Variables as an object, or as a string with the JSON of an object, which the original accepts.
struct VariablesText(Variables);

impl<'de> Deserialize<'de> for VariablesText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = match Value::deserialize(deserializer)? {
            Value::String(text) if text.is_empty() => Value::Null,
            Value::String(text) => {
                let value = serde_json::from_str(&text);
                let value = value.map_err(|_| D::Error::custom(BAD_VARIABLES))?;
                // The body was checked, but there this text was one string.
                json_text::check_unambiguous(&text).map_err(D::Error::custom)?;
                value
            }
            value => value,
        };
        match value {
            Value::Null => Ok(Self(Variables::default())),
            Value::Object(_) => Ok(Self(Variables::from_json(value))),
            _ => Err(D::Error::custom("expected `variables` to be an object")),
        }
    }
}

fn is_json(request: &Request<Incoming>) -> bool {
    let value = request.headers().get(header::CONTENT_TYPE);
    graphql_http::is_json(value.map(HeaderValue::as_bytes), &["application/json"])
}

fn with_body(media: &'static str, body: impl Into<Bytes>) -> Reply {
    let mut reply = Response::new(Full::new(body.into()));
    set(&mut reply, header::CONTENT_TYPE, media);
    reply
}

fn set(reply: &mut Reply, name: HeaderName, value: &'static str) {
    reply
        .headers_mut()
        .insert(name, HeaderValue::from_static(value));
}
