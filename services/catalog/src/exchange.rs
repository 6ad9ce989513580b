//! One HTTP request and its response.
//!
//! Absent on purpose: batches and subscriptions of GraphQL, compression.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use chassis::{AllowedOrigins, ClientNetwork, ConnectionTable, ForeignHost, Hosts};
use graphql_http::body;
use graphql_http::{Admission, DecodeError, Head, Media, RequestRefusal};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{ALLOW, CONNECTION, CONTENT_TYPE, HeaderValue, ORIGIN, RETRY_AFTER};
use hyper::{Method, Request, Response, StatusCode};
use serde_json::json;
use telemetry::metrics;

use crate::config::Config;
use crate::graphql::{self, Answer, Executor, Question};
use crate::metrics::{Endpoint, Metrics};
use crate::rest::{RestError, Route};
use crate::store::Store;

const JSON: &str = Media::Json.content_type();

type Reply = Response<Full<Bytes>>;

/// The state that a worker needs to handle requests.
pub(crate) struct Handler {
    pub(crate) store: Store,
    executor: Executor,
    metrics: Arc<Metrics>,
    connections: Arc<ConnectionTable>,
    hosts: Hosts,
    origins: AllowedOrigins,
    limit_max: u32,
    /// Largest body of a request, in bytes.
    body_limit: u64,
    body_timeout: Duration,
}

impl chassis::Handler for Handler {
    type Body = Full<Bytes>;

    /// Routes a request by its path.
    async fn answer(&self, client: ClientNetwork, request: Request<Incoming>) -> Reply {
        // First, so that headers of refused requests count too.
        self.metrics.headers(request.headers());
        if let Err(foreign) = self.hosts.check(request.headers(), request.uri()) {
            let message = foreign.to_string();
            let reply = refuse(&RestError::new(
                ForeignHost::STATUS,
                "foreign-host",
                message,
            ));
            self.metrics.answered(Endpoint::Other, reply.status());
            return reply;
        }
        if request.method() == Method::OPTIONS
            && let Some(headers) = self.origins.preflight_of(|name| {
                let value = request.headers().get(name);
                value.map(HeaderValue::as_bytes)
            })
        {
            let mut reply = Response::new(Full::default());
            *reply.status_mut() = StatusCode::NO_CONTENT;
            chassis::add_cors(headers, reply.headers_mut());
            self.metrics.answered(Endpoint::Other, reply.status());
            return reply;
        }
        let origin = request.headers().get(ORIGIN).map(HeaderValue::as_bytes);
        let cors = self.origins.headers(origin);
        let path = request.uri().path();
        let (endpoint, mut reply) = if let Some(rest) = path.strip_prefix("/api/rest/") {
            self.rest(rest, client, &request).await
        } else {
            match path {
                "/v1/graphql" | "/graphql" => {
                    (Endpoint::Graphql, self.graphql(client, request).await)
                }
                "/health" | "/healthz" => (Endpoint::Other, self.health(&request).await),
                "/metrics" => (Endpoint::Other, self.show_metrics(&request)),
                _ => (Endpoint::Other, refuse(&RestError::not_found())),
            }
        };
        chassis::add_cors(cors, reply.headers_mut());
        self.metrics.answered(endpoint, reply.status());
        reply
    }
}

impl Handler {
    pub(crate) fn new(
        store: Store,
        metrics: &Arc<Metrics>,
        connections: &Arc<ConnectionTable>,
        config: &Config,
        hosts: &Hosts,
    ) -> Self {
        Self {
            executor: Executor::new(store.clone(), config.limit_max),
            store,
            metrics: Arc::clone(metrics),
            connections: Arc::clone(connections),
            hosts: hosts.clone(),
            origins: AllowedOrigins::of(&config.cors),
            limit_max: config.limit_max,
            body_limit: config.body_limit(),
            body_timeout: config.request_timeout,
        }
    }

    async fn rest(
        &self,
        path: &str,
        client: ClientNetwork,
        request: &Request<Incoming>,
    ) -> (Endpoint, Reply) {
        let Some(route) = Route::of(path) else {
            return (Endpoint::Other, refuse(&RestError::not_found()));
        };
        let endpoint = route.endpoint();
        if request.method() != Method::GET {
            return (endpoint, not_allowed("GET"));
        }
        let parameters = request.uri().query().unwrap_or_default();
        let visitor = self.store.visitor(client);
        let answer = route.answer(parameters, &self.store, &visitor, self.limit_max);
        let reply = match answer.await {
            Ok(body) => with_body(StatusCode::OK, JSON, body),
            Err(error) => refuse(&error),
        };
        (endpoint, reply)
    }

    async fn graphql(&self, client: ClientNetwork, request: Request<Incoming>) -> Reply {
        let head = Head::of(request.method(), request.headers());
        match graphql_http::admit(head, self.body_limit, false) {
            Admission::ReadParameters(media) => {
                let parameters = request.uri().query().unwrap_or_default();
                let question = graphql_http::from_parameters(parameters);
                self.executed(media, question, client, true).await
            }
            Admission::ReadBody(media) => {
                let read = body::read(request.into_body(), self.body_limit);
                let timeout = self.body_timeout;
                match body::in_time(read, || tokio::time::sleep(timeout)).await {
                    Ok(body) => {
                        let question = graphql_http::from_body(body.as_ref());
                        self.executed(media, question, client, false).await
                    }
                    Err(error) => refused(media, &RequestRefusal::of_body(error, self.body_limit)),
                }
            }
            Admission::Refuse(media, refusal) => refused(media, &refusal),
            Admission::Page => unreachable!("no page is offered"),
        }
    }

    async fn executed(
        &self,
        media: Media,
        question: Result<Question<'_>, DecodeError>,
        client: ClientNetwork,
        is_get: bool,
    ) -> Reply {
        let question = match question {
            Ok(question) => question,
            Err(error) => {
                let body = graphql::refusal(&error.to_string());
                return with_body(StatusCode::BAD_REQUEST, media.content_type(), body);
            }
        };
        match self.executor.execute(question, client, is_get).await {
            Answer::MutationByGet => refused(media, &RequestRefusal::MutationByGet),
            Answer::Executed(body) => with_body(StatusCode::OK, media.content_type(), body),
            Answer::Busy(body) => {
                let status = StatusCode::SERVICE_UNAVAILABLE;
                with_body(status, media.content_type(), body)
            }
            Answer::Refused(body) => {
                let status = status(media.status_of_refused_document());
                with_body(status, media.content_type(), body)
            }
        }
    }

    async fn health(&self, request: &Request<Incoming>) -> Reply {
        if let Some(reply) = unless_read(request) {
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
        unless_read(request).unwrap_or_else(|| {
            let counts = (Arc::clone(&self.metrics), Arc::clone(&self.connections));
            let text = metrics::text(Arc::new(counts));
            with_body(StatusCode::OK, metrics::CONTENT_TYPE, text)
        })
    }
}

fn refused(media: Media, refusal: &RequestRefusal) -> Reply {
    // As on every other path of the service: wrong methods always get the same form of response.
    if let Some(allow) = refusal.allow() {
        return not_allowed(allow);
    }
    let body = graphql::refusal(&refusal.to_string());
    let mut reply = with_body(status(refusal.status()), media.content_type(), body);
    if refusal.closes() {
        // The rest of the body is not read, so the connection cannot carry another request.
        let close = HeaderValue::from_static("close");
        reply.headers_mut().insert(CONNECTION, close);
    }
    reply
}

fn status(code: u16) -> StatusCode {
    StatusCode::from_u16(code).expect("statuses of the draft are valid")
}

/// A refusal, unless the method is GET or HEAD.
fn unless_read(request: &Request<Incoming>) -> Option<Reply> {
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

fn refuse(error: &RestError) -> Reply {
    with_body(error.status, JSON, error.body())
}

fn with_body(status: StatusCode, media: &'static str, body: impl Into<Bytes>) -> Reply {
    let mut reply = Response::new(Full::new(body.into()));
    *reply.status_mut() = status;
    let media = HeaderValue::from_static(media);
    reply.headers_mut().insert(CONTENT_TYPE, media);
    if status == StatusCode::SERVICE_UNAVAILABLE {
        let seconds = HeaderValue::from_static("1");
        reply.headers_mut().insert(RETRY_AFTER, seconds);
    }
    reply
}
