//! GraphQL over HTTP and the paths beside it: a request in, a response out.
//!
//! Absent on purpose: batches, subscriptions, compression. A gateway asks none of its subgraphs
//! for them.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Body, Incoming};
use hyper::header::{ACCEPT, ALLOW, CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use serde_json::json;

use crate::seen::{Seen, Shard};
use crate::subgraph::{self, Answer, Name, Question, Subgraphs};

/// Time that a client may take to send a body.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// The response as hyper sends it.
pub(crate) type Reply = Response<Full<Bytes>>;

/// What a worker answers with.
pub(crate) struct Desk {
    pub(crate) subgraphs: RefCell<Subgraphs>,
    pub(crate) seen: Arc<Seen>,
    pub(crate) shard: Arc<Shard>,
    pub(crate) delay: Duration,
    pub(crate) body_limit: usize,
}

/// Media types of GraphQL responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Media {
    Json,
    GraphqlResponse,
}

/// A refusal: status and what to do.
type Refusal = (StatusCode, String);

impl chassis::Desk for Desk {
    type Body = Full<Bytes>;

    /// Answers any request.
    async fn answer(&self, request: Request<Incoming>) -> Reply {
        match request.uri().path() {
            "/locations" => self.graphql(Name::Locations, request).await,
            "/reviews" => self.graphql(Name::Reviews, request).await,
            "/seen" => show(&request, || json_reply(&self.seen.look())),
            "/seen/reset" if request.method() == Method::POST => json_reply(&self.seen.reset()),
            "/seen/reset" => method_not_allowed("POST"),
            "/health" => show(&request, || json_reply(&json!({"status": "UP"}))),
            "/metrics" => show(&request, || self.metrics()),
            path => {
                let known = "/locations, /reviews, /seen, /health and /metrics";
                refuse(
                    StatusCode::NOT_FOUND,
                    &format!("no `{path}` here; there are {known}"),
                )
            }
        }
    }
}

impl Desk {
    async fn graphql<B>(&self, name: Name, request: Request<B>) -> Reply
    where
        B: Body<Data = Bytes>,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        self.seen.count(&self.shard, name, request.headers());
        if !self.delay.is_zero() {
            tokio::time::sleep(self.delay).await;
        }
        let Some(media) = media(request.headers()) else {
            let offer = "application/json and application/graphql-response+json are what there is";
            return refuse(StatusCode::NOT_ACCEPTABLE, offer);
        };
        let answer = match *request.method() {
            Method::POST => self.post(name, request).await,
            Method::GET => {
                self.get(name, request.uri().query().unwrap_or_default())
                    .await
            }
            _ => return method_not_allowed("GET, POST"),
        };
        match answer {
            Ok(answer) => media.reply(answer),
            Err((status, message)) => refuse(status, &message),
        }
    }

    async fn post<B>(&self, name: Name, request: Request<B>) -> Result<Answer, Refusal>
    where
        B: Body<Data = Bytes>,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        if !is_json(request.headers()) {
            let message = "the content type must be application/json in utf-8".to_owned();
            return Err((StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
        }
        let body = Limited::new(request.into_body(), self.body_limit).collect();
        let body = match tokio::time::timeout(BODY_TIMEOUT, body).await {
            Ok(Ok(body)) => body.to_bytes(),
            Ok(Err(error)) => return Err(self.unread(&*error)),
            Err(_) => {
                let message = "the body did not arrive in time".to_owned();
                return Err((StatusCode::REQUEST_TIMEOUT, message));
            }
        };
        let known = self.subgraphs.borrow().known(name, &body);
        if let Some(answer) = known {
            return Ok(answer);
        }
        let question = Question::from_body(&body).map_err(bad_request)?;
        let schemas = self.subgraphs.borrow().schemas();
        let answer = subgraph::execute(&schemas, name, question).await;
        self.subgraphs.borrow_mut().keep(name, &body, &answer);
        Ok(answer)
    }

    async fn get(&self, name: Name, parameters: &str) -> Result<Answer, Refusal> {
        let question = Question::from_parameters(parameters).map_err(bad_request)?;
        let schemas = self.subgraphs.borrow().schemas();
        Ok(subgraph::execute(&schemas, name, question).await)
    }

    fn unread(&self, error: &(dyn std::error::Error + Send + Sync + 'static)) -> Refusal {
        if error.is::<http_body_util::LengthLimitError>() {
            let message = format!("the body is larger than {} bytes", self.body_limit);
            return (StatusCode::PAYLOAD_TOO_LARGE, message);
        }
        (
            StatusCode::BAD_REQUEST,
            format!("the body ended early: {error}"),
        )
    }

    /// The text format of Prometheus.
    fn metrics(&self) -> Reply {
        let mut text = String::from(
            "# HELP planets_requests_total Requests to a subgraph.\n\
             # TYPE planets_requests_total counter\n",
        );
        for (subgraph, sight) in self.seen.look() {
            let count = sight.requests;
            writeln!(
                text,
                "planets_requests_total{{subgraph=\"{subgraph}\"}} {count}"
            )
            .expect("writing to a string cannot fail");
        }
        with_type(
            StatusCode::OK,
            "text/plain; version=0.0.4; charset=utf-8",
            text,
        )
    }
}

impl Media {
    fn reply(self, answer: Answer) -> Reply {
        // Clients that know only `application/json` look for errors in the body.
        let (status, content_type) = match self {
            Self::Json => (StatusCode::OK, "application/json; charset=utf-8"),
            Self::GraphqlResponse => {
                let is_ok = answer.is_executed;
                let status = if is_ok {
                    StatusCode::OK
                } else {
                    StatusCode::BAD_REQUEST
                };
                (status, "application/graphql-response+json; charset=utf-8")
            }
        };
        with_type(status, content_type, answer.body)
    }
}

/// The first media type of `Accept` that there is; JSON for a client that takes anything.
fn media(headers: &HeaderMap) -> Option<Media> {
    let mut lines = headers.get_all(ACCEPT).iter().peekable();
    if lines.peek().is_none() {
        return Some(Media::Json);
    }
    lines
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(','))
        .find_map(
            |range| match range.split(';').next().unwrap_or_default().trim() {
                "application/json" | "application/*" | "*/*" | "" => Some(Media::Json),
                "application/graphql-response+json" => Some(Media::GraphqlResponse),
                _ => None,
            },
        )
}

fn is_json(headers: &HeaderMap) -> bool {
    let Some(content_type) = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
    else {
        return false;
    };
    let mut parts = content_type.split(';').map(str::trim);
    parts
        .next()
        .is_some_and(|media| media.eq_ignore_ascii_case("application/json"))
        && parts.all(|parameter| {
            let parameter = parameter.to_ascii_lowercase();
            !parameter.starts_with("charset")
                || parameter.replace(['"', '-'], "").ends_with("=utf8")
        })
}

fn bad_request(error: subgraph::QuestionError) -> Refusal {
    (StatusCode::BAD_REQUEST, error.to_string())
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
    let body = json!({"errors": [{"message": message}]}).to_string();
    with_type(status, "application/json; charset=utf-8", body)
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
