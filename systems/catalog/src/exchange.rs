//! One HTTP request and its answer.
//!
//! Absent on purpose: batches and subscriptions of GraphQL, compression.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::header::{ACCEPT, ALLOW, CONNECTION, CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use serde_json::json;

use crate::config::Config;
use crate::graphql::{self, Answer, Executor, Question};
use crate::metrics::{Endpoint, Metrics};
use crate::rest::{RestError, Route};
use crate::store::Store;

const JSON: &str = "application/json; charset=utf-8";
const GRAPHQL_JSON: &str = "application/graphql-response+json; charset=utf-8";

type Reply = Response<Full<Bytes>>;

/// What a worker answers with.
pub(crate) struct Desk {
    pub(crate) store: Store,
    executor: Executor,
    metrics: Arc<Metrics>,
    limit_max: u32,
    body_limit: usize,
    body_timeout: Duration,
}

/// Media types of GraphQL responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Media {
    Json,
    GraphqlResponse,
}

impl chassis::Desk for Desk {
    type Body = Full<Bytes>;

    /// Answers one request, whatever it is.
    async fn answer(&self, request: Request<Incoming>) -> Reply {
        self.metrics.headers(request.headers());
        let path = request.uri().path();
        let (endpoint, reply) = if let Some(rest) = path.strip_prefix("/api/rest/") {
            self.rest(rest, &request).await
        } else {
            match path {
                "/v1/graphql" | "/graphql" => (Endpoint::Graphql, self.graphql(request).await),
                "/health" => (Endpoint::Other, self.health(&request).await),
                "/metrics" => (Endpoint::Other, self.show_metrics(&request)),
                _ => (Endpoint::Other, refuse(&RestError::not_found())),
            }
        };
        self.metrics.answered(endpoint, reply.status());
        reply
    }
}

impl Desk {
    pub(crate) fn new(store: Store, metrics: Arc<Metrics>, config: &Config) -> Self {
        Self {
            executor: Executor::new(store.clone(), config.limit_max),
            store,
            metrics,
            limit_max: config.limit_max,
            body_limit: config.body_limit(),
            body_timeout: config.request_timeout,
        }
    }

    async fn rest(&self, path: &str, request: &Request<Incoming>) -> (Endpoint, Reply) {
        let Some(route) = Route::of(path) else {
            return (Endpoint::Other, refuse(&RestError::not_found()));
        };
        let endpoint = route.endpoint();
        if request.method() != Method::GET {
            return (endpoint, not_allowed("GET"));
        }
        let parameters = request.uri().query().unwrap_or_default();
        let answer = route.answer(parameters, &self.store, self.limit_max);
        let reply = match answer.await {
            Ok(body) => with_body(StatusCode::OK, JSON, body),
            Err(error) => refuse(&error),
        };
        (endpoint, reply)
    }

    async fn graphql(&self, request: Request<Incoming>) -> Reply {
        let Some(media) = media(request.headers()) else {
            let offer = "expected to be asked for application/json or \
                         application/graphql-response+json";
            return refuse_graphql(StatusCode::NOT_ACCEPTABLE, offer);
        };
        let is_get = *request.method() == Method::GET;
        let question = match *request.method() {
            Method::GET => Question::from_parameters(request.uri().query().unwrap_or_default())
                .map_err(|error| refuse_graphql(StatusCode::BAD_REQUEST, &error.to_string())),
            Method::POST => self.posted(request).await,
            _ => return not_allowed("GET, POST"),
        };
        let question = match question {
            Ok(question) => question,
            Err(reply) => return reply,
        };
        match self.executor.execute(question, is_get).await {
            Answer::MutationByGet => not_allowed("POST"),
            Answer::Executed(body) => media.reply(StatusCode::OK, body),
            Answer::Refused(body) => media.reply(StatusCode::BAD_REQUEST, body),
        }
    }

    async fn posted(&self, request: Request<Incoming>) -> Result<Question, Reply> {
        if !is_json(request.headers()) {
            let message = "expected content-type application/json in utf-8";
            return Err(refuse_graphql(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
        }
        let body = Limited::new(request.into_body(), self.body_limit).collect();
        let body = match tokio::time::timeout(self.body_timeout, body).await {
            Ok(Ok(body)) => body.to_bytes(),
            Ok(Err(error)) if error.is::<LengthLimitError>() => {
                let message = format!("expected a body of at most {} bytes", self.body_limit);
                return Err(last(refuse_graphql(
                    StatusCode::PAYLOAD_TOO_LARGE,
                    &message,
                )));
            }
            Ok(Err(error)) => {
                let message = format!("the body ended early: {error}");
                return Err(last(refuse_graphql(StatusCode::BAD_REQUEST, &message)));
            }
            Err(_) => {
                let message = format!("the body did not arrive within {:?}", self.body_timeout);
                return Err(last(refuse_graphql(StatusCode::REQUEST_TIMEOUT, &message)));
            }
        };
        Question::from_body(&body)
            .map_err(|error| refuse_graphql(StatusCode::BAD_REQUEST, &error.to_string()))
    }

    async fn health(&self, request: &Request<Incoming>) -> Reply {
        if let Some(reply) = unseen(request) {
            return reply;
        }
        let database = self.store.kind();
        let (status, body) = match self.store.check().await {
            Ok(()) => (
                StatusCode::OK,
                json!({"status": "UP", "database": database}),
            ),
            Err(error) => (
                StatusCode::SERVICE_UNAVAILABLE,
                json!({"status": "DOWN", "database": database, "reason": error.to_string()}),
            ),
        };
        with_body(status, JSON, body.to_string())
    }

    fn show_metrics(&self, request: &Request<Incoming>) -> Reply {
        let media = "text/plain; version=0.0.4; charset=utf-8";
        unseen(request).unwrap_or_else(|| with_body(StatusCode::OK, media, self.metrics.text()))
    }
}

impl Media {
    fn reply(self, status: StatusCode, body: Vec<u8>) -> Reply {
        match self {
            // Clients that know only `application/json` look for errors in the body.
            Self::Json => with_body(StatusCode::OK, JSON, body),
            Self::GraphqlResponse => with_body(status, GRAPHQL_JSON, body),
        }
    }
}

/// The first media type of `Accept` that there is; JSON for a client that takes anything.
fn media(headers: &HeaderMap) -> Option<Media> {
    let mut lines = headers.get_all(ACCEPT).iter().peekable();
    if lines.peek().is_none() {
        return Some(Media::Json);
    }
    let ranges = lines
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(','));
    let mut names = ranges.map(|range| range.split(';').next().unwrap_or_default().trim());
    names.find_map(|name| match name {
        "application/json" | "application/*" | "*/*" | "" => Some(Media::Json),
        "application/graphql-response+json" => Some(Media::GraphqlResponse),
        _ => None,
    })
}

fn is_json(headers: &HeaderMap) -> bool {
    let value = headers.get(CONTENT_TYPE);
    let Some(text) = value.and_then(|value| value.to_str().ok()) else {
        return false;
    };
    let mut parts = text.split(';').map(str::trim);
    let media = parts.next().unwrap_or_default();
    let is_other_charset = |parameter: &str| {
        let parameter = parameter.to_ascii_lowercase();
        parameter.starts_with("charset") && !parameter.replace(['"', '-'], "").ends_with("=utf8")
    };
    media.eq_ignore_ascii_case("application/json") && !parts.any(is_other_charset)
}

/// The answer to a method that does not look.
fn unseen(request: &Request<Incoming>) -> Option<Reply> {
    let looks = matches!(*request.method(), Method::GET | Method::HEAD);
    (!looks).then(|| not_allowed("GET, HEAD"))
}

fn not_allowed(methods: &'static str) -> Reply {
    let message = format!("Allowed methods: {methods}");
    let error = RestError::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "method-not-allowed",
        message,
    );
    let mut reply = refuse(&error);
    let methods = HeaderValue::from_static(methods);
    reply.headers_mut().insert(ALLOW, methods);
    reply
}

/// The rest of the body is not read, so the connection cannot go on.
fn last(mut reply: Reply) -> Reply {
    let close = HeaderValue::from_static("close");
    reply.headers_mut().insert(CONNECTION, close);
    reply
}

fn refuse(error: &RestError) -> Reply {
    with_body(error.status, JSON, error.body())
}

fn refuse_graphql(status: StatusCode, message: &str) -> Reply {
    with_body(status, JSON, graphql::refusal(message))
}

fn with_body(status: StatusCode, media: &'static str, body: impl Into<Bytes>) -> Reply {
    let mut reply = Response::new(Full::new(body.into()));
    *reply.status_mut() = status;
    let media = HeaderValue::from_static(media);
    reply.headers_mut().insert(CONTENT_TYPE, media);
    reply
}
