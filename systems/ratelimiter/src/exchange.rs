//! One HTTP request and its answer.
//!
//! Every path is the GraphQL endpoint, as in the original; `/metrics` and the health path answer
//! for themselves.

use std::sync::Arc;
use std::time::Duration;

use async_graphql::Variables;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use serde_json::Value;

use crate::graphql::{Answer, Executor, GraphqlRequest};
use crate::metrics::Metrics;

/// Largest body, as the original's.
const BODY_BYTES_MAX: usize = 100 * 1024;
/// Time that a client may take to send a body.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

const JSON: &str = "application/json; charset=utf-8";
const GRAPHQL_JSON: &str = "application/graphql-response+json; charset=utf-8";
const METHODS: &str = "GET,HEAD,POST,OPTIONS";

type Reply = Response<Full<Bytes>>;

/// What a worker needs to answer.
pub(crate) struct Desk {
    pub(crate) executor: Executor,
    pub(crate) metrics: Arc<Metrics>,
}

impl chassis::Desk for Desk {
    type Body = Full<Bytes>;

    /// Answers one request, whatever it is.
    async fn answer(&self, request: Request<Incoming>) -> Reply {
        self.metrics.request();
        let media = if accepts(&request, "application/graphql-response+json") {
            GRAPHQL_JSON
        } else {
            JSON
        };
        let mut reply = match *request.method() {
            Method::OPTIONS => preflight(&request),
            Method::GET | Method::HEAD => self.get(&request, media).await,
            Method::POST => in_json(self.post(request).await, media),
            _ => {
                let status = StatusCode::METHOD_NOT_ALLOWED;
                let answer = Answer::no_request(status, "expected GET or POST");
                let mut reply = in_json(answer, media);
                set(&mut reply, header::ALLOW, METHODS);
                reply
            }
        };
        set(&mut reply, header::ACCESS_CONTROL_ALLOW_ORIGIN, "*");
        reply
    }
}

impl Desk {
    async fn get(&self, request: &Request<Incoming>, media: &'static str) -> Reply {
        let parameters = request.uri().query().unwrap_or_default();
        match request.uri().path() {
            "/.well-known/apollo/server-health" => {
                return with_body("application/health+json", r#"{"status":"pass"}"#);
            }
            "/metrics" if parameters.is_empty() => {
                return with_body("text/plain; version=0.0.4", self.metrics.text());
            }
            _ => {}
        }
        if accepts(request, "text/html") {
            let mut reply = with_body(graphiql::CONTENT_TYPE, graphiql::PAGE);
            set(&mut reply, header::VARY, "accept");
            return reply;
        }
        let answer = match from_parameters(parameters) {
            Ok(request) => self.executor.execute(request).await,
            Err(message) => Answer::no_request(StatusCode::BAD_REQUEST, message),
        };
        in_json(answer, media)
    }

    async fn post(&self, request: Request<Incoming>) -> Answer {
        if !is_json(&request) {
            let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
            return Answer::no_request(status, "expected content-type application/json");
        }
        let body = Limited::new(request.into_body(), BODY_BYTES_MAX).collect();
        let body = match tokio::time::timeout(BODY_TIMEOUT, body).await {
            Ok(Ok(body)) => body.to_bytes(),
            Ok(Err(error)) if error.is::<LengthLimitError>() => {
                let status = StatusCode::PAYLOAD_TOO_LARGE;
                return Answer::no_request(status, "expected a body of at most 102400 bytes");
            }
            Ok(Err(_)) => {
                return Answer::no_request(StatusCode::BAD_REQUEST, "the body broke off");
            }
            Err(_) => {
                let status = StatusCode::REQUEST_TIMEOUT;
                return Answer::no_request(status, "the body did not arrive within 10 s");
            }
        };
        match serde_json::from_slice(&body) {
            Ok(Value::Array(requests)) if !requests.is_empty() => self.batch(requests).await,
            Ok(Value::Object(object)) => self.one(Value::Object(object)).await,
            Ok(_) => Answer::no_request(StatusCode::BAD_REQUEST, NO_QUERY),
            Err(_) => Answer::no_request(StatusCode::BAD_REQUEST, "expected a body of JSON"),
        }
    }

    /// Answers each of several requests in turn. The status is that of the array: done.
    async fn batch(&self, requests: Vec<Value>) -> Answer {
        let mut body = vec![b'['];
        for request in requests {
            if body.len() > 1 {
                body.push(b',');
            }
            body.extend(self.one(request).await.body);
        }
        body.push(b']');
        let status = StatusCode::OK;
        Answer { status, body }
    }

    async fn one(&self, request: Value) -> Answer {
        match from_json(request) {
            Ok(request) => self.executor.execute(request).await,
            Err(message) => Answer::no_request(StatusCode::BAD_REQUEST, message),
        }
    }
}

const NO_QUERY: &str = "POST body missing. Did you forget use body-parser middleware?";
const BAD_VARIABLES: &str = "Variables are invalid JSON.";

/// A request of a JSON body; the variables may be a text that holds JSON.
fn from_json(request: Value) -> Result<GraphqlRequest, &'static str> {
    let Value::Object(mut object) = request else {
        return Err("expected an object with `query`");
    };
    let query = match object.remove("query") {
        Some(Value::String(query)) => query,
        Some(Value::Null) | None => return Err(NO_QUERY),
        Some(_) => return Err("expected `query` to be a text"),
    };
    let operation_name = match object.remove("operationName") {
        Some(Value::String(name)) => Some(name).filter(|name| !name.is_empty()),
        Some(Value::Null) | None => None,
        Some(_) => return Err("expected `operationName` to be a text"),
    };
    if !matches!(
        object.get("extensions"),
        None | Some(Value::Null | Value::Object(_))
    ) {
        return Err("expected `extensions` to be an object");
    }
    let variables = match object.remove("variables") {
        Some(Value::String(text)) if text.is_empty() => Value::Null,
        Some(Value::String(text)) => serde_json::from_str(&text).map_err(|_| BAD_VARIABLES)?,
        Some(value) => value,
        None => Value::Null,
    };
    Ok(GraphqlRequest {
        query,
        operation_name,
        variables: to_variables(variables)?,
    })
}

/// A request of the parameters of a GET.
fn from_parameters(parameters: &str) -> Result<GraphqlRequest, &'static str> {
    let mut request = GraphqlRequest::default();
    for (name, value) in form_urlencoded::parse(parameters.as_bytes()) {
        match &*name {
            "query" => request.query = value.into_owned(),
            "operationName" if !value.is_empty() => {
                request.operation_name = Some(value.into_owned());
            }
            "variables" if !value.is_empty() => {
                let variables = serde_json::from_str(&value).map_err(|_| BAD_VARIABLES)?;
                request.variables = to_variables(variables)?;
            }
            _ => {}
        }
    }
    if request.query.is_empty() {
        return Err("GET query missing.");
    }
    Ok(request)
}

fn to_variables(value: Value) -> Result<Variables, &'static str> {
    match value {
        Value::Null => Ok(Variables::default()),
        Value::Object(_) => Ok(Variables::from_json(value)),
        _ => Err("expected `variables` to be an object"),
    }
}

fn is_json(request: &Request<Incoming>) -> bool {
    let value = request.headers().get(header::CONTENT_TYPE);
    let text = value.and_then(|value| value.to_str().ok());
    let media = text.and_then(|text| text.split(';').next());
    media.is_some_and(|media| media.trim().eq_ignore_ascii_case("application/json"))
}

/// Whether the client names the media type as one that it takes.
fn accepts(request: &Request<Incoming>, media: &str) -> bool {
    let values = request.headers().get_all(header::ACCEPT).iter();
    values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|range| range.split(';').next())
        .any(|range| range.trim().eq_ignore_ascii_case(media))
}

/// What a browser asks before it sends a request from another page.
fn preflight(request: &Request<Incoming>) -> Reply {
    let mut reply = Response::new(Full::default());
    *reply.status_mut() = StatusCode::NO_CONTENT;
    set(
        &mut reply,
        header::ACCESS_CONTROL_ALLOW_METHODS,
        "GET,HEAD,PUT,PATCH,POST,DELETE",
    );
    let asked = request
        .headers()
        .get(header::ACCESS_CONTROL_REQUEST_HEADERS);
    if let Some(names) = asked {
        let name = header::ACCESS_CONTROL_ALLOW_HEADERS;
        reply.headers_mut().insert(name, names.clone());
    }
    reply
}

fn with_body(media: &'static str, body: impl Into<Bytes>) -> Reply {
    let mut reply = Response::new(Full::new(body.into()));
    set(&mut reply, header::CONTENT_TYPE, media);
    reply
}

fn in_json(answer: Answer, media: &'static str) -> Reply {
    let mut reply = with_body(media, answer.body);
    *reply.status_mut() = answer.status;
    reply
}

fn set(reply: &mut Reply, name: HeaderName, value: &'static str) {
    reply
        .headers_mut()
        .insert(name, HeaderValue::from_static(value));
}
