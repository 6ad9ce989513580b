//! GraphQL over HTTP and the other paths: converts requests to responses.
//!
//! Absent on purpose: batches, subscriptions, compression. Gateways do not use them with subgraphs.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use chassis::{ClientNetwork, ConnectionTable};
use graphql_http::body;
use graphql_http::{Admission, DecodeError, Head, Media, RequestRefusal};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use serde_json::json;
use telemetry::metrics;

use crate::collected::Collected;
use crate::seen::{Seen, Shard};
use crate::subgraph::{Answer, Name, Subgraphs};

/// Time that a client may take to send a body.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// The response as hyper sends it.
pub(crate) type Reply = Response<Full<Bytes>>;

/// The state that a worker needs to handle requests.
pub(crate) struct Handler {
    pub(crate) subgraphs: RefCell<Subgraphs>,
    pub(crate) seen: Arc<Seen>,
    /// Telemetry that arrived at the collector.
    pub(crate) collected: Arc<Collected>,
    pub(crate) shard: Arc<Shard>,
    pub(crate) connections: Arc<ConnectionTable>,
    pub(crate) delay: Duration,
    /// The `Cache-Control` header of subgraph responses.
    pub(crate) cache_control: Option<HeaderValue>,
    /// Largest body of a request, in bytes.
    pub(crate) body_limit: u64,
}

/// The reason why a request was not executed.
enum NoAnswer {
    Refused(RequestRefusal),
    NotARequest(DecodeError),
}

impl From<RequestRefusal> for NoAnswer {
    fn from(refusal: RequestRefusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<DecodeError> for NoAnswer {
    fn from(error: DecodeError) -> Self {
        Self::NotARequest(error)
    }
}

impl chassis::Handler for Handler {
    type Body = Full<Bytes>;

    /// Routes a request by its path.
    async fn answer(&self, _client: ClientNetwork, request: Request<Incoming>) -> Reply {
        match request.uri().path() {
            "/locations" => self.graphql(Name::Locations, request).await,
            "/reviews" => self.graphql(Name::Reviews, request).await,
            "/seen" => show(&request, || json_reply(&self.seen.look())),
            "/seen/reset" if request.method() == Method::POST => json_reply(&self.seen.reset()),
            "/seen/reset" => method_not_allowed("POST"),
            "/collected" => {
                let counts = self.collected.look().await;
                show(&request, || json_reply(&counts))
            }
            "/v1/traces" => self.collect(request, Collected::traces).await,
            "/v1/metrics" => self.collect(request, Collected::metrics).await,
            "/health" => show(&request, || json_reply(&json!({"status": "UP"}))),
            "/metrics" => show(&request, || self.metrics()),
            path => {
                let known = "/locations, /reviews, /seen, /collected, /v1/traces, /v1/metrics, /health and /metrics";
                refuse(
                    StatusCode::NOT_FOUND,
                    &format!("no `{path}` here; there are {known}"),
                )
            }
        }
    }
}

impl Handler {
    async fn graphql(&self, name: Name, request: Request<Incoming>) -> Reply {
        // Before any refusal: `/seen` counts all arrived requests, and a lab compares this count with the
        // number of sent requests.
        self.seen.count(&self.shard, name, request.headers());
        // Before any decision, because a slow subgraph also refuses slowly.
        if !self.delay.is_zero() {
            tokio::time::sleep(self.delay).await;
        }
        let head = Head::of(request.method(), request.headers());
        let (media, answer) = match graphql_http::admit(head, self.body_limit, false) {
            Admission::ReadBody(media) => (media, self.post(name, request.into_body()).await),
            Admission::ReadParameters(media) => {
                let parameters = request.uri().query().unwrap_or_default();
                (media, self.get(name, parameters).await)
            }
            Admission::Refuse(media, refusal) => return refused(media, &refusal),
            Admission::Page => unreachable!("no page is offered"),
        };
        match answer {
            Ok(answer) => {
                let status = if answer.is_executed {
                    StatusCode::OK
                } else {
                    status(media.status_of_refused_document())
                };
                let mut reply = with_type(status, media.content_type(), answer.body);
                if let Some(control) = &self.cache_control {
                    let headers = reply.headers_mut();
                    headers.insert(CACHE_CONTROL, control.clone());
                }
                reply
            }
            Err(NoAnswer::Refused(refusal)) => refused(media, &refusal),
            Err(NoAnswer::NotARequest(error)) => {
                let body = errors(&error.to_string());
                with_type(StatusCode::BAD_REQUEST, media.content_type(), body)
            }
        }
    }

    async fn post(&self, name: Name, body: Incoming) -> Result<Answer, NoAnswer> {
        let read = body::read(body, self.body_limit);
        let read = body::in_time(read, || tokio::time::sleep(BODY_TIMEOUT)).await;
        let body = read.map_err(|error| RequestRefusal::of_body(error, self.body_limit))?;
        let body = body.as_ref();
        // A separate statement, so that the borrow ends before the execution waits.
        let known = self.subgraphs.borrow().known(name, body);
        if let Some(answer) = known {
            return Ok(answer);
        }
        let question = graphql_http::from_body(body)?;
        // A handle and not a borrow, because other requests of this worker run during the execution.
        let schemas = self.subgraphs.borrow().schemas();
        let answer = schemas.execute(name, question).await;
        // Another request may have cached it meanwhile. Equal bodies have equal responses.
        self.subgraphs.borrow_mut().keep(name, body, &answer);
        Ok(answer)
    }

    /// Receives an OTLP message.
    async fn collect(
        &self,
        request: Request<Incoming>,
        take: impl Fn(&Collected, &Bytes) -> Result<(), prost::DecodeError>,
    ) -> Reply {
        if request.method() != Method::POST {
            return method_not_allowed("POST");
        }
        let read = body::read(request.into_body(), self.body_limit);
        let read = body::in_time(read, || tokio::time::sleep(BODY_TIMEOUT)).await;
        let body = match read.map_err(|error| RequestRefusal::of_body(error, self.body_limit)) {
            Ok(body) => body,
            Err(refusal) => return refused(Media::Json, &refusal),
        };
        match take(&self.collected, &Bytes::copy_from_slice(body.as_ref())) {
            // An empty message of this kind means that everything was accepted.
            Ok(()) => with_type(StatusCode::OK, "application/x-protobuf", Bytes::new()),
            Err(error) => {
                let message = format!("the body is not a message of OTLP in Protobuf: {error}");
                refuse(StatusCode::BAD_REQUEST, &message)
            }
        }
    }

    async fn get(&self, name: Name, parameters: &str) -> Result<Answer, NoAnswer> {
        // Neither looked up in the cache nor cached, because gateways use POST.
        let question = graphql_http::from_parameters(parameters)?;
        let schemas = self.subgraphs.borrow().schemas();
        Ok(schemas.execute(name, question).await)
    }

    fn metrics(&self) -> Reply {
        let counts = (Arc::clone(&self.seen), Arc::clone(&self.connections));
        let text = metrics::text(Arc::new(counts));
        with_type(StatusCode::OK, metrics::CONTENT_TYPE, text)
    }
}

fn refused(media: Media, refusal: &RequestRefusal) -> Reply {
    let body = errors(&refusal.to_string());
    let mut reply = with_type(status(refusal.status()), media.content_type(), body);
    if let Some(allow) = refusal.allow() {
        let allow = HeaderValue::from_static(allow);
        reply.headers_mut().insert(ALLOW, allow);
    }
    if refusal.closes() {
        let close = HeaderValue::from_static("close");
        reply.headers_mut().insert(CONNECTION, close);
    }
    reply
}

fn status(code: u16) -> StatusCode {
    StatusCode::from_u16(code).expect("statuses of the draft are valid")
}

fn show<B>(request: &Request<B>, page: impl FnOnce() -> Reply) -> Reply {
    match *request.method() {
        Method::GET | Method::HEAD => page(),
        _ => method_not_allowed("GET, HEAD"),
    }
}

fn method_not_allowed(allowed: &'static str) -> Reply {
    let message = format!("the methods here are {allowed}");
    let mut reply = refuse(StatusCode::METHOD_NOT_ALLOWED, &message);
    reply
        .headers_mut()
        .insert(ALLOW, HeaderValue::from_static(allowed));
    reply
}

fn refuse(status: StatusCode, message: &str) -> Reply {
    with_type(status, Media::Json.content_type(), errors(message))
}

fn errors(message: &str) -> String {
    json!({"errors": [{"message": message}]}).to_string()
}

fn json_reply(value: &impl serde::Serialize) -> Reply {
    let body = serde_json::to_vec(value).expect("counts have string keys only");
    with_type(StatusCode::OK, "application/json; charset=utf-8", body)
}

fn with_type(status: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> Reply {
    let mut reply = Response::new(Full::new(body.into()));
    *reply.status_mut() = status;
    let content_type = HeaderValue::from_static(content_type);
    reply.headers_mut().insert(CONTENT_TYPE, content_type);
    reply
}
